//! A chunk as its writer coded it: numbers and the dictionary they are of, without looking a value up.

use super::{Kind, codebook::Values, hybrid};
use arrow::{
    array::{
        ArrayRef, DictionaryArray, Float32Array, Float64Array, Int32Array, Int64Array, PrimitiveArray, StringArray, StringViewBuilder,
        UInt32Array, UInt64Array,
    },
    buffer::NullBuffer,
    compute::cast,
    datatypes::{DataType, Int32Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType},
    error::ArrowError,
};
use bytes::{Buf, Bytes};
use parquet::{
    basic::{Encoding, PageType},
    column::page::{Page, PageReader},
    errors::{ParquetError, Result},
    file::{
        metadata::ColumnChunkMetaData,
        reader::{ChunkReader, Length},
        serialized_reader::SerializedPageReader,
    },
};
use std::sync::Arc;

/// A chunk's bytes, which know where in the file they stood.
pub(in crate::part) struct Piece {
    start: u64,
    bytes: Bytes,
}

impl Piece {
    /// All of `chunk`, read at once.
    pub fn of(source: &impl ChunkReader, chunk: &ColumnChunkMetaData) -> Result<Self> {
        let (start, length) = chunk.byte_range();
        let bytes = source.get_bytes(start, usize::try_from(length).map_err(|_| damaged("a chunk's length"))?)?;
        Ok(Self { start, bytes })
    }
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

impl Length for Piece {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Piece {
    type T = bytes::buf::Reader<Bytes>;
    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(self.get_bytes(start, usize::try_from(self.len().saturating_sub(start)).unwrap_or(0))?.reader())
    }
    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let from = start.checked_sub(self.start).and_then(|s| usize::try_from(s).ok());
        let range = from.and_then(|from| Some(from..from.checked_add(length)?)).filter(|r| r.end <= self.bytes.len());
        range.map(|r| self.bytes.slice(r)).ok_or_else(|| ParquetError::EOF(format!("bytes {start}+{length} of a column chunk")))
    }
}

/// The rows of one chunk, some at a time.
pub struct Rows {
    pages: SerializedPageReader<Piece>,
    nullable: bool,
    values: ArrayRef,
    /// Of the pages read, from `at` on: not handed out yet.
    numbers: Vec<u32>,
    present: Vec<u32>,
    numbers_at: usize,
    present_at: usize,
}

/// Whether all data pages of a chunk are of numbers, and its values of a type that is handled here.
pub fn is_coded(chunk: &ColumnChunkMetaData, t: &DataType) -> bool {
    let column = chunk.column_descr();
    let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    let kind = Kind::of(t).is_some_and(|k| k.physical() == column.physical_type());
    let only_numbers = |e: Encoding| matches!(e, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY);
    let pages = match (chunk.page_encoding_stats(), chunk.page_encoding_stats_mask()) {
        (Some(stats), _) => stats.iter().all(|s| s.page_type == PageType::DICTIONARY_PAGE || only_numbers(s.encoding)),
        (None, Some(mask)) => mask.encodings().all(only_numbers),
        (None, None) => false,
    };
    flat && kind && pages && chunk.dictionary_page_offset().is_some()
}

impl Rows {
    /// `t` is the type of the values, `rows` how many rows the chunk has.
    ///
    /// # Errors
    /// Where the bytes make no sense.
    pub fn open(source: &impl ChunkReader, chunk: &ColumnChunkMetaData, t: &DataType, rows: usize) -> Result<Self> {
        let mut pages = SerializedPageReader::new(Arc::new(Piece::of(source, chunk)?), chunk, rows, None)?;
        let kind = Kind::of(t).ok_or_else(|| damaged("a type"))?;
        let values = match pages.get_next_page()? {
            Some(Page::DictionaryPage { buf, num_values, .. }) => values_of(&buf, num_values as usize, kind, t)?,
            _ => return Err(damaged("no dictionary")),
        };
        let nullable = chunk.column_descr().max_def_level() > 0;
        Ok(Self { pages, nullable, values, numbers: Vec::new(), present: Vec::new(), numbers_at: 0, present_at: 0 })
    }

    /// The next `n` rows, as a dictionary with 32-bit keys.
    ///
    /// # Errors
    /// Where the bytes make no sense or end early.
    pub fn read(&mut self, n: usize) -> Result<ArrayRef> {
        while self.rows_left() < n {
            self.next_page()?;
        }
        let (keys, nulls) = match self.nullable {
            false => {
                let keys = self.numbers[self.numbers_at..self.numbers_at + n].iter().map(|k| *k as i32).collect::<Vec<_>>();
                self.numbers_at += n;
                (keys, None)
            }
            true => {
                let present = &self.present[self.present_at..self.present_at + n];
                let mut keys = Vec::with_capacity(n);
                for p in present {
                    // NULL has no number in the page.
                    keys.push(match p {
                        0 => 0,
                        _ => {
                            self.numbers_at += 1;
                            *self.numbers.get(self.numbers_at - 1).ok_or_else(|| damaged("fewer values than rows"))? as i32
                        }
                    });
                }
                let nulls = NullBuffer::from(present.iter().map(|p| *p != 0).collect::<Vec<_>>());
                self.present_at += n;
                (keys, Some(nulls).filter(|n| n.null_count() > 0))
            }
        };
        let keys = PrimitiveArray::<Int32Type>::try_new(keys.into(), nulls)?;
        Ok(Arc::new(DictionaryArray::try_new(keys, self.values.clone())?))
    }

