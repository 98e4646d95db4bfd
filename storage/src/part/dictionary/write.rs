//! One column chunk: a dictionary page, data pages of numbers, bounds, page index, bloom filter.

use super::{
    Kind,
    codebook::{Coded, Dictionary},
    hybrid,
    page_index::{Bounds, PageIndex, UNORDERED},
};
use crate::{Result, codec::Codec, part::compress::Compressor};
use arrow::array::{Array, ArrayRef};
use bytes::Bytes;
use parquet::{
    basic::{Encoding, PageType},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    file::{
        metadata::{ColumnChunkMetaData, PageEncodingStats},
        writer::{SerializedPageWriter, TrackedWrite},
    },
    schema::types::ColumnDescPtr,
};

pub use super::codebook::Codebook;

/// Headers and levels of a chunk's pages, about.
const PAGES_SLACK_BYTES: usize = 16 << 10;

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
/// the column's from chunk to chunk, `compressor` one of the options' codec.
pub fn encode(options: &Options, arrays: &[ArrayRef], book: &mut Codebook, compressor: &mut Compressor) -> Result<Option<Chunk>> {
    let column = &options.column;
    let kind = arrays.first().and_then(|a| Kind::of(a.data_type()));
    let Some(kind) = kind.filter(|k| k.physical() == column.physical_type()) else { return Ok(None) };
    let (nulls, levels) = (arrays.iter().any(|a| a.null_count() > 0), column.max_def_level());
    if column.max_rep_level() != 0 || levels > 1 || (nulls && levels == 0) || arrays.iter().any(|a| Kind::of(a.data_type()) != Some(kind)) {
        return Ok(None);
    }
    let Some(coded) = Coded::of(arrays, kind, nulls, options.dictionary_bytes, book)? else { return Ok(None) };
    let Some(dictionary) = coded.dictionary.plain(kind) else { return Ok(None) };
    let entries = coded.dictionary.len();
    let orders = coded.dictionary.orders(kind);
    let lengths = coded.dictionary.text_lengths();
    let mut text_bytes = lengths.as_ref().map(|_| 0);
    let width = hybrid::width_of(u32::try_from(entries.saturating_sub(1)).unwrap_or(u32::MAX));

    // Grown step by step it would leave a block of each size behind.
    let bytes_at_most = dictionary.len() + coded.rows * usize::from(width) / 8 + PAGES_SLACK_BYTES;
    let mut sink = TrackedWrite::new(Vec::with_capacity(bytes_at_most));
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
            hybrid::levels(present, to - from, &mut page);
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
        let bounds = bounds_of(numbers, &orders, &coded.dictionary, kind);
        index.page((spec.offset, spec.bytes_written), (to - from, to - from - values), bounds, of_page);
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
        .set_statistics(index.statistics(rows - coded.numbers.len()));
    let bloom_filter = options.bloom.map(|fpp| coded.dictionary.bloom(fpp, kind)).transpose()?;
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

/// The least and the greatest of a page's values.
fn bounds_of(numbers: &[u32], orders: &[u64], dictionary: &Dictionary<'_>, kind: Kind) -> Bounds {
    let floats = matches!(kind, Kind::Float32 | Kind::Float64);
    let (mut min, mut max) = ((u64::MAX, u32::MAX), (0, u32::MAX));
    for number in numbers {
        let order = orders[*number as usize];
        if floats && order == UNORDERED {
            return Bounds::Unordered;
        }
        if order < min.0 || min.1 == u32::MAX {
            min = (order, *number);
        }
        if order > max.0 || max.1 == u32::MAX {
            max = (order, *number);
        }
    }
    match numbers.is_empty() {
        true => Bounds::Empty,
        false => Bounds::Of((min.0, dictionary.bytes(min.1, kind)), (max.0, dictionary.bytes(max.1, kind))),
    }
}
