//! Intervals as texts and literals say them. Quarters are three months, weeks seven days; fractions only of what has a fixed length.

use super::{
    canonical::signed_number,
    cursor::{Cursor, Parsed},
    error::syntax,
};
use crate::nearest::did_you_mean;
use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan};
use ebb_storage::interval::Interval;

enum Unit {
    Months(i64),
    Days(i64),
    Micros(i64),
}

const UNITS: [(&[&str], Unit); 12] = [
    (&["microsecond", "microseconds", "us", "usec"], Unit::Micros(1)),
    (&["millisecond", "milliseconds", "ms", "msec"], Unit::Micros(1_000)),
    (&["second", "seconds", "sec", "secs", "s"], Unit::Micros(1_000_000)),
    (&["minute", "minutes", "min", "mins", "m"], Unit::Micros(60_000_000)),
    (&["hour", "hours", "hr", "hrs", "h"], Unit::Micros(3_600_000_000)),
    (&["day", "days", "d"], Unit::Days(1)),
    (&["week", "weeks", "w"], Unit::Days(7)),
    (&["month", "months", "mon", "mons"], Unit::Months(1)),
    (&["quarter", "quarters"], Unit::Months(3)),
    (&["year", "years", "yr", "yrs", "y"], Unit::Months(12)),
    (&["decade", "decades"], Unit::Months(120)),
    (&["century", "centuries"], Unit::Months(1200)),
];

const MICROS_PER_DAY: i64 = 86_400_000_000;

fn unit(word: &str) -> Result<&'static Unit, String> {
    let lower = word.to_lowercase();
    let known = UNITS.iter().find(|(names, _)| names.contains(&lower.as_str()));
    known.map(|(_, unit)| unit).ok_or_else(|| {
        let near = did_you_mean(word, UNITS.iter().filter_map(|(names, _)| names.first().copied()));
        format!("unknown unit '{word}' in an interval: units are second, minute, hour, day, week, month, quarter, year{near}")
    })
}

/// `1 month`, `1 year 6 months`, `2 days 04:30:00`, `-3 hours`; a bare number takes `default`.
pub(super) fn of_text(text: &str, default: Option<&str>) -> Result<Interval, String> {
    let mut sum = Interval::ZERO;
    let mut words = split(text).into_iter().peekable();
    if words.peek().is_none() {
        return Err("an interval is empty: write a number and a unit, like INTERVAL '7 day'".to_owned());
    }
    while let Some(word) = words.next() {
        if word.contains(':') {
            add_clock(&mut sum, &word)?;
            continue;
        }
        let number = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        if !number {
            return Err(format!("'{text}' is no interval: write a number and a unit, like INTERVAL '7 day'"));
        }
        let named = words.next_if(|w| w.starts_with(|c: char| c.is_alphabetic()));
        match named.as_deref().or(default) {
            Some(name) => add(&mut sum, &word, unit(name)?)?,
            None => return Err(format!("the interval '{text}' lacks a unit, like INTERVAL '{word} day'")),
        }
    }
    Ok(sum)
}

/// Numbers and words, with or without blanks between.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut alphabetic = None;
    for c in text.chars() {
        if c.is_whitespace() {
            alphabetic = None;
            continue;
        }
        let kind = c.is_alphabetic();
        match words.last_mut() {
            Some(word) if alphabetic == Some(kind) => word.push(c),
            _ => words.push(c.to_string()),
        }
        alphabetic = Some(kind);
    }
    words
}

fn too_large(number: &str) -> String {
    format!("the interval's {number} is out of range")
}

