//! Session settings: those of `SHOW ALL`, checked, with their defaults. Names are case-insensitive.

use crate::{Error, Result, sqlstate};
use ebb_engine::{
    limits,
    settings::{self, Scope},
};
use std::{collections::BTreeMap, time::Duration};

#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// By lower-case name; only what was set.
    set: BTreeMap<String, String>,
    /// What `SET LOCAL` says until the block ends.
    local: BTreeMap<String, String>,
}

impl Variables {
    pub fn get(&self, name: &str) -> Option<String> {
        let setting = settings::find(Scope::Session, name).ok()?;
        let said = self.local.get(setting.name).or_else(|| self.set.get(setting.name));
        Some(said.cloned().or_else(|| setting.default_text()).unwrap_or_default())
    }

    /// # Errors
    /// `42704` for an unknown name, `22023` for a value that it does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let name = found(name)?;
        self.set.insert(name.to_owned(), checked(name, value)?);
        self.local.remove(name);
        Ok(())
    }

    /// As [`Self::set`], until the block ends.
    pub fn set_local(&mut self, name: &str, value: &str) -> Result<()> {
        let name = found(name)?;
        self.local.insert(name.to_owned(), checked(name, value)?);
        Ok(())
    }

    pub fn reset(&mut self, name: &str) -> Result<()> {
        let name = found(name)?;
        self.set.remove(name);
        self.local.remove(name);
        Ok(())
    }

    pub fn reset_all(&mut self) {
        self.set.clear();
        self.local.clear();
    }

    /// A block was committed: what was set for it alone is over.
    pub fn end_block(&mut self) {
        self.local.clear();
    }

    /// Name, value, description, in the order of the table.
    pub fn all(&self) -> Vec<(&'static str, String, &'static str)> {
        let session = settings::SETTINGS.iter().filter(|s| s.scope == Scope::Session);
        session.map(|s| (s.name, self.get(s.name).unwrap_or_default(), s.description)).collect()
    }

    pub fn time_zone(&self) -> String {
        self.get("timezone").unwrap_or_else(|| "UTC".to_owned())
    }

    /// How long a cut that was read stays readable; `None`: no longer than any.
    pub fn read_lease(&self) -> Option<Duration> {
        let ms = millis(&self.get("read_lease")?)?;
        (ms > 0).then(|| Duration::from_millis(ms))
    }

    /// `None`: without end.
    pub fn statement_timeout(&self) -> Option<Duration> {
        let ms = millis(&self.get("statement_timeout")?)?;
        (ms > 0).then(|| Duration::from_millis(ms))
    }
}

const LONGEST_LEASE_MS: u64 = limits::READ_LEASE_LONGEST.as_secs() * 1000;

/// The setting's own name.
fn found(name: &str) -> Result<&'static str> {
    let setting = settings::find(Scope::Session, name).map_err(|e| Error::from(e).with_sqlstate(sqlstate::UNDEFINED_OBJECT))?;
    Ok(setting.name)
}

/// `1500`, `'2s'`, `'5 min'`, `'10 minutes'`: without a unit milliseconds.
fn millis(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ms" | "millisecond" | "milliseconds" => 1,
        "s" | "sec" | "second" | "seconds" => 1000,
        "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The value as it is kept.
fn checked(name: &str, value: &str) -> Result<String> {
    let refuse =
        |takes: &str| Err(Error::invalid(format!("{name} takes {takes}, not '{value}'")).with_sqlstate(sqlstate::INVALID_PARAMETER_VALUE));
    let lower = value.trim().to_ascii_lowercase();
    match name {
        "timezone" => zone(value).map_or_else(|| refuse("a time zone such as UTC or Europe/Berlin"), Ok),
        "read_lease" if millis(&lower).is_some_and(|ms| ms > LONGEST_LEASE_MS) => refuse("a day at most"),
        "statement_timeout" | "lock_timeout" | "idle_in_transaction_session_timeout" | "read_lease" => match millis(&lower) {
            Some(_) => Ok(lower),
            None => refuse("milliseconds, or a number with ms, s, min, h or d"),
        },
        "client_encoding" | "server_encoding" => match lower.replace(['-', '_'], "").as_str() {
            "utf8" | "unicode" => Ok("UTF8".to_owned()),
            _ => refuse("UTF8 only"),
        },
        "datestyle" if !lower.contains("iso") && !["mdy", "ymd", "dmy"].contains(&lower.as_str()) => refuse("ISO only"),
        "datestyle" => Ok("ISO, MDY".to_owned()),
        "intervalstyle" if lower != "postgres" => refuse("postgres only"),
        "bytea_output" if lower != "hex" => refuse("hex only"),
        "standard_conforming_strings" if !["on", "true", "1"].contains(&lower.as_str()) => refuse("on only"),
        "server_version" | "server_version_num" | "integer_datetimes" => {
            Err(Error::invalid(format!("{name} cannot be changed")).with_sqlstate("55P02"))
        }
        _ => Ok(value.to_owned()),
    }
}

/// The zone's canonical name.
fn zone(text: &str) -> Option<String> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("utc") || text.eq_ignore_ascii_case("gmt") || text.eq_ignore_ascii_case("default") {
        return Some("UTC".to_owned());
    }
    if let Some(named) = chrono_tz::TZ_VARIANTS.iter().find(|z| z.name().eq_ignore_ascii_case(text)) {
        return Some(named.name().to_owned());
    }
    offset(text)
}

/// Hours east of UTC, as `+02:00` or `2`.
fn offset(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ('-', rest),
        None => ('+', text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}
