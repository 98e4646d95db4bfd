//! Session settings: those of `SHOW ALL`, checked, with their defaults, and the current database, which is one of them by another name.
//! Names are case-insensitive.
//!
//! Guards: whatever a statement can set for the session is here, so that a rollback, RESET and DISCARD undo all of it.

use crate::{Error, Result, provider::catalog::PUBLIC, sqlstate};
use ebb_engine::{
    limits,
    settings::{self, Scope},
};
use std::{collections::BTreeMap, time::Duration};

#[derive(Debug, Clone)]
pub struct Variables {
    /// What the client said as it connected: what a RESET goes back to.
    initial: Level,
    /// What SET says.
    set: Level,
    /// What `SET LOCAL` says until the block ends.
    local: Level,
    /// The database that was connected to.
    home: String,
    /// The database that USE named.
    used: Option<String>,
}

/// What was said in one way.
#[derive(Debug, Clone, Default)]
struct Level {
    /// By the setting's own name.
    values: BTreeMap<&'static str, String>,
    /// The database that its `search_path` begins with.
    path: Option<String>,
}

/// How long a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// The connection ends; a RESET goes back to it.
    End,
    /// It is set anew, or reset.
    Reset,
    /// The block ends.
    Block,
}

/// The setting that names the current database.
const SEARCH_PATH: &str = "search_path";

impl Default for Variables {
    fn default() -> Self {
        let (initial, set, local) = Default::default();
        Self { initial, set, local, home: crate::database::DEFAULT_DATABASE.to_owned(), used: None }
    }
}

impl Variables {
    pub fn get(&self, name: &str) -> Option<String> {
        let setting = settings::find(Scope::Session, name).ok()?;
        let said = [&self.local, &self.set, &self.initial].into_iter().find_map(|l| l.values.get(setting.name));
        Some(said.cloned().or_else(|| setting.default_text()).unwrap_or_default())
    }

    /// Of a `search_path` the first name counts that is a database, which `is_database` says; `public` is the connection's own.
    ///
    /// # Errors
    /// `42704` for an unknown name, `22023` for a value that it does not take.
    pub fn set(&mut self, name: &str, value: &str, until: Until, is_database: impl Fn(&str) -> bool) -> Result<()> {
        let name = found(name)?;
        let value = checked(name, value)?;
        let path = (name == SEARCH_PATH).then(|| {
            let names = value.split(',').map(|n| n.trim().trim_matches('"'));
            names.take_while(|n| *n != PUBLIC).find(|n| is_database(n)).map(str::to_owned)
        });
        if until == Until::Reset {
            self.local.forget(name);
        }
        let level = match until {
            Until::End => &mut self.initial,
            Until::Reset => &mut self.set,
            Until::Block => &mut self.local,
        };
        level.values.insert(name, value);
        if let Some(path) = path {
            level.path = path;
        }
        Ok(())
    }

    /// What RESET would make of it, until the block ends.
    ///
    /// # Errors
    /// `42704` for an unknown name.
    pub fn reset_local(&mut self, name: &str) -> Result<()> {
        let setting = settings::find(Scope::Session, name).map_err(unknown)?;
        let initial = self.initial.values.get(setting.name).cloned().or_else(|| setting.default_text());
        self.local.values.insert(setting.name, initial.unwrap_or_default());
        if setting.name == SEARCH_PATH {
            self.local.path.clone_from(&self.initial.path);
        }
        Ok(())
    }

    /// # Errors
    /// `42704` for an unknown name.
    pub fn reset(&mut self, name: &str) -> Result<()> {
        let name = found(name)?;
        self.set.forget(name);
        self.local.forget(name);
        Ok(())
    }

    pub fn reset_all(&mut self) {
        (self.set, self.local) = Default::default();
    }

    /// As after connecting: what USE named is over too.
    pub fn discard(&mut self) {
        self.reset_all();
        self.used = None;
    }

    /// A block was committed: what was set for it alone is over.
    pub fn end_block(&mut self) {
        self.local = Level::default();
    }

    /// The current database.
    pub fn database(&self) -> &str {
        let home = self.used.as_ref().unwrap_or(&self.home);
        let said = |level: &&Level| level.values.contains_key(SEARCH_PATH);
        // USE comes after what was said in connecting.
        let initial = Some(&self.initial).filter(|_| self.used.is_none());
        let path = [Some(&self.local), Some(&self.set), initial].into_iter().flatten().find(said).and_then(|l| l.path.as_ref());
        path.unwrap_or(home)
    }

    /// The database that is connected to.
    pub fn connect(&mut self, database: &str) {
        database.clone_into(&mut self.home);
    }

    /// USE: `database` is the current one, and `public`, until another is named.
    pub fn use_database(&mut self, database: &str) {
        self.set.forget(SEARCH_PATH);
        self.local.forget(SEARCH_PATH);
        self.used = Some(database.to_owned());
    }

    /// A database was dropped: the current one is then that of before, at the last `default`.
    pub fn forget_database(&mut self, name: &str) {
        let gone = |d: &mut String| d == name;
        for level in [&mut self.initial, &mut self.set, &mut self.local] {
            level.path.take_if(gone);
        }
        self.used.take_if(gone);
        if self.home == name {
            crate::database::DEFAULT_DATABASE.clone_into(&mut self.home);
        }
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

impl Level {
    fn forget(&mut self, name: &str) {
        self.values.remove(name);
        if name == SEARCH_PATH {
            self.path = None;
        }
    }
}

const LONGEST_LEASE_MS: u64 = limits::READ_LEASE_LONGEST.as_secs() * 1000;

/// The setting's own name.
fn found(name: &str) -> Result<&'static str> {
    Ok(settings::find(Scope::Session, name).map_err(unknown)?.name)
}

fn unknown(e: ebb_storage::Error) -> Error {
    Error::from(e).with_sqlstate(sqlstate::UNDEFINED_OBJECT)
}

/// As PostgreSQL reads a Boolean setting.
fn switch(lower: &str) -> Option<&'static str> {
    match lower {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some("on"),
        "off" | "false" | "no" | "0" | "f" | "n" => Some("off"),
        _ => None,
    }
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
        "standard_conforming_strings" if switch(&lower) != Some("on") => refuse("on only"),
        "standard_conforming_strings" | "default_transaction_read_only" => match switch(&lower) {
            Some(value) => Ok(value.to_owned()),
            None => refuse("on or off"),
        },
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

/// Whole hours east of UTC, as `+02:00` or `2`, by the name of their zone, in which hours count west.
fn offset(text: &str) -> Option<String> {
    let (east, rest) = match text.strip_prefix('-') {
        Some(rest) => (false, rest),
        None => (true, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    match (hours, east) {
        _ if minutes != 0 => None,
        (0, _) => Some("UTC".to_owned()),
        (1..=14, true) => Some(format!("Etc/GMT-{hours}")),
        (1..=12, false) => Some(format!("Etc/GMT+{hours}")),
        _ => None,
    }
}
