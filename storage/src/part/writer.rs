//! Encodes sorted rows into the one Parquet file of a part, a row group at a time, and stores it durably.
//!
//! Memory holds one row group of rows and the encoded bytes. Never sorts and never decides what to write. Row groups of another part
//! can be taken over as they are, compressed bytes and all.

use crate::{
    Error, Result,
    codec::{Codec, ColumnCodec, Preprocessor},
    ids::{ColumnId, DiskId, Generation},
    part::{
        meta::Placement,
        reader::PartReader,
        stats::{ColumnStats, StatsBuilder},
    },
};
use arrow::{
    array::{Array, RecordBatch},
    datatypes::{DataType, Field, SchemaRef},
};
use bytes::Bytes;
use object_store::{ObjectStore, PutMode, PutOptions, path::Path};
use parquet::{
    arrow::{
        ArrowWriter, PARQUET_FIELD_ID_META_KEY,
        arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves},
    },
    basic::{Compression, Encoding},
    column::writer::ColumnCloseResult,
    file::{
        metadata::SortingColumn,
        properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder},
        writer::SerializedFileWriter,
    },
    schema::types::ColumnPath,
};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

pub const ROW_GROUP_ROWS: usize = 262_144;
const PAGE_ROWS: usize = 20_000;

/// How to write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    pub codec: Codec,
    /// Columns with a CODEC of their own.
    pub column_codecs: BTreeMap<ColumnId, ColumnCodec>,
    pub row_group_rows: usize,
    /// The plain columns at the front of ORDER BY, as far as they are plain columns.
    pub sorting: Vec<ColumnId>,
    /// Key columns that get a bloom filter, if they are text.
    pub bloom: Vec<ColumnId>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            codec: Codec::default(),
            column_codecs: BTreeMap::new(),
            row_group_rows: ROW_GROUP_ROWS,
            sorting: Vec::new(),
            bloom: Vec::new(),
        }
    }
}

/// A part's file, and what the manifest is told of it.
#[derive(Debug, Clone)]
pub struct Encoded {
    pub bytes: Bytes,
    pub rows: u64,
    pub row_groups: Vec<u64>,
    pub stats: Vec<ColumnStats>,
    pub uncompressed_bytes: u64,
    /// xxh3-64 of the bytes.
    pub checksum: u64,
    pub codec: Codec,
}

pub struct PartEncoder {
    file: SerializedFileWriter<Vec<u8>>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    options: WriteOptions,
    open: Option<(Vec<ArrowColumnWriter>, usize)>,
    row_groups: Vec<u64>,
    stats: StatsBuilder,
    uncompressed_bytes: u64,
}

impl PartEncoder {
    /// For rows in `schema`, a `part_schema`.
    pub fn new(schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        let writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties(&schema, &options)))?;
        let (file, factory) = writer.into_serialized_writer()?;
        Ok(Self {
            file,
            factory,
            stats: StatsBuilder::new(&schema),
            schema,
            options,
            open: None,
            row_groups: Vec::new(),
            uncompressed_bytes: 0,
        })
    }

    /// Rows that follow those pushed before.
    pub fn push(&mut self, rows: &RecordBatch) -> Result<()> {
        let mut from = 0;
        while from < rows.num_rows() {
            let (writers, held) = match &mut self.open {
                Some(open) => open,
                none => none.insert((self.factory.create_column_writers(self.row_groups.len())?, 0)),
            };
            let n = (rows.num_rows() - from).min(self.options.row_group_rows.max(1) - *held);
            let mut at = 0;
            for (field, column) in self.schema.fields().iter().zip(rows.columns()) {
                for leaf in compute_leaves(field, &column.slice(from, n))? {
                    let writer = writers.get_mut(at).ok_or_else(|| Error::internal("more columns than the part's schema"))?;
                    writer.write(&leaf)?;
                    at += 1;
                }
            }
            *held += n;
            from += n;
            if *held == self.options.row_group_rows.max(1) {
                self.close_row_group()?;
            }
        }
        for column in rows.columns() {
            self.uncompressed_bytes += logical_bytes(column.as_ref());
        }
        Ok(())
    }

    fn close_row_group(&mut self) -> Result<()> {
        let Some((writers, held)) = self.open.take() else { return Ok(()) };
        let mut group = self.file.next_row_group()?;
        for writer in writers {
            writer.close()?.append_to_row_group(&mut group)?;
        }
        let metadata = group.close()?;
        self.stats.add(&metadata);
        self.row_groups.push(held as u64);
        Ok(())
    }

    /// Takes over row group `i` of a part with the same `part_schema`, without decoding it.
    pub fn copy_row_group(&mut self, from: &PartReader, i: usize) -> Result<()> {
        self.close_row_group()?;
        let source = from.metadata().row_group(i);
        let mut group = self.file.next_row_group()?;
        for (at, column) in source.columns().iter().enumerate() {
            let close = ColumnCloseResult {
                bytes_written: column.compressed_size() as u64,
                rows_written: source.num_rows() as u64,
                metadata: column.clone(),
                bloom_filter: None,
                column_index: from.metadata().column_index().and_then(|c| c.get(i)?.get(at).cloned()),
                offset_index: from.metadata().offset_index().and_then(|o| o.get(i)?.get(at).cloned()),
            };
            group.append_column(from.bytes(), close)?;
        }
        let metadata = group.close()?;
        self.stats.add(&metadata);
        self.row_groups.push(source.num_rows() as u64);
        self.uncompressed_bytes += source.total_byte_size().max(0) as u64;
        Ok(())
    }

    pub fn rows(&self) -> u64 {
        self.row_groups.iter().sum::<u64>() + self.open.as_ref().map_or(0, |(_, n)| *n as u64)
    }

    pub fn finish(mut self) -> Result<Encoded> {
        self.close_row_group()?;
        self.file.finish()?;
        let bytes = Bytes::from(std::mem::take(self.file.inner_mut()));
        Ok(Encoded {
            rows: self.row_groups.iter().sum(),
            row_groups: self.row_groups,
            stats: self.stats.finish(),
            uncompressed_bytes: self.uncompressed_bytes,
            checksum: xxh3_64(&bytes),
            codec: self.options.codec,
            bytes,
        })
    }
}

