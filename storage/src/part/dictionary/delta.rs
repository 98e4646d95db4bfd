//! One column chunk of differences (Encodings.md, "Delta Encoding"): whole numbers and times, plain or as a dictionary.
//!
//! A block of values has its least difference, and of each quarter how many bits the rest of its differences take.

use super::{
    Kind,
    codebook::{all_bits, each_bits},
    hybrid,
    page_index::{Bounds, PageIndex, order},
    write::{Chunk, Options},
};
use crate::{Error, Result, part::compress::Compressor};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::Int32Type,
};
use bytes::Bytes;
use parquet::{
    basic::{Encoding, PageType, Type as Physical},
    column::{
        page::{CompressedPage, Page, PageWriter},
        writer::ColumnCloseResult,
    },
    file::{
        metadata::{ColumnChunkMetaData, PageEncodingStats},
        writer::{SerializedPageWriter, TrackedWrite},
    },
};

/// Stretches of a block that have a width of their own.
const QUARTERS: usize = 4;

/// The chunk of `arrays`, one after another. `None` where it is not for this module.
pub fn encode(options: &Options, arrays: &[ArrayRef], compressor: &mut Compressor) -> Result<Option<Chunk>> {
    let column = &options.column;
    let whole = |k: &Kind| matches!(k.physical(), Physical::INT32 | Physical::INT64) && k.physical() == column.physical_type();
    let Some(kind) = arrays.first().and_then(|a| Kind::of(a.data_type())).filter(whole) else { return Ok(None) };
    let (nulls, levels) = (arrays.iter().any(|a| a.null_count() > 0), column.max_def_level());
    if column.max_rep_level() != 0 || levels > 1 || (nulls && levels == 0) || arrays.iter().any(|a| Kind::of(a.data_type()) != Some(kind)) {
        return Ok(None);
    }
    if options.bloom.is_some() {
        return Ok(None);
    }
    let Some(all) = values(arrays, kind)? else { return Ok(None) };
    let present = nulls.then(|| presence(arrays));
    let rows: usize = arrays.iter().map(|a| a.len()).sum();

    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let mut index = PageIndex::new(kind);
    let (mut page, mut taken, mut count, mut compressed, mut uncompressed) = (Vec::new(), 0, 0, 0, 0);
    for from in (0..rows).step_by(options.page_rows.max(1)) {
        let to = rows.min(from + options.page_rows);
        let present = present.as_ref().map(|p| &p[from..to]);
        let values = present.map_or(to - from, |p| p.iter().filter(|p| **p == 1).count());
        let bits = &all[taken..taken + values];
        taken += values;
        page.clear();
        if levels == 1 {
            hybrid::levels(present, to - from, &mut page);
        }
        match kind.width() {
            4 => pack::<true>(bits, &mut page),
            _ => pack::<false>(bits, &mut page),
        }
        let data = Page::DataPage {
            buf: compressor.compress(&page)?,
            num_values: (to - from) as u32,
            encoding: Encoding::DELTA_BINARY_PACKED,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let spec = pages.write_page(CompressedPage::new(data, page.len()))?;
        compressed += spec.compressed_size;
        uncompressed += spec.uncompressed_size;
        count += 1;
        index.page((spec.offset, spec.bytes_written), (to - from, to - from - values), bounds_of(bits, kind), None);
    }
    pages.close()?;
    let bytes = Bytes::from(sink.into_inner()?);

    let metadata = ColumnChunkMetaData::builder(column.clone())
        .set_compression(options.codec.parquet())
        .set_encodings(vec![Encoding::RLE, Encoding::DELTA_BINARY_PACKED])
        .set_page_encoding_stats(vec![PageEncodingStats { page_type: PageType::DATA_PAGE, encoding: Encoding::DELTA_BINARY_PACKED, count }])
        .set_num_values(rows as i64)
        .set_total_compressed_size(compressed as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_data_page_offset(0)
        .set_statistics(index.statistics(rows - all.len()));
    let (column_index, offset_index) = index.finish()?;
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index,
        offset_index: Some(offset_index),
    };
    Ok(Some(Chunk { bytes, close }))
}

/// The bits of all values that are not NULL. `None` where a dictionary has a NULL among its values.
fn values(arrays: &[ArrayRef], kind: Kind) -> Result<Option<Vec<u64>>> {
    let mut all = Vec::with_capacity(arrays.iter().map(|a| a.len()).sum());
    for array in arrays {
        let Some(dictionary) = array.as_any_dictionary_opt() else {
            match all_bits(array, kind) {
                Some(bits) => all.extend_from_slice(&bits),
                None => each_bits(array, kind, |bits| all.push(bits))?,
            }
            continue;
        };
        if dictionary.values().null_count() > 0 {
            return Ok(None);
        }
        let mut of_key = Vec::with_capacity(dictionary.values().len());
        each_bits(dictionary.values(), kind, |bits| of_key.push(bits))?;
        let (keys, mut strays) = (dictionary.keys().as_primitive::<Int32Type>(), false);
        let mut value = |key: i32| {
            let known = of_key.get(key as usize).copied();
            strays |= known.is_none();
            known.unwrap_or(0)
        };
        match keys.nulls() {
            None => all.extend(keys.values().iter().map(|k| value(*k))),
            Some(nulls) => all.extend(nulls.valid_indices().map(|i| value(keys.value(i)))),
        }
        if strays {
            return Err(Error::corrupt("a dictionary lacks a value that rows have"));
        }
    }
    Ok(Some(all))
}

/// 1 for a row with a value, 0 for NULL.
fn presence(arrays: &[ArrayRef]) -> Vec<u32> {
    let mut present = Vec::with_capacity(arrays.iter().map(|a| a.len()).sum());
    for array in arrays {
        match array.nulls() {
            Some(nulls) => present.extend(nulls.iter().map(u32::from)),
            None => present.extend(std::iter::repeat_n(1, array.len())),
        }
    }
    present
}

fn bounds_of(bits: &[u64], kind: Kind) -> Bounds {
    // The order of whole numbers is its own inverse.
    let (min, max) = bits.iter().fold((u64::MAX, 0), |(min, max), b| {
        let order = order(*b, kind);
        (min.min(order), max.max(order))
    });
    let bytes = |order_of: u64| order(order_of, kind).to_le_bytes()[..kind.width()].to_vec();
    if bits.is_empty() { Bounds::Empty } else { Bounds::Of((min, bytes(min)), (max, bytes(max))) }
}

/// Appends values of 8 bytes, or of 4, whose differences wrap at 32 bits.
pub fn pack<const NARROW: bool>(bits: &[u64], out: &mut Vec<u8>) {
    let block = if NARROW { 128 } else { 256 };
    let signed = |bits: u64| if NARROW { i64::from(bits as i32) } else { bits as i64 };
    hybrid::varint(block as u64, out);
    hybrid::varint(QUARTERS as u64, out);
    hybrid::varint(bits.len() as u64, out);
    zigzag(bits.first().map_or(0, |b| signed(*b)), out);
    let mut differences = [0i64; 256];
    let mut at = 1;
    while at < bits.len() {
        let n = block.min(bits.len() - at);
        let mut min = i64::MAX;
        for (difference, pair) in differences.iter_mut().zip(bits[at - 1..at + n].windows(2)) {
            *difference = signed(signed(pair[1]).wrapping_sub(signed(pair[0])) as u64);
            min = min.min(*difference);
        }
        zigzag(min, out);
        let widths = out.len();
        out.extend_from_slice(&[0; QUARTERS]);
        for (quarter, of_quarter) in differences[..n].chunks_mut(block / QUARTERS).enumerate() {
            let mut used = 0;
            for difference in of_quarter.iter_mut() {
                let above = difference.wrapping_sub(min);
                *difference = if NARROW { i64::from(above as u32) } else { above };
                used |= *difference as u64;
            }
            let width = 64 - used.leading_zeros();
            out[widths + quarter] = width as u8;
            pack_bits(of_quarter, width, block / QUARTERS, out);
        }
        at += n;
    }
}

/// Appends values of `width` bits each, and zeros for those that `slots` has more.
fn pack_bits(values: &[i64], width: u32, slots: usize, out: &mut Vec<u8>) {
    let end = out.len() + slots * width as usize / 8;
    if width == 0 {
        return;
    }
    out.reserve(slots * width as usize / 8 + 8);
    let (mut bits, mut held) = (0u128, 0u32);
    for value in values {
        bits |= u128::from(*value as u64) << held;
        held += width;
        if held >= 64 {
            out.extend_from_slice(&(bits as u64).to_le_bytes());
            bits >>= 64;
            held -= 64;
        }
    }
    out.extend_from_slice(&(bits as u64).to_le_bytes());
    out.resize(end, 0);
}

fn zigzag(value: i64, out: &mut Vec<u8>) {
    hybrid::varint(((value << 1) ^ (value >> 63)) as u64, out);
}
