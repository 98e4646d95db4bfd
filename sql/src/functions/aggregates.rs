//! DataFusion's aggregates where they lose something: `sum` of integers is exact or fails instead of wrapping, `min` and `max` keep what
//! their argument was declared as.

mod exact_sum;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::{Result, ScalarValue, internal_err},
    functions_aggregate::{
        min_max::{max_udaf, min_udaf},
        sum::sum_udaf,
    },
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF, SetMonotonicity,
        Signature, StatisticsArgs,
        expr::AggregateFunction,
        function::{AccumulatorArgs, StateFieldsArgs},
        utils::{AggregateOrderSensitivity, format_state_name},
    },
};
use std::sync::Arc;

pub fn functions() -> Vec<AggregateUDF> {
    [(sum_udaf(), true), (min_udaf(), false), (max_udaf(), false)]
        .map(|(inner, exact)| AggregateUDF::new_from_impl(Over { inner, exact }))
        .into()
}

/// An aggregate of DataFusion's with a better answer.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Over {
    inner: Arc<AggregateUDF>,
    /// Integers are summed exactly; else only the field's mark is kept.
    exact: bool,
}

impl Over {
    fn is_exact(&self, returns: &DataType) -> bool {
        self.exact && matches!(returns, DataType::Int64 | DataType::UInt64)
    }
}

impl AggregateUDFImpl for Over {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }
    fn signature(&self) -> &Signature {
        self.inner.signature()
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        let field = self.inner.return_field(args)?;
        match args {
            [arg] if !self.exact => Ok(Arc::new(Field::clone(&field).with_metadata(arg.metadata().clone()))),
            _ => Ok(field),
        }
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.is_exact(args.return_field.data_type()) {
            true if args.is_distinct => Ok(Box::new(exact_sum::Distinct::new(args.return_field.data_type().clone()))),
            true => Ok(Box::new(exact_sum::Total::new(args.return_field.data_type().clone()))),
            false => self.inner.accumulator(args),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if !self.is_exact(args.return_field.data_type()) || args.is_distinct {
            return self.inner.state_fields(args);
        }
        let field = |name: &str, ty: DataType| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        Ok(vec![field("sum", args.return_type().clone()), field("carry", DataType::Int64)])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            DataType::Int64 if self.exact => Ok(Box::new(exact_sum::Groups::<arrow::datatypes::Int64Type>::default())),
            DataType::UInt64 if self.exact => Ok(Box::new(exact_sum::Groups::<arrow::datatypes::UInt64Type>::default())),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.is_exact(args.return_field.data_type()) && !args.is_distinct {
            true => Ok(Box::new(exact_sum::Total::new(args.return_field.data_type().clone()))),
            false => self.inner.create_sliding_accumulator(args),
        }
    }

    fn with_beneficial_ordering(self: Arc<Self>, beneficial: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        if self.order_sensitivity().is_beneficial() {
            return internal_err!("{} depends on no order, whether {beneficial} or not", self.name());
        }
        Ok(None)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn simplify_expr_op_literal(
        &self,
        f: &AggregateFunction,
        arg: &Expr,
        op: Operator,
        literal: &Expr,
        arg_is_left: bool,
    ) -> Result<Option<Expr>> {
        self.inner.simplify_expr_op_literal(f, arg, op, literal, arg_is_left)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }

    fn default_value(&self, ty: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(ty)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn set_monotonicity(&self, ty: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(ty)
    }
}
