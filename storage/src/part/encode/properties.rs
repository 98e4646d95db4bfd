//! What the writer of a part's file is told of its columns: codecs, encodings, filters, and where bounds would be wrong.

use super::{BLOOM_DISTINCT_MAX, DICTIONARY_BYTES, PAGE_ROWS, WriteOptions, field_id, leaves};
use crate::{Result, part::encoding::Choice};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch},
    datatypes::{DataType, Float32Type, Float64Type, SchemaRef},
};
use parquet::{
    arrow::{
        ArrowSchemaConverter,
        arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory},
    },
    file::{
        metadata::SortingColumn,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        writer::SerializedFileWriter,
    },
    schema::types::ColumnPath,
};
use std::{collections::HashSet, sync::Arc};

/// Which columns have a NaN. Bounds leave NaNs out and comparisons do not: a column chunk with one must not have any.
pub fn with_nans(columns: usize, batches: &[RecordBatch]) -> Vec<bool> {
    let nan = |array: &ArrayRef| {
        let values = array.as_any_dictionary_opt().map_or(array, |d| d.values());
        match values.data_type() {
            DataType::Float64 => values.as_primitive::<Float64Type>().values().iter().any(|v| v.is_nan()),
            DataType::Float32 => values.as_primitive::<Float32Type>().values().iter().any(|v| v.is_nan()),
            _ => false,
        }
    };
    let any = |i: usize| {
        // Slices of one dictionary have the same values: they are looked at once.
        let mut seen = HashSet::new();
        let mut new = |a: &ArrayRef| a.as_any_dictionary_opt().is_none_or(|d| seen.insert(Arc::as_ptr(d.values()).cast::<u8>()));
        batches.iter().any(|b| new(b.column(i)) && nan(b.column(i)))
    };
    (0..columns).map(any).collect()
}

/// Writers that note no bounds, in the place of those of `unbounded` columns.
pub fn without_bounds(
    options: &WriteOptions,
    choices: &[Choice],
    unbounded: &[bool],
    row_group: usize,
    writers: Vec<ArrowColumnWriter>,
) -> Result<Vec<ArrowColumnWriter>> {
    // A file that is never written: writers take their properties from one.
    let parquet_schema = ArrowSchemaConverter::new().convert(&options.schema)?;
    let file =
        SerializedFileWriter::new(std::io::sink(), parquet_schema.root_schema_ptr(), Arc::new(properties(options, choices, unbounded)?))?;
    let others = ArrowRowGroupWriterFactory::new(&file, options.schema.clone()).create_column_writers(row_group)?;
    let of_root = options.schema.fields().iter().zip(unbounded).flat_map(|(f, u)| std::iter::repeat_n(*u, leaves(f.data_type())));
    Ok(writers.into_iter().zip(others).zip(of_root).map(|((w, o), unbounded)| if unbounded { o } else { w }).collect())
}

pub fn properties(options: &WriteOptions, choices: &[Choice], unbounded: &[bool]) -> Result<WriterProperties> {
    let mut b = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(format!("ebb {}", env!("CARGO_PKG_VERSION")))
        .set_compression(options.codec.parquet())
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(PAGE_ROWS)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_statistics_truncate_length(Some(crate::part::stats::TEXT_BYTES_MAX))
        .set_max_row_group_row_count(None);
    let mut sorting = Vec::new();
    for name in &options.sorted_by {
        let leaf = leaf_index(&options.schema, name);
        sorting.extend(leaf.map(|i| SortingColumn { column_idx: i, descending: false, nulls_first: true }));
    }
    b = b.set_sorting_columns((!sorting.is_empty()).then_some(sorting));
    for (i, field) in options.schema.fields().iter().enumerate() {
        let path = ColumnPath::from(field.name().as_str());
        let codec = field_id(field).and_then(|id| options.column_codecs.get(&id));
        if let Some(codec) = codec {
            for leaf in paths(&options.schema, i)? {
                b = b.set_column_compression(leaf, codec.codec.parquet());
            }
        }
        if let Some(false_positives) = options.false_positives(field.name()) {
            b = b.set_column_bloom_filter_enabled(path.clone(), true);
            b = b.set_column_bloom_filter_fpp(path.clone(), false_positives);
            b = b.set_column_bloom_filter_max_ndv(path.clone(), BLOOM_DISTINCT_MAX);
        }
        if unbounded.get(i) == Some(&true) {
            b = b.set_column_statistics_enabled(path.clone(), EnabledStatistics::None);
        }
        if let Some(Choice::Plain(encoding)) = choices.get(i) {
            b = b.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, *encoding);
        }
    }
    Ok(b.build())
}

/// Of the leaves of the column at `place`: codecs are theirs.
fn paths(schema: &SchemaRef, place: usize) -> Result<Vec<ColumnPath>> {
    let field = schema.field(place);
    if !field.data_type().is_nested() {
        return Ok(vec![ColumnPath::from(field.name().as_str())]);
    }
    let alone = ArrowSchemaConverter::new().convert(&schema.project(&[place])?)?;
    Ok(alone.columns().iter().map(|leaf| leaf.path().clone()).collect())
}

/// Parquet counts leaves; a nested column has several.
fn leaf_index(schema: &SchemaRef, name: &str) -> Option<i32> {
    let mut leaf = 0;
    for field in schema.fields() {
        if field.name() == name {
            return i32::try_from(leaf).ok();
        }
        leaf += leaves(field.data_type());
    }
    None
}
