//! Expressions over given columns, planned with the statement's own time and settings.

use crate::{Error, Result, analyze, functions, parse, types};
use arrow::{
    array::{ArrayRef, RecordBatch},
    compute::cast,
    datatypes::{DataType, FieldRef, SchemaRef},
};
use datafusion::{
    common::{DFSchema, ParamValues, ScalarValue},
    execution::SessionState,
    logical_expr::{
        ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        simplify::SimplifyContext,
    },
    optimizer::simplify_expressions::ExprSimplifier,
    physical_expr::{PhysicalExpr, utils::collect_columns},
    sql::sqlparser::ast::{self, ExprWithAlias},
};
use ebb_storage::stream_def::ColumnDef;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// Canonical text over the columns of `schema`.
pub fn plan(state: &SessionState, text: &str, schema: &DFSchema) -> Result<Expr> {
    plan_ast(state, *parse::parse_expression(text)?.ast, schema)
}

pub fn plan_ast(state: &SessionState, mut tree: ast::Expr, schema: &DFSchema) -> Result<Expr> {
    functions::rewrite_expr(&mut tree);
    let expr = state.create_logical_expr_from_sql_expr(ExprWithAlias { expr: tree, alias: None }, schema)?;
    Ok(analyze::expression(expr, schema)?.data)
}

/// Types agree and what can be computed is computed, the statement's time where `state` is of one.
pub fn simplified(state: &SessionState, expr: Expr, schema: &DFSchema) -> datafusion::error::Result<Expr> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(state.config_options().clone())
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    simplifier.simplify(simplifier.coerce(expr, schema)?)
}

/// To be evaluated over rows of `schema`. Some functions, coalesce among them, are there only until an expression is simplified.
#[expect(clippy::disallowed_methods, reason = "of what is simplified")]
pub fn physical(state: &SessionState, expr: Expr, schema: &DFSchema) -> datafusion::error::Result<Arc<dyn PhysicalExpr>> {
    state.create_physical_expr(simplified(state, expr, schema)?, schema)
}

/// `expr` as values of `column`: what does not fit is refused, what is finer than the column is cut.
pub fn fitted(expr: Expr, column: &ColumnDef) -> Expr {
    let function = Fitted { column: column.clone(), signature: Signature::any(1, Volatility::Immutable) };
    ScalarUDF::new_from_impl(function).call(vec![expr])
}

#[derive(Debug)]
struct Fitted {
    column: ColumnDef,
    signature: Signature,
}

impl PartialEq for Fitted {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
    }
}

impl Eq for Fitted {}

impl Hash for Fitted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.column.id.hash(state);
        self.column.name.hash(state);
    }
}

impl ScalarUDFImpl for Fitted {
    fn name(&self) -> &str {
        "fitted"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(self.column.ty.arrow())
    }
    fn return_field_from_args(&self, _: ReturnFieldArgs) -> datafusion::error::Result<FieldRef> {
        Ok(Arc::new(self.column.field()))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        let fit = |array: &ArrayRef| -> datafusion::error::Result<ArrayRef> {
            let values = types::coerce(array, &self.column).map_err(Error::from)?;
            Ok(cast(&values, &self.column.ty.arrow())?)
        };
        Ok(match &args.args[0] {
            ColumnarValue::Array(array) => ColumnarValue::Array(fit(array)?),
            ColumnarValue::Scalar(value) => ColumnarValue::Scalar(ScalarValue::try_from_array(&fit(&value.to_array()?)?, 0)?),
        })
    }
}

/// An expression over rows that will come.
pub struct RowValue {
    expr: Arc<dyn PhysicalExpr>,
    /// The places of the columns that it reads.
    reads: Vec<usize>,
}

impl RowValue {
    /// Its values are of any type: whoever takes them fits them to the column.
    pub fn new(state: &SessionState, text: &str, schema: &SchemaRef) -> Result<Self> {
        let df_schema = DFSchema::try_from(schema.as_ref().clone())?;
        let logical = plan(state, text, &df_schema)?;
        let expr = physical(state, logical, &df_schema)?;
        let reads = collect_columns(&expr).into_iter().map(|c| c.index()).collect();
        Ok(Self { expr, reads })
    }

    /// Whether it reads the column at `place`: any other may be of any type.
    pub fn reads(&self, place: usize) -> bool {
        self.reads.contains(&place)
    }

    pub fn of(&self, rows: &RecordBatch) -> Result<ArrayRef> {
        Ok(self.expr.evaluate(rows)?.into_array(rows.num_rows())?)
    }
}

/// The value of an expression that names no column.
pub fn constant(state: &SessionState, tree: &ast::Expr, params: &[ScalarValue]) -> Result<ScalarValue> {
    let schema = DFSchema::empty();
    let expr = plan_ast(state, tree.clone(), &schema)?;
    let expr = with_params(expr, params)?;
    let physical = physical(state, expr, &schema)?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(1));
    let one = RecordBatch::try_new_with_options(Arc::new(arrow::datatypes::Schema::empty()), Vec::new(), &options)?;
    let array = physical.evaluate(&one)?.into_array(1)?;
    Ok(ScalarValue::try_from_array(&array, 0)?)
}

fn with_params(expr: Expr, params: &[ScalarValue]) -> Result<Expr> {
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let values = ParamValues::from(params.to_vec());
    let replaced = expr.transform(|e| {
        Ok(match &e {
            Expr::Placeholder(p) => {
                let value = values.get_placeholders_with_values(&p.id)?;
                Transformed::yes(Expr::Literal(value.value, None))
            }
            _ => Transformed::no(e),
        })
    });
    replaced.map(|t| t.data).map_err(Error::from)
}
