//! The engine of one data directory: what callers hold. It only hands on; the work is in its neighbours.

use crate::{
    core::Core,
    observe::{Explained, RunningJob},
    read::ReadView,
    settings::ServerSettings,
};
use ebb_storage::{Clock, Result, Timestamp, ids::StreamId, manifest::Manifest, stream_def::SettingValue};
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// An open database. Dropping it without [`Engine::close`] is like a crash, and as safe.
pub struct Engine {
    pub(crate) core: Arc<Core>,
    pub(crate) stop: CancellationToken,
    /// The loop that keeps the house, until somebody has waited for its end.
    pub(crate) driver: Mutex<Option<JoinHandle<()>>>,
}

impl Engine {
    pub(crate) fn begin(core: Arc<Core>) -> Arc<Self> {
        let stop = CancellationToken::new();
        let driver = core.options.background.then(|| {
            crate::disks::spawn(&core, stop.clone());
            crate::schedule::driver::spawn(&core, stop.clone())
        });
        Arc::new(Self { core, stop, driver: Mutex::new(driver) })
    }

    /// Flushes what is in the tails, stops background work, writes a checkpoint. The directory is free once the last view and running
    /// insert are gone, too.
    ///
    /// # Errors
    /// The first error on the way; what is acknowledged is safe all the same.
    pub async fn close(&self) -> Result<()> {
        self.stop.cancel();
        let driver = self.driver.lock().take();
        if let Some(driver) = driver {
            // Its round may hold the directory.
            _ = driver.await;
        }
        self.core.jobs.wait_idle().await;
        let flushed = self.flush(None).await;
        let checkpointed = self.core.committer.checkpoint().await;
        let closed = self.core.appender.close();
        flushed.and(checkpointed).and(closed)
    }

    pub fn clock(&self) -> &Clock {
        &self.core.options.clock
    }

    pub fn now(&self) -> Timestamp {
        self.core.now()
    }

    /// In force: those of the manifest, and over them those of this opening.
    pub fn server_settings(&self) -> ServerSettings {
        self.core.server()
    }

    /// What holds of a setting of the server: what this opening was given, else what SET GLOBAL said. `None`: its default.
    pub fn server_setting(&self, name: &str) -> Option<SettingValue> {
        let given = self.core.options.settings.get(name).cloned();
        given.or_else(|| self.core.live.read().manifest.server_settings.get(name).cloned())
    }

    pub fn manifest(&self) -> Arc<Manifest> {
        self.core.live.read().manifest.clone()
    }

    /// One atomic cut over all streams, as of now.
    pub fn read(&self) -> ReadView {
        ReadView { live: self.core.live.read(), disks: self.core.disks.clone(), sets: self.core.sets.clone() }
    }

    /// Every part of a stream with what its rules will do to it, at `at`.
    ///
    /// # Errors
    /// `NotFound` without the stream.
    pub fn explain_lifecycle(&self, stream: StreamId, at: Timestamp) -> Result<Vec<Explained>> {
        crate::schedule::views::explain(&self.core, stream, at)
    }

    /// Tells of every change of what readers see.
    pub fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.core.live.changes()
    }

    pub fn running(&self) -> Vec<RunningJob> {
        self.core.jobs.running()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
