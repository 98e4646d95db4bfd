//! Chunks of several row groups recoded side by side, ahead of the one who writes them in their order.
//!
//! Guards: no more row groups are in memory than the writer is behind by, whatever the file's size; who fails stops the others.

use super::{Recoded, chunk, passing::Passing};
use crate::{
    Error, Result,
    codec::Codec,
    part::{compress::Compressor, reader::PartReader},
};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::{collections::HashMap, ops::Range, sync::mpsc, thread};

/// Row groups that are begun while an earlier one is not written yet.
const GROUPS_AHEAD: usize = 2;

/// A chunk's row group and leaf.
type Place = (usize, usize);

/// What there is to do, and how far it may go.
struct Work {
    next: usize,
    /// The row group that is being written.
    writing: usize,
    stopped: bool,
}

struct Shared<'a> {
    from: &'a PartReader,
    jobs: Vec<(Place, Codec)>,
    passing: Option<Passing<'a>>,
    work: Mutex<Work>,
    moved_on: Condvar,
}

/// The chunks, for the one who writes them.
pub struct Chunks<'a> {
    shared: &'a Shared<'a>,
    done: mpsc::Receiver<(Place, Result<Recoded>)>,
    early: HashMap<Place, Recoded>,
}

/// Recodes the leaves of `groups` that have a codec, on so many threads, while `write` takes them, group by group. With `written`, the
/// length and checksum of the whole file, it is compared with them on the way.
///
/// # Errors
/// What `write` says, to which a chunk's own error is handed; `Corrupt` where the file is not what was written.
pub fn ahead<T>(
    from: &PartReader,
    groups: Range<usize>,
    codecs: &[Option<Codec>],
    threads: usize,
    written: Option<(u64, u64)>,
    write: impl FnOnce(Chunks<'_>) -> Result<T>,
) -> Result<T> {
    let leaves: Vec<(usize, Codec)> = codecs.iter().enumerate().filter_map(|(leaf, codec)| Some((leaf, (*codec)?))).collect();
    let work = Mutex::new(Work { next: 0, writing: groups.start, stopped: false });
    let jobs: Vec<_> = groups.flat_map(|group| leaves.iter().map(move |(leaf, codec)| ((group, *leaf), *codec))).collect();
    let threads = threads.clamp(1, jobs.len().max(1)).min(jobs.len());
    let passing = written.map(|_| Passing::of(from, jobs.iter().map(|(place, _)| *place))).transpose()?;
    let shared = &Shared { from, jobs, passing, work, moved_on: Condvar::new() };
    thread::scope(|scope| {
        let (send, done) = mpsc::channel();
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let send = send.clone();
                scope.spawn(move || shared.work(&send))
            })
            .collect();
        drop(send);
        let taken = write(Chunks { shared, done, early: HashMap::new() });
        shared.stop();
        let panicked = workers.into_iter().map(|w| w.join()).filter(|ended| ended.is_err()).count();
        match panicked {
            0 => match (&shared.passing, written) {
                (Some(passing), Some(written)) => passing.compare(written, taken),
                _ => taken,
            },
            _ => Err(Error::internal("a thread that recodes a part panicked")),
        }
    })
}

impl Shared<'_> {
    fn work(&self, send: &mpsc::Sender<(Place, Result<Recoded>)>) {
        let _stops = StopsWhenPanicking(self);
        // Kept from chunk to chunk: its tables are large.
        let mut kept: Option<(Codec, Compressor)> = None;
        while let Some((i, (place, codec))) = self.next() {
            let recoded = match kept.take().filter(|(of, _)| *of == codec) {
                Some((_, compressor)) => Ok(compressor),
                None => Compressor::of(codec),
            };
            let recoded = recoded.and_then(|compressor| {
                let (_, compressor) = kept.insert((codec, compressor));
                let seen = |bytes: &Bytes| self.passing.as_ref().map_or(Ok(()), |p| p.saw(i, bytes.clone()));
                chunk(self.from, place, seen, (codec, compressor))
            });
            // The writer goes away only when it failed.
            if send.send((place, recoded)).is_err() {
                return;
            }
        }
    }

    fn next(&self) -> Option<(usize, (Place, Codec))> {
        let mut work = self.work.lock();
        loop {
            let (i, job) = (work.next, *self.jobs.get(work.next)?);
            if work.stopped {
                return None;
            }
            if job.0.0 <= work.writing + GROUPS_AHEAD {
                work.next += 1;
                return Some((i, job));
            }
            self.moved_on.wait(&mut work);
        }
    }

    fn stop(&self) {
        self.work.lock().stopped = true;
        self.moved_on.notify_all();
    }
}

struct StopsWhenPanicking<'a>(&'a Shared<'a>);

impl Drop for StopsWhenPanicking<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

impl Chunks<'_> {
    /// Waits for the chunk.
    ///
    /// # Errors
    /// Of the first chunk that failed.
    pub fn get(&mut self, group: usize, leaf: usize) -> Result<Recoded> {
        let place = (group, leaf);
        loop {
            if let Some(chunk) = self.early.remove(&place) {
                return Ok(chunk);
            }
            let (of, recoded) = self.done.recv().map_err(|_| Error::internal("a column chunk was not recoded"))?;
            self.early.insert(of, recoded?);
        }
    }

    /// The row group is written: later ones may begin.
    pub fn written(&self, group: usize) {
        self.shared.work.lock().writing = group + 1;
        self.shared.moved_on.notify_all();
    }
}
