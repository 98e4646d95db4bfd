//! Dates, times and intervals as PostgreSQL writes them (ISO, `postgres` interval style).

use bytes::{BufMut, BytesMut};
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, Offset, TimeZone, Timelike};
use std::fmt::Write;

/// Days and microseconds between 1970-01-01 and PostgreSQL's own epoch, 2000-01-01.
pub const PG_EPOCH_DAYS: i32 = 10_957;
pub const PG_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// The zone in which moments are written as text.
#[derive(Debug, Clone, Copy)]
pub enum Zone {
    Utc,
    Named(chrono_tz::Tz),
}

impl Zone {
    /// A zone name of the IANA database; `None` if it is not one.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim();
        if ["utc", "etc/utc", "gmt", "z", "zulu"].contains(&name.to_ascii_lowercase().as_str()) {
            return Some(Self::Utc);
        }
        chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)).copied().map(Self::Named)
    }
}

pub fn write_date(out: &mut BytesMut, days: i32) {
    match days {
        i32::MAX => out.put_slice(b"infinity"),
        i32::MIN => out.put_slice(b"-infinity"),
        _ => match NaiveDate::from_epoch_days(days) {
            Some(date) => {
                let before_christ = put_date(out, date);
                put_era(out, before_christ);
            }
            None => put(out, format_args!("{days} days")),
        },
    }
}

/// `micros` since midnight.
pub fn write_time(out: &mut BytesMut, micros: i64) {
    let (seconds, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    put_fraction(out, fraction * 1000);
}

/// `zone` only for moments (timestamptz).
pub fn write_timestamp(out: &mut BytesMut, micros: i64, nanos: i64, zone: Option<&Zone>) {
    let local = |t: NaiveDateTime, out: &mut BytesMut, offset: Option<i32>| {
        let before_christ = put_date(out, t.date());
        put(out, format_args!(" {:02}:{:02}:{:02}", t.hour(), t.minute(), t.second()));
        put_fraction(out, i64::from(t.nanosecond()) + nanos);
        if let Some(seconds) = offset {
            put_offset(out, seconds);
        }
        put_era(out, before_christ);
    };
    match (micros, DateTime::from_timestamp_micros(micros)) {
        (i64::MAX, _) => out.put_slice(b"infinity"),
        (i64::MIN, _) => out.put_slice(b"-infinity"),
        (_, None) => put(out, format_args!("{micros} us")),
        (_, Some(t)) => match zone {
            None => local(t.naive_utc(), out, None),
            Some(Zone::Utc) => local(t.naive_utc(), out, Some(0)),
            Some(Zone::Named(tz)) => {
                let t = tz.from_utc_datetime(&t.naive_utc());
                local(t.naive_local(), out, Some(t.offset().fix().local_minus_utc()));
            }
        },
    }
}

pub fn write_interval(out: &mut BytesMut, months: i32, days: i32, nanos: i64) {
    let mut text = String::new();
    let mut unit = |n: i64, name: &str| {
        if n != 0 {
            let plural = if n == 1 { "" } else { "s" };
            let _ = write!(text, "{}{n} {name}{plural}", if text.is_empty() { "" } else { " " });
        }
    };
    unit(i64::from(months / 12), "year");
    unit(i64::from(months % 12), "mon");
    unit(i64::from(days), "day");
    out.put_slice(text.as_bytes());
    if nanos == 0 && !text.is_empty() {
        return;
    }
    if !text.is_empty() {
        out.put_u8(b' ');
    }
    if nanos < 0 {
        out.put_u8(b'-');
    }
    let micros = nanos.unsigned_abs() / 1000;
    let seconds = micros / 1_000_000;
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60));
    put_fraction(out, (micros % 1_000_000 * 1000) as i64);
}

/// Whether the year is before Christ, which is written at the end.
fn put_date(out: &mut BytesMut, date: NaiveDate) -> bool {
    let year = date.year();
    let shown = if year > 0 { year } else { 1 - year };
    put(out, format_args!("{shown:04}-{:02}-{:02}", date.month(), date.day()));
    year <= 0
}

fn put_era(out: &mut BytesMut, before_christ: bool) {
    if before_christ {
        out.put_slice(b" BC");
    }
}

/// Without trailing zeros; nothing for a whole second.
fn put_fraction(out: &mut BytesMut, nanos: i64) {
    if nanos != 0 {
        let digits = format!("{nanos:09}");
        put(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

fn put_offset(out: &mut BytesMut, seconds: i32) {
    let sign = if seconds < 0 { '-' } else { '+' };
    let s = seconds.unsigned_abs();
    put(out, format_args!("{sign}{:02}", s / 3600));
    if !s.is_multiple_of(3600) {
        put(out, format_args!(":{:02}", s / 60 % 60));
    }
    if !s.is_multiple_of(60) {
        put(out, format_args!(":{:02}", s % 60));
    }
}

fn put(out: &mut BytesMut, args: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _ = out.write_fmt(args);
}
