//! Reading a part's file. Blocking once opened: call it from a thread that may block.
//!
//! A damaged file gives `Corrupt` naming the object, never a panic: the one place where a decoder's panic on bytes that pass its own
//! checks is caught is here.

use crate::{
    Error, Result,
    ids::ColumnId,
    part::{PartMeta, encode::field_id, row_set::RowSet, store},
};
use arrow::{
    datatypes::{DataType, Field, Schema, SchemaRef},
    record_batch::RecordBatch,
};
use bytes::Bytes;
use object_store::{ObjectStore, path::Path};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{
            ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
        },
    },
    bloom_filter::Sbbf,
    errors::{ParquetError, Result as ParquetResult},
    file::metadata::{PageIndexPolicy, ParquetMetaData},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

mod source;

pub(super) use source::{Failure, Source};

/// How texts are handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Texts {
    Views,
    /// As dictionaries with 32-bit keys: cheap to compare, take and write again.
    Dictionaries,
}

/// What to read.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// `None`: all columns of the file.
    pub columns: Option<Vec<ColumnId>>,
    /// `None`: all row groups.
    pub row_groups: Option<Vec<usize>>,
    /// Rows of the file to leave out.
    pub hidden: Option<Arc<RowSet>>,
    pub texts: Texts,
    pub batch_rows: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { columns: None, row_groups: None, hidden: None, texts: Texts::Views, batch_rows: 65_536 }
    }
}

#[derive(Clone)]
pub struct PartReader {
    key: Path,
    source: Source,
    metadata: ArrowReaderMetadata,
}

impl PartReader {
    /// Opens the part after all its bytes were compared with its checksum.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are not those that were written; `NotFound`, `Unavailable` as the store says.
    pub async fn open_verified(store: &Arc<dyn ObjectStore>, key: &Path, meta: &PartMeta) -> Result<Self> {
        let named = |e: Error| e.context(format_args!("part {}", meta.name));
        store::verify(store, key, meta.placement.bytes, meta.placement.checksum).await.map_err(named)?;
        Self::open(store, key).await.map_err(named)
    }

    /// # Errors
    /// `NotFound`, or `Corrupt` where the footer cannot be read.
    pub async fn open(store: &Arc<dyn ObjectStore>, key: &Path) -> Result<Self> {
        let source = Source::open(store, key).await.map_err(|e| e.context(key))?;
        let (k, s) = (key.clone(), source.clone());
        let load = move || {
            let options = opening();
            guarded(&k, || ArrowReaderMetadata::load(&s, options)).map_err(|e| s.blame(&k, e))
        };
        let metadata = tokio::task::spawn_blocking(load).await.map_err(|e| Error::internal(e.to_string()))??;
        Ok(Self { key: key.clone(), source, metadata })
    }

