//! Compressing pages: one page in, one block out, at the level that the codec names.
//!
//! LZ4HC blocks are LZ4 blocks that took longer to find: every reader of LZ4_RAW pages reads them.

use crate::{Error, Result, codec::Codec};
use bytes::Bytes;
use parking_lot::Mutex;
use std::io::Write;

/// Bytes that brotli hands on at a time.
const BROTLI_BUFFER_BYTES: usize = 4096;
/// The window that Parquet's readers expect, as a power of two.
const BROTLI_WINDOW: u32 = 22;

/// Kept from page to page, since some codecs have tables to make.
pub enum Compressor {
    None,
    Lz4,
    Lz4hc(u8),
    Zstd(Box<zstd::bulk::Compressor<'static>>),
    Snappy(Box<snap::raw::Encoder>),
    Gzip(u8),
    Brotli(u8),
}

impl Compressor {
    /// # Errors
    /// `Internal` where the codec's library refuses the level.
    pub fn of(codec: Codec) -> Result<Self> {
        Ok(match codec {
            Codec::None => Self::None,
            Codec::Lz4 => Self::Lz4,
            Codec::Lz4hc(level) => Self::Lz4hc(level),
            Codec::Zstd(level) => Self::Zstd(Box::new(zstd::bulk::Compressor::new(i32::from(level)).map_err(|e| failed(codec, &e))?)),
            Codec::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Codec::Gzip(level) => Self::Gzip(level),
            Codec::Brotli(level) => Self::Brotli(level),
        })
    }

    /// # Errors
    /// `Internal` where the codec's library fails.
    pub fn compress(&mut self, page: &[u8]) -> Result<Bytes> {
        Ok(match self {
            Self::None => Bytes::copy_from_slice(page),
            Self::Lz4 => lz4_flex::block::compress(page).into(),
            Self::Lz4hc(level) => {
                let mode = lz4::block::CompressionMode::HIGHCOMPRESSION(i32::from(*level));
                lz4::block::compress(page, Some(mode), false).map_err(|e| failed(Codec::Lz4hc(*level), &e))?.into()
            }
            Self::Zstd(c) => c.compress(page).map_err(|e| Error::internal(format!("zstd: {e}")))?.into(),
            Self::Snappy(c) => c.compress_vec(page).map_err(|e| failed(Codec::Snappy, &e))?.into(),
            Self::Gzip(level) => {
                let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(u32::from(*level)));
                gzip.write_all(page)?;
                gzip.finish()?.into()
            }
            Self::Brotli(level) => {
                let mut brotli = brotli::CompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES, u32::from(*level), BROTLI_WINDOW);
                brotli.write_all(page)?;
                brotli.flush()?;
                brotli.into_inner().into()
            }
        })
    }
}

/// Compressors that nobody uses at the moment. Their tables are many times as large as what they compress: made anew for every column they
/// would be most of a rewrite's memory.
#[derive(Default)]
pub struct Compressors(Mutex<Vec<(Codec, Compressor)>>);

impl Compressors {
    /// Does `work` with a compressor of `codec`, which is kept for the next.
    ///
    /// # Errors
    /// What `work` says; `Internal` where the codec's library refuses the level.
    pub fn lend<T>(&self, codec: Codec, work: impl FnOnce(&mut Compressor) -> Result<T>) -> Result<T> {
        let free = {
            let mut free = self.0.lock();
            free.iter().position(|(c, _)| *c == codec).map(|at| free.swap_remove(at).1)
        };
        let mut compressor = free.map_or_else(|| Compressor::of(codec), Ok)?;
        let done = work(&mut compressor);
        self.0.lock().push((codec, compressor));
        done
    }
}

fn failed(codec: Codec, e: &dyn std::fmt::Display) -> Error {
    Error::internal(format!("{codec}: {e}"))
}