/// Creates the part's object; durable before this returns.
///
/// # Errors
/// `Conflict` where the key is taken (I2), `Full` where the disk is.
pub async fn store(store: &dyn ObjectStore, key: &Path, disk: DiskId, generation: Generation, encoded: &Encoded) -> Result<Placement> {
    let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
    store.put_opts(key, encoded.bytes.clone().into(), options).await?;
    Ok(Placement { disk, generation, codec: encoded.codec, bytes: encoded.bytes.len() as u64, checksum: encoded.checksum })
}

/// Bytes of the values, without what Arrow keeps beside them.
fn logical_bytes(column: &dyn Array) -> u64 {
    use arrow::array::AsArray;
    let n = column.len() as u64;
    match column.data_type() {
        DataType::Utf8View => column.as_string_view().lengths().map(u64::from).sum::<u64>() + n,
        DataType::BinaryView => column.as_binary_view().lengths().map(u64::from).sum::<u64>() + n,
        DataType::Boolean => n,
        t => match t.primitive_width() {
            Some(width) => n * width as u64,
            None => column.get_array_memory_size() as u64,
        },
    }
}

fn field_id(field: &Field) -> Option<ColumnId> {
    field.metadata().get(PARQUET_FIELD_ID_META_KEY)?.parse().ok().map(ColumnId)
}

fn properties(schema: &SchemaRef, options: &WriteOptions) -> WriterProperties {
    let mut p = WriterProperties::builder()
        .set_compression(options.codec.parquet())
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_max_row_group_row_count(None)
        .set_created_by(concat!("ebb ", env!("CARGO_PKG_VERSION")).to_owned());
    for field in schema.fields() {
        p = column_properties(p, field, options);
    }
    let place = |id: &ColumnId| schema.fields().iter().position(|f| field_id(f) == Some(*id));
    // Leaf numbers are field numbers only in front of the first nested column.
    let nested = schema.fields().iter().position(|f| f.data_type().is_nested()).unwrap_or(usize::MAX);
    let sorting: Vec<SortingColumn> = options
        .sorting
        .iter()
        .map_while(|id| place(id).filter(|at| *at < nested))
        .map(|at| SortingColumn { column_idx: at as i32, descending: false, nulls_first: true })
        .collect();
    p.set_sorting_columns((!sorting.is_empty()).then_some(sorting)).build()
}

fn column_properties(mut p: WriterPropertiesBuilder, field: &Field, options: &WriteOptions) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(field.name().as_str());
    let id = field_id(field);
    let own = id.and_then(|id| options.column_codecs.get(&id));
    if let Some(own) = own {
        let codec: Compression = own.codec.parquet();
        p = p.set_column_compression(path.clone(), codec);
    }
    let integer = field.data_type().is_integer() || matches!(field.data_type(), DataType::Timestamp(..) | DataType::Date32);
    match own.and_then(|o| o.preprocessor) {
        Some(Preprocessor::Delta | Preprocessor::DoubleDelta | Preprocessor::T64) if integer => {
            p = p.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        Some(Preprocessor::Gorilla) if field.data_type().is_floating() => {
            p = p.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path.clone(), Encoding::BYTE_STREAM_SPLIT);
        }
        _ if integer => {
            p = p.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // The encoding counts where the dictionary grows too large.
        _ if field.data_type().is_floating() => p = p.set_column_encoding(path.clone(), Encoding::BYTE_STREAM_SPLIT),
        _ => {}
    }
    if field.data_type() == &DataType::Utf8View && id.is_some_and(|id| options.bloom.contains(&id)) {
        p = p.set_column_bloom_filter_enabled(path, true);
    }
    p
}

#[cfg(test)]
mod tests;
