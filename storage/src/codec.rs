//! Compression codecs as SQL names them, and what they are in Parquet.

use crate::{Error, Result};
use parquet::basic::{BrotliLevel, Compression, GzipLevel, ZstdLevel};
use serde::{Deserialize, Serialize};
use std::fmt;

/// `CODEC(...)`, level included. The manifest keeps it, since Parquet does not store levels and has no name for LZ4HC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Codec {
    None,
    #[default]
    Lz4,
    /// 1 to 12; pages are valid LZ4_RAW.
    Lz4hc(u8),
    /// 1 to 22.
    Zstd(u8),
    Snappy,
    /// 1 to 9.
    Gzip(u8),
    /// 1 to 11.
    Brotli(u8),
}

/// What a column's CODEC list may say before its codec: which Parquet encoding to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Preprocessor {
    Delta,
    DoubleDelta,
    Gorilla,
    T64,
}

/// A column's own CODEC: an encoding, a codec, or both; never neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ColumnCodec {
    pub preprocessor: Option<Preprocessor>,
    pub codec: Codec,
}

pub const CODEC_NAMES: [&str; 7] = ["NONE", "LZ4", "LZ4HC", "ZSTD", "SNAPPY", "GZIP", "BROTLI"];
pub const PREPROCESSOR_NAMES: [&str; 4] = ["Delta", "DoubleDelta", "Gorilla", "T64"];

impl Codec {
    /// From a name and an optional level, case-insensitively. Levels default to LZ4HC 9, ZSTD 1, GZIP 6, BROTLI 4.
    ///
    /// # Errors
    /// `Invalid` for an unknown name, a level out of range, or a level where the codec has none.
    pub fn parse(name: &str, level: Option<i64>) -> Result<Self> {
        let upper = name.to_ascii_uppercase();
        let ranged = |default: u8, max: i64| match level {
            None => Ok(default),
            Some(l) if (1..=max).contains(&l) => Ok(l as u8),
            Some(l) => Err(Error::invalid(format!("{upper}({l}): the level of {upper} is 1 to {max}"))),
        };
        let codec = match upper.as_str() {
            "NONE" => Self::None,
            "LZ4" => Self::Lz4,
            "SNAPPY" => Self::Snappy,
            "LZ4HC" => return ranged(9, 12).map(Self::Lz4hc),
            "ZSTD" => return ranged(1, 22).map(Self::Zstd),
            "GZIP" => return ranged(6, 9).map(Self::Gzip),
            "BROTLI" => return ranged(4, 11).map(Self::Brotli),
            _ => return Err(Error::invalid(format!("unknown codec '{name}': codecs are {}", CODEC_NAMES.join(", ")))),
        };
        match level {
            None => Ok(codec),
            Some(_) => Err(Error::invalid(format!("{upper} takes no level"))),
        }
    }

    /// What Parquet calls it.
    pub fn parquet(self) -> Compression {
        match self {
            Self::None => Compression::UNCOMPRESSED,
            Self::Lz4 | Self::Lz4hc(_) => Compression::LZ4_RAW,
            Self::Zstd(l) => Compression::ZSTD(ZstdLevel::try_new(i32::from(l)).unwrap_or_default()),
            Self::Snappy => Compression::SNAPPY,
            Self::Gzip(l) => Compression::GZIP(GzipLevel::try_new(u32::from(l)).unwrap_or_default()),
            Self::Brotli(l) => Compression::BROTLI(BrotliLevel::try_new(u32::from(l)).unwrap_or_default()),
        }
    }
}

/// As `CODEC()` prints it, level included.
impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("NONE"),
            Self::Lz4 => f.write_str("LZ4"),
            Self::Snappy => f.write_str("SNAPPY"),
            Self::Lz4hc(l) => write!(f, "LZ4HC({l})"),
            Self::Zstd(l) => write!(f, "ZSTD({l})"),
            Self::Gzip(l) => write!(f, "GZIP({l})"),
            Self::Brotli(l) => write!(f, "BROTLI({l})"),
        }
    }
}

impl Preprocessor {
    pub fn parse(name: &str) -> Option<Self> {
        let all = [Self::Delta, Self::DoubleDelta, Self::Gorilla, Self::T64];
        all.into_iter().find(|p| p.to_string().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Preprocessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delta => "Delta",
            Self::DoubleDelta => "DoubleDelta",
            Self::Gorilla => "Gorilla",
            Self::T64 => "T64",
        })
    }
}

impl fmt::Display for ColumnCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.preprocessor {
            Some(p) => write!(f, "{p}, {}", self.codec),
            None => self.codec.fmt(f),
        }
    }
}
