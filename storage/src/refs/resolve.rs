//! From what a query names to the cut it reads. Nothing outside the history is ever answered with something else: it is refused, and the
//! refusal names the oldest snapshot there is.

use super::{AsOf, Ref, RefKind, Resolved, ancestry::Ancestry};
use crate::{
    Error, Result,
    clock::Timestamp,
    ids::{BranchId, CommitNo, Sn},
    lineage::Cut,
    manifest::{StreamState, edit::RecordInfo},
    nearest::did_you_mean,
};
use std::sync::Arc;

/// The branch that every stream has.
pub const MAIN: &str = "main";

impl Ref {
    /// When it ends: the age it was given, or else the stream's, counted from its creation.
    pub fn ends_at(&self, default_age_ms: Option<i64>) -> Option<Timestamp> {
        let age = self.max_ref_age_ms.or(default_age_ms)?;
        Some(Timestamp(self.created_at.0.saturating_add(age.saturating_mul(1000))))
    }
    pub fn is_over(&self, default_age_ms: Option<i64>, now: Timestamp) -> bool {
        self.ends_at(default_age_ms).is_some_and(|at| at <= now)
    }
}

impl RefKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Tag => "tag",
            Self::Branch => "branch",
        }
    }
}

impl StreamState {
    /// # Errors
    /// `NotFound` for what is not there, no longer, or not yet.
    pub fn resolve(&self, at: &AsOf, now: Timestamp, default_ref_age_ms: Option<i64>) -> Result<Resolved> {
        match at {
            AsOf::Sn(sn) => self.resolve_sn(*sn),
            AsOf::Name(name) if name == MAIN => Ok(Resolved { cut: self.head(), sn: self.head_of(BranchId::MAIN), schema: None }),
            AsOf::Name(name) => {
                let found = self.live_ref(name, now, default_ref_age_ms)?;
                Ok(match found.kind {
                    RefKind::Tag => Resolved { cut: found.cut, sn: found.cut.sn, schema: Some(found.schema_version) },
                    RefKind::Branch => Resolved { cut: found.cut, sn: self.head_of(found.cut.branch), schema: None },
                })
            }
            AsOf::Time(t) => self.resolve_time(*t, now),
        }
    }

    /// The ref of that name, unless its time is over.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn live_ref(&self, name: &str, now: Timestamp, default_ref_age_ms: Option<i64>) -> Result<&Arc<Ref>> {
        let stream = || self.def.full_name();
        let live = |r: &Ref| !r.is_over(default_ref_age_ms, now);
        match self.refs.get(name) {
            Some(r) if live(r) => Ok(r),
            Some(r) => {
                let ended = r.ends_at(default_ref_age_ms).unwrap_or(now);
                Err(Error::not_found(format!("{} '{name}' of {} ended at {ended}: RETAIN says so", r.kind.word(), stream())))
            }
            None => {
                let names = self.refs.values().filter(|r| live(r)).map(|r| r.name.as_str()).chain([MAIN]);
                Err(Error::not_found(format!("{} has no tag or branch '{name}'{}", stream(), did_you_mean(name, names))))
            }
        }
    }

    /// The line that a record is in.
    pub fn line_of(&self, sn: Sn) -> Option<&Arc<RecordInfo>> {
        // Lines of other branches may begin before it and end after it.
        self.records.range(sn..).map(|(_, r)| r).find(|r| r.contains(sn))
    }

    /// Up to which commit removals by rules count at a cut of `branch`.
    pub fn horizon_of(&self, branch: BranchId) -> CommitNo {
        horizon_of(self.branch(branch))
    }

    fn resolve_sn(&self, sn: Sn) -> Result<Resolved> {
        let line = self.line_of(sn).filter(|_| self.readable.contains(sn));
        let Some(line) = line else {
            // Those of a branch that was dropped are not listed, and were given all the same.
            let newest = self.records.last().map_or(Sn(0), |(sn, _)| *sn).max(self.applied_sn);
            let what = match sn > newest {
                _ if sn == Sn(0) => format!("snapshots of {} are numbered from 1: 0 is the empty stream", self.def.full_name()),
                true => format!("snapshot {sn} of {} does not exist: the newest is {newest}", self.def.full_name()),
                false => format!("snapshot {sn} of {} is not kept any more: {}", self.def.full_name(), self.oldest()),
            };
            return Err(Error::not_found(what));
        };
        let cut = Cut { branch: line.branch, sn, horizon: self.horizon_of(line.branch) };
        Ok(Resolved { cut, sn, schema: None })
    }

    fn resolve_time(&self, t: Timestamp, now: Timestamp) -> Result<Resolved> {
        let refuse = |why: String| Err(Error::not_found(format!("{} cannot be read as of {t}: {why}", self.def.full_name())));
        if t > now {
            return refuse(format!("it is {now} now"));
        }
        // Times never fall with the sns, so those after `t` are the newest.
        let main = || self.records.values().rev().filter(|r| r.branch == BranchId::MAIN);
        let Some(line) = main().find(|r| r.time <= t) else {
            // Of the oldest line, which may stand for many records, the first is known too.
            let first = main().next_back().map(|r| r.first());
            return match first.filter(|(sn, at)| *at <= t && self.readable.contains(*sn)) {
                Some((sn, _)) => Ok(Resolved { cut: Cut { sn, ..self.head() }, sn, schema: None }),
                None => refuse(self.oldest()),
            };
        };
        let moved_on = self.gaps.get(&line.sn).and_then(|g| g.superseded_at);
        if moved_on.is_some_and(|at| at <= t) || !self.readable.contains(line.sn) {
            return refuse(format!("what was current then is not kept any more; {}", self.oldest()));
        }
        Ok(Resolved { cut: Cut { sn: line.sn, ..self.head() }, sn: line.sn, schema: None })
    }

    /// The end of a refusal.
    pub fn oldest(&self) -> String {
        match Ancestry::of(self).history_from(self) {
            Some((sn, time)) => format!("the oldest available is sn {sn} of {time}"),
            None => "it has no snapshot yet".to_owned(),
        }
    }
}

/// Up to which commit removals by rules count for the branch of a ref: for main and branches that were dropped, always the newest.
pub(super) fn horizon_of(branch: Option<&Arc<Ref>>) -> CommitNo {
    branch.map_or(CommitNo(u64::MAX), |r| r.cut.horizon)
}

#[cfg(test)]
mod tests;
