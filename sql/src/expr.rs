//! Expressions of stream definitions: compiled for the engine, checked for the binder.
//!
//! An expression sees a stream's stored columns and `_tp_time`. It is planned by DataFusion with the language's functions; its identity
//! is that of the plan with column ids in place of names, so that neither a RENAME nor other spacing makes a rule a new one.

mod fixed;
pub(crate) mod matching;

use crate::{Error, Result, analyze, bind::expression, fold::Folding, functions, memory, nearest, parse, sqlstate, types};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray},
    compute::cast,
    datatypes::{DataType, Field, Schema},
    record_batch::RecordBatch,
};
use datafusion::{
    common::{
        Column, DFSchema,
        tree_node::{Transformed, TreeNode, TreeNodeRecursion},
    },
    execution::{SessionState, SessionStateBuilder},
    logical_expr::{Expr, ExprSchemable, Operator, Volatility, simplify::SimplifyContext},
    optimizer::simplify_expressions::ExprSimplifier,
    physical_plan::PhysicalExpr,
    prelude::SessionConfig,
    sql::sqlparser::ast::{self, ExprWithAlias},
};
use ebb_engine::expr::{ExprCompiler, Folder, RowExpr};
use ebb_storage::{
    column_type::ColumnType,
    ids::{ColumnId, Fingerprint},
    stream_def::{ColumnDef, StreamDef, TP_SN, TP_TIME},
};
use std::{fmt, sync::Arc};

/// Plans expressions of definitions. Cheap to clone.
#[derive(Clone)]
pub struct Compiler {
    state: Arc<SessionState>,
}

/// What binding an expression found out.
#[derive(Debug, Clone)]
pub struct Bound {
    pub expr: Expr,
    pub ty: DataType,
    pub nullable: bool,
    /// In the order of the stream's columns.
    pub columns: Vec<ColumnId>,
    pub volatility: Volatility,
    pub has_aggregate: bool,
    pub has_window: bool,
    pub has_subquery: bool,
}

impl Default for Compiler {
    fn default() -> Self {
        Self::new()
    }
}

impl Compiler {
    pub fn new() -> Self {
        let mut config = SessionConfig::new().with_target_partitions(1);
        config.options_mut().extensions.insert(memory::growth::budget_of_its_own());
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        let mut state = builder.with_type_planner(Arc::<analyze::Types>::default()).build();
        functions::register(&mut state).expect("names of functions are legal");
        Self { state: Arc::new(state) }
    }

    /// `text` over the columns of `def`.
    ///
    /// # Errors
    /// For what does not parse or plan; unknown columns and functions with the nearest known one.
    pub fn bind(&self, text: &str, def: &StreamDef) -> Result<Bound> {
        self.bind_ast(*parse::parse_expression(text)?.ast, def)
    }

