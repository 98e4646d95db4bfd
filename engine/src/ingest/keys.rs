//! Idempotency keys: a second insert with a key is answered as the first was.
//!
//! Guards: of inserts with one key that run at the same time one does the work and the others wait for it.

use crate::ingest::Inserted;
use ebb_storage::ids::StreamId;
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};
use tokio::sync::watch;

type Key = (StreamId, String);

#[derive(Clone, Default)]
pub struct Keys {
    known: Arc<Mutex<HashMap<Key, State>>>,
}

enum State {
    /// Its sender is dropped when the insert ended, well or not.
    Running(watch::Receiver<()>),
    Done(Inserted),
}

pub enum Claim {
    Known(Inserted),
    Mine(Claimed),
}

/// The right to do an insert; dropped without [`Claimed::done`] it passes to whoever waits.
pub struct Claimed {
    keys: Keys,
    key: Key,
    _running: watch::Sender<()>,
    done: bool,
}

impl Keys {
    /// What replay or the record list says of an earlier insert.
    pub fn remember(&self, stream: StreamId, key: &str, inserted: Inserted) {
        self.known.lock().insert((stream, key.to_owned()), State::Done(inserted));
    }

    pub fn forget(&self, stream: StreamId) {
        self.known.lock().retain(|(s, _), _| *s != stream);
    }

    pub async fn claim(&self, stream: StreamId, key: &str) -> Claim {
        let key = (stream, key.to_owned());
        loop {
            let mut running = {
                let mut known = self.known.lock();
                match known.get(&key) {
                    Some(State::Done(inserted)) => return Claim::Known(*inserted),
                    Some(State::Running(running)) => running.clone(),
                    None => {
                        let (sender, receiver) = watch::channel(());
                        known.insert(key.clone(), State::Running(receiver));
                        return Claim::Mine(Claimed { keys: self.clone(), key, _running: sender, done: false });
                    }
                }
            };
            // An error says that the other insert ended.
            let _ = running.changed().await;
        }
    }
}

impl Claimed {
    pub fn done(mut self, inserted: Inserted) {
        self.done = true;
        self.keys.known.lock().insert(self.key.clone(), State::Done(inserted));
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.done {
            self.keys.known.lock().remove(&self.key);
        }
    }
}
