//! The connection to one disk: whether it is there, since when nobody looked, who uses it.
//!
//! A disk is used only after its marker was read. One that was not there, or answered with an error, is looked at again by whoever
//! wants to use it, at most every [`RETRY_AFTER`]; in between its users are told at once what was wrong. Guards: nothing is written to
//! a place without its marker, nor to a remote disk where a later opening writes (I7); no disk is dropped that somebody writes to.

use ebb_storage::{
    Error, Result,
    clock::{Stopwatch, within},
    disk::{Connect, DiskDef, device, epoch},
    ids::{DatabaseId, Epoch},
};
use object_store::ObjectStore;
use parking_lot::Mutex;
use std::{fmt, sync::Arc, time::Duration};

/// How long a disk may take to show its marker: three small requests, one of them tried again.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// A disk that was away is not asked again before.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// Before a write to a remote disk its last look may be so old; a local one is looked at each time.
const WRITE_AFTER: Duration = Duration::from_secs(2);

/// Whose opening of which database this is.
#[derive(Clone)]
pub(crate) struct Opening {
    pub database: DatabaseId,
    pub epoch: Epoch,
    /// Tells it from another opening with the same number, of a copy of the data directory.
    pub nonce: Arc<str>,
}

pub(super) struct Link {
    pub def: Arc<DiskDef>,
    connect: Arc<dyn Connect>,
    opening: Opening,
    state: Mutex<State>,
    looking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    raw: Option<Arc<dyn ObjectStore>>,
    away: Option<Error>,
    looked_at: Option<Stopwatch>,
    /// How often somebody looked.
    looks: u64,
    /// This opening is written down there.
    begun: bool,
    /// What a crash left there was swept.
    swept: bool,
    leases: usize,
    closing: bool,
}

/// A look's answer.
///
/// # Errors
/// `Unavailable` after [`CHECK_TIMEOUT`]: whoever accepts a request and says nothing is away.
pub(super) async fn within_check<T>(def: &DiskDef, look: impl Future<Output = Result<T>>) -> Result<T> {
    let silent = || Err(Error::unavailable(format!("{}: no answer within {} s", def.place(), CHECK_TIMEOUT.as_secs())));
    within(CHECK_TIMEOUT, look).await.unwrap_or_else(silent)
}

impl Link {
    pub fn new(def: Arc<DiskDef>, connect: Arc<dyn Connect>, opening: Opening) -> Self {
        Self { def, connect, opening, state: Mutex::default(), looking: tokio::sync::Mutex::default() }
    }

    pub fn away(&self) -> Option<Error> {
        self.state.lock().away.clone()
    }

    /// The store, to read from it or to change it.
    ///
    /// # Errors
    /// What [`Self::check`] says, or said a moment ago.
    pub async fn ready(&self, changing: bool) -> Result<Arc<dyn ObjectStore>> {
        {
            let state = self.state.lock();
            let looked_within = |limit| state.looked_at.is_some_and(|at| at.elapsed() < limit);
            match (&state.away, &state.raw) {
                (None, Some(raw)) if !changing || self.def.is_remote() && looked_within(WRITE_AFTER) => return Ok(raw.clone()),
                (Some(why), _) if looked_within(RETRY_AFTER) => return Err(why.clone()),
                _ => {}
            }
        }
        self.check().await
    }

    /// Looks at the marker, and on a remote disk at who else writes there.
    ///
    /// # Errors
    /// `Unavailable` or `Fenced`, naming the disk and what is wrong.
    pub async fn check(&self) -> Result<Arc<dyn ObjectStore>> {
        let looks = self.state.lock().looks;
        let _one = self.looking.lock().await;
        {
            // Somebody looked while this one waited.
            let state = self.state.lock();
            if let (true, Some(raw)) = (state.looks > looks, &state.raw) {
                return state.away.clone().map_or_else(|| Ok(raw.clone()), Err);
            }
        }
        let found = within_check(&self.def, self.look()).await;
        let mut state = self.state.lock();
        state.looks += 1;
        state.looked_at = Some(Stopwatch::start());
        match found {
            Ok(raw) => {
                state.away = None;
                state.begun = true;
                state.raw = Some(raw.clone());
                Ok(raw)
            }
            Err(e) => {
                state.away = Some(e.clone());
                if !self.def.is_remote() {
                    // Another file system may be mounted there by and by.
                    state.raw = None;
                }
                Err(e)
            }
        }
    }

    async fn look(&self) -> Result<Arc<dyn ObjectStore>> {
        let (known, begun) = {
            let state = self.state.lock();
            (state.raw.clone(), state.begun)
        };
        let raw = match known {
            Some(raw) => raw,
            None => self.connect.connect(&self.def, false)?,
        };
        let Opening { database, epoch: ours, nonce } = &self.opening;
        device::check(&self.def, &raw, database).await?;
        if self.def.is_remote() {
            let at = |e: Error| e.context(self.def.place());
            if !begun {
                epoch::begin(&raw, database, *ours, nonce).await.map_err(at)?;
            }
            epoch::is_newest(&raw, database, *ours).await.map_err(at)?;
        }
        Ok(raw)
    }

    pub fn swept(&self) -> bool {
        self.state.lock().swept
    }

    pub fn set_swept(&self) {
        self.state.lock().swept = true;
    }

    /// # Errors
    /// `Conflict` for a disk that is about to go.
    pub fn lease(self: &Arc<Self>) -> Result<Lease> {
        let mut state = self.state.lock();
        if state.closing {
            return Err(Error::conflict(format!("disk '{}' is being dropped", self.def.name)));
        }
        state.leases += 1;
        drop(state);
        Ok(Lease { link: self.clone() })
    }

    /// Gives out no more leases; how many there are.
    pub fn close(&self) -> usize {
        let mut state = self.state.lock();
        state.closing = true;
        state.leases
    }

    pub fn reopen(&self) {
        self.state.lock().closing = false;
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link({})", self.def.place())
    }
}

/// Somebody writes to the disk, or is about to say where in the manifest or the log: it cannot be dropped meanwhile.
pub struct Lease {
    link: Arc<Link>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut state = self.link.state.lock();
        state.leases = state.leases.saturating_sub(1);
    }
}