    pub fn bind_ast(&self, mut tree: ast::Expr, def: &StreamDef) -> Result<Bound> {
        refuse_alias_columns(&tree, def)?;
        functions::rewrite_expr(&mut tree);
        let schema = schema_of(def)?;
        let with_alias = ExprWithAlias { expr: tree, alias: None };
        let expr = self.state.create_logical_expr_from_sql_expr(with_alias, &schema).map_err(|e| self.explain(e.into(), def))?;
        let (ty, nullable) = (expr.get_type(&schema)?, expr.nullable(&schema)?);
        // Constants that are no values of their column's type are refused here.
        analyze::expression(expr.clone(), &schema)?;
        let mut bound = Bound {
            ty,
            nullable,
            columns: Vec::new(),
            volatility: Volatility::Immutable,
            has_aggregate: false,
            has_window: false,
            has_subquery: false,
            expr,
        };
        let names = bound.expr.column_refs();
        let named = |name: &str| names.iter().any(|c| c.name == name);
        bound.columns = def.stored().filter(|c| named(&c.name)).map(|c| c.id).collect();
        if named(TP_TIME) {
            bound.columns.push(ColumnId::TP_TIME);
        }
        let (mut volatility, mut aggregate, mut window, mut subquery) = (Volatility::Immutable, false, false, false);
        bound.expr.apply(|e| {
            match e {
                Expr::ScalarFunction(f) => volatility = volatility.max(f.func.signature().volatility),
                Expr::AggregateFunction(_) => aggregate = true,
                Expr::WindowFunction(_) => window = true,
                Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) => subquery = true,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        (bound.volatility, bound.has_aggregate, bound.has_window, bound.has_subquery) = (volatility, aggregate, window, subquery);
        Ok(bound)
    }

    /// An unknown name with the nearest known one.
    fn explain(&self, e: Error, def: &StreamDef) -> Error {
        match e.sqlstate() {
            sqlstate::UNDEFINED_COLUMN => {
                let word = unknown_column(e.message(), def).unwrap_or_default();
                let names = def.stored().map(|c| c.name.as_str()).chain([TP_TIME]);
                let near = nearest::did_you_mean(&word, names);
                let what = if word == TP_SN {
                    format!("{TP_SN} cannot be used here")
                } else {
                    format!("column '{word}' does not exist in {}{near}", def.full_name())
                };
                Error::invalid(what).with_sqlstate(sqlstate::UNDEFINED_COLUMN)
            }
            sqlstate::UNDEFINED_FUNCTION => self.explain_function(e),
            _ => e,
        }
    }

    /// An unknown function with the nearest known one. DataFusion's own suggestion differs from run to run.
    pub fn explain_function(&self, e: Error) -> Error {
        let Some(word) = e.message().strip_prefix("Invalid function '").and_then(|m| m.split('\'').next()) else { return e };
        let near = nearest::did_you_mean(word, self.function_names().iter().map(String::as_str));
        let error = Error::invalid(format!("function '{word}' does not exist{near}")).with_sqlstate(sqlstate::UNDEFINED_FUNCTION);
        e.position().map_or(error.clone(), |at| error.at(at))
    }

    /// Every function that can be called.
    pub fn function_names(&self) -> Vec<String> {
        let state = &self.state;
        let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys()).chain(state.window_functions().keys());
        known.cloned().chain(functions::rewritten_names().map(str::to_owned)).collect()
    }

    /// What the expression is, whatever it is called or how it is written: columns by id.
    pub fn identity(&self, bound: &Bound, def: &StreamDef) -> Result<String> {
        let id_of = |name: &str| match name {
            TP_TIME => Some(ColumnId::TP_TIME),
            _ => def.column(name).map(|c| c.id),
        };
        let by_id = bound.expr.clone().transform(|e| {
            Ok(match e {
                Expr::Column(c) => {
                    let name = id_of(&c.name).map_or(c.name, |id| format!("#{id}"));
                    Transformed::yes(Expr::Column(Column::from_name(name)))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(by_id.data.to_string())
    }

    /// Computes what does not depend on the row, so that nonsense is refused when it is written and not on some later row.
    ///
    /// # Errors
    /// Of the constant that cannot be computed.
    pub fn probe(&self, bound: &Bound, def: &StreamDef) -> Result<()> {
        let schema = schema_of(def)?;
        let meant = analyze::expression(bound.expr.clone(), &schema)?.data;
        let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).build();
        let typed = ExprSimplifier::new(context).coerce(meant, &schema)?;
        typed.apply(|e| {
            // A branch that is never taken may hold anything.
            if matches!(e, Expr::Case(_)) {
                return Ok(TreeNodeRecursion::Jump);
            }
            if !analyze::is_constant(e) || is_volatile(e) {
                return Ok(TreeNodeRecursion::Continue);
            }
            if !matches!(e, Expr::Literal(..)) {
                self.value_of(e)?;
            }
            Ok(TreeNodeRecursion::Jump)
        })?;
        Ok(())
    }

    /// The expression as the filters of a query may have it once they are optimized: types agree before or after Ebb's own changes.
    /// Asked in the midst of planning, it sees to its stack itself.
    #[recursive::recursive]
    pub fn in_filters(&self, text: &str, def: &StreamDef) -> Result<Vec<Expr>> {
        let schema = schema_of(def)?;
        let context = SimplifyContext::builder().with_schema(Arc::new(schema.clone())).build();
        let simplifier = ExprSimplifier::new(context);
        let written = self.bind(text, def)?.expr;
        let mut forms = Vec::with_capacity(2);
        for form in [simplifier.coerce(written.clone(), &schema)?, written] {
            let meant = analyze::expression(form, &schema)?.data;
            let form = simplifier.simplify(simplifier.coerce(meant, &schema)?)?;
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        Ok(forms)
    }

    /// The value of an expression that depends on nothing; `None` for any other.
    pub fn constant(&self, bound: &Bound) -> Result<Option<ArrayRef>> {
        if !bound.columns.is_empty() || bound.volatility != Volatility::Immutable || !analyze::is_constant(&bound.expr) {
            return Ok(None);
        }
        let meant = analyze::expression(bound.expr.clone(), &DFSchema::empty())?.data;
        Ok(Some(self.value_of(&meant)?))
    }

    fn value_of(&self, e: &Expr) -> datafusion::error::Result<ArrayRef> {
        let physical = expression::physical(&self.state, e.clone(), &DFSchema::empty())?;
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(1));
        let one = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
        physical.evaluate(&one)?.into_array(1)
    }

    fn physical(&self, bound: &Bound, def: &StreamDef) -> Result<Compiled> {
        let row_schema = def.row_schema();
        let fields: Vec<Field> =
            row_schema.fields().iter().filter(|f| bound.columns.contains(&id_in(f, def))).map(|f| f.as_ref().clone()).collect();
        let schema = Schema::new(fields);
        let df_schema = DFSchema::try_from(schema.clone())?;
        let physical = expression::physical(&self.state, analyze::expression(bound.expr.clone(), &df_schema)?.data, &df_schema)?;
        let expr = fixed::with_durations(physical, &schema)?;
        let column = match &bound.expr {
            Expr::Column(c) => Some(c.name.clone()),
            _ => None,
        };
        Ok(Compiled {
            expr,
            schema: Arc::new(schema),
            columns: bound.columns.clone(),
            monotone: monotone(&bound.expr, def),
            column,
            condition: false,
        })
    }
}

/// Whether the value is another one at another time.
fn is_volatile(e: &Expr) -> bool {
    e.exists(|e| Ok(matches!(e, Expr::ScalarFunction(f) if f.func.signature().volatility != Volatility::Immutable))).unwrap_or(true)
}

/// A hash of what makes a rule itself.
pub fn fingerprint(identities: &[&str]) -> Fingerprint {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    for part in identities {
        hash.update(&(part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    Fingerprint(hash.digest())
}

fn id_in(field: &Field, def: &StreamDef) -> ColumnId {
    match field.name().as_str() {
        TP_TIME => ColumnId::TP_TIME,
        name => def.column(name).map_or(ColumnId(0), |c| c.id),
    }
}

fn schema_of(def: &StreamDef) -> Result<DFSchema> {
    Ok(DFSchema::try_from(def.row_schema().as_ref().clone())?)
}

/// Stored texts hold no ALIAS columns: they are computed on reading and stored nowhere.
fn refuse_alias_columns(tree: &ast::Expr, def: &StreamDef) -> Result<()> {
    let mut found = None;
    let _ = ast::visit_expressions(tree, |e| {
        if let ast::Expr::Identifier(i) = e {
            let name = if i.quote_style.is_some() { i.value.clone() } else { i.value.to_lowercase() };
            if def.column(&name).is_some_and(|c| c.is_alias()) {
                found = Some(name);
                return std::ops::ControlFlow::Break(());
            }
        }
        std::ops::ControlFlow::Continue(())
    });
    match found {
        Some(name) => Err(Error::invalid(format!("column '{name}' is an ALIAS: it is computed on reading and cannot be used here"))),
        None => Ok(()),
    }
}

/// DataFusion's message begins with the name it did not find.
fn unknown_column(message: &str, def: &StreamDef) -> Option<String> {
    let rest = message.split("No field named ").nth(1)?;
    let word: String = rest.trim_start_matches('"').chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    def.column(&word).is_none().then_some(word)
}

/// The column that bounds the value, where the value never falls as the column rises: the column itself, or that plus or minus a
/// constant interval. Not in a zone whose clocks are set back: days and months on the wall clock can then change the order.
fn monotone(expr: &Expr, def: &StreamDef) -> Option<ColumnId> {
    match expr {
        Expr::Column(c) if c.name == TP_TIME => Some(ColumnId::TP_TIME),
        Expr::Column(c) => def.column(&c.name).filter(|c| !c.nullable && c.ty.is_time()).map(|c| c.id),
        Expr::BinaryExpr(b) if matches!(b.op, Operator::Plus | Operator::Minus) && matches!(*b.right, Expr::Literal(..)) => {
            let zoned = |id: &ColumnId| {
                let ty = def.columns.iter().find(|c| c.id == *id).map(|c| c.ty.plain());
                matches!(ty, Some(ColumnType::DateTime(Some(_)) | ColumnType::DateTime64(_, Some(_))))
            };
            monotone(&b.left, def).filter(|id| !zoned(id))
        }
        _ => None,
    }
}

struct Compiled {
    expr: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
    columns: Vec<ColumnId>,
    monotone: Option<ColumnId>,
    /// The expression is just this column.
    column: Option<String>,
    /// NULL counts as false.
    condition: bool,
}

impl RowExpr for Compiled {
    fn evaluate(&self, rows: &RecordBatch) -> ebb_storage::Result<ArrayRef> {
        let column = |name: &str| {
            let found = rows.column_by_name(name).cloned();
            found.ok_or_else(|| ebb_storage::Error::internal(format!("column '{name}' is missing where an expression needs it")))
        };
        if let Some(name) = &self.column
            && !self.condition
        {
            return column(name);
        }
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for field in self.schema.fields() {
            let array = column(field.name())?;
            arrays.push(if array.data_type() == field.data_type() { array } else { cast(&array, field.data_type())? });
        }
        let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), arrays, &options)?;
        let value = self.expr.evaluate(&batch).and_then(|v| v.into_array(rows.num_rows()));
        let value = value.map_err(|e| ebb_storage::Error::invalid(Error::from(e).message()))?;
        match self.condition {
            true => Ok(false_for_null(&value)?),
            false => Ok(value),
        }
    }

    fn columns(&self) -> &[ColumnId] {
        &self.columns
    }

    fn monotone_in(&self) -> Option<ColumnId> {
        self.monotone
    }
}

fn false_for_null(value: &ArrayRef) -> ebb_storage::Result<ArrayRef> {
    let value = cast(value, &DataType::Boolean)?;
    let value = value.as_boolean();
    Ok(match value.nulls() {
        None => Arc::new(value.clone()),
        Some(nulls) => Arc::new(BooleanArray::new(value.values() & nulls.inner(), None)),
    })
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.expr.fmt(f)
    }
}

impl ExprCompiler for Compiler {
    fn compile(&self, text: &str, def: &StreamDef) -> ebb_storage::Result<Arc<dyn RowExpr>> {
        let compile = || -> Result<Compiled> {
            let mut bound = self.bind(text, def)?;
            // The text of an array or of bytes is read, not cast, where it is a column's default.
            let of = def.columns.iter().find(|c| c.default.as_ref().is_some_and(|d| d.expr == text)).map(|c| c.ty.arrow());
            if let Some(ty) = of.filter(|ty| ty.is_nested() || ty.is_binary())
                && bound.ty != ty
            {
                bound.expr = datafusion::logical_expr::cast(bound.expr, ty);
            }
            let mut compiled = self.physical(&bound, def)?;
            compiled.condition = bound.ty == DataType::Boolean;
            Ok(compiled)
        };
        Ok(Arc::new(compile().map_err(|e| in_definition(&e, text, def))?))
    }

    fn compile_default(&self, text: &str, column: &ColumnDef, def: &StreamDef) -> ebb_storage::Result<Arc<dyn RowExpr>> {
        let compiled = self.bind(text, def).and_then(|bound| self.physical(&bound, def)).map_err(|e| in_definition(&e, text, def))?;
        Ok(Arc::new(DefaultOf { column: column.clone(), values: compiled }))
    }

    fn folder(&self, keys: &[String], set: &[(String, String)], def: &StreamDef) -> ebb_storage::Result<Arc<dyn Folder>> {
        let folding = Folding::new(&self.state, keys, set, def);
        let named = |e: Error| ebb_storage::Error::new(e.kind(), format!("{}: a GROUP BY rule: {}", def.full_name(), e.message()));
        Ok(Arc::new(folding.map_err(named)?))
    }
}

fn in_definition(e: &Error, text: &str, def: &StreamDef) -> ebb_storage::Error {
    ebb_storage::Error::new(e.kind(), format!("{}: '{text}': {}", def.full_name(), e.message()))
}

/// A default's values as values of its column.
struct DefaultOf {
    column: ColumnDef,
    values: Compiled,
}

impl RowExpr for DefaultOf {
    fn evaluate(&self, rows: &RecordBatch) -> ebb_storage::Result<ArrayRef> {
        let values = types::coerce(&self.values.evaluate(rows)?, &self.column);
        Ok(cast(&values.map_err(|refused| ebb_storage::Error::invalid(refused.message))?, &self.column.ty.arrow())?)
    }

    fn columns(&self) -> &[ColumnId] {
        self.values.columns()
    }

    fn monotone_in(&self) -> Option<ColumnId> {
        None
    }
}

#[cfg(test)]
mod tests;
