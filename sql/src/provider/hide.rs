//! Rows that rules would remove now, left out of what is read where the stream asks for it (`ttl_hide_expired = 1`).
//!
//! Parts whose facts decide cost nothing; the others read the rules' columns too and drop due rows right above the scan.

use arrow::{
    array::{ArrayRef, BooleanArray, RecordBatch},
    compute::filter_record_batch,
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use datafusion::{
    common::DataFusionError,
    config::ConfigOptions,
    error::Result,
    logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
    physical_expr::{PhysicalExpr, ScalarFunctionExpr, expressions::Column},
    physical_plan::{ExecutionPlan, filter::FilterExec, projection::ProjectionExec},
};
use ebb_engine::{hide::Hiding, upgrade};
use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

/// `places` and, after them, the rules' columns that are not among them.
pub(super) fn with_rule_columns(hiding: &Hiding, places: &[usize], stored: &SchemaRef) -> Vec<usize> {
    let ids = hiding.columns();
    let of_rules = (0..stored.fields().len()).filter(|i| upgrade::field_id(stored.field(*i)).is_ok_and(|id| ids.contains(&id)));
    let mut all = places.to_vec();
    all.extend(of_rules.filter(|i| !places.contains(i)));
    all
}

/// The first `keep` columns of the rows of `input` that are not due.
pub(super) fn above(input: Arc<dyn ExecutionPlan>, hiding: &Hiding, keep: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = input.schema();
    let ids = hiding.columns();
    let mut fields = Vec::new();
    let mut args: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        if upgrade::field_id(field).is_ok_and(|id| ids.contains(&id)) {
            fields.push(field.clone());
            args.push(Arc::new(Column::new(field.name(), i)));
        }
    }
    let kept =
        Kept { hiding: hiding.clone(), schema: Arc::new(Schema::new(fields)), signature: Signature::variadic_any(Volatility::Volatile) };
    let udf = Arc::new(ScalarUDF::from(kept));
    let returns = Arc::new(Field::new("kept", DataType::Boolean, false));
    let predicate = Arc::new(ScalarFunctionExpr::new("kept_by_rules", udf, args, returns, Arc::new(ConfigOptions::default())));
    first(Arc::new(FilterExec::try_new(predicate, input)?), keep)
}

/// The first `keep` columns of `rows`.
pub(super) fn first(rows: Arc<dyn ExecutionPlan>, keep: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = rows.schema();
    if keep == schema.fields().len() {
        return Ok(rows);
    }
    let column = |i: usize| (Arc::new(Column::new(schema.field(i).name(), i)) as Arc<dyn PhysicalExpr>, schema.field(i).name().clone());
    Ok(Arc::new(ProjectionExec::try_new((0..keep).map(column).collect::<Vec<_>>(), rows)?))
}

/// Rows of the tail that are not due.
pub(super) fn of_rows(hiding: &Hiding, rows: RecordBatch) -> Result<RecordBatch> {
    match hiding.kept(&rows) {
        Some(kept) => Ok(filter_record_batch(&rows, &kept)?),
        None => Ok(rows),
    }
}

struct Kept {
    hiding: Hiding,
    schema: SchemaRef,
    signature: Signature,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

// One statement's rules at one moment: the columns tell two apart well enough.
impl PartialEq for Kept {
    fn eq(&self, other: &Self) -> bool {
        self.schema == other.schema
    }
}

impl Eq for Kept {}

impl Hash for Kept {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.schema.hash(state);
    }
}

impl ScalarUDFImpl for Kept {
    fn name(&self) -> &str {
        "kept_by_rules"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args.args.iter().map(|a| a.to_array(args.number_rows)).collect::<Result<Vec<ArrayRef>>>()?;
        let rows = RecordBatch::try_new(self.schema.clone(), columns).map_err(DataFusionError::from)?;
        let kept = self.hiding.kept(&rows).unwrap_or_else(|| BooleanArray::from(vec![true; rows.num_rows()]));
        Ok(ColumnarValue::Array(Arc::new(kept)))
    }
}