fn add(sum: &mut Interval, number: &str, unit: &Unit) -> Result<(), String> {
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |s: &str| s.chars().all(|c| c.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || whole.is_empty() && fraction.is_empty() {
        return Err(format!("'{number}' is no number in an interval"));
    }
    let sign = if negative { -1 } else { 1 };
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_large(number))? };
    let whole = whole * sign;
    let scaled = |size: i64| whole.checked_mul(size).ok_or_else(|| too_large(number));
    let part = |size: i64| fraction_of(fraction, size) * sign;
    let add_micros = |sum: &mut Interval, micros: i64| -> Result<(), String> {
        sum.micros = sum.micros.checked_add(micros).ok_or_else(|| too_large(number))?;
        Ok(())
    };
    let to_i32 =
        |now: i32, more: i64| i64::from(now).checked_add(more).and_then(|n| i32::try_from(n).ok()).ok_or_else(|| too_large(number));
    match unit {
        Unit::Micros(size) => add_micros(sum, scaled(*size)?.checked_add(part(*size)).ok_or_else(|| too_large(number))?)?,
        Unit::Days(size) => {
            sum.days = to_i32(sum.days, scaled(*size)?)?;
            let rest = part(size * MICROS_PER_DAY);
            sum.days = to_i32(sum.days, rest / MICROS_PER_DAY)?;
            add_micros(sum, rest % MICROS_PER_DAY)?;
        }
        Unit::Months(size) => {
            let (months, exact) = (part(*size), fraction.trim_end_matches('0').is_empty() || fraction_exact(fraction, *size));
            if !exact {
                return Err(format!("{number}: a fraction of a month has no fixed length; write days"));
            }
            sum.months = to_i32(sum.months, scaled(*size)?)?;
            sum.months = to_i32(sum.months, months)?;
        }
    }
    Ok(())
}

/// `0.fraction * size`, cut to a whole number. At most 12 digits count.
fn fraction_of(fraction: &str, size: i64) -> i64 {
    let digits = &fraction[..fraction.len().min(12)];
    let Ok(value) = digits.parse::<i128>() else { return 0 };
    let scale = 10_i128.pow(u32::try_from(digits.len()).unwrap_or(0));
    i64::try_from(value * i128::from(size) / scale).unwrap_or(0)
}

fn fraction_exact(fraction: &str, size: i64) -> bool {
    let digits = fraction.trim_end_matches('0');
    let Some(scale) = u32::try_from(digits.len()).ok().filter(|n| *n <= 12).map(|n| 10_i128.pow(n)) else { return false };
    digits.parse::<i128>().is_ok_and(|value| value * i128::from(size) % scale == 0)
}

/// `hh:mm[:ss[.fraction]]`
fn add_clock(sum: &mut Interval, word: &str) -> Result<(), String> {
    let bad = || format!("'{word}' is no time in an interval: write hours:minutes:seconds");
    let (sign, digits) = match word.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", word.strip_prefix('+').unwrap_or(word)),
    };
    let parts: Vec<&str> = digits.split(':').collect();
    if parts.len() > 3 {
        return Err(bad());
    }
    for (part, size) in parts.iter().zip([3_600_000_000, 60_000_000, 1_000_000]) {
        if part.starts_with(['-', '+']) || size > 1_000_000 && part.contains('.') {
            return Err(bad());
        }
        add(sum, &format!("{sign}{part}"), &Unit::Micros(size)).map_err(|_| bad())?;
    }
    Ok(())
}

/// The value of a literal interval; `None` where it is computed from something else.
pub(super) fn of_ast(expr: &Expr) -> Option<Result<Interval, String>> {
    let Expr::Interval(interval) = expr else { return None };
    let unit = interval.leading_field.as_ref().map(ToString::to_string);
    let text = match interval.value.as_ref() {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(s) | Value::EscapedStringLiteral(s), .. }) => s.clone(),
        number => signed_number(number)?,
    };
    if interval.last_field.is_some() || interval.leading_precision.is_some() || interval.fractional_seconds_precision.is_some() {
        return Some(Err("an interval takes one unit: write INTERVAL '1 day 2 hour' instead of DAY TO HOUR".to_owned()));
    }
    Some(of_text(&text, unit.as_deref()))
}

impl Cursor<'_> {
    /// `INTERVAL 7 DAY`, `INTERVAL '7 day'`, `7 DAY` or `'7 day'`.
    pub(super) fn interval(&mut self) -> Parsed<Interval> {
        let position = self.position();
        self.eat("INTERVAL");
        let value = match self.eat_text() {
            Some(text) => {
                let default = self.word(0).filter(|w| unit(w).is_ok());
                self.advance(usize::from(default.is_some()));
                of_text(&text, default)
            }
            None => match self.eat_number() {
                Some(number) => match self.word(0) {
                    Some(word) => {
                        let value = of_text(&number, Some(word));
                        if value.is_ok() {
                            self.advance(1);
                        }
                        value
                    }
                    None => return self.expected("a unit, like DAY"),
                },
                None => return self.expected("an interval, like INTERVAL 7 DAY"),
            },
        };
        value.map_err(|message| syntax(message, position))
    }
}
