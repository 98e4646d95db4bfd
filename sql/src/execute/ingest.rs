//! The one way of rows into a stream, from VALUES, SELECT, COPY and the API alike: columns mapped, values fitted, what is missing filled.
//!
//! Guards: whatever can fail on a row fails here, before anything is logged; all rows of a statement become visible together or not at
//! all; memory is bounded, since what grows large is staged.

use super::clocks::Clocks;
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
    array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, new_null_array},
    compute::{CastOptions, cast_with_options, filter, interleave, not, take},
    datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimestampMicrosecondType},
};
use datafusion::execution::SessionState;
use ebb_engine::{InsertOptions, StagedInsert, Timestamp, upgrade};
use ebb_storage::stream_def::{ColumnDef, DefaultKind, SettingValue, StreamDef, TP_SN, TP_TIME, tp_time_field};
use std::{borrow::Cow, sync::Arc};

/// Rows above this are staged.
const STAGE_ROWS: usize = 262_144;
const STAGE_BYTES: usize = 64 << 20;

/// Where rows go and which of its columns they bring.
pub(crate) struct Target {
    pub def: Arc<StreamDef>,
    /// `None`: main.
    pub branch: Option<String>,
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
        let (state, branch) = names::find_on(&manifest, into, session.database())?;
        let branch = branch.map(str::to_owned);
        if let Some(branch) = &branch {
            // One that is not there is told of before rows are.
            _ = session.cut_without_own().branch(state, branch)?;
        }
        let target = Self::of(state.def.clone(), names.map(|n| n.iter().map(|n| (n.as_str().to_owned(), n.position)).collect()))?;
        Ok(Self { branch, ..target })
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
        Ok(Self { def, branch: None, columns })
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

/// When a column is computed: defaults may read what rows bring, computed columns may read both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Brought,
    Default,
    Computed,
}

impl Fill {
    /// Of a column that can be inserted.
    fn stage(&self) -> Stage {
        match self {
            Self::Value(_) => Stage::Default,
            Self::Brought(_) | Self::Null | Self::Zero(_) | Self::Now => Stage::Brought,
        }
    }

    /// Of a column that rows do not bring.
    fn missing(state: &SessionState, def: &StreamDef, row_schema: &SchemaRef, place: usize) -> Result<Self> {
        let value = |text: &str| Ok(Self::Value(RowValue::new(state, text, row_schema)?));
        match column_at(def, row_schema, place) {
            Some(column) => match &column.default {
                Some(default) => value(&default.expr),
                None if column.nullable => Ok(Self::Null),
                None => Ok(Self::Zero(upgrade::zero(&column.ty)?)),
            },
            None => event_time(def).map_or(Ok(Self::Now), value),
        }
    }
}

/// `None` for `_tp_time`, which is the last.
fn column_at<'a>(def: &'a StreamDef, row_schema: &SchemaRef, place: usize) -> Option<&'a ColumnDef> {
    def.column(row_schema.field(place).name()).filter(|_| place + 1 < row_schema.fields().len())
}

/// Rows that bring some values of a column and leave others to its default.
struct Mixed {
    place: usize,
    /// Rows that bring none.
    missing: BooleanArray,
    default: Fill,
}

