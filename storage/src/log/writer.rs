//! The one thread that writes the log: takes all that is queued, writes one frame, syncs, tells the sink, wakes the waiters.
//!
//! Order of `append` = order in the log = order at the sink. A ticket is answered after the sink has seen its unit: whoever holds the
//! answer finds its rows visible (I11).
//!
//! A failed sync poisons the log: what is durable is unknown from there, and a later sync may lie. So does any failed write, but for
//! a full disk, where the started frame is cut off and only its waiters fail.
//! This file must never acknowledge what is not durable, and never write a frame before the one before it is.

use super::{
    file::{LogDir, LogFile},
    frame::{self, FileName, FrameHeader, Seed},
    reader::Replayed,
    record::{MAX_KEY_BYTES, Record},
    trim,
};
use crate::{
    Error, ErrorKind, Result,
    ids::{DatabaseId, Epoch, Lsn},
};
use parking_lot::{Condvar, Mutex};
use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread::JoinHandle,
};
use tokio::sync::{Notify, oneshot};

#[derive(Debug, Clone)]
pub struct Limits {
    /// One unit's encoded bytes; more has to be staged.
    pub unit_bytes: usize,
    /// Queued bytes from which [`LogWriter::ready`] waits; `append` refuses at twice as many.
    pub queue_bytes: usize,
    /// A frame takes further units up to this size.
    pub frame_bytes: usize,
    /// From this size on the next frame goes to a new file.
    pub file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { unit_bytes: 64 << 20, queue_bytes: 64 << 20, frame_bytes: 8 << 20, file_bytes: 64 << 20 }
    }
}

/// Where a log goes on.
#[derive(Clone)]
pub struct StartLog {
    pub dir: Arc<dyn LogDir>,
    pub database: DatabaseId,
    /// Above every epoch before.
    pub epoch: Epoch,
    pub replayed: Replayed,
    pub limits: Limits,
}

/// One `append` that is durable.
#[derive(Debug)]
pub struct Unit<T> {
    pub first_lsn: Lsn,
    pub records: u32,
    pub attachment: T,
}

/// The units of one frame, in order. The sink gets each frame once.
#[derive(Debug)]
pub struct Durable<T> {
    pub units: Vec<Unit<T>>,
    /// The last lsn of the frame.
    pub last_lsn: Lsn,
}

/// Resolves to the unit's first lsn once it is durable and the sink has seen it.
#[derive(Debug)]
pub struct Ticket(oneshot::Receiver<Result<Lsn>>);

fn ended() -> Error {
    Error::unavailable("the log is closed: open the database again")
}

impl Ticket {
    /// Waits on this thread; not for async code.
    pub fn wait(self) -> Result<Lsn> {
        self.0.blocking_recv().unwrap_or_else(|_| Err(ended()))
    }
}

impl Future for Ticket {
    type Output = Result<Lsn>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|r| r.unwrap_or_else(|_| Err(ended())))
    }
}

struct Queued<T> {
    bytes: Vec<u8>,
    records: u32,
    attachment: T,
    waiter: oneshot::Sender<Result<Lsn>>,
}

struct Queue<T> {
    units: VecDeque<Queued<T>>,
    bytes: usize,
    rotate: Vec<oneshot::Sender<Result<Lsn>>>,
    closing: bool,
    poison: Option<Error>,
    /// The disk was full: all that was queued has failed, and nothing more is taken before the caller has taken note.
    halted: Option<Error>,
}

struct Shared<T> {
    queue: Mutex<Queue<T>>,
    work: Condvar,
    room: Notify,
    /// Oldest first; the last one is current.
    files: Mutex<Vec<FileName>>,
    /// Held while files are removed, one after the other.
    trimming: Mutex<()>,
    dir: Arc<dyn LogDir>,
    limits: Limits,
}

impl<T> Shared<T> {
    /// From now on everything fails with `error`, also what is queued.
    fn poison(&self, error: &Error) {
        let mut queue = self.queue.lock();
        if queue.poison.is_none() {
            queue.poison = Some(error.clone());
        }
        queue.bytes = 0;
        let (units, rotations) = (std::mem::take(&mut queue.units), std::mem::take(&mut queue.rotate));
        drop(queue);
        for waiter in units.into_iter().map(|u| u.waiter).chain(rotations) {
            let _ = waiter.send(Err(error.clone()));
        }
        self.room.notify_waiters();
    }
}

