//! Parts of one shape as one Parquet scan with exact statistics and hidden rows left out.

use super::{files::PartFile, stats, table::StreamTable};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::{
    catalog::Session,
    common::ScalarValue,
    datasource::{
        listing::PartitionedFile,
        physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource, parquet::ParquetRowSelection},
        source::DataSourceExec,
        table_schema::TableSchema,
    },
    error::Result,
    physical_plan::ExecutionPlan,
};
use ebb_engine::LivePart;
use ebb_storage::stream_def::{StreamDef, TP_SN};
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use std::sync::Arc;

/// The columns at `places` of `written.part_schema()`. With `sn_in_meta` the parts' files do not know their sn.
pub(super) fn scan(
    table: &StreamTable,
    state: &dyn Session,
    written: &Arc<StreamDef>,
    parts: Vec<LivePart>,
    places: &[usize],
    sn_in_meta: bool,
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let stored = written.part_schema();
    let schema = match sn_in_meta {
        true => TableSchema::builder(without_sn(&stored))
            .with_table_partition_cols(vec![Arc::new(Field::new(TP_SN, DataType::Int64, false))])
            .build(),
        false => TableSchema::from(stored.clone()),
    };
    let files: Vec<PartitionedFile> = parts.iter().map(|p| file(p, &stored, sn_in_meta)).collect();
    let total = stats::counts(&files, &stored);
    let groups = spread(files, state.config().target_partitions());
    let source = ParquetSource::new(schema)
        .with_table_parquet_options(state.config_options().execution.parquet.clone().into_table_options())
        .with_parquet_file_reader_factory(Arc::new(table.shared.files.clone()));
    let config = FileScanConfigBuilder::new(super::files::store_url(), Arc::new(source))
        .with_file_groups(groups)
        .with_statistics(total)
        .with_limit(limit)
        .with_projection_indices(Some(places.to_vec()))?
        .build();
    Ok(DataSourceExec::from_data_source(config))
}

trait IntoTableOptions {
    fn into_table_options(self) -> datafusion::config::TableParquetOptions;
}

impl IntoTableOptions for datafusion::config::ParquetOptions {
    fn into_table_options(self) -> datafusion::config::TableParquetOptions {
        datafusion::config::TableParquetOptions { global: self, ..Default::default() }
    }
}

/// `_tp_sn` is the last column, so places do not change.
fn without_sn(stored: &SchemaRef) -> SchemaRef {
    Arc::new(Schema::new(stored.fields().iter().filter(|f| f.name() != TP_SN).cloned().collect::<Vec<_>>()))
}

fn file(part: &LivePart, stored: &SchemaRef, sn_in_meta: bool) -> PartitionedFile {
    let mut file = PartitionedFile::new(part.key.to_string(), part.meta.placement.bytes);
    if sn_in_meta {
        let sn = part.sn_of_record.map_or(0, |sn| i64::try_from(sn.0).unwrap_or(i64::MAX));
        file = file.with_partition_values(vec![ScalarValue::Int64(Some(sn))]);
    }
    file.statistics = Some(Arc::new(stats::of_part(part, stored, sn_in_meta)));
    if let Some(hidden) = &part.hidden {
        let mut selectors = Vec::new();
        let mut at: u64 = 0;
        let mut rows = hidden.0.iter().map(u64::from).peekable();
        while let Some(first) = rows.next() {
            let mut end = first + 1;
            while rows.peek() == Some(&end) {
                rows.next();
                end += 1;
            }
            selectors.push(RowSelector::select((first - at) as usize));
            selectors.push(RowSelector::skip((end - first) as usize));
            at = end;
        }
        selectors.push(RowSelector::select(part.meta.rows.saturating_sub(at) as usize));
        file = file.with_extension(ParquetRowSelection::new(RowSelection::from(selectors)));
    }
    file.with_extension(PartFile::of(part))
}

/// Evenly by bytes over as many groups as there are cores.
fn spread(mut files: Vec<PartitionedFile>, groups: usize) -> Vec<FileGroup> {
    files.sort_by_key(|f| std::cmp::Reverse(f.object_meta.size));
    let mut spread: Vec<(u64, Vec<PartitionedFile>)> = vec![(0, Vec::new()); groups.clamp(1, files.len().max(1))];
    for file in files {
        if let Some(least) = spread.iter_mut().min_by_key(|(bytes, _)| *bytes) {
            least.0 += file.object_meta.size;
            least.1.push(file);
        }
    }
    spread.into_iter().map(|(_, files)| FileGroup::new(files)).collect()
}
