//! Making a part's file durable while it is encoded: bounded memory, whatever the part's size.

use crate::{
    Error, Result,
    part::encode::{Encoded, PartEncoder, WriteOptions},
};
use bytes::Bytes;
use futures::TryStreamExt;
use object_store::{GetResultPayload, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, path::Path};
use std::{
    io::{self, Write},
    sync::Arc,
};
use tokio::{runtime::Handle, sync::mpsc};
use xxhash_rust::xxh3::Xxh3;

/// Least bytes of one piece of an upload to a server.
const PIECE_BYTES: usize = 8 << 20;
/// Of one to a local file, which takes any number.
const LOCAL_PIECE_BYTES: usize = 2 << 20;
/// So many pieces are planned with; servers take 10,000, and more may come out than was expected.
const PIECES_PLANNED: u64 = 9_000;
/// Beyond them each piece grows by this share, so that their number comes to an end.
const PIECE_GROWTH: usize = 100;
/// The write that makes a piece full may make it larger than that.
const PIECE_SLACK_BYTES: usize = 64 << 10;
/// Pieces waiting for the store before encoding waits too.
pub(super) const PIECES_QUEUED_MAX: usize = 1;
/// Bytes read at a time to verify a local file.
pub(super) const VERIFY_BYTES: usize = 1 << 20;

/// Bytes of one piece of a file that will have about `expected`. A file of one piece is one put.
pub fn piece_bytes(is_remote: bool, expected: u64) -> usize {
    match is_remote {
        false => LOCAL_PIECE_BYTES,
        true => usize::try_from(expected.div_ceil(PIECES_PLANNED)).unwrap_or(usize::MAX).max(PIECE_BYTES),
    }
}

/// Encodes a part on a blocking thread, by `fill`, and stores it under `key`, which must be new. It is durable when this returns.
/// Without rows nothing is stored.
///
/// # Errors
/// What `fill` returned, or the store's error. Then no object remains but an orphan, where an answer was lost or the process ended;
/// pieces of an upload that a crash cut off are the server's to clear away.
pub async fn write_part<T: Send + 'static>(
    store: &Arc<dyn ObjectStore>,
    key: &Path,
    options: WriteOptions,
    fill: impl FnOnce(&mut PartEncoder<PieceWriter>) -> Result<T> + Send + 'static,
) -> Result<(Option<Encoded>, T)> {
    let (pieces, receiver) = mpsc::channel(PIECES_QUEUED_MAX);
    let encode = tokio::task::spawn_blocking(move || {
        let writer = PieceWriter::new(pieces.clone(), options.piece_bytes);
        let mut encoder = PartEncoder::new(writer, options);
        let filled = fill(&mut encoder).and_then(|told| Ok((encoder.finish()?, told)));
        // The end is said only after success: an upload without it is given up.
        if matches!(filled, Ok((Some(_), _))) {
            let _ = pieces.blocking_send(None);
        }
        filled
    });
    let stored = upload(store, key, receiver).await;
    let encoded = encode.await.map_err(|e| Error::internal(format!("encoding a part failed: {e}")))?;
    match (encoded, stored) {
        // The store's error is the cause where both failed.
        (_, Err(e)) => Err(e),
        (Ok((None, told)), Ok(false)) => Ok((None, told)),
        (Ok((Some(encoded), told)), Ok(true)) => Ok((Some(encoded), told)),
        (Ok(_), Ok(_)) => Err(Error::internal("a part's upload ended early")),
        (Err(e), Ok(_)) => Err(e),
    }
}

/// True once everything is stored, false where the pieces ended without their end; then nothing is.
pub(super) async fn upload(store: &Arc<dyn ObjectStore>, key: &Path, mut pieces: mpsc::Receiver<Option<Bytes>>) -> Result<bool> {
    let Some(Some(first)) = pieces.recv().await else { return Ok(false) };
    let second = match pieces.recv().await {
        None => return Ok(false),
        Some(None) => return create(store, key, first).await.map(|()| true),
        Some(Some(second)) => second,
    };
    let mut upload = Uploading(Some(store.put_multipart(key).await?));
    let stored = upload.all([first, second], &mut pieces).await;
    if !matches!(stored, Ok(true)) {
        // The first error is the one to tell; what was uploaded is cleared away if the store still can.
        upload.abort().await;
    }
    stored
}

/// By one put. Keys are never used twice (I2), but a put whose answer was lost is sent again: the same bytes are ours.
async fn create(store: &Arc<dyn ObjectStore>, key: &Path, bytes: Bytes) -> Result<()> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    let exists = match store.put_opts(key, PutPayload::from(bytes.clone()), options).await {
        Ok(_) => return Ok(()),
        Err(exists @ object_store::Error::AlreadyExists { .. }) => exists,
        Err(e) => return Err(e.into()),
    };
    let found = store.get(key).await?;
    match found.meta.size == bytes.len() as u64 && found.bytes().await? == bytes {
        true => Ok(()),
        false => Err(exists.into()),
    }
}

