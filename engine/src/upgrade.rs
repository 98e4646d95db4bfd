//! Rows of one schema version as another version has them.
//!
//! Columns are matched by id, never by name: a renamed column keeps its values, a dropped one vanishes, one added later reads its fill
//! or its default, evaluated on the row.

use crate::expr::ExprCompiler;
use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, StringArray, UInt32Array, new_null_array},
    compute::{CastOptions, cast_with_options, take},
    datatypes::{DataType, Field, Schema},
};
use ebb_storage::{
    Error, Result,
    column_type::ColumnType,
    ids::ColumnId,
    stream_def::{ColumnDef, StreamDef},
};
use parquet::arrow::PARQUET_FIELD_ID_META_KEY;
use std::sync::Arc;

/// `rows` in `row_schema` of `to`, and which columns had to be filled. `rows` name their columns' ids in their fields.
///
/// # Errors
/// `Corrupt` where a field has no id; what the compiler says of a default that fails.
pub fn upgrade(rows: &RecordBatch, to: &StreamDef, compiler: &dyn ExprCompiler) -> Result<(RecordBatch, Vec<ColumnId>)> {
    let ids = rows.schema_ref().fields().iter().map(|f| field_id(f)).collect::<Result<Vec<_>>>()?;
    let of = |id: ColumnId| ids.iter().position(|i| *i == id).map(|i| rows.column(i));
    let schema = to.row_schema();
    let n = rows.num_rows();
    let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(schema.fields().len());
    let mut lacking = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        let id = field_id(field)?;
        columns.push(match of(id) {
            Some(c) => Some(fitted(c, field.data_type())?),
            None => {
                lacking.push((at, id));
                None
            }
        });
    }
    let mut filled = Vec::new();
    for (at, id) in lacking {
        let column = to.columns.iter().find(|c| c.id == id).ok_or_else(|| Error::corrupt(format!("rows lack the hidden column {id}")))?;
        // A default may name columns that were filled before it, and none that come after.
        let known: Vec<(Arc<Field>, ArrayRef)> =
            schema.fields().iter().zip(&columns).filter_map(|(f, c)| Some((f.clone(), c.clone()?))).collect();
        columns[at] = Some(fill(column, to, &known, n, compiler)?);
        filled.push(id);
    }
    let columns = columns.into_iter().flatten().collect();
    let options = RecordBatchOptions::new().with_row_count(Some(n));
    Ok((RecordBatch::try_new_with_options(schema, columns, &options)?, filled))
}

/// Where the column of that id stands in a schema.
pub fn place_of(schema: &Schema, id: ColumnId) -> Option<usize> {
    schema.fields().iter().position(|f| field_id(f).is_ok_and(|of| of == id))
}

/// The column id that a field of a part, record or stream carries.
pub fn field_id(field: &Field) -> Result<ColumnId> {
    let text = field.metadata().get(PARQUET_FIELD_ID_META_KEY);
    let id = text.and_then(|t| t.parse().ok()).map(ColumnId);
    id.ok_or_else(|| Error::corrupt(format!("column '{}' carries no field id", field.name())))
}

fn fitted(column: &ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    if column.data_type() == ty { Ok(column.clone()) } else { cast(column, ty) }
}

/// What the column's DEFAULT makes of each of `rows`, which are in the stream's columns of today.
pub fn defaults(column: &ColumnDef, def: &StreamDef, rows: &RecordBatch, compiler: &dyn ExprCompiler) -> Result<ArrayRef> {
    let known: Vec<(Arc<Field>, ArrayRef)> = rows.schema_ref().fields().iter().cloned().zip(rows.columns().iter().cloned()).collect();
    fill(column, def, &known, rows.num_rows(), compiler)
}

/// What `rows` rows that lack the column read in it.
fn fill(
    column: &ColumnDef,
    def: &StreamDef,
    known: &[(Arc<Field>, ArrayRef)],
    rows: usize,
    compiler: &dyn ExprCompiler,
) -> Result<ArrayRef> {
    let ty = column.ty.arrow();
    if let Some(text) = &column.fill {
        return repeat(&cast(&(Arc::new(StringArray::from(vec![text.as_str()])) as ArrayRef), &ty)?, rows);
    }
    if let Some(default) = &column.default {
        let (fields, columns): (Vec<_>, Vec<_>) = known.iter().cloned().unzip();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
        let values = compiler.compile_default(&default.expr, column, def)?.evaluate(&batch).map_err(|e| {
            let (column, stream) = (&column.name, def.full_name());
            e.context(format_args!("column '{column}' of {stream}: DEFAULT {} fails for a row that is older than the column", default.expr))
        })?;
        return fitted(&values, &ty);
    }
    if column.nullable {
        return Ok(new_null_array(&ty, rows));
    }
    repeat(&zero(&column.ty)?, rows)
}

fn repeat(one: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(one, &UInt32Array::from_value(0, rows), None)?)
}

/// One value: the type's zero, as a column absent from an INSERT takes it. Always a value of the type: the nil uuid, the empty object,
/// the unspecified address, the enum's label of number 0 or else its first.
pub fn zero(ty: &ColumnType) -> Result<ArrayRef> {
    use arrow::array::{BinaryViewArray, Int32Array, StringViewArray};
    let carried = ty.arrow();
    let zero = match &carried {
        DataType::Utf8View => Arc::new(StringViewArray::from_iter_values([zero_text(ty.plain())])) as ArrayRef,
        DataType::BinaryView => Arc::new(BinaryViewArray::from(vec![b"".as_slice()])),
        DataType::List(_) | DataType::Map(..) => {
            let empty = new_null_array(&carried, 1).to_data().into_builder().nulls(None).build()?;
            arrow::array::make_array(empty)
        }
        DataType::Timestamp(..) => cast(&(Arc::new(arrow::array::Int64Array::from(vec![0])) as ArrayRef), &carried)?,
        _ => cast(&(Arc::new(Int32Array::from(vec![0])) as ArrayRef), &carried)?,
    };
    Ok(zero)
}

/// The zero of a type that is carried as text.
fn zero_text(ty: &ColumnType) -> &str {
    match ty {
        ColumnType::Uuid => "00000000-0000-0000-0000-000000000000",
        ColumnType::Json => "{}",
        ColumnType::Ipv4 => "0.0.0.0",
        ColumnType::Ipv6 => "::",
        ColumnType::Enum { labels, .. } => labels.iter().find(|(_, n)| *n == 0).or(labels.first()).map_or("", |(label, _)| label),
        _ => "",
    }
}

fn cast(column: &ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    Ok(cast_with_options(column, ty, &options)?)
}
