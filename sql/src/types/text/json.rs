//! Elements of JSON arrays and members of objects, each as its own text: a number keeps all its digits.

use serde::de::IgnoredAny;

/// Elements as texts: strings as what they say, null as `None`, anything else as it is written. `None` where `t` is no JSON array.
pub fn elements(t: &str) -> Option<Vec<Option<String>>> {
    serde_json::from_str::<Vec<IgnoredAny>>(t).ok()?;
    pieces(t, '[', ']').into_iter().map(value).collect()
}

/// As [`elements`], by their keys. A key that is there twice is there twice.
pub fn members(t: &str) -> Option<Vec<(String, Option<String>)>> {
    let t = t.trim();
    serde_json::from_str::<std::collections::HashMap<String, IgnoredAny>>(t).ok()?;
    let member = |piece: &str| {
        let end = string_end(piece)?;
        let key: String = serde_json::from_str(piece.get(..end)?).ok()?;
        Some((key, value(piece.get(end..)?.trim_start().strip_prefix(':')?)?))
    };
    pieces(t, '{', '}').into_iter().map(member).collect()
}

fn value(piece: &str) -> Option<Option<String>> {
    let piece = piece.trim();
    match piece.as_bytes().first()? {
        b'"' => serde_json::from_str(piece).ok().map(Some),
        b'n' => Some(None),
        _ => Some(Some(piece.to_owned())),
    }
}

/// The byte behind the string that `t` begins with.
fn string_end(t: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, b) in t.bytes().enumerate().skip(1) {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// What stands between the commas of valid JSON's outermost brackets.
fn pieces(t: &str, open: char, close: char) -> Vec<&str> {
    let Some(inside) = t.trim().strip_prefix(open).and_then(|t| t.strip_suffix(close)) else { return Vec::new() };
    if inside.trim().is_empty() {
        return Vec::new();
    }
    let (mut out, mut start, mut depth, mut quoted, mut escaped) = (Vec::new(), 0, 0usize, false, false);
    for (at, b) in inside.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                out.push(inside[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(inside[start..].trim());
    out
}

#[cfg(test)]
mod tests;
