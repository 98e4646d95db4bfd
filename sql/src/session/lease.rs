//! Cuts that a session keeps readable between its statements, as `read_lease` says.
//!
//! Each read of a cut begins its time anew. They end with the session, and are few: whoever reads more cuts needs a tag.

use super::Session;
use crate::{Error, ErrorKind, Result, sqlstate};
use ebb_engine::history::ReadLease;
use ebb_storage::{ids::StreamId, refs::AsOf};
use parking_lot::Mutex;

/// Of one session at a time.
const LEASES_MAX: usize = 100;

#[derive(Default)]
pub(super) struct Leases(Mutex<Vec<(StreamId, ReadLease)>>);

impl Session {
    /// Ends them where `read_lease` is off.
    pub(crate) fn keep_leases(&mut self) {
        if self.variables.read_lease().is_none() {
            self.leases.0.get_mut().clear();
        }
    }

    /// Begins or renews the lease of a cut that is about to be read; nothing without `read_lease`.
    pub(crate) fn lease(&self, stream: StreamId, at: &AsOf) -> Result<()> {
        let mut leases = self.leases.0.lock();
        let Some(length) = self.variables.read_lease() else {
            leases.clear();
            return Ok(());
        };
        let engine = &self.shared.engine;
        let now = engine.now();
        leases.retain(|(_, l)| l.until > now);
        let lease = match engine.lease(stream, at, now.saturating_add(length)) {
            Ok(lease) => lease,
            // A block goes on reading its own cut, whatever was forgotten since.
            Err(e) if self.block.is_some() && e.kind() == ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(e.into()),
        };
        leases.retain(|(of, l)| *of != stream || l.cut != lease.cut);
        if leases.len() >= LEASES_MAX {
            let message = format!("a session leases {LEASES_MAX} cuts: SET read_lease = 0 ends that, a tag keeps any number");
            return Err(Error::new(ErrorKind::Full, message).with_sqlstate(sqlstate::TOO_COMPLEX));
        }
        leases.push((stream, lease));
        Ok(())
    }
}
