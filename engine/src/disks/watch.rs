//! Looks for disks that are away, in the machine's time, so that they are used again without a restart.

use crate::core::Core;
use ebb_storage::clock::pause;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_secs(2);

/// Until `stop`, or the engine is gone.
pub(crate) fn spawn(core: &Arc<Core>, stop: CancellationToken) {
    let core = Arc::downgrade(core);
    tokio::spawn(async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = watch(core) => {}
        }
    });
}

async fn watch(core: Weak<Core>) {
    loop {
        pause(EVERY).await;
        let Some(core) = core.upgrade() else { return };
        if core.disks.look_for_the_lost().await {
            core.jobs.wake();
        }
    }
}
