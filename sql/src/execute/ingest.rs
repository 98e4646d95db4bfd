//! The one way of rows into a stream, from VALUES, SELECT, COPY and the API alike: columns mapped, values fitted, what is missing filled.
//!
//! Guards: whatever can fail on a row fails here, before anything is logged; all rows of a statement become visible together or not at
//! all; memory is bounded, since what grows large is staged.

use crate::{
    Error, Result, Session,
    bind::{expression::RowValue, names},
    database::Shared,
    nearest,
    session::Block,
    sqlstate,
    statement::{Name, StreamName},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, new_null_array},
    compute::{CastOptions, cast_with_options, take},
    datatypes::{DataType, FieldRef, Schema, SchemaRef, TimestampMicrosecondType},
};
use datafusion::execution::SessionState;
use ebb_engine::{InsertOptions, StagedInsert, Timestamp, upgrade};
use ebb_storage::stream_def::{DefaultKind, SettingValue, StreamDef, TP_SN, TP_TIME, tp_time_field};
use std::sync::Arc;

/// Rows above this are staged.
const STAGE_ROWS: usize = 262_144;
const STAGE_BYTES: usize = 64 << 20;

/// Where rows go and which of its columns they bring.
pub(crate) struct Target {
    pub def: Arc<StreamDef>,
    /// In the order in which rows bring them.
    pub columns: Vec<TargetColumn>,
}

pub(crate) struct TargetColumn {
    pub field: FieldRef,
    /// Its place in the stream's `row_schema`.
    place: usize,
}

impl Target {
    /// `names`: the columns that rows bring; all that can be inserted where `None`.
    pub fn find(session: &Session, into: &StreamName, names: Option<&[Name]>) -> Result<Self> {
        let manifest = session.shared.engine.manifest();
        let def = names::find(&manifest, into, &session.database)?.def.clone();
        Self::of(def, names.map(|n| n.iter().map(|n| (n.as_str().to_owned(), n.position)).collect()))
    }

    pub fn of(def: Arc<StreamDef>, names: Option<Vec<(String, usize)>>) -> Result<Self> {
        let row_schema = def.row_schema();
        let insertable = |c: &&ebb_storage::stream_def::ColumnDef| !matches!(&c.default, Some(d) if d.kind != DefaultKind::Default);
        let names = names.unwrap_or_else(|| def.columns.iter().filter(insertable).map(|c| (c.name.clone(), 0)).collect());
        let mut columns: Vec<TargetColumn> = Vec::with_capacity(names.len());
        for (name, position) in names {
            let refuse = |m: String, state| Err(Error::invalid(m).with_sqlstate(state).at(position));
            if columns.iter().any(|c| *c.field.name() == name) {
                return refuse(format!("column '{name}' is named twice"), sqlstate::DUPLICATE_COLUMN);
            }
            if name == TP_SN {
                return refuse(format!("{TP_SN} is given by Ebb and cannot be inserted"), "428C9");
            }
            if name == TP_TIME && event_time(&def).is_some() {
                return refuse(format!("{TP_TIME} is computed by event_time_column and cannot be inserted"), "428C9");
            }
            if let Some(kind) = def.column(&name).and_then(|c| c.default.as_ref()).map(|d| d.kind)
                && kind != DefaultKind::Default
            {
                let word = if kind == DefaultKind::Alias { "an ALIAS" } else { "MATERIALIZED" };
                return refuse(format!("column '{name}' is {word}: it is computed and cannot be inserted"), "428C9");
            }
            let Ok(place) = row_schema.index_of(&name) else {
                let near = nearest::did_you_mean(&name, row_schema.fields().iter().map(|f| f.name().as_str()));
                return refuse(format!("column '{name}' does not exist in {}{near}", def.full_name()), sqlstate::UNDEFINED_COLUMN);
            };
            columns.push(TargetColumn { field: row_schema.fields()[place].clone(), place });
        }
        Ok(Self { def, columns })
    }
}

fn event_time(def: &StreamDef) -> Option<&str> {
    match def.settings.get("event_time_column") {
        Some(SettingValue::Text(t)) if t != "none" => Some(t),
        _ => None,
    }
}

/// How a column that rows do not bring comes about.
enum Fill {
    Brought(usize),
    Value(RowValue),
    Null,
    Zero(ArrayRef),
    /// `_tp_time`: the statement's time.
    Now,
}

