//! PostgreSQL's numeric: text as written, binary in groups of four decimal digits.

use bytes::{BufMut, BytesMut};
use std::fmt::Write;

/// `unscaled` * 10^-scale with `scale` digits after the point.
pub fn write_decimal_text(out: &mut BytesMut, unscaled: i128, scale: i8) {
    let digits = unscaled.unsigned_abs().to_string();
    if unscaled < 0 {
        out.put_u8(b'-');
    }
    if scale <= 0 {
        out.put_slice(digits.as_bytes());
        if unscaled != 0 {
            out.put_bytes(b'0', usize::from(scale.unsigned_abs()));
        }
        return;
    }
    let scale = usize::from(scale.unsigned_abs());
    let whole = digits.len().saturating_sub(scale);
    out.put_slice(if whole == 0 { b"0" } else { &digits.as_bytes()[..whole] });
    out.put_u8(b'.');
    out.put_bytes(b'0', scale.saturating_sub(digits.len()));
    out.put_slice(&digits.as_bytes()[whole..]);
}

/// The binary form of a decimal text (`-12.30`): digit groups, weight of the first, sign, digits after the point.
pub fn write_decimal_binary(out: &mut BytesMut, text: &str) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let whole = whole.trim_start_matches('0');
    let lead = whole.len().div_ceil(4) * 4;
    let mut padded = format!("{whole:0>lead$}{fraction}");
    let padding = (4 - fraction.len() % 4) % 4;
    padded.extend(std::iter::repeat_n('0', padding));
    let mut groups: Vec<i16> = padded.as_bytes().chunks(4).map(|c| c.iter().fold(0, |n, d| n * 10 + i16::from(d - b'0'))).collect();
    let mut weight = (lead / 4) as i16 - 1;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let leading = groups.iter().take_while(|g| **g == 0).count();
    groups.drain(..leading);
    weight -= leading as i16;
    if groups.is_empty() {
        weight = 0;
    }
    out.put_i16(groups.len() as i16);
    out.put_i16(weight);
    out.put_u16(if negative && !groups.is_empty() { 0x4000 } else { 0 });
    out.put_i16(fraction.len() as i16);
    for group in groups {
        out.put_i16(group);
    }
}

/// Shortest digits that read back to the same value, laid out as PostgreSQL does: plain for exponents -4 to 14 (5 for float4's
/// shorter range), else scientific with at least two exponent digits.
pub fn write_float(out: &mut BytesMut, scientific: &str, plain_below: i32) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        // inf and NaN have no exponent.
        out.put_slice(match scientific {
            "inf" => b"Infinity",
            "-inf" => b"-Infinity",
            _ => b"NaN",
        });
        return;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let mut text = String::with_capacity(24);
    text.push_str(sign);
    if exponent < -4 || exponent >= plain_below {
        let _ = write!(text, "{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.unsigned_abs());
    } else if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        text.push_str(&digits);
    } else {
        let whole = exponent as usize + 1;
        text.push_str(digits.get(..whole).unwrap_or(&digits));
        text.extend(std::iter::repeat_n('0', whole.saturating_sub(digits.len())));
        if digits.len() > whole {
            text.push('.');
            text.push_str(&digits[whole..]);
        }
    }
    out.put_slice(text.as_bytes());
}
