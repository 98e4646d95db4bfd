//! Another codec for a column chunk: pages are decompressed and compressed again, their values are never decoded.
//!
//! What the chunk says of its values (bounds, encodings, column index, bloom filter) stays true; only the places of its pages are new.
//! Pages of version 1 alone, since Ebb writes no others.

use crate::{
    Error, Result,
    codec::Codec,
    part::{compress::Compressor, dictionary::read::Piece, reader::PartReader},
};
use bytes::Bytes;
use parquet::{
    column::{
        page::{CompressedPage, Page, PageReader, PageWriter},
        writer::ColumnCloseResult,
    },
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, OffsetIndexBuilder},
        page_index::offset_index::OffsetIndexMetaData,
        serialized_reader::SerializedPageReader,
        writer::{SerializedPageWriter, TrackedWrite},
    },
};
use std::sync::Arc;

/// A chunk and what its row group is told of it; places count from the chunk's first byte.
pub struct Recoded {
    pub bytes: Bytes,
    pub close: ColumnCloseResult,
}

/// Column `leaf` of a row group, its pages in `codec`, which is `compressor`'s. `seen` is shown the bytes it was made of.
///
/// # Errors
/// `Corrupt` where the bytes make no sense, naming the part's file.
fn chunk(
    from: &PartReader,
    (group, leaf): (usize, usize),
    seen: impl FnOnce(&Bytes) -> Result<()>,
    (codec, compressor): (Codec, &mut Compressor),
) -> Result<Recoded> {
    let metadata = from.metadata();
    let rows = metadata.row_group(group).num_rows();
    let column = metadata.row_group(group).column(leaf);
    let places = metadata.offset_index().and_then(|o| o.get(group)?.get(leaf));
    let piece = from.guarded(|| Piece::of(from.source(), column))?;
    seen(piece.bytes())?;
    let rows_of_group = usize::try_from(rows).unwrap_or(0);
    let mut pages = from.guarded(|| SerializedPageReader::new(Arc::new(piece), column, rows_of_group, None))?;
    let next = || from.guarded(|| pages.get_next_page());
    let written = write(next, column, places.map(|p| (p, rows)), (codec, compressor))?;
    Ok(Recoded {
        close: ColumnCloseResult {
            bytes_written: written.bytes.len() as u64,
            rows_written: rows.max(0) as u64,
            metadata: written.metadata,
            bloom_filter: from.bloom_filter(group, leaf)?,
            column_index: metadata.column_index().and_then(|c| c.get(group)?.get(leaf).cloned()),
            offset_index: written.places,
        },
        bytes: written.bytes,
    })
}

struct Written {
    bytes: Bytes,
    metadata: ColumnChunkMetaData,
    places: Option<OffsetIndexMetaData>,
}

/// Writes what `next` yields. `places` are the old places of the data pages, and the rows of the chunk.
fn write(
    mut next: impl FnMut() -> Result<Option<Page>>,
    column: &ColumnChunkMetaData,
    places: Option<(&OffsetIndexMetaData, i64)>,
    (codec, compressor): (Codec, &mut Compressor),
) -> Result<Written> {
    let mut sink = TrackedWrite::new(Vec::with_capacity(usize::try_from(column.compressed_size()).unwrap_or(0)));
    let mut pages = SerializedPageWriter::new(&mut sink);
    let (mut compressed, mut uncompressed) = (0, 0);
    let (mut dictionary_at, mut data_at) = (None, None);
    let mut index = OffsetIndexBuilder::new();
    let mut data_pages = 0;
    while let Some(page) = next()? {
        let size = page.buffer().len();
        let is_data = page.is_data_page();
        let page = recompressed(page, compressor)?;
        let spec = pages.write_page(CompressedPage::new(page, size))?;
        compressed += spec.compressed_size as i64;
        uncompressed += spec.uncompressed_size as i64;
        if !is_data {
            dictionary_at = Some(spec.offset as i64);
            continue;
        }
        data_at.get_or_insert(spec.offset as i64);
        if let Some((old, rows)) = places {
            let too_large = |_| Error::internal("a page of more than 2 GiB");
            index.append_offset_and_size(spec.offset as i64, i32::try_from(spec.bytes_written).map_err(too_large)?);
            index.append_row_count(rows_of_page(old, data_pages, rows)?);
            index.append_unencoded_byte_array_data_bytes(
                old.unencoded_byte_array_data_bytes().and_then(|sizes| sizes.get(data_pages).copied()),
            );
        }
        data_pages += 1;
    }
    pages.close()?;
    if places.is_some_and(|(old, _)| old.page_locations().len() != data_pages) {
        return Err(Error::corrupt("a column chunk has other pages than its index says"));
    }
    let Some(data_at) = data_at else { return Err(Error::corrupt("a column chunk without data pages")) };
    let metadata = column
        .clone()
        .into_builder()
        .set_compression(codec.parquet())
        .set_total_compressed_size(compressed)
        .set_total_uncompressed_size(uncompressed)
        .set_dictionary_page_offset(dictionary_at)
        .set_data_page_offset(data_at)
        .set_bloom_filter_offset(None)
        .set_bloom_filter_length(None)
        .set_column_index_offset(None)
        .set_column_index_length(None)
        .set_offset_index_offset(None)
        .set_offset_index_length(None)
        .build()?;
    Ok(Written { bytes: sink.into_inner()?.into(), metadata, places: places.map(|_| index.build()) })
}

fn rows_of_page(places: &OffsetIndexMetaData, page: usize, rows: i64) -> Result<i64> {
    let first = |page: usize| places.page_locations().get(page).map(|l| l.first_row_index);
    let from = first(page).ok_or_else(|| Error::corrupt("a column chunk has more pages than its index says"))?;
    Ok(first(page + 1).unwrap_or(rows) - from)
}

fn recompressed(page: Page, compressor: &mut Compressor) -> Result<Page> {
    Ok(match page {
        Page::DictionaryPage { buf, num_values, encoding, is_sorted } => {
            Page::DictionaryPage { buf: compressor.compress(&buf)?, num_values, encoding, is_sorted }
        }
        Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics } => {
            Page::DataPage { buf: compressor.compress(&buf)?, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
        }
        Page::DataPageV2 { .. } => return Err(ParquetError::NYI("pages of version 2 in a part".to_owned()).into()),
    })
}

mod ahead;
mod passing;

pub use ahead::ahead;

#[cfg(test)]
mod tests;
