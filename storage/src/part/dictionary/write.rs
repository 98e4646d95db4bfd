//! One column chunk: a dictionary page, data pages of numbers, bounds, page index, bloom filter.

use super::{
    Kind,
    codebook::{Coded, Dictionary},
    hybrid,
};
use crate::{Result, codec::Codec, part::compress::Compressor};
use arrow::array::{Array, ArrayRef};
use bytes::Bytes;
use parquet::{
    basic::{BoundaryOrder, Encoding, PageType},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    data_type::ByteArray,
    file::{
        metadata::{ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats},
        statistics::{Statistics, ValueStatistics},
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

pub use super::codebook::Codebook;

/// What a chunk is written with.
pub struct Options {
    pub column: ColumnDescPtr,
    pub codec: Codec,
    /// The share of false positives of its bloom filter, if it gets one.
    pub bloom: Option<f64>,
    /// Rows of a data page.
    pub page_rows: usize,
    /// A dictionary of more bytes is not worth it.
    pub dictionary_bytes: usize,
}

pub struct Chunk {
    pub bytes: Bytes,
    pub close: ColumnCloseResult,
}

/// The chunk of `arrays`, one after another; they may be plain, views or dictionaries. `None` where it is not for this module. `book` is
/// the column's from chunk to chunk.
pub fn encode(options: &Options, arrays: &[ArrayRef], book: &mut Codebook) -> Result<Option<Chunk>> {
    let column = &options.column;
    let kind = arrays.first().and_then(|a| Kind::of(a.data_type()));
    let Some(kind) = kind.filter(|k| k.physical() == column.physical_type()) else { return Ok(None) };
    let (nulls, levels) = (arrays.iter().any(|a| a.null_count() > 0), column.max_def_level());
    if column.max_rep_level() != 0 || levels > 1 || (nulls && levels == 0) || arrays.iter().any(|a| Kind::of(a.data_type()) != Some(kind)) {
        return Ok(None);
    }
    let mut compressor = Compressor::of(options.codec)?;
    let Some(coded) = Coded::of(arrays, kind, nulls, options.dictionary_bytes, book)? else { return Ok(None) };
    let Some(dictionary) = coded.dictionary.plain(kind) else { return Ok(None) };
    let entries = coded.dictionary.len();
    let orders = coded.dictionary.orders(kind);
    let lengths = coded.dictionary.text_lengths();
    let mut text_bytes = lengths.as_ref().map(|_| 0);
    let width = hybrid::width_of(u32::try_from(entries.saturating_sub(1)).unwrap_or(u32::MAX));

    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let first = Page::DictionaryPage {
        buf: compressor.compress(&dictionary)?,
        num_values: entries as u32,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    let spec = pages.write_page(CompressedPage::new(first, dictionary.len()))?;
    let (mut compressed, mut uncompressed) = (spec.compressed_size, spec.uncompressed_size);
    let data_offset = spec.bytes_written;

    let mut index = PageIndex::new(kind);
    let (mut page, mut number, mut count) = (Vec::new(), 0, 0);
    let rows = coded.rows;
    for from in (0..rows).step_by(options.page_rows.max(1)) {
        let to = rows.min(from + options.page_rows);
        let present = coded.present.as_ref().map(|p| &p[from..to]);
        let values = present.map_or(to - from, |p| p.iter().filter(|p| **p == 1).count());
        let numbers = &coded.numbers[number..number + values];
        number += values;
        page.clear();
        if levels == 1 {
            page.extend_from_slice(&[0; 4]);
            match present {
                Some(present) => hybrid::encode(present, 1, &mut page),
                None => hybrid::run(1, to - from, 1, &mut page),
            }
            let length = (page.len() - 4) as u32;
            page[..4].copy_from_slice(&length.to_le_bytes());
        }
        page.push(width);
        hybrid::encode(numbers, width, &mut page);
        let data = Page::DataPage {
            buf: compressor.compress(&page)?,
            num_values: (to - from) as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = pages.write_page(CompressedPage::new(data, page.len()))?;
        compressed += spec.compressed_size;
        uncompressed += spec.uncompressed_size;
        count += 1;
        let of_page: Option<i64> = lengths.as_ref().map(|l| numbers.iter().map(|n| l[*n as usize]).sum());
        text_bytes = text_bytes.zip(of_page).map(|(sum, page)| sum + page);
        index.page((spec.offset, spec.bytes_written), to - from, to - from - values, numbers, (&orders, &coded.dictionary), of_page);
    }
    pages.close()?;
    let bytes = Bytes::from(sink.into_inner()?);

    let stats = |page_type, encoding, count| PageEncodingStats { page_type, encoding, count };
    let metadata = ColumnChunkMetaData::builder(column.clone())
        .set_compression(options.codec.parquet())
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_page_encoding_stats(vec![
            stats(PageType::DICTIONARY_PAGE, Encoding::PLAIN, 1),
            stats(PageType::DATA_PAGE, Encoding::RLE_DICTIONARY, count),
        ])
        .set_num_values(rows as i64)
        .set_total_compressed_size(compressed as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_dictionary_page_offset(Some(0))
        .set_data_page_offset(data_offset as i64)
        .set_unencoded_byte_array_data_bytes(text_bytes)
        .set_statistics(index.statistics(&coded.dictionary, rows - coded.numbers.len()));
    let bloom_filter = options.bloom.map(|fpp| coded.dictionary.bloom(fpp)).transpose()?.flatten();
    let (column_index, offset_index) = index.finish()?;
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter,
        column_index,
        offset_index: Some(offset_index),
    };
    Ok(Some(Chunk { bytes, close }))
}

/// What stands for a NaN among orders. Comparisons put a NaN above all numbers, Parquet's bounds leave it out: a chunk with one has no
/// bounds, so that no reader skips it for what it seems not to hold.
const UNORDERED: u64 = u64::MAX;

/// A number that rises with the value; `UNORDERED` for a NaN.
pub(super) fn order(bits: u64, kind: Kind) -> u64 {
    const SIGN: u64 = 1 << 63;
    match kind {
        Kind::Int32 | Kind::Int64 => bits ^ SIGN,
        Kind::Float32 => order(f64::from(f32::from_bits(bits as u32)).to_bits(), Kind::Float64),
        Kind::Float64 if f64::from_bits(bits).is_nan() => UNORDERED,
        // Both zeros.
        Kind::Float64 if bits << 1 == 0 => SIGN,
        Kind::Float64 if bits & SIGN != 0 => !bits,
        Kind::Float64 => bits | SIGN,
        _ => bits,
    }
}

/// Bounds and places of the pages.
struct PageIndex {
    kind: Kind,
    columns: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
    /// The numbers and orders of the least and the greatest value of all pages.
    bounds: Option<((u64, u32), (u64, u32))>,
    /// There is a NaN.
    unbounded: bool,
    /// Orders of the last page's bounds that had any.
    last: Option<(u64, u64)>,
    ascending: bool,
    descending: bool,
}

impl PageIndex {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            columns: ColumnIndexBuilder::new(kind.physical()),
            offsets: OffsetIndexBuilder::new(),
            bounds: None,
            unbounded: false,
            last: None,
            ascending: true,
            descending: true,
        }
    }

    fn page(
        &mut self,
        (offset, bytes): (u64, u64),
        rows: usize,
        nulls: usize,
        numbers: &[u32],
        (orders, dictionary): (&[u64], &Dictionary<'_>),
        text_bytes: Option<i64>,
    ) {
        self.offsets.append_offset_and_size(offset as i64, i32::try_from(bytes).unwrap_or(i32::MAX));
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_unencoded_byte_array_data_bytes(text_bytes);
        if numbers.is_empty() {
            self.columns.append(true, Vec::new(), Vec::new(), nulls as i64);
            return;
        }
        let floats = matches!(self.kind, Kind::Float32 | Kind::Float64);
        let (mut min, mut max) = ((u64::MAX, u32::MAX), (0, u32::MAX));
        for number in numbers {
            let order = orders[*number as usize];
            if floats && order == UNORDERED {
                self.unbounded = true;
                self.columns.to_invalid();
                return;
            }
            if order < min.0 || min.1 == u32::MAX {
                min = (order, *number);
            }
            if order > max.0 || max.1 == u32::MAX {
                max = (order, *number);
            }
        }
        if self.columns.valid() {
            let (least, greatest) = (self.bound(dictionary, min.1, true), self.bound(dictionary, max.1, false));
            self.columns.append(false, least, greatest, nulls as i64);
        }
        if let Some((last_min, last_max)) = self.last {
            self.ascending &= last_min <= min.0 && last_max <= max.0;
            self.descending &= last_min >= min.0 && last_max >= max.0;
        }
        self.last = Some((min.0, max.0));
        self.bounds = Some(match self.bounds {
            None => (min, max),
            Some((least, greatest)) => (least.min(min), if max.0 > greatest.0 { max } else { greatest }),
        });
    }

    /// A bound's bytes. A zero is the lesser one as a minimum and the greater one as a maximum, since both compare equal.
    fn bound(&self, dictionary: &Dictionary<'_>, number: u32, min: bool) -> Vec<u8> {
        let bytes = dictionary.bytes(number, self.kind);
        match self.kind {
            Kind::Float64 if f64::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default()) == 0.0 => {
                (if min { -0.0f64 } else { 0.0 }).to_le_bytes().to_vec()
            }
            Kind::Float32 if f32::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default()) == 0.0 => {
                (if min { -0.0f32 } else { 0.0 }).to_le_bytes().to_vec()
            }
            _ => bytes,
        }
    }

    fn statistics(&self, dictionary: &Dictionary<'_>, nulls: usize) -> Statistics {
        let bounds = self
            .bounds
            .filter(|_| !self.unbounded)
            .map(|((_, min), (_, max))| (self.bound(dictionary, min, true), self.bound(dictionary, max, false)));
        let nulls = Some(nulls as u64);
        macro_rules! of {
            ($t:ty, $variant:ident) => {{
                let value = |b: &Vec<u8>| <$t>::from_le_bytes(b.as_slice().try_into().unwrap_or_default());
                let (min, max) = (bounds.as_ref().map(|b| value(&b.0)), bounds.as_ref().map(|b| value(&b.1)));
                let stats = ValueStatistics::new(min, max, None, nulls, false);
                // Signed order is what readers of the old fields assume.
                let signed = !matches!(self.kind, Kind::UInt32 | Kind::UInt64);
                Statistics::$variant(stats.with_backwards_compatible_min_max(signed))
            }};
        }
        match self.kind {
            Kind::Int32 | Kind::UInt32 => of!(i32, Int32),
            Kind::Int64 | Kind::UInt64 => of!(i64, Int64),
            Kind::Float32 => of!(f32, Float),
            Kind::Float64 => of!(f64, Double),
            Kind::Text => {
                let (min, max) = bounds.map_or((None, None), |(a, b)| (Some(ByteArray::from(a)), Some(ByteArray::from(b))));
                let exact = min.is_some();
                Statistics::ByteArray(ValueStatistics::new(min, max, None, nulls, false).with_min_is_exact(exact).with_max_is_exact(exact))
            }
        }
    }

    fn finish(
        mut self,
    ) -> Result<(
        Option<parquet::file::page_index::column_index::ColumnIndexMetaData>,
        parquet::file::page_index::offset_index::OffsetIndexMetaData,
    )> {
        self.columns.set_boundary_order(match (self.ascending, self.descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (_, true) => BoundaryOrder::DESCENDING,
            _ => BoundaryOrder::UNORDERED,
        });
        let columns = if self.columns.valid() { Some(self.columns.build()?) } else { None };
        Ok((columns, self.offsets.build()))
    }
}