/// A running insert. Dropping it drops its rows.
pub(crate) struct Ingest {
    shared: Arc<Shared>,
    block: Option<Arc<Block>>,
    pub target: Target,
    row_schema: SchemaRef,
    /// By place in the row schema.
    fills: Vec<Fill>,
    stages: Vec<Stage>,
    now: Timestamp,
    clocks: Clocks,
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
        let mut stages = Vec::with_capacity(row_schema.fields().len());
        for place in 0..row_schema.fields().len() {
            let fill = match target.columns.iter().position(|c| c.place == place) {
                Some(i) => Fill::Brought(i),
                None => Fill::missing(state, &def, &row_schema, place)?,
            };
            let computed = match column_at(&def, &row_schema, place) {
                Some(column) => column.default.as_ref().is_some_and(|d| d.kind == DefaultKind::Materialized),
                None => event_time(&def).is_some(),
            };
            stages.push(if computed { Stage::Computed } else { fill.stage() });
            fills.push(fill);
        }
        Ok(Self {
            shared,
            block,
            target,
            row_schema,
            fills,
            stages,
            now,
            clocks: Clocks::of(state),
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

    pub(super) fn clocks(&self) -> &Clocks {
        &self.clocks
    }

    fn options(&self) -> InsertOptions {
        InsertOptions { schema_version: self.target.def.schema_version, branch: self.target.branch.clone(), ..InsertOptions::default() }
    }

    /// Takes rows whose columns are the target's, in order.
    pub async fn push(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        match rows {
            0 => Ok(()),
            _ => self.take(self.complete(&self.moments(columns)?, rows, &[])?).await,
        }
    }

    /// Times that name no zone become moments where the column has one.
    fn moments<'a>(&self, columns: &'a [ArrayRef]) -> Result<Cow<'a, [ArrayRef]>> {
        let differ = |c: &TargetColumn| self.clocks.differ(c.field.data_type());
        if !self.target.columns.iter().any(differ) {
            return Ok(Cow::Borrowed(columns));
        }
        let moment = |(given, c): (&ArrayRef, &TargetColumn)| match differ(c) {
            true => self.clocks.moments(given, self.fitted(given, c.place)?),
            false => Ok(given.clone()),
        };
        columns.iter().zip(&self.target.columns).map(moment).collect::<Result<Vec<_>>>().map(Cow::Owned)
    }

    /// As [`Self::push`]; `missing` says for each column which of its values are none, so that its default stands there.
    pub async fn push_some_defaults(
        &mut self,
        state: &SessionState,
        columns: &[ArrayRef],
        missing: Vec<Option<BooleanArray>>,
        rows: usize,
    ) -> Result<()> {
        let mut mixed = Vec::new();
        for (column, missing) in self.target.columns.iter().zip(missing) {
            let Some(missing) = missing else { continue };
            let default = Fill::missing(state, &self.target.def, &self.row_schema, column.place)?;
            mixed.push(Mixed { place: column.place, missing, default });
        }
        self.take(self.complete(columns, rows, &mixed)?).await
    }