impl<T> Shared<T> {
    /// Fails all that is queued: it was numbered to follow what failed.
    fn halt(&self, error: &Error) {
        let mut queue = self.queue.lock();
        queue.halted = Some(error.clone());
        queue.bytes = 0;
        let units = std::mem::take(&mut queue.units);
        drop(queue);
        for unit in units {
            let _ = unit.waiter.send(Err(error.clone()));
        }
        self.room.notify_waiters();
    }
}

/// `T` is what the caller attaches to each unit, handed back in order.
pub struct LogWriter<T> {
    shared: Arc<Shared<T>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> LogWriter<T> {
    /// Cuts off what a crash left torn, creates this epoch's first file and starts the thread.
    pub fn start(log: StartLog, sink: impl FnMut(Durable<T>) + Send + 'static) -> Result<Self> {
        let StartLog { dir, database, epoch, replayed, limits } = log;
        if let Some(newest) = replayed.files.iter().map(|f| f.epoch).max().filter(|e| *e >= epoch) {
            return Err(Error::fenced(format!("the log has files of epoch {newest}, this opening is epoch {epoch}: open again")));
        }
        if let Some(torn) = &replayed.torn {
            torn.cut_off(&*dir)?;
        }
        let next_lsn = replayed.next_lsn;
        let mut files = replayed.files;
        let (file, length) = new_file(&*dir, &database, FileName { epoch, first_lsn: next_lsn })?;
        files.push(FileName { epoch, first_lsn: next_lsn });
        let queue = Queue { units: VecDeque::new(), bytes: 0, rotate: Vec::new(), closing: false, poison: None, halted: None };
        let shared = Arc::new(Shared {
            queue: Mutex::new(queue),
            work: Condvar::new(),
            room: Notify::new(),
            files: Mutex::new(files),
            trimming: Mutex::default(),
            dir,
            limits,
        });
        let frame = Vec::new();
        let seed = Seed::of(&database);
        let writer = Writer { shared: shared.clone(), database, seed, epoch, file, header: length, length, next_lsn, frame, sink };
        let thread = std::thread::Builder::new().name("ebb-log".into()).spawn(move || writer.run()).map_err(Error::from)?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Queues records as one unit: all in one frame, at consecutive lsns.
    pub fn append(&self, records: &[Record], attachment: T) -> Result<Ticket> {
        if records.is_empty() {
            return Err(Error::internal("a unit of the log has no records"));
        }
        let limits = &self.shared.limits;
        let size: usize = records.iter().map(|r| Record::OVERHEAD + r.body.len()).sum();
        if size > limits.unit_bytes {
            return Err(Error::invalid(format!(
                "{size} bytes are above the log's limit of {} for one change: write them staged (COPY or a larger append)",
                limits.unit_bytes
            )));
        }
        if let Some(key) = records.iter().filter_map(|r| r.header.key.as_ref()).find(|k| k.len() > MAX_KEY_BYTES) {
            return Err(Error::invalid(format!("an idempotency key has {} bytes: at most {MAX_KEY_BYTES} are kept", key.len())));
        }
        let count = u32::try_from(records.len()).map_err(|_| Error::invalid("too many records in one transaction"))?;
        // Encoded here: callers are many, the writer is one.
        let mut bytes = Vec::with_capacity(size);
        for record in records {
            record.encode(&mut bytes);
        }
        let (waiter, ticket) = oneshot::channel();
        let mut queue = self.shared.queue.lock();
        if let Some(error) = &queue.poison {
            return Err(error.clone());
        }
        if queue.closing {
            return Err(ended());
        }
        if let Some(error) = &queue.halted {
            return Err(error.clone());
        }
        if queue.bytes > 0 && queue.bytes + bytes.len() > limits.queue_bytes.saturating_mul(2) {
            return Err(Error::unavailable(format!("{} bytes wait for the log already: retry", queue.bytes)));
        }
        queue.bytes += bytes.len();
        queue.units.push_back(Queued { bytes, records: count, attachment, waiter });
        drop(queue);
        self.shared.work.notify_one();
        Ok(Ticket(ticket))
    }

    /// Waits until the queue has room (or the log is poisoned, which `append` will tell).
    pub async fn ready(&self) {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            // Registered before the look, so that no wake-up falls between.
            room.as_mut().enable();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    fn has_room(&self) -> bool {
        let queue = self.shared.queue.lock();
        queue.bytes < self.shared.limits.queue_bytes || queue.poison.is_some() || queue.closing
    }

    /// Takes units again after a full disk failed all that were queued; whether it had. Records behind a failed one are numbered as if
    /// it were there: the caller numbers anew before it calls this.
    pub fn resume(&self) -> bool {
        self.shared.queue.lock().halted.take().is_some()
    }

    /// Whether a full disk failed what was queued and [`Self::resume`] is to come.
    pub fn is_halted(&self) -> bool {
        self.shared.queue.lock().halted.is_some()
    }

    /// Lets the next frame begin a new file, so that the current one can be trimmed. Resolves to the new file's first lsn.
    pub fn rotate(&self) -> Result<Ticket> {
        let (waiter, ticket) = oneshot::channel();
        let mut queue = self.shared.queue.lock();
        match &queue.poison {
            Some(error) => return Err(error.clone()),
            None if queue.closing => return Err(ended()),
            None => queue.rotate.push(waiter),
        }
        drop(queue);
        self.shared.work.notify_one();
        Ok(Ticket(ticket))
    }

    /// Removes whole files whose records are all at or below `applied`, never the current one. Returns how many went.
    /// Blocks; what is written meanwhile does not wait for it.
    pub fn trim(&self, applied: Lsn) -> Result<u64> {
        let _one = self.shared.trimming.lock();
        let mut old = self.files();
        old.truncate(trim::removable(&old, applied));
        for file in &old {
            trim::remove(&*self.shared.dir, *file)?;
            self.shared.files.lock().retain(|f| f != file);
        }
        Ok(old.len() as u64)
    }

    /// The log's files, oldest first, the current one last.
    pub fn files(&self) -> Vec<FileName> {
        self.shared.files.lock().clone()
    }

    /// Why the log no longer takes anything, if so.
    pub fn poisoned(&self) -> Option<Error> {
        self.shared.queue.lock().poison.clone()
    }

    /// Writes what is queued and ends the thread.
    pub fn close(&self) -> Result<()> {
        self.stop();
        self.poisoned().map_or(Ok(()), Err)
    }
}

impl<T> LogWriter<T> {
    fn stop(&self) {
        self.shared.queue.lock().closing = true;
        self.shared.room.notify_waiters();
        self.shared.work.notify_one();
        let thread = self.thread.lock().take();
        // The sink may hold the last handle: a thread cannot wait for itself.
        if let Some(thread) = thread.filter(|t| t.thread().id() != std::thread::current().id()) {
            // A panic of the sink has poisoned the log already.
            let _ = thread.join();
        }
    }
}

/// The thread has ended when this returns, so that LOCK can be released.
impl<T> Drop for LogWriter<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

fn new_file(dir: &dyn LogDir, database: &DatabaseId, name: FileName) -> Result<(Box<dyn LogFile>, u64)> {
    let header = frame::encode_file_header(name, database);
    let file = dir.create(&name.to_string()).and_then(|file| {
        file.write_at(&header, 0)?;
        file.sync()?;
        Ok(file)
    });
    let file = file.map_err(|e| {
        // So that it can be tried again; where it stays, replay takes it for what it is.
        let _ = dir.remove(&name.to_string());
        Error::from(e).context(format!("log file {name} cannot be created"))
    })?;
    Ok((file, header.len() as u64))
}

/// The thread's own state.
struct Writer<T, S> {
    shared: Arc<Shared<T>>,
    database: DatabaseId,
    seed: Seed,
    epoch: Epoch,
    file: Box<dyn LogFile>,
    header: u64,
    length: u64,
    next_lsn: Lsn,
    frame: Vec<u8>,
    sink: S,
}

/// Poisons the log when the thread ends by a panic.
struct Watch<T>(Arc<Shared<T>>);

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(&Error::internal("the log's thread panicked: open the database again"));
        }
    }
}

