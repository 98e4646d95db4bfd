//! Readers, holds, rollups and backups.

use super::cursor::{Cursor, Parsed};
use crate::statement::{
    Backup, BackupPlace, CreateHold, CreateReader, CreateRollup, DropReader, DropRollup, ReaderStart, ReleaseHold, Restore, Verb,
};

impl Cursor<'_> {
    /// After CREATE READER.
    pub(super) fn create_reader(&mut self) -> Parsed<Verb> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.name_or_text("a reader")?;
        self.expect("ON")?;
        let stream = self.stream_name()?;
        let from = if !self.eat("FROM") {
            ReaderStart::default()
        } else if self.eat("EARLIEST") {
            ReaderStart::Earliest
        } else if self.eat("LATEST") {
            ReaderStart::Latest
        } else {
            let len = self.find(|n, _| self.is_word(n, "MAX")).unwrap_or_else(|| self.level_len());
            ReaderStart::Sn(self.expression_within(len, "EARLIEST, LATEST or an sn")?)
        };
        let max_lag = if self.eat("MAX LAG") {
            let at = self.clone();
            let lag = self.interval()?;
            if lag.is_negative() {
                return Err(at.error("a lag is not negative"));
            }
            Some(lag)
        } else {
            None
        };
        Ok(Verb::CreateReader(CreateReader { if_not_exists, name, stream, from, max_lag }))
    }

    pub(super) fn drop_reader(&mut self) -> Parsed<Verb> {
        Ok(Verb::DropReader(DropReader { if_exists: self.eat_if_exists(), name: self.name_or_text("a reader")? }))
    }

    /// After CREATE HOLD.
    pub(super) fn create_hold(&mut self) -> Parsed<Verb> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.name_or_text("a hold")?;
        self.expect("ON")?;
        let stream = self.stream_name()?;
        let until_word = |c: &Self, n: usize| c.is_word(n, "REASON") || c.is_word(n, "UNTIL");
        let condition = if self.eat("WHERE") {
            let len = self.find(|n, _| until_word(self, n)).unwrap_or_else(|| self.level_len());
            Some(self.expression_within(len, "a condition after WHERE")?)
        } else {
            None
        };
        let (mut reason, mut until) = (None, None);
        loop {
            let at = self.clone();
            if self.eat("REASON") {
                if reason.replace(self.text("a reason")?).is_some() {
                    return Err(at.error("REASON is said twice"));
                }
            } else if self.eat("UNTIL") {
                let len = self.find(|n, _| until_word(self, n)).unwrap_or_else(|| self.level_len());
                if until.replace(self.expression_within(len, "a time")?).is_some() {
                    return Err(at.error("UNTIL is said twice"));
                }
            } else {
                return Ok(Verb::CreateHold(CreateHold { if_not_exists, name, stream, condition, reason, until }));
            }
        }
    }

    /// After RELEASE.
    pub(super) fn release_hold(&mut self) -> Parsed<Verb> {
        self.expect("HOLD")?;
        let if_exists = self.eat_if_exists();
        let name = self.name_or_text("a hold")?;
        self.expect("ON")?;
        Ok(Verb::ReleaseHold(ReleaseHold { if_exists, name, stream: self.stream_name()? }))
    }

    /// After CREATE ROLLUP.
    pub(super) fn create_rollup(&mut self) -> Parsed<Verb> {
        let if_not_exists = self.eat_if_not_exists();
        let name = self.name("a rollup")?;
        self.expect("ON")?;
        let stream = self.stream_name()?;
        self.expect("AS")?;
        if !self.sees("SELECT") {
            return self.expected("SELECT ... GROUP BY ...");
        }
        Ok(Verb::CreateRollup(CreateRollup { if_not_exists, name, stream, query: self.query()? }))
    }

    pub(super) fn drop_rollup(&mut self) -> Parsed<Verb> {
        let if_exists = self.eat_if_exists();
        let name = self.name("a rollup")?;
        self.expect("ON")?;
        Ok(Verb::DropRollup(DropRollup { if_exists, name, stream: self.stream_name()? }))
    }

    /// After BACKUP.
    pub(super) fn backup(&mut self) -> Parsed<Verb> {
        self.expect_stream_word()?;
        let stream = self.stream_name()?;
        self.expect("TO")?;
        let to = self.backup_place()?;
        let with_history = self.eat("WITH HISTORY");
        Ok(Verb::Backup(Backup { stream, to, with_history }))
    }

    /// After RESTORE.
    pub(super) fn restore(&mut self) -> Parsed<Verb> {
        self.expect_stream_word()?;
        let stream = self.stream_name()?;
        self.expect("FROM")?;
        let from = self.backup_place()?;
        let as_name = if self.eat("AS") { Some(self.stream_name()?) } else { None };
        let with_prune = self.eat("WITH PRUNE");
        Ok(Verb::Restore(Restore { stream, from, as_name, with_prune }))
    }

    fn backup_place(&mut self) -> Parsed<BackupPlace> {
        if self.eat("DISK") {
            return self.place_name("a disk").map(BackupPlace::Disk);
        }
        match self.eat_text() {
            Some(path) => Ok(BackupPlace::Path(path)),
            None => self.expected("DISK d, or a path in single quotes"),
        }
    }
}
