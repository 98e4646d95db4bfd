//! A part's bytes from one store to another, a few pieces in memory at a time.
//!
//! Guards: what is copied is what was written (checked on the way and read back in the new place), and a copy that failed leaves what a
//! part that could not be stored leaves.

use super::store::{PIECES_QUEUED_MAX, PieceWriter, VERIFY_BYTES, as_written, upload, verify};
use crate::{Error, Result};
use futures::TryStreamExt;
use object_store::{GetResultPayload, ObjectStore, ObjectStoreExt, path::Path};
use std::{
    io::{Read, Write},
    sync::Arc,
};
use tokio::{runtime::Handle, sync::mpsc};
use xxhash_rust::xxh3::Xxh3;

/// Copies the object `from` to `to`, which must be new and takes pieces of so many bytes; durable and read back when this returns.
///
/// # Errors
/// `Corrupt` where the source is not what was written, or the copy not what was read; what the stores say.
pub async fn copy(
    from: (&Arc<dyn ObjectStore>, &Path),
    to: (&Arc<dyn ObjectStore>, &Path, usize),
    bytes: u64,
    checksum: u64,
) -> Result<()> {
    let found = from.0.get(from.1).await.map_err(|e| Error::from(e).context(from.1))?;
    let (pieces, receiver) = mpsc::channel(PIECES_QUEUED_MAX);
    let (key, runtime, piece_bytes) = (from.1.clone(), Handle::current(), to.2);
    let read = tokio::task::spawn_blocking(move || {
        let mut out = Hashed { to: PieceWriter::new(pieces.clone(), piece_bytes), hash: Xxh3::new(), bytes: 0 };
        match found.payload {
            GetResultPayload::File(mut file, _) => {
                let mut buffer = vec![0; VERIFY_BYTES];
                loop {
                    match file.read(&mut buffer) {
                        Ok(0) => break,
                        Ok(n) => out.push(&buffer[..n])?,
                        Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(e) => return Err(Error::from(e).context(&key)),
                    }
                }
            }
            GetResultPayload::Stream(mut stream) => {
                while let Some(piece) = runtime.block_on(stream.try_next()).map_err(|e| Error::from(e).context(&key))? {
                    out.push(&piece)?;
                }
            }
        }
        let Hashed { to, hash, bytes: length } = out;
        as_written(&key, (length, hash.digest()), (bytes, checksum))?;
        // Hands on the last piece; the end is said only after success.
        drop(to);
        let _ = pieces.blocking_send(None);
        Ok(())
    });
    let stored = upload(to.0, to.1, receiver).await;
    let read = read.await.map_err(|e| Error::internal(format!("copying a part was cut off: {e}")))?;
    match (read, stored) {
        // Where the store gave up, what could not be handed on is no cause.
        (_, Err(e)) => return Err(e),
        (Err(e), _) => return Err(e),
        (Ok(()), Ok(false)) => return Err(Error::internal("the upload of a copy ended early")),
        (Ok(()), Ok(true)) => {}
    }
    verify(to.0, to.1, bytes, checksum).await
}

struct Hashed {
    to: PieceWriter,
    hash: Xxh3,
    bytes: u64,
}

impl Hashed {
    fn push(&mut self, piece: &[u8]) -> Result<()> {
        self.hash.update(piece);
        self.bytes += piece.len() as u64;
        Ok(self.to.write_all(piece)?)
    }
}

#[cfg(test)]
mod tests;