impl<T, S: FnMut(Durable<T>)> Writer<T, S> {
    fn run(mut self) {
        let _watch = Watch(self.shared.clone());
        loop {
            let mut queue = self.shared.queue.lock();
            while queue.units.is_empty() && queue.rotate.is_empty() && !queue.closing {
                self.shared.work.wait(&mut queue);
            }
            if queue.poison.is_some() || (queue.units.is_empty() && queue.rotate.is_empty()) {
                return;
            }
            let rotations = std::mem::take(&mut queue.rotate);
            let units = take_frame(&mut queue, self.shared.limits.frame_bytes);
            drop(queue);
            self.shared.room.notify_waiters();
            let turned = self.turn(!rotations.is_empty());
            let first_lsn = self.shared.files.lock().last().map_or(self.next_lsn, |f| f.first_lsn);
            for waiter in rotations {
                let _ = waiter.send(turned.clone().map(|()| first_lsn));
            }
            let written = turned.and_then(|()| if units.is_empty() { Ok(()) } else { self.write(&units) });
            match written {
                Ok(()) => self.acknowledge(units),
                Err(error) => {
                    let fatal = error.kind() != ErrorKind::Full;
                    match fatal {
                        true => self.shared.poison(&error),
                        false => self.shared.halt(&error),
                    }
                    for unit in units {
                        let _ = unit.waiter.send(Err(error.clone()));
                    }
                    if fatal {
                        return;
                    }
                }
            }
        }
    }

