//! Leases: cuts that a session wants to go on reading between its statements, for a bounded time. In memory: they end with the process.

use crate::{Engine, limits};
use ebb_storage::{Error, Result, Timestamp, ids::StreamId, lineage::Cut, refs::AsOf};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Default)]
struct Held {
    leases: BTreeMap<u64, (StreamId, Cut, Timestamp)>,
    next: u64,
    /// How often a lease was taken or given back.
    changes: u64,
}

/// All leases of an open engine.
#[derive(Clone, Default)]
pub struct Leases {
    held: Arc<Mutex<Held>>,
}

/// A cut that stays readable until its time, or until this is dropped.
pub struct ReadLease {
    leases: Leases,
    number: u64,
    pub cut: Cut,
    pub until: Timestamp,
}

impl Leases {
    /// Those of a stream that are not over.
    pub fn cuts(&self, stream: StreamId, now: Timestamp) -> Vec<Cut> {
        let mut held = self.held.lock();
        held.leases.retain(|_, (_, _, until)| *until > now);
        held.leases.values().filter(|(s, ..)| *s == stream).map(|(_, cut, _)| *cut).collect()
    }

    /// When the first of a stream's leases ends.
    pub fn first_end(&self, stream: StreamId) -> Option<Timestamp> {
        self.held.lock().leases.values().filter(|(s, ..)| *s == stream).map(|(.., until)| *until).min()
    }

    /// Another number than before after every lease that was taken or given back.
    pub fn changes(&self) -> u64 {
        self.held.lock().changes
    }

    fn take(&self, stream: StreamId, cut: Cut, until: Timestamp, now: Timestamp) -> Result<ReadLease> {
        let mut held = self.held.lock();
        held.leases.retain(|_, (_, _, until)| *until > now);
        if held.leases.len() >= limits::READ_LEASES {
            return Err(Error::invalid(format!("there are {} read leases, the most there may be: SET read_lease = 0", held.leases.len())));
        }
        held.next += 1;
        held.changes += 1;
        let number = held.next;
        held.leases.insert(number, (stream, cut, until));
        Ok(ReadLease { leases: self.clone(), number, cut, until })
    }
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        let mut held = self.leases.held.lock();
        held.changes += 1;
        held.leases.remove(&self.number);
    }
}

impl Engine {
    /// Keeps a cut of a stream readable until `until`, at most [`limits::READ_LEASE_LONGEST`] from now.
    ///
    /// # Errors
    /// `NotFound` for what cannot be read, `Invalid` beyond a limit.
    pub fn lease(&self, stream: StreamId, at: &AsOf, until: Timestamp) -> Result<ReadLease> {
        let (core, now) = (&self.core, self.core.now());
        let longest = now.saturating_add(limits::READ_LEASE_LONGEST);
        if until > longest {
            return Err(Error::invalid(format!("a read lease ends at {longest} at the latest, not at {until}")));
        }
        let resolve = || {
            let state = self.read().state(stream).ok_or_else(|| core.is_gone(stream))?;
            let max_age = crate::settings::StreamSettings::of(&state.def, &core.server()).keep.max_ref_age_ms;
            let found = state.resolve(at, now, max_age)?;
            Ok::<_, Error>((Cut { sn: found.sn, ..found.cut }, state))
        };
        let (cut, _) = resolve()?;
        let lease = core.leases.take(stream, cut, until, now)?;
        // What an expiry took before the lease was seen is not held by it.
        let (again, state) = resolve()?;
        match again.sn >= cut.sn && (cut.sn.0 == 0 || state.readable.contains(cut.sn)) {
            true => Ok(lease),
            false => Err(Error::conflict(format!("snapshot {} was forgotten meanwhile", cut.sn))),
        }
    }
}