    /// A file that is in memory.
    pub(super) fn of_bytes(name: &str, bytes: Bytes) -> Result<Self> {
        let (key, source) = (Path::from(name), Source::Bytes(bytes));
        let options = opening();
        let metadata = guarded(&key, || ArrowReaderMetadata::load(&source, options))?;
        Ok(Self { key, source, metadata })
    }

    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }
    pub fn row_groups(&self) -> usize {
        self.metadata.metadata().num_row_groups()
    }
    pub fn rows_of(&self, row_group: usize) -> usize {
        usize::try_from(self.metadata.metadata().row_group(row_group).num_rows()).unwrap_or(0)
    }
    pub fn parquet(&self) -> &ArrowReaderMetadata {
        &self.metadata
    }
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.metadata.metadata()
    }
    pub(super) fn key(&self) -> &Path {
        &self.key
    }
    /// Runs a decoder over the part's bytes.
    pub(super) fn guarded<T>(&self, f: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
        guarded(&self.key, f).map_err(|e| self.source.blame(&self.key, e))
    }
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// The bloom filter of a leaf column, if it has one.
    pub(super) fn bloom_filter(&self, row_group: usize, leaf: usize) -> Result<Option<Sbbf>> {
        let column = self.metadata().row_group(row_group).column(leaf);
        self.guarded(|| Sbbf::read_from_column_chunk(column, &self.source))
    }

    /// The rows asked for, in file order, columns in file order.
    pub fn read(&self, options: &ReadOptions) -> Result<PartRows> {
        let named = |columns: &Vec<ColumnId>| -> Vec<usize> {
            let roots = self.schema().fields().iter().enumerate();
            roots.filter(|(_, f)| field_id(f).is_some_and(|id| columns.contains(&id))).map(|(i, _)| i).collect()
        };
        let roots = options.columns.as_ref().map(named);
        self.read_columns(roots.as_deref(), options)
    }

    /// The columns at these places of the file's schema.
    pub(super) fn read_roots(&self, roots: &[usize], options: &ReadOptions) -> Result<PartRows> {
        self.read_columns(Some(roots), options)
    }

    fn read_columns(&self, wanted: Option<&[usize]>, options: &ReadOptions) -> Result<PartRows> {
        let hint = match options.texts {
            Texts::Views => self.metadata.clone(),
            Texts::Dictionaries => {
                let schema = with_dictionaries(self.schema());
                let with = ArrowReaderOptions::new().with_schema(schema);
                self.guarded(|| ArrowReaderMetadata::try_new(self.metadata.metadata().clone(), with))?
            }
        };
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.source.clone(), hint).with_batch_size(options.batch_rows);
        if let Some(wanted) = wanted {
            builder = builder.with_projection(ProjectionMask::roots(self.metadata.parquet_schema(), wanted.iter().copied()));
        }
        let groups: Vec<usize> = options.row_groups.clone().unwrap_or_else(|| (0..self.row_groups()).collect());
        if let Some(hidden) = options.hidden.as_ref().filter(|h| !h.is_empty()) {
            builder = builder.with_row_selection(self.selection(&groups, hidden));
        }
        let rows = self.guarded(|| builder.with_row_groups(groups).build())?;
        Ok(PartRows { key: self.key.clone(), source: self.source.clone(), rows, failed: false })
    }

    /// The rows of `groups` without `hidden` (numbered over the whole file).
    fn selection(&self, groups: &[usize], hidden: &RowSet) -> RowSelection {
        let starts: Vec<usize> = (0..self.row_groups())
            .scan(0, |at, i| {
                let start = *at;
                *at += self.rows_of(i);
                Some(start)
            })
            .collect();
        let mut selectors = Vec::new();
        for &group in groups {
            let (start, rows) = (starts[group], self.rows_of(group));
            selectors.extend(visible(start as u64, rows as u64, hidden).into_iter().map(|(skip, len)| match skip {
                true => RowSelector::skip(len as usize),
                false => RowSelector::select(len as usize),
            }));
        }
        RowSelection::from(selectors)
    }
}

/// All that a footer says of its pages: a row group that is taken over tells it again.
fn opening() -> ArrowReaderOptions {
    ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional).with_encoding_stats_as_mask(false)
}

/// Stretches of rows `start..start + rows`: whether to skip them, and how many.
pub fn visible(start: u64, rows: u64, hidden: &RowSet) -> Vec<(bool, u64)> {
    let mut out: Vec<(bool, u64)> = Vec::new();
    let mut push = |skip: bool, len: u64| match out.last_mut() {
        _ if len == 0 => {}
        Some((s, l)) if *s == skip => *l += len,
        _ => out.push((skip, len)),
    };
    let end = start + rows;
    let mut at = start;
    let range = u32::try_from(start).unwrap_or(u32::MAX)..u32::try_from(end).unwrap_or(u32::MAX);
    for row in hidden.0.range(range) {
        let row = u64::from(row);
        push(false, row - at);
        push(true, 1);
        at = row + 1;
    }
    push(false, end - at);
    out
}

fn with_dictionaries(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| match f.data_type() {
        DataType::Utf8View => {
            let t = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Arc::new(Field::clone(f).with_data_type(t))
        }
        _ => f.clone(),
    });
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Batches of a read, until the end or the first error.
pub struct PartRows {
    key: Path,
    source: Source,
    rows: ParquetRecordBatchReader,
    failed: bool,
}

impl Iterator for PartRows {
    type Item = Result<RecordBatch>;
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let rows = &mut self.rows;
        let next = guarded(&self.key, || rows.next().transpose().map_err(ParquetError::from));
        let next = next.map_err(|e| self.source.blame(&self.key, e));
        self.failed = next.is_err();
        next.transpose()
    }
}

/// Runs a decoder over bytes that may be damaged. What the store is to blame for, [`Source::blame`] knows.
pub(super) fn guarded<T>(key: &Path, f: impl FnOnce() -> ParquetResult<T>) -> Result<T> {
    let damaged = |why: &dyn std::fmt::Display| {
        Error::corrupt(format!("{key} cannot be read: {why}; check the disk, restore the part from a backup"))
    };
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(e)) => Err(damaged(&e)),
        Err(_) => Err(damaged(&"its bytes make no sense to the decoder")),
    }
}

#[cfg(test)]
mod tests;