/// A running insert. Dropping it drops its rows.
pub(crate) struct Ingest {
    shared: Arc<Shared>,
    block: Option<Arc<Block>>,
    pub target: Target,
    row_schema: SchemaRef,
    /// By place in the row schema; computed in `order`.
    fills: Vec<Fill>,
    order: Vec<usize>,
    now: Timestamp,
    held: Vec<RecordBatch>,
    held_rows: usize,
    held_bytes: usize,
    staged: Option<StagedInsert>,
    rows: u64,
}

impl Ingest {
    pub fn new(session: &Session, state: &SessionState, target: Target, now: Timestamp) -> Result<Self> {
        Self::open(session.shared.clone(), session.block.clone(), state, target, now)
    }

    pub fn open(shared: Arc<Shared>, block: Option<Arc<Block>>, state: &SessionState, target: Target, now: Timestamp) -> Result<Self> {
        if let Some(block) = &block
            && block.read_only.load(std::sync::atomic::Ordering::Acquire)
        {
            return Err(Error::conflict("the transaction is read-only").with_sqlstate("25006"));
        }
        let def = target.def.clone();
        let row_schema = def.row_schema();
        let mut fills = Vec::with_capacity(row_schema.fields().len());
        let (mut brought, mut defaults, mut materialized) = (Vec::new(), Vec::new(), Vec::new());
        for (place, field) in row_schema.fields().iter().enumerate() {
            let column = def.column(field.name()).filter(|_| place + 1 < row_schema.fields().len());
            let fill = if let Some(i) = target.columns.iter().position(|c| c.place == place) {
                brought.push(place);
                Fill::Brought(i)
            } else if let Some(column) = column {
                match &column.default {
                    Some(d) => {
                        if d.kind == DefaultKind::Materialized {
                            materialized.push(place)
                        } else {
                            defaults.push(place)
                        }
                        Fill::Value(RowValue::new(state, &d.expr, &row_schema)?)
                    }
                    None => {
                        brought.push(place);
                        match column.nullable {
                            true => Fill::Null,
                            false => Fill::Zero(upgrade::zero(&column.ty)?),
                        }
                    }
                }
            } else {
                match event_time(&def) {
                    Some(text) => {
                        materialized.push(place);
                        Fill::Value(RowValue::new(state, text, &row_schema)?)
                    }
                    None => {
                        brought.push(place);
                        Fill::Now
                    }
                }
            };
            fills.push(fill);
        }
        let order = brought.into_iter().chain(defaults).chain(materialized).collect();
        Ok(Self {
            shared,
            block,
            target,
            row_schema,
            fills,
            order,
            now,
            held: Vec::new(),
            held_rows: 0,
            held_bytes: 0,
            staged: None,
            rows: 0,
        })
    }

    /// The first row that brings NULL to column `i` of the target, which takes none.
    pub fn refused_null(&self, i: usize, array: &ArrayRef) -> Option<usize> {
        let field = &self.target.columns.get(i)?.field;
        if field.is_nullable() || array.null_count() == 0 {
            return None;
        }
        (0..array.len()).find(|row| array.is_null(*row))
    }

    fn options(&self) -> InsertOptions {
        InsertOptions { schema_version: self.target.def.schema_version, key: None }
    }

    /// Takes rows whose columns are the target's, in order.
    pub async fn push(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        if rows == 0 {
            return Ok(());
        }
        let batch = self.complete(columns, rows)?;
        self.rows += rows as u64;
        if let Some(staged) = &mut self.staged {
            staged.push(batch).await?;
            return Ok(());
        }
        self.held_rows += rows;
        self.held_bytes += batch.get_array_memory_size();
        self.held.push(batch);
        if self.held_rows > STAGE_ROWS || self.held_bytes > STAGE_BYTES {
            let mut staged = self.shared.engine.stage(self.target.def.id, self.options()).await?;
            for batch in self.held.drain(..) {
                staged.push(batch).await?;
            }
            self.staged = Some(staged);
        }
        Ok(())
    }

