//! Counts the changing calls of all stores that it feeds, and cuts the power at one of them. After the cut every call fails.

use parking_lot::Mutex;
use std::{io, sync::Arc};

/// What becomes of the call at which the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    NotApplied,
    AppliedNotAcknowledged,
}

#[derive(Debug, Clone, Default)]
pub struct Power(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    calls: u64,
    cut: Option<(u64, Cut)>,
    off: bool,
}

pub fn off() -> io::Error {
    io::Error::other("the power is off")
}

impl Power {
    /// Cuts at the `k`th changing call from the beginning; the first is 1.
    pub fn cut_at(&self, k: u64, cut: Cut) {
        self.0.lock().cut = Some((k, cut));
    }
    pub fn calls(&self) -> u64 {
        self.0.lock().calls
    }
    pub fn is_off(&self) -> bool {
        self.0.lock().off
    }
    pub fn turn_off(&self) {
        self.0.lock().off = true;
    }
    /// Back, and no more cuts.
    pub fn turn_on(&self) {
        let mut state = self.0.lock();
        (state.off, state.cut) = (false, None);
    }
    pub fn reading(&self) -> io::Result<()> {
        if self.is_off() { Err(off()) } else { Ok(()) }
    }
    /// Counts a changing call: `Ok(true)` apply it, `Ok(false)` apply it and then fail, `Err` fail.
    pub fn changing(&self) -> io::Result<bool> {
        let mut state = self.0.lock();
        if state.off {
            return Err(off());
        }
        state.calls += 1;
        match state.cut {
            Some((k, cut)) if state.calls >= k => {
                state.off = true;
                if cut == Cut::NotApplied { Err(off()) } else { Ok(false) }
            }
            _ => Ok(true),
        }
    }
}
