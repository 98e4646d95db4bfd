//! Reads a part's file: checksum verified, footer parsed once, row groups as batches.
//!
//! Damage is an error that names the part, never a panic and never rows that were not written.

use crate::{
    Error, Result,
    part::{PartMeta, stats::StatsBuilder},
};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use bytes::Bytes;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder},
    },
    file::metadata::{PageIndexPolicy, ParquetMetaData},
};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone)]
pub struct PartReader {
    name: String,
    bytes: Bytes,
    metadata: ArrowReaderMetadata,
}

impl PartReader {
    /// Fetches the file and verifies its checksum.
    ///
    /// # Errors
    /// `Corrupt` where the bytes are not those that were written; `NotFound`, `Unavailable` as the store says.
    pub async fn open(store: &dyn ObjectStore, key: &Path, meta: &PartMeta) -> Result<Self> {
        let name = format!("part {} ({key})", meta.name);
        let bytes = store.get(key).await.map_err(|e| Error::from(e).context(&name))?.bytes().await?;
        if bytes.len() as u64 != meta.placement.bytes || xxh3_64(&bytes) != meta.placement.checksum {
            return Err(Error::corrupt(format!("{name}: its bytes are not those that were written (checksum differs)")));
        }
        Self::of_bytes(bytes, name)
    }

    fn of_bytes(bytes: Bytes, name: String) -> Result<Self> {
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Optional);
        let metadata = ArrowReaderMetadata::load(&bytes, options).map_err(|e| Error::from(e).context(&name))?;
        Ok(Self { name, bytes, metadata })
    }

    /// As the file says it.
    pub fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }
    pub fn metadata(&self) -> &Arc<ParquetMetaData> {
        self.metadata.metadata()
    }
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }
    pub fn row_groups(&self) -> usize {
        self.metadata().num_row_groups()
    }

    /// Bounds of one row group's columns.
    pub fn stats(&self, row_group: usize) -> Vec<crate::part::stats::ColumnStats> {
        let mut stats = StatsBuilder::new(self.schema());
        stats.add(self.metadata().row_group(row_group));
        stats.finish()
    }

    /// Rows of these row groups, of the columns at these places (all without), in batches of up to `batch_rows`.
    pub fn read(&self, row_groups: Vec<usize>, columns: Option<&[usize]>, batch_rows: usize) -> Result<Rows> {
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(self.bytes.clone(), self.metadata.clone())
            .with_row_groups(row_groups)
            .with_batch_size(batch_rows);
        if let Some(columns) = columns {
            let mask = ProjectionMask::roots(self.metadata.parquet_schema(), columns.iter().copied());
            builder = builder.with_projection(mask);
        }
        let inner = builder.build().map_err(|e| Error::from(e).context(&self.name))?;
        Ok(Rows { inner, name: self.name.clone() })
    }
}

/// Batches in file order.
pub struct Rows {
    inner: ParquetRecordBatchReader,
    name: String,
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;
    fn next(&mut self) -> Option<Self::Item> {
        let item = self.inner.next()?;
        Some(item.map_err(|e| Error::corrupt(format!("{}: {e}", self.name))))
    }
}