    fn rows_left(&self) -> usize {
        match self.nullable {
            true => self.present.len() - self.present_at,
            false => self.numbers.len() - self.numbers_at,
        }
    }

    fn next_page(&mut self) -> Result<()> {
        self.numbers.drain(..std::mem::take(&mut self.numbers_at));
        self.present.drain(..std::mem::take(&mut self.present_at));
        let (mut page, rows) = match self.pages.get_next_page()? {
            Some(Page::DataPage { buf, num_values, encoding: Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY, .. }) => {
                (buf, num_values as usize)
            }
            Some(_) => return Err(damaged("a page of another kind")),
            None => return Err(ParquetError::EOF("a column chunk has fewer rows than its row group".to_owned())),
        };
        let mut values = rows;
        if self.nullable {
            if page.len() < 4 {
                return Err(damaged("no levels"));
            }
            let length = page.get_u32_le() as usize;
            if length > page.len() {
                return Err(damaged("the length of levels"));
            }
            let before = self.present.len();
            let mut levels = hybrid::Decoder::new(page.split_to(length), 1).ok_or_else(|| damaged("levels"))?;
            levels.read(rows, &mut self.present).ok_or_else(|| damaged("levels"))?;
            values = self.present[before..].iter().filter(|p| **p == 1).count();
        }
        if page.is_empty() {
            return if values == 0 { Ok(()) } else { Err(damaged("no numbers")) };
        }
        let width = page.get_u8();
        let mut numbers = hybrid::Decoder::new(page, width).ok_or_else(|| damaged("a width"))?;
        numbers.read(values, &mut self.numbers).ok_or_else(|| damaged("numbers"))
    }
}

fn damaged(what: &str) -> ParquetError {
    ParquetError::General(format!("a coded column chunk: {what}"))
}

/// The PLAIN values of a dictionary page.
fn values_of(page: &Bytes, n: usize, kind: Kind, t: &DataType) -> Result<ArrayRef> {
    if kind == Kind::Text {
        return texts_of(page, n);
    }
    let bytes = n.checked_mul(kind.width()).and_then(|len| page.get(..len)).ok_or_else(|| damaged("a short dictionary"))?;
    let four = || bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
    let eight = || bytes.chunks_exact(8).map(|c| u64::from_le_bytes([c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]]));
    Ok(match kind.width() {
        4 => numbers_of(four().map(u64::from), kind, t)?,
        _ => numbers_of(eight(), kind, t)?,
    })
}

/// Values by their bits, of which a narrow type has the lower half.
fn numbers_of(bits: impl Iterator<Item = u64>, kind: Kind, t: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    Ok(match kind {
        Kind::Int32 => cast(&Int32Array::from_iter_values(bits.map(|v| v as i32)), t)?,
        Kind::UInt32 => cast(&UInt32Array::from_iter_values(bits.map(|v| v as u32)), t)?,
        Kind::Float32 => Arc::new(Float32Array::from_iter_values(bits.map(|v| f32::from_bits(v as u32)))),
        Kind::Float64 => Arc::new(Float64Array::from_iter_values(bits.map(f64::from_bits))),
        Kind::UInt64 => Arc::new(UInt64Array::from_iter_values(bits)),
        _ => {
            let numbers = Int64Array::from_iter_values(bits.map(|v| v as i64));
            match t {
                DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                    Arc::new(numbers.reinterpret_cast::<TimestampMicrosecondType>().with_timezone_opt(zone.clone()))
                }
                DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
                    Arc::new(numbers.reinterpret_cast::<TimestampNanosecondType>().with_timezone_opt(zone.clone()))
                }
                _ => Arc::new(numbers) as ArrayRef,
            }
        }
    })
}

/// What was numbered, by number; texts without views.
pub(in crate::part) fn array_of(values: &Values, kind: Kind, t: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    match values {
        Values::Numbers(numbers) => numbers_of(numbers.values.iter().copied(), kind, t),
        Values::Texts(texts) => {
            let texts: Vec<&str> = (0..texts.len())
                .map(|i| std::str::from_utf8(texts.get(i)))
                .collect::<std::result::Result<_, _>>()
                .map_err(|e| ArrowError::InvalidArgumentError(e.to_string()))?;
            Ok(Arc::new(StringArray::from_iter_values(texts)))
        }
    }
}

fn texts_of(page: &Bytes, n: usize) -> Result<ArrayRef> {
    let mut texts = StringViewBuilder::new();
    let mut rest = page.clone();
    for _ in 0..n {
        if rest.len() < 4 {
            return Err(damaged("a short dictionary"));
        }
        let length = rest.get_u32_le() as usize;
        if length > rest.len() {
            return Err(damaged("a short dictionary"));
        }
        texts.append_value(std::str::from_utf8(&rest.split_to(length)).map_err(|_| damaged("a text that is no UTF-8"))?);
    }
    Ok(Arc::new(texts.finish()) as ArrayRef)
}

/// The values that rows of a coded column have, one each.
pub fn values_by_row(coded: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    use arrow::array::AsArray;
    match coded.as_any_dictionary_opt() {
        Some(dictionary) => arrow::compute::take(dictionary.values(), dictionary.keys(), None),
        None => Ok(coded.clone()),
    }
}
