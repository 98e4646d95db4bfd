//! When a statement can still be given up: until something of it is on its way to being true.
//!
//! Guards: a statement that was told to be cancelled has changed nothing. Whoever writes a record or a commit says so before
//! ([`decide`]); from then on the statement is waited for. What changes layout alone is nothing to tell of: once it is done the statement
//! can be given up again, if nothing else of it was written before ([`reopening`]). Outside a statement both do nothing.

use crate::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::Notify;

tokio::task_local! {
    static OF_STATEMENT: Arc<Decision>;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Decided,
    GivenUp,
}

/// Of one statement: whether it can be given up.
#[derive(Debug, Default)]
pub struct Decision {
    state: Mutex<State>,
    reopened: Notify,
}

impl Decision {
    /// Runs a statement's work, whose writes decide about it.
    pub async fn over<T>(self: &Arc<Self>, work: impl Future<Output = T>) -> T {
        OF_STATEMENT.scope(self.clone(), work).await
    }

    /// Returns once the statement is given up: at once where nothing of it is on its way, never where it is decided to the end. The work
    /// has to go on meanwhile.
    pub async fn give_up(&self) {
        loop {
            let reopened = self.reopened.notified();
            tokio::pin!(reopened);
            // Before the look: a reopening after it is not missed.
            reopened.as_mut().enable();
            {
                let mut state = self.state.lock();
                if *state != State::Decided {
                    *state = State::GivenUp;
                    return;
                }
            }
            reopened.await;
        }
    }
}

/// What the statement that this runs for writes next is waited for.
///
/// # Errors
/// `Conflict` where the statement was given up before: nothing must be written.
pub fn decide() -> Result<()> {
    let decided = OF_STATEMENT.try_with(|decision| {
        let mut state = decision.state.lock();
        match *state {
            State::GivenUp => Err(Error::conflict("the statement was cancelled")),
            _ => {
                *state = State::Decided;
                Ok(())
            }
        }
    });
    decided.unwrap_or(Ok(()))
}

/// Does work whose writes are complete without the rest of the statement, and nothing to tell of. What the statement wrote before it stays
/// decided.
pub async fn reopening<T>(work: impl Future<Output = T>) -> T {
    let open = OF_STATEMENT.try_with(|decision| *decision.state.lock() == State::Open);
    let done = work.await;
    if open.unwrap_or(false) {
        reopen();
    }
    done
}

fn reopen() {
    // No statement: nothing to give up.
    _ = OF_STATEMENT.try_with(|decision| {
        let mut state = decision.state.lock();
        if *state == State::Decided {
            *state = State::Open;
            decision.reopened.notify_waiters();
        }
    });
}

/// Runs `work`; where `limit` ends first, and the statement can be given up by then, there is no answer.
pub async fn unless<T>(limit: impl Future<Output = ()>, work: impl Future<Output = T>) -> Option<T> {
    let decision = Arc::new(Decision::default());
    let ends = async {
        limit.await;
        decision.give_up().await;
    };
    tokio::select! {
        biased;
        () = ends => None,
        done = decision.over(work) => Some(done),
    }
}

#[cfg(test)]
mod tests;
