//! What keeps the house beside the jobs that plans ask for: flushes, vacuum, the books. Each runs by itself, so that what one waits for, a
//! slow disk or very many objects, keeps no other and no round.
//!
//! Guards: one of each at a time; few flushes at once, and fewer of one storage policy, whose disk may answer nothing. Starts what it is
//! told, and decides nothing.

use crate::{core::Core, ingest::flush, job, logs};
use ebb_storage::{Result, ids::StreamId, manifest::Manifest};
use std::{collections::HashMap, sync::Arc};
use tokio::task::{Id, JoinSet};

/// Flushes at the same time.
const FLUSHES_AT_ONCE: usize = 8;
/// Of streams of one storage policy.
const FLUSHES_OF_A_POLICY: usize = 2;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chore {
    Flush {
        stream: StreamId,
        policy: String,
    },
    Vacuum,
    /// Rows of the logs into their streams, and a checkpoint where one is due.
    Books,
}

impl Chore {
    /// Of a stream that is there.
    pub fn flush(manifest: &Manifest, stream: StreamId) -> Option<Self> {
        let policy = Manifest::policy_name(&manifest.stream(stream)?.def).to_owned();
        Some(Self::Flush { stream, policy })
    }

    async fn run(self, core: &Core) -> Result<()> {
        match self {
            Self::Flush { stream, .. } => _ = flush::flush(core, stream).await?,
            Self::Vacuum => _ = job::vacuum::run(core).await?,
            Self::Books => {
                let moved = logs::moving::run(core).await;
                if core.committer.checkpoint_due() {
                    core.committer.checkpoint().await?;
                }
                moved?;
            }
        }
        Ok(())
    }
}

/// Whether a chore may start beside those that run.
fn has_place<'a>(chore: &Chore, running: impl Iterator<Item = &'a Chore>) -> bool {
    let (mut flushes, mut of_policy) = (0, 0);
    for other in running {
        match (chore, other) {
            (Chore::Flush { stream, .. }, Chore::Flush { stream: other, .. }) if stream == other => return false,
            (Chore::Flush { policy, .. }, Chore::Flush { policy: other, .. }) => {
                flushes += 1;
                of_policy += usize::from(policy == other);
            }
            (chore, other) if chore == other => return false,
            _ => {}
        }
    }
    // Neither counts anything for other chores.
    flushes < FLUSHES_AT_ONCE && of_policy < FLUSHES_OF_A_POLICY
}

/// Those that run. To be ended: where this is dropped they are cut off.
#[derive(Default)]
pub struct Chores {
    /// Each says whether it came to a good end.
    tasks: JoinSet<bool>,
    running: HashMap<Id, Chore>,
}

impl Chores {
    /// Starts it if there is a place. Why it fails is noted; whoever asks for it again tries it again.
    pub fn start(&mut self, core: &Arc<Core>, chore: Chore) {
        if !has_place(&chore, self.running.values()) {
            return;
        }
        let (core, work) = (core.clone(), chore.clone());
        let task = self.tasks.spawn(async move {
            let done = work.run(&core).await;
            if let Err(e) = &done {
                core.note(e);
            }
            done.is_ok()
        });
        self.running.insert(task.id(), chore);
    }

    /// Returns when one has come to a good end; one that failed is for the next round, whenever that is.
    pub async fn one_is_done(&mut self) {
        loop {
            match self.tasks.join_next_with_id().await {
                None => std::future::pending().await,
                Some(Ok((id, well))) => {
                    self.running.remove(&id);
                    if well {
                        return;
                    }
                }
                Some(Err(e)) => _ = self.running.remove(&e.id()),
            }
        }
    }

    /// Takes note of those that are done.
    pub fn tidy(&mut self) {
        while let Some(done) = self.tasks.try_join_next_with_id() {
            let id = done.map_or_else(|e| e.id(), |(id, _)| id);
            self.running.remove(&id);
        }
    }

    /// Waits for all of them.
    pub async fn end(mut self) {
        while self.tasks.join_next().await.is_some() {}
    }
}

#[cfg(test)]
mod tests;
