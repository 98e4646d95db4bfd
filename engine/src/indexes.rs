//! INDEX over an expression: its values as rows are written, so that a part which holds none that a query asks for is not opened.
//!
//! An index is told from others by its expression, the columns that it reads and their types: what an earlier definition kept is not
//! taken for this one's. Guards: the values are those of every row of a batch; a column that a batch lacks, or a value that cannot be
//! computed, is an error here and no index there, never a row that is passed over.

use crate::{
    Engine,
    expr::{ExprCompiler, RowExpr},
    upgrade::{field_id, place_of},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array},
    compute::{cast, concat, filter},
    datatypes::{Field, Schema, SchemaRef},
};
use ebb_storage::{
    Error, Result,
    ids::{ColumnId, Fingerprint},
    part::{computed::Computed, value_set},
    stream_def::{IndexKind, StreamDef},
};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// An INDEX over an expression, as parts name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexOver {
    pub fingerprint: Fingerprint,
    /// Canonical SQL.
    pub expr: String,
}

impl Engine {
    /// What parts may keep of expressions.
    pub fn indexes(&self, def: &Arc<StreamDef>) -> Result<Vec<IndexOver>> {
        if def.indexes.iter().all(|i| def.indexed(i).is_some()) {
            return Ok(Vec::new());
        }
        Ok(self.core.compiled(def)?.indexes.clone())
    }
}

/// The indexes of `def` that are over expressions, and what is asked of who writes a part.
pub(crate) fn over_expressions(def: &StreamDef, compiler: &dyn ExprCompiler) -> Result<(Vec<IndexOver>, Vec<Computed>)> {
    let (mut indexes, mut computed) = (Vec::new(), Vec::<Computed>::new());
    for index in def.indexes.iter().filter(|i| def.indexed(i).is_none()) {
        let expr = compiler.compile(&index.expr, def)?;
        let fingerprint = fingerprint(def, &index.expr, expr.columns());
        let values_max = match index.kind {
            IndexKind::MinMax => None,
            IndexKind::Set(max) => Some(max),
            IndexKind::BloomFilter(_) => Some(0),
        };
        // Of two over one expression the one that keeps more.
        match computed.iter_mut().find(|c| c.index == fingerprint) {
            Some(known) => known.values_max = more(known.values_max, values_max),
            None => {
                let reads = Reads::of(def, expr)?;
                computed.push(Computed { index: fingerprint, values_max, values: Arc::new(move |rows| reads.values(rows)) });
                indexes.push(IndexOver { fingerprint, expr: index.expr.clone() });
            }
        }
    }
    Ok((indexes, computed))
}

/// 0 is without end.
fn more(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(0), _) | (_, Some(0)) => Some(0),
        (a, b) => a.max(b),
    }
}

fn fingerprint(def: &StreamDef, expr: &str, columns: &[ColumnId]) -> Fingerprint {
    let mut hash = Xxh3::new();
    hash.update(expr.as_bytes());
    for id in columns {
        let ty = def.columns.iter().find(|c| c.id == *id).map(|c| format!("{:?} {}", c.ty, c.nullable)).unwrap_or_default();
        hash.update(format!("\0{id} {ty}").as_bytes());
    }
    Fingerprint(hash.digest())
}

/// An expression and the columns that it reads.
struct Reads {
    expr: Arc<dyn RowExpr>,
    schema: SchemaRef,
}

impl Reads {
    fn of(def: &StreamDef, expr: Arc<dyn RowExpr>) -> Result<Self> {
        let mut fields: Vec<Field> = Vec::new();
        for field in def.row_schema().fields() {
            if expr.columns().contains(&field_id(field)?) {
                // What stands for several rows may hold a NULL of any of them.
                fields.push(field.as_ref().clone().with_nullable(true));
            }
        }
        Ok(Self { expr, schema: Arc::new(Schema::new(fields)) })
    }

    fn values(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        let mut columns = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let at = place_of(rows.schema_ref(), field_id(field)?);
            let at = at.ok_or_else(|| Error::internal(format!("rows lack column '{}'", field.name())))?;
            columns.push(rows.column(at).clone());
        }
        let columns = match columns.as_slice() {
            [one] => vec![distinct(one, self.schema.field(0))?],
            several => several.iter().zip(self.schema.fields()).map(|(c, f)| plain(c, f)).collect::<Result<_>>()?,
        };
        let n = columns.first().map_or(rows.num_rows(), |c| c.len());
        let options = RecordBatchOptions::new().with_row_count(Some(n));
        self.expr.evaluate(&RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}

fn plain(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    Ok(if column.data_type() == field.data_type() { column.clone() } else { cast(column, field.data_type())? })
}

/// Each value of the column at least once: of a dictionary those that stand in a row, and one NULL where a row has it.
fn distinct(column: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let Some(dictionary) = column.as_any_dictionary_opt() else { return plain(column, field) };
    let values = plain(&filter(dictionary.values(), &value_set::used(dictionary))?, field)?;
    if column.null_count() == 0 {
        return Ok(values);
    }
    Ok(concat(&[values.as_ref(), new_null_array(field.data_type(), 1).as_ref()])?)
}
