//! Rows of one key made one, as a GROUP BY rule asks: an aggregation by DataFusion over the rows of parts that are being rewritten.
//!
//! Bounded memory: what does not fit is spilled. Blocks the thread that asks for it.

use crate::{
    Error, Result, analyze, functions, parse,
    statement::{Query, Verb, quote_name},
    types,
};
use arrow::{
    array::{ArrayRef, Int64Array},
    compute::cast,
    datatypes::{DataType, Field, Schema, SchemaRef},
    record_batch::RecordBatch,
};
use datafusion::{
    catalog::{MemoryCatalogProviderList, TableProvider, streaming::StreamingTable},
    common::DataFusionError,
    dataframe::DataFrame,
    execution::{
        SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext, memory_pool::FairSpillPool,
        runtime_env::RuntimeEnvBuilder,
    },
    physical_plan::{stream::RecordBatchStreamAdapter, streaming::PartitionStream},
    prelude::SessionContext,
};
use ebb_engine::expr::{Batches, Folder};
use ebb_storage::stream_def::{ColumnDef, StreamDef, TP_SN, TP_TIME};
use futures::TryStreamExt;
use parking_lot::Mutex;
use std::{fmt, sync::Arc};

/// Memory of one folding before it spills.
const MEMORY_BYTES: usize = 128 << 20;
/// The relation of rows that are folded, and their places among each other.
const ROWS: &str = "rows";
const PLACE: &str = "_ebb_place";

pub(crate) struct Folding {
    state: SessionState,
    query: Query,
    schema: SchemaRef,
    columns: Vec<ColumnDef>,
}

impl Folding {
    /// `base` has the functions.
    pub fn new(base: &SessionState, keys: &[String], set: &[(String, String)], def: &StreamDef) -> Result<Self> {
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(FairSpillPool::new(MEMORY_BYTES))).build_arc()?;
        let builder = SessionStateBuilder::new_from_existing(base.clone()).with_runtime_env(runtime);
        let state = builder.with_analyzer_rule(Arc::new(analyze::Meaning)).build();
        let columns: Vec<ColumnDef> = def.stored().cloned().collect();
        let newest = |name: &str| {
            let (name, time, sn, place) = (quote_name(name), quote_name(TP_TIME), quote_name(TP_SN), quote_name(PLACE));
            format!("last_value({name} ORDER BY {time}, {sn}, {place})")
        };
        let mut items: Vec<String> = Vec::with_capacity(columns.len() + 2);
        for column in &columns {
            items.push(match set.iter().find(|(name, _)| *name == column.name) {
                Some((_, value)) => value.clone(),
                None => newest(&column.name),
            });
        }
        items.push(format!("max({})", quote_name(TP_TIME)));
        items.push(format!("min({})", quote_name(TP_SN)));
        let items: Vec<String> = items.iter().enumerate().map(|(i, item)| format!("{item} AS c{i}")).collect();
        let by: Vec<String> = keys.iter().map(|k| format!("({k})")).collect();
        let text = format!("SELECT {} FROM {ROWS} GROUP BY {}", items.join(", "), by.join(", "));
        let Some(Verb::Query(mut query)) = parse::parse(&text)?.into_iter().next().map(|s| s.verb) else {
            return Err(Error::internal(format!("'{text}' is no query")));
        };
        functions::rewrite_query(&mut query.ast);
        Ok(Self { state, query, schema: def.part_schema(), columns })
    }

    async fn run(&self, rows: Batches) -> Result<Vec<RecordBatch>> {
        let table = StreamingTable::try_new(with_place(&self.schema), vec![Arc::new(Rows::new(&self.schema, rows))])?;
        // With relations of its own: foldings go on side by side.
        let config = self.state.config().clone().with_create_default_catalog_and_schema(true);
        let builder = SessionStateBuilder::new_from_existing(self.state.clone()).with_config(config);
        let context = SessionContext::new_with_state(builder.with_catalog_list(Arc::new(MemoryCatalogProviderList::new())).build());
        context.register_table(ROWS, Arc::new(table) as Arc<dyn TableProvider>)?;
        let state = context.state();
        let plan = state.statement_to_plan(self.query.to_datafusion()).await?;
        let folded: Vec<RecordBatch> = DataFrame::new(state, plan).execute_stream().await?.try_collect().await?;
        folded.iter().map(|batch| self.fitted(batch)).collect()
    }

    /// In the types of the stream's columns.
    fn fitted(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
        for (i, array) in batch.columns().iter().enumerate() {
            arrays.push(match self.columns.get(i) {
                Some(column) => types::coerce(array, column)?,
                None => array.clone(),
            });
            let (last, wanted) = (arrays.len() - 1, self.schema.field(i).data_type());
            if arrays[last].data_type() != wanted {
                arrays[last] = cast(&arrays[last], wanted)?;
            }
        }
        Ok(RecordBatch::try_new(self.schema.clone(), arrays)?)
    }
}

impl Folder for Folding {
    fn fold(&self, rows: Batches) -> ebb_storage::Result<Vec<RecordBatch>> {
        let run = self.run(rows);
        let folded = match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.block_on(run),
            Err(_) => futures::executor::block_on(run),
        };
        folded.map_err(|e| ebb_storage::Error::new(e.kind(), format!("folding rows by a GROUP BY rule: {}", e.message())))
    }
}

fn with_place(schema: &SchemaRef) -> SchemaRef {
    let place = Arc::new(Field::new(PLACE, DataType::Int64, false));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([place]).collect::<Vec<_>>()))
}

/// The rows, once.
struct Rows {
    schema: SchemaRef,
    rows: Mutex<Option<Batches>>,
}

impl Rows {
    fn new(schema: &SchemaRef, rows: Batches) -> Self {
        Self { schema: with_place(schema), rows: Mutex::new(Some(rows)) }
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows that are folded")
    }
}

impl PartitionStream for Rows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().take().into_iter().flatten();
        let (schema, mut at) = (self.schema.clone(), 0i64);
        let placed = rows.map(move |batch| {
            let batch = batch.map_err(|e| DataFusionError::External(Box::new(e)))?;
            let end = at + batch.num_rows() as i64;
            let place: ArrayRef = Arc::new(Int64Array::from_iter_values(at..end));
            at = end;
            let columns = batch.columns().iter().cloned().chain([place]).collect();
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        });
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(placed)))
    }
}

#[cfg(test)]
mod tests;
