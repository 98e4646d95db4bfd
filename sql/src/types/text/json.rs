//! Elements of JSON arrays and members of objects, each as its own text: a number keeps all its digits.

use serde::de::IgnoredAny;

/// Elements as texts: strings as what they say, null as `None`, anything else as it is written. `None` where `t` is no JSON array.
pub fn elements(t: &str) -> Option<Vec<Option<String>>> {
    serde_json::from_str::<Vec<IgnoredAny>>(t).ok()?;
    pieces(t, '[', ']').into_iter().map(text_of).collect()
}

/// As [`elements`], by their keys. A key that is there twice is there twice.
pub fn members(t: &str) -> Option<Vec<(String, Option<String>)>> {
    raw_members(t).ok()?.into_iter().map(|(key, piece)| Some((key, text_of(piece)?))).collect()
}

/// The members of an object as they are written, by their keys.
///
/// # Errors
/// Why it is none.
pub fn raw_members(t: &str) -> Result<Vec<(String, &str)>, String> {
    let t = t.trim();
    serde_json::from_str::<std::collections::HashMap<String, IgnoredAny>>(t).map_err(|e| e.to_string())?;
    let member = |piece| -> Option<(String, &str)> {
        let piece: &str = piece;
        let end = string_end(piece)?;
        let key: String = serde_json::from_str(piece.get(..end)?).ok()?;
        Some((key, piece.get(end..)?.trim_start().strip_prefix(':')?.trim()))
    };
    pieces(t, '{', '}').into_iter().map(|piece| member(piece).ok_or_else(|| "a key cannot be read".to_owned())).collect()
}

/// The elements of a valid array as they are written.
pub fn raw_elements(t: &str) -> Vec<&str> {
    pieces(t, '[', ']')
}

/// What a valid piece of JSON is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    Flag,
    Number,
    Text,
    List,
    Object,
}

pub fn kind(piece: &str) -> Kind {
    match piece.as_bytes().first() {
        Some(b'n') | None => Kind::Null,
        Some(b't' | b'f') => Kind::Flag,
        Some(b'"') => Kind::Text,
        Some(b'[') => Kind::List,
        Some(b'{') => Kind::Object,
        Some(_) => Kind::Number,
    }
}

/// A valid piece as a text: a string as what it says, null as none, anything else as it is written.
pub fn value(piece: &str) -> Option<String> {
    text_of(piece).flatten()
}

fn text_of(piece: &str) -> Option<Option<String>> {
    let piece = piece.trim();
    match kind(piece) {
        Kind::Text => serde_json::from_str(piece).ok().map(Some),
        Kind::Null => Some(None),
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
