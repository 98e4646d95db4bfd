//! Columns that an ALTER adds, on rows that are there already.
//!
//! Guards: no ALTER makes a stream unreadable. A default that is a function of the row is computed for every row before the ALTER
//! (batch by batch, reading only what it names), and for those that came meanwhile after it; one that fails for a row is refused.

use crate::{
    Error, Result, Session,
    bind::expression::RowValue,
    provider::StreamTable,
    types::{self, coerce},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array},
    compute::{cast, filter_record_batch, kernels::cmp::gt, take},
    datatypes::{Int64Type, Schema},
};
use datafusion::{
    catalog::TableProvider,
    logical_expr::{Volatility, col, lit},
    physical_plan::ExecutionPlan,
};
use ebb_engine::{StreamView, upgrade};
use ebb_storage::{
    ids::{Sn, StreamId},
    stream_def::{ColumnDef, StreamDef, TP_SN},
};
use futures::StreamExt;
use std::sync::Arc;

/// How much of a row is shown.
const SHOWN_COLUMNS: usize = 8;

/// The columns of `new` that `old` has not and whose default is a function of the row.
pub(super) fn of(new: &StreamDef, old: &StreamDef, session: &Session) -> Result<Vec<ColumnDef>> {
    let mut added = Vec::new();
    for column in new.stored().filter(|c| old.columns.iter().all(|o| o.id != c.id)) {
        let Some(default) = column.default.as_ref().filter(|_| column.fill.is_none()) else { continue };
        let bound = session.shared.compiler.bind(&default.expr, new)?;
        if !bound.columns.is_empty() && bound.volatility == Volatility::Immutable {
            added.push(column.clone());
        }
    }
    Ok(added)
}

/// Computes the defaults of `added` for the rows of stream `id` with an sn above `after`; up to which sn rows were looked at.
///
/// # Errors
/// What the default says of the first row that it fails for, with the row.
pub(super) async fn check(session: &Session, id: StreamId, new: &StreamDef, added: &[ColumnDef], after: Option<Sn>) -> Result<Sn> {
    let cut = session.cut_without_own();
    let Some(view) = cut.view.stream(id) else { return Ok(Sn(0)) };
    let head = view.head_sn;
    if after.is_some_and(|after| after >= head) {
        return Ok(head);
    }
    let state = session.context(&cut, false);
    let mut named = Vec::new();
    for column in added {
        let text = column.default.as_ref().map_or("NULL", |d| d.expr.as_str());
        named.extend(session.shared.compiler.bind(text, new)?.columns);
    }
    let named: Vec<ColumnDef> = new.stored().filter(|c| named.contains(&c.id)).cloned().collect();
    let rows = Rows::of(session, view, named, after)?;
    let schema = rows.schema.clone();
    let values = added.iter().map(|column| {
        let text = column.default.as_ref().map_or("NULL", |d| d.expr.as_str());
        Ok((column, RowValue::new(&state, text, &schema)?))
    });
    let values = values.collect::<Result<Vec<_>>>()?;
    let plan = rows.plan(&state).await?;
    let mut stream = session.shared.workers.run(plan, state.task_ctx())?;
    while let Some(batch) = stream.next().await {
        let batch = rows.renamed(&batch?)?;
        for (column, value) in &values {
            if compute(value, column, &batch).is_err() {
                return Err(first_failure(value, column, &batch));
            }
        }
    }
    Ok(head)
}

fn compute(value: &RowValue, column: &ColumnDef, rows: &RecordBatch) -> Result<()> {
    coerce(&value.of(rows)?, column).map(|_| ()).map_err(Error::from)
}

/// The error of the first row that the default fails for. It fails for one at least.
fn first_failure(value: &RowValue, column: &ColumnDef, rows: &RecordBatch) -> Error {
    let mut rows = rows.clone();
    while rows.num_rows() > 1 {
        let half = rows.num_rows() / 2;
        let first = rows.slice(0, half);
        rows = if compute(value, column, &first).is_err() { first } else { rows.slice(half, rows.num_rows() - half) };
    }
    let why = compute(value, column, &rows).err().unwrap_or_else(|| Error::internal("it fails for no single row"));
    let default = column.default.as_ref().map_or("", |d| d.expr.as_str());
    let error =
        why.context(format_args!("column '{}': DEFAULT {default} fails for a row that is there already ({})", column.name, shown(&rows)));
    error.with_hint("a DEFAULT that holds for every row, or a nullable column without one, can be added")
}

/// `k = 0, name = x`
fn shown(row: &RecordBatch) -> String {
    let fields = row.schema();
    let texts = row.columns().iter().zip(fields.fields()).take(SHOWN_COLUMNS).map(|(array, field)| {
        let text = crate::analyze::text_of(array, None).ok();
        let text = text.filter(|t| t.is_valid(0)).map_or_else(|| "NULL".to_owned(), |t| types::shown(t.as_string_view().value(0)));
        format!("{} = {text}", field.name())
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The columns that defaults name, of the rows above an sn, under the names of the new definition.
struct Rows {
    table: StreamTable,
    named: Vec<ColumnDef>,
    /// Of `named`, then `_tp_sn`: where they are in the table, if there.
    places: Vec<Option<usize>>,
    schema: Arc<Schema>,
    after: Option<Sn>,
}

impl Rows {
    fn of(session: &Session, view: StreamView, named: Vec<ColumnDef>, after: Option<Sn>) -> Result<Self> {
        let table = StreamTable::new(session.shared.clone(), view, Vec::new(), true, session.shared.engine.now());
        let of_table = table.schema();
        let place = |c: &ColumnDef| {
            let old = table.def().columns.iter().find(|o| o.id == c.id)?;
            of_table.index_of(&old.name).ok()
        };
        let mut places: Vec<Option<usize>> = named.iter().map(place).collect();
        places.push(Some(of_table.index_of(TP_SN)?));
        let fields = named.iter().map(|c| c.field().with_nullable(true)).collect::<Vec<_>>();
        Ok(Self { table, named, places, schema: Arc::new(Schema::new(fields)), after })
    }

    async fn plan(&self, state: &datafusion::execution::SessionState) -> Result<Arc<dyn ExecutionPlan>> {
        let projection: Vec<usize> = self.places.iter().flatten().copied().collect();
        let filters: Vec<_> = self.after.map(|after| col(TP_SN).gt(lit(sn(after)))).into_iter().collect();
        Ok(self.table.scan(state, Some(&projection), &filters, None).await?)
    }

    fn renamed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut read = batch.columns().iter();
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.named.len());
        for (column, place) in self.named.iter().zip(&self.places) {
            columns.push(match (place, column.nullable) {
                // The ALTER may widen it too.
                (Some(_), _) => {
                    let array = read.next().ok_or_else(|| Error::internal("a column of the rows is missing"))?;
                    cast(array, &column.ty.arrow())?
                }
                // Added by the same ALTER, and without a default.
                (None, true) => new_null_array(&column.ty.arrow(), batch.num_rows()),
                (None, false) => take(&upgrade::zero(&column.ty)?, &arrow::array::UInt32Array::from_value(0, batch.num_rows()), None)?,
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let rows = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?;
        let (Some(after), Some(sns)) = (self.after, batch.columns().last()) else { return Ok(rows) };
        let newer = gt(sns.as_primitive::<Int64Type>(), &arrow::array::Int64Array::new_scalar(sn(after)))?;
        Ok(filter_record_batch(&rows, &newer)?)
    }
}

fn sn(sn: Sn) -> i64 {
    i64::try_from(sn.0).unwrap_or(i64::MAX)
}