    /// Makes all rows durable and visible, or part of the block; how many.
    pub async fn finish(mut self) -> Result<u64> {
        let (engine, id, options) = (self.shared.engine.clone(), self.target.def.id, self.options());
        let Some(block) = self.block.take() else {
            match self.staged.take() {
                Some(staged) => staged.finish().await?,
                None if self.held.is_empty() => return Ok(0),
                None => engine.insert(id, std::mem::take(&mut self.held), options).await?,
            };
            return Ok(self.rows);
        };
        let mut transaction = block.transaction.lock().await;
        let transaction = transaction.as_mut().ok_or_else(|| Error::conflict("the transaction has ended"))?;
        match self.staged.take() {
            Some(staged) => transaction.add_staged(staged),
            None if self.held.is_empty() => return Ok(0),
            None => {
                transaction.insert(id, std::mem::take(&mut self.held), options).await?;
                block.written.lock().await.insert(id, self.target.def.schema_version);
            }
        }
        Ok(self.rows)
    }

    /// Rows in the stream's `row_schema`.
    fn complete(&self, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch> {
        let fields = self.row_schema.fields();
        let mut done: Vec<Option<ArrayRef>> = vec![None; fields.len()];
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        for place in &self.order {
            let field = &fields[*place];
            let array = match &self.fills[*place] {
                Fill::Brought(i) => {
                    let array = columns.get(*i).ok_or_else(|| Error::internal("a column of the rows is missing"))?;
                    self.fitted(array, *place)?
                }
                Fill::Null => new_null_array(field.data_type(), rows),
                Fill::Zero(zero) => take(zero, &arrow::array::UInt32Array::from_value(0, rows), None)?,
                Fill::Now => {
                    let now = self.now.0.div_euclid(1000) * 1000;
                    Arc::new(TimestampMicrosecondArray::from_value(now, rows).with_timezone("UTC"))
                }
                Fill::Value(value) => {
                    // Columns that are not there yet read as NULL: an expression over them was refused when it was defined.
                    let known: Vec<ArrayRef> =
                        done.iter().zip(fields).map(|(c, f)| c.clone().unwrap_or_else(|| new_null_array(f.data_type(), rows))).collect();
                    let loose = fields.iter().map(|f| Arc::new(f.as_ref().clone().with_nullable(true))).collect::<Vec<_>>();
                    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(loose)), known, &options)?;
                    self.fitted(&value.of(&batch)?, *place)?
                }
            };
            if !field.is_nullable() && array.null_count() > 0 {
                let message = format!("column '{}' of {} takes no NULL", field.name(), self.target.def.full_name());
                return Err(Error::invalid(message).with_sqlstate(sqlstate::NOT_NULL_VIOLATION));
            }
            done[*place] = Some(array);
        }
        let columns = done.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| Error::internal("a column was not filled"))?;
        // Dictionaries end here: the log and the tail carry plain texts.
        let plain = columns.iter().zip(fields).map(|(c, f)| fit(c, f.data_type())).collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new_with_options(self.row_schema.clone(), plain, &options)?)
    }

    fn fitted(&self, array: &ArrayRef, place: usize) -> Result<ArrayRef> {
        let field = &self.row_schema.fields()[place];
        if let Some(column) = self.target.def.column(field.name()) {
            return Ok(crate::types::coerce(array, column)?);
        }
        // `_tp_time`, in milliseconds.
        let array = fit(array, tp_time_field().data_type()).map_err(|e| e.context(format_args!("column '{TP_TIME}'")))?;
        let times = array.as_primitive::<TimestampMicrosecondType>();
        let cut = times.unary::<_, TimestampMicrosecondType>(|t| t.div_euclid(1000) * 1000);
        Ok(Arc::new(cut.with_timezone("UTC")))
    }
}

/// `array` as `ty`; a value that does not fit is an error, never NULL.
pub(crate) fn fit(array: &ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    if array.data_type() == ty {
        return Ok(array.clone());
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    // Times without a zone are UTC, and a zone only says how a moment is shown.
    if let (DataType::Timestamp(_, from), DataType::Timestamp(unit, to)) = (array.data_type(), ty)
        && from.is_none() != to.is_none()
    {
        let same = cast_with_options(array, &DataType::Timestamp(*unit, from.clone()), &options)?;
        return Ok(arrow::array::make_array(same.to_data().into_builder().data_type(ty.clone()).build()?));
    }
    Ok(cast_with_options(array, ty, &options)?)
}