/// An upload by pieces; given up where nobody waits for its end any more: a server would keep its pieces, and nobody could find them.
struct Uploading(Option<Box<dyn MultipartUpload>>);

impl Uploading {
    async fn all(&mut self, begun: [Bytes; 2], pieces: &mut mpsc::Receiver<Option<Bytes>>) -> Result<bool> {
        let Some(upload) = &mut self.0 else { return Ok(false) };
        for piece in begun {
            upload.put_part(piece.into()).await?;
        }
        loop {
            match pieces.recv().await {
                Some(Some(piece)) => upload.put_part(piece.into()).await?,
                Some(None) => break,
                None => return Ok(false),
            }
        }
        upload.complete().await?;
        self.0 = None;
        Ok(true)
    }

    async fn abort(&mut self) {
        if let Some(upload) = &mut self.0 {
            let _ = upload.abort().await;
        }
        self.0 = None;
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        if let (Some(mut upload), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move { upload.abort().await });
        }
    }
}

/// Hands bytes on in pieces.
pub struct PieceWriter {
    pieces: mpsc::Sender<Option<Bytes>>,
    piece: Vec<u8>,
    full_at: usize,
    handed_on: u64,
}

impl PieceWriter {
    /// Pieces of `full_at` bytes and little more.
    pub(super) fn new(pieces: mpsc::Sender<Option<Bytes>>, full_at: usize) -> Self {
        Self { pieces, piece: Vec::with_capacity(64 << 10), full_at, handed_on: 0 }
    }

    fn hand_on(&mut self) -> io::Result<()> {
        self.handed_on += 1;
        if self.handed_on >= PIECES_PLANNED {
            self.full_at += self.full_at / PIECE_GROWTH;
        }
        // Where one piece became full the next one will: it grows no more.
        let next = Vec::with_capacity(if self.piece.len() >= self.full_at { self.full_at + PIECE_SLACK_BYTES } else { 0 });
        let piece = Bytes::from(std::mem::replace(&mut self.piece, next));
        // The receiver goes away only when the store failed; its error is told instead.
        self.pieces.blocking_send(Some(piece)).map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the store gave up"))
    }
}

impl Write for PieceWriter {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(buf);
        if self.piece.len() >= self.full_at {
            self.hand_on()?;
        }
        Ok(buf.len())
    }
    /// Only the end of a file flushes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PieceWriter {
    fn drop(&mut self) {
        if !self.piece.is_empty() {
            let _ = self.hand_on();
        }
    }
}

/// Reads an object whole, a piece in memory at a time, and compares it with its checksum.
///
/// # Errors
/// `Corrupt` naming the key where it differs.
pub async fn verify(store: &Arc<dyn ObjectStore>, key: &Path, bytes: u64, checksum: u64) -> Result<()> {
    let found = store.get(key).await.map_err(|e| Error::from(e).context(key))?;
    let (length, hash) = match found.payload {
        GetResultPayload::File(mut file, _) => {
            let hashed = tokio::task::spawn_blocking(move || hash_of(&mut file)).await;
            hashed.map_err(|e| Error::internal(format!("reading {key} was cut off: {e}")))?.map_err(|e| Error::from(e).context(key))?
        }
        GetResultPayload::Stream(mut stream) => {
            let (mut hash, mut length) = (Xxh3::new(), 0u64);
            while let Some(piece) = stream.try_next().await? {
                hash.update(&piece);
                length += piece.len() as u64;
            }
            (length, hash.digest())
        }
    };
    as_written(key, (length, hash), (bytes, checksum))
}

/// Compares length and checksum with those that were written.
///
/// # Errors
/// `Corrupt` naming the key where they differ.
pub(super) fn as_written(key: &Path, found: (u64, u64), written: (u64, u64)) -> Result<()> {
    match found == written {
        true => Ok(()),
        false => Err(Error::corrupt(format!(
            "{key} is damaged: {} bytes of {}, or its checksum differs; restore it from a backup",
            found.0, written.0
        ))),
    }
}

fn hash_of(file: &mut impl io::Read) -> io::Result<(u64, u64)> {
    let (mut hash, mut length, mut buffer) = (Xxh3::new(), 0u64, vec![0; VERIFY_BYTES]);
    loop {
        let n = match file.read(&mut buffer) {
            Ok(0) => return Ok((length, hash.digest())),
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        hash.update(&buffer[..n]);
        length += n as u64;
    }
}

#[cfg(test)]
mod tests;