    async fn take(&mut self, batch: RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        self.rows += rows as u64;
        if let Some(staged) = &mut self.staged {
            staged.push(batch).await?;
            return Ok(());
        }
        self.held_rows += rows;
        // Rows that share their texts are written as if they did not.
        self.held_bytes += batch.get_array_memory_size().max(ebb_storage::log::rows::size(&batch)?);
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
            Some(staged) => {
                transaction.add_staged(staged).await?;
            }
            None if self.held.is_empty() => return Ok(0),
            None => {
                transaction.insert(id, std::mem::take(&mut self.held), options).await?;
            }
        }
        Ok(self.rows)
    }

    /// Rows in the stream's `row_schema`.
    fn complete(&self, columns: &[ArrayRef], rows: usize, mixed: &[Mixed]) -> Result<RecordBatch> {
        let fields = self.row_schema.fields();
        let mut done: Vec<Option<ArrayRef>> = vec![None; fields.len()];
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let of = |place: usize| mixed.iter().find(|m| m.place == place);
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|place| of(*place).map_or(self.stages[*place], |m| m.default.stage()));
        for place in order {
            let array = match (&self.fills[place], of(place)) {
                (Fill::Brought(i), mixed) => {
                    let array = columns.get(*i).ok_or_else(|| Error::internal("a column of the rows is missing"))?;
                    match mixed {
                        None => self.fitted(array, place)?,
                        Some(mixed) => self.mixed(array, mixed, &done)?,
                    }
                }
                (fill, _) => self.filled(fill, place, &done, rows)?,
            };
            if !fields[place].is_nullable() && array.null_count() > 0 {
                let message = format!("column '{}' of {} takes no NULL", fields[place].name(), self.target.def.full_name());
                return Err(Error::invalid(message).with_sqlstate(sqlstate::NOT_NULL_VIOLATION));
            }
            done[place] = Some(array);
        }
        let columns = done.into_iter().collect::<Option<Vec<_>>>().ok_or_else(|| Error::internal("a column was not filled"))?;
        // Dictionaries of texts stay: they are cheaper to sort and to write.
        let done = |(c, f): (&ArrayRef, &FieldRef)| if is_coded(c) { Ok(c.clone()) } else { fit(c, f.data_type()) };
        let columns = columns.iter().zip(fields).map(done).collect::<Result<Vec<_>>>()?;
        let typed = fields.iter().zip(&columns).map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone()));
        let schema = if columns.iter().any(is_coded) { Arc::new(Schema::new(typed.collect::<Vec<_>>())) } else { self.row_schema.clone() };
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    /// `rows` values of a column that is not brought. `done`: the columns that are there already.
    fn filled(&self, fill: &Fill, place: usize, done: &[Option<ArrayRef>], rows: usize) -> Result<ArrayRef> {
        let fields = self.row_schema.fields();
        Ok(match fill {
            Fill::Brought(_) => return Err(Error::internal("a column is brought and missing")),
            Fill::Null => new_null_array(fields[place].data_type(), rows),
            Fill::Zero(zero) => take(zero, &arrow::array::UInt32Array::from_value(0, rows), None)?,
            Fill::Now => {
                let now = self.now.0.div_euclid(1000) * 1000;
                Arc::new(TimestampMicrosecondArray::from_value(now, rows).with_timezone("UTC"))
            }
            Fill::Value(value) => {
                // Columns that are not there yet read as NULL: an expression over them was refused when it was defined.
                let read = |(place, f): (usize, &FieldRef)| match &done[place] {
                    Some(c) if value.reads(place) => fit(c, f.data_type()),
                    Some(c) => Ok(c.clone()),
                    None if value.reads(place) => Ok(new_null_array(f.data_type(), rows)),
                    None => Ok(new_null_array(&DataType::Null, rows)),
                };
                let known = fields.iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
                let loose = |(f, c): (&FieldRef, &ArrayRef)| f.as_ref().clone().with_nullable(true).with_data_type(c.data_type().clone());
                let loose: Vec<Field> = fields.iter().zip(&known).map(loose).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(rows));
                let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(loose)), known, &options)?;
                self.fitted(&value.of(&batch)?, place)?
            }
        })
    }

    /// The default is computed for the rows that lack a value, and for no other.
    fn mixed(&self, array: &ArrayRef, mixed: &Mixed, done: &[Option<ArrayRef>]) -> Result<ArrayRef> {
        let lack = &mixed.missing;
        let ty = self.row_schema.field(mixed.place).data_type();
        let brought = fit(&self.fitted(&filter(array, &not(lack)?)?, mixed.place)?, ty)?;
        let known = done.iter().map(|c| c.as_ref().map(|c| filter(c, lack)).transpose()).collect::<Result<Vec<_>, _>>()?;
        let computed = fit(&self.filled(&mixed.default, mixed.place, &known, lack.true_count())?, ty)?;
        let mut next = [0; 2];
        let places: Vec<(usize, usize)> = (0..lack.len())
            .map(|row| {
                let source = usize::from(lack.value(row));
                next[source] += 1;
                (source, next[source] - 1)
            })
            .collect();
        Ok(interleave(&[brought.as_ref(), computed.as_ref()], &places)?)
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

/// Whether an array is a dictionary of texts that the engine takes as it is.
fn is_coded(array: &ArrayRef) -> bool {
    match array.data_type() {
        DataType::Dictionary(keys, values) => **keys == DataType::Int32 && matches!(**values, DataType::Utf8 | DataType::Utf8View),
        _ => false,
    }
}

/// `array` as `ty`; a value that does not fit is an error, never NULL.
pub(crate) fn fit(array: &ArrayRef, ty: &DataType) -> Result<ArrayRef> {
    if array.data_type() == ty {
        return Ok(array.clone());
    }
    if let Some(dictionary) = array.as_any_dictionary_opt() {
        // A cast would make texts of a dictionary's NULLs.
        return fit(&take(dictionary.values(), dictionary.keys(), None)?, ty);
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