    /// Begins a new file if the current one is large or `asked`. An error of kind Full leaves the current one in use.
    fn turn(&mut self, asked: bool) -> Result<()> {
        let empty = self.length == self.header;
        if empty || !(asked || self.length >= self.shared.limits.file_bytes) {
            return Ok(());
        }
        let name = FileName { epoch: self.epoch, first_lsn: self.next_lsn };
        match new_file(&*self.shared.dir, &self.database, name) {
            Ok((file, length)) => {
                (self.file, self.header, self.length) = (file, length, length);
                self.shared.files.lock().push(name);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Full => match self.shared.dir.remove(&name.to_string()) {
                Err(gone) if gone.kind() != std::io::ErrorKind::NotFound => {
                    Err(Error::unavailable(format!("{e}, and log file {name} cannot be removed again: {gone}")))
                }
                _ => Err(e),
            },
            Err(e) => Err(not_full(e)),
        }
    }

    /// Writes one frame durably. An error of kind Full means that nothing of it is left.
    fn write(&mut self, units: &[Queued<T>]) -> Result<()> {
        let count = units.iter().map(|u| u64::from(u.records)).sum::<u64>();
        let count = u32::try_from(count).map_err(|_| Error::internal("too many records in a frame of the log"))?;
        frame::begin(&mut self.frame);
        for unit in units {
            self.frame.extend_from_slice(&unit.bytes);
        }
        frame::seal(&mut self.frame, FrameHeader { epoch: self.epoch, count, first_lsn: self.next_lsn }, self.seed)?;
        if let Err(e) = self.file.write_at(&self.frame, self.length) {
            let e = Error::from(e).context("the log cannot be written");
            if e.kind() != ErrorKind::Full {
                return Err(e);
            }
            let cut = self.file.truncate(self.length).and_then(|()| self.file.sync());
            return match cut {
                Ok(()) => Err(e),
                Err(cut) => Err(Error::unavailable(format!("{e}, and the started frame cannot be cut off: {cut}"))),
            };
        }
        self.file.sync().map_err(|e| not_full(Error::from(e).context("the log cannot be synced")))?;
        self.length += self.frame.len() as u64;
        // One huge transaction must not keep its memory for ever.
        self.frame.shrink_to(self.shared.limits.frame_bytes);
        Ok(())
    }

    fn acknowledge(&mut self, units: Vec<Queued<T>>) {
        if units.is_empty() {
            return;
        }
        let mut waiters = Vec::with_capacity(units.len());
        let mut durable = Vec::with_capacity(units.len());
        for unit in units {
            let first_lsn = self.next_lsn;
            waiters.push((unit.waiter, first_lsn));
            durable.push(Unit { first_lsn, records: unit.records, attachment: unit.attachment });
            self.next_lsn = Lsn(self.next_lsn.0 + u64::from(unit.records));
        }
        (self.sink)(Durable { units: durable, last_lsn: Lsn(self.next_lsn.0 - 1) });
        for (waiter, lsn) in waiters {
            let _ = waiter.send(Ok(lsn));
        }
    }
}

/// After a failed sync nothing is known, also when the disk says that it is full.
fn not_full(e: Error) -> Error {
    match e.kind() {
        ErrorKind::Full => Error::unavailable(e.to_string()),
        _ => e,
    }
}

fn take_frame<T>(queue: &mut Queue<T>, limit: usize) -> Vec<Queued<T>> {
    let mut taken = Vec::new();
    let mut bytes = 0;
    while let Some(unit) = queue.units.pop_front_if(|u| bytes == 0 || bytes + u.bytes.len() <= limit) {
        bytes += unit.bytes.len();
        queue.bytes -= unit.bytes.len();
        taken.push(unit);
    }
    taken
}

#[cfg(test)]
mod tests;
