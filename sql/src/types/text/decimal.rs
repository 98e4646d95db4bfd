//! A decimal from its digits, exactly: signs, fractions and exponents as PostgreSQL writes them; what is finer than the scale is rounded,
//! halves away from zero.

/// Longer texts are no decimals; an exponent must not make one.
const DIGITS_MAX: usize = 1000;

#[derive(Debug, PartialEq, Eq)]
pub enum Bad {
    NoNumber,
    OutOfRange,
}

/// The value times ten to the `scale`, of at most `precision` digits.
pub fn parse(text: &str, precision: u8, scale: i8) -> Result<i128, Bad> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (mantissa, exponent) = match rest.find(['e', 'E']) {
        Some(at) => (&rest[..at], rest[at + 1..].parse::<i32>().map_err(|_| Bad::NoNumber)?),
        None => (rest, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return Err(Bad::NoNumber);
    }
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    // Digits before the point once it stands at the scale.
    let point = whole.len() as i64 + i64::from(exponent) + i64::from(scale);
    let Some(first) = digits.iter().position(|d| *d != 0) else { return Ok(0) };
    if point - first as i64 > i64::from(precision) {
        return Err(Bad::OutOfRange);
    }
    if digits.len() > DIGITS_MAX && point > DIGITS_MAX as i64 {
        return Err(Bad::OutOfRange);
    }
    let mut value: i128 = 0;
    for at in first as i64..point {
        let digit = usize::try_from(at).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
        value = value.checked_mul(10).and_then(|v| v.checked_add(i128::from(digit))).ok_or(Bad::OutOfRange)?;
    }
    let next = usize::try_from(point).ok().and_then(|at| digits.get(at)).copied().unwrap_or(0);
    if next >= 5 {
        value += 1;
    }
    if value >= 10i128.checked_pow(u32::from(precision)).ok_or(Bad::OutOfRange)? {
        return Err(Bad::OutOfRange);
    }
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests;
