//! The bytes of a part's file: a local file is read in place, a small object of another store is in memory, a large one comes by ranges.
//!
//! Guards: what disk or store is to blame for is told as that, and not as damage. Decoders keep of an error only its text, so it is kept
//! here, for all who read by the same reader.

use crate::{
    Error, ErrorKind, Result,
    part::remote::{Remote, STRETCH_BYTES},
};
use bytes::{Bytes, BytesMut};
use object_store::{GetOptions, GetRange, GetResultPayload, ObjectStore, ObjectStoreExt, path::Path};
use parking_lot::Mutex;
use parquet::{
    errors::{ParquetError, Result as ParquetResult},
    file::reader::{ChunkReader, Length},
};
use std::{fs::File, io, io::Read, os::unix::fs::FileExt, sync::Arc};
use tokio::runtime::Handle;

/// Objects of other stores up to this size are fetched whole.
pub(in crate::part) const WHOLE_BYTES: u64 = 8 << 20;

#[derive(Clone)]
pub(in crate::part) enum Source {
    File(Arc<Local>),
    Remote(Arc<Remote>),
    Bytes(Bytes),
}

pub(in crate::part) struct Local {
    file: File,
    bytes: u64,
    failure: Failure,
}

/// What a disk or a store said last. It stays: several threads read by one reader, and one of them may be told the cause first.
#[derive(Debug, Default)]
pub(in crate::part) struct Failure(Mutex<Option<Error>>);

impl Failure {
    pub fn note(&self, e: Error) {
        *self.0.lock() = Some(e);
    }
    pub fn told(&self) -> Option<Error> {
        self.0.lock().clone()
    }
}

impl Source {
    /// # Errors
    /// What the store says.
    pub async fn open(store: &Arc<dyn ObjectStore>, key: &Path) -> Result<Self> {
        // The end of a file says where all else is; how large the file is, its answer tells.
        let options = GetOptions { range: Some(GetRange::Suffix(STRETCH_BYTES)), ..GetOptions::default() };
        let found = store.get_opts(key, options).await?;
        let (size, start) = (found.meta.size, found.range.start);
        if let GetResultPayload::File(file, _) = found.payload {
            return Ok(Self::local(file, size));
        }
        let tail = found.bytes().await?;
        if size > WHOLE_BYTES {
            return Ok(Self::Remote(Arc::new(Remote::new(store.clone(), key.clone(), size, Handle::current()).with(start, tail))));
        }
        if start == 0 {
            return Ok(Self::Bytes(tail));
        }
        let mut whole = BytesMut::from(store.get_range(key, 0..start).await?);
        whole.extend_from_slice(&tail);
        Ok(Self::Bytes(whole.freeze()))
    }

    pub(super) fn local(file: File, bytes: u64) -> Self {
        Self::File(Arc::new(Local { file, bytes, failure: Failure::default() }))
    }

    /// `e` where the bytes are at fault, what disk or store said where they are.
    pub fn blame(&self, key: &Path, e: Error) -> Error {
        let failure = match self {
            Self::File(f) => f.failure.told(),
            Self::Remote(r) => r.failure.told(),
            Self::Bytes(_) => None,
        };
        failure.map_or(e, |said| said.context(key))
    }
}

impl Local {
    /// An early end is the bytes' fault, not the disk's.
    fn noted<T>(&self, read: io::Result<T>) -> io::Result<T> {
        if let Err(e) = &read
            && e.kind() != io::ErrorKind::UnexpectedEof
        {
            self.failure.note(Error::new(ErrorKind::Unavailable, format!("it cannot be read: {e}")));
        }
        read
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Self::File(f) => f.bytes,
            Self::Remote(r) => r.bytes,
            Self::Bytes(b) => b.len() as u64,
        }
    }
}

impl ChunkReader for Source {
    type T = At;
    fn get_read(&self, start: u64) -> ParquetResult<At> {
        Ok(At { source: self.clone(), at: start })
    }
    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        let end = end.ok_or_else(|| ParquetError::EOF(format!("bytes {start}+{length} of {}", self.len())))?;
        match self {
            Self::File(f) => {
                let mut buffer = Vec::with_capacity(length);
                let read = f.noted(read_at(&f.file, start, length, &mut buffer));
                read.map_err(|e| ParquetError::External(Box::new(e)))?;
                Ok(buffer.into())
            }
            Self::Remote(r) => r.get(start, length),
            Self::Bytes(b) => Ok(b.slice(start as usize..end as usize)),
        }
    }
}

/// Positioned reads: threads share the file without sharing an offset. The buffer is not cleared before.
fn read_at(file: &File, start: u64, length: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
    while buffer.len() < length {
        let at = start + buffer.len() as u64;
        match rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    buffer.truncate(length);
    Ok(())
}

/// A sequential read from a position on.
pub struct At {
    source: Source,
    at: u64,
}

impl Read for At {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = match &self.source {
            Source::File(f) => match f.file.read_at(buf, self.at) {
                // To be tried again.
                Err(e) if e.kind() == io::ErrorKind::Interrupted => return Err(e),
                read => f.noted(read)?,
            },
            Source::Remote(r) => {
                let n = usize::try_from(r.bytes.saturating_sub(self.at)).unwrap_or(usize::MAX).min(buf.len());
                buf[..n].copy_from_slice(&r.get(self.at, n).map_err(io::Error::other)?);
                n
            }
            Source::Bytes(b) => {
                let rest = b.get(self.at as usize..).unwrap_or_default();
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                n
            }
        };
        self.at += n as u64;
        Ok(n)
    }
}
