//! DataFusion's aggregates where they lose something: `sum` of integers and decimals is exact or fails instead of wrapping, `min` and `max` keep what
//! their argument was declared as and know where NaN stands, `array_agg` and `string_agg` count what they keep.

mod decimal_sum;
mod exact_sum;
mod floats;

use crate::memory::held::{Held, HeldGroups};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::{
    common::{Result, ScalarValue},
    functions_aggregate::{
        array_agg::array_agg_udaf,
        min_max::{max_udaf, min_udaf},
        string_agg::string_agg_udaf,
        sum::sum_udaf,
    },
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Documentation, Expr, GroupsAccumulator, Operator, ReversedUDAF, SetMonotonicity,
        Signature, StatisticsArgs,
        expr::{AggregateFunction, AggregateFunctionParams, WindowFunctionParams},
        function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs},
        utils::{AggregateOrderSensitivity, format_state_name},
    },
};
use std::sync::Arc;

pub fn functions() -> Vec<AggregateUDF> {
    use Better::*;
    [(sum_udaf(), Exact), (min_udaf(), Marked), (max_udaf(), Marked), (array_agg_udaf(), Counted), (string_agg_udaf(), Counted)]
        .map(|(inner, better)| AggregateUDF::new_from_impl(Over { inner, better }))
        .into()
}

/// What is better than DataFusion's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Better {
    /// Integers and decimals are summed exactly.
    Exact,
    /// The field's mark is kept, NaN is above every number.
    Marked,
    /// The memory is counted.
    Counted,
}

/// An aggregate of DataFusion's with a better answer.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Over {
    inner: Arc<AggregateUDF>,
    better: Better,
}

impl Over {
    fn is_exact(&self, returns: &DataType) -> bool {
        self.better == Better::Exact && matches!(returns, DataType::Int64 | DataType::UInt64 | DataType::Decimal128(..))
    }

    fn orders_floats(&self, ty: &DataType) -> bool {
        self.better == Better::Marked && matches!(ty, DataType::Float32 | DataType::Float64)
    }

    fn held(&self, inner: Box<dyn Accumulator>) -> Box<dyn Accumulator> {
        match self.better {
            Better::Counted => Box::new(Held::new(inner)),
            _ => inner,
        }
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
            [arg] if self.better == Better::Marked => Ok(Arc::new(Field::clone(&field).with_metadata(arg.metadata().clone()))),
            _ => Ok(field),
        }
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let returns = args.return_field.data_type();
        Ok(match (self.is_exact(returns), returns, args.is_distinct) {
            (true, DataType::Decimal128(..), true) => Box::new(decimal_sum::Distinct::new(returns.clone())),
            (true, DataType::Decimal128(..), false) => Box::new(decimal_sum::Total::new(returns.clone())),
            (true, _, true) => Box::new(exact_sum::Distinct::new(returns.clone())),
            (true, _, false) => Box::new(exact_sum::Total::new(returns.clone())),
            (false, ty, _) if self.orders_floats(ty) => Box::new(floats::OneNan(self.inner.accumulator(args)?)),
            (false, ..) => self.held(self.inner.accumulator(args)?),
        })
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if !self.is_exact(args.return_field.data_type()) || args.is_distinct {
            return self.inner.state_fields(args);
        }
        let field = |name: &str, ty: DataType| Arc::new(Field::new(format_state_name(args.name, name), ty, true));
        Ok(match args.return_type() {
            ty @ DataType::Decimal128(..) => vec![field("sum", decimal_sum::state_type(ty))],
            ty => vec![field("sum", ty.clone()), field("carry", DataType::Int64)],
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            DataType::Int64 if self.better == Better::Exact => Ok(Box::new(exact_sum::Groups::<arrow::datatypes::Int64Type>::default())),
            DataType::UInt64 if self.better == Better::Exact => Ok(Box::new(exact_sum::Groups::<arrow::datatypes::UInt64Type>::default())),
            ty @ DataType::Decimal128(..) if self.better == Better::Exact => Ok(Box::new(decimal_sum::Groups::new(ty.clone()))),
            ty if self.orders_floats(ty) => floats::groups(ty, self.inner.name() == "max"),
            _ if self.better == Better::Counted => Ok(Box::new(HeldGroups::new(self.inner.create_groups_accumulator(args)?))),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        match self.is_exact(args.return_field.data_type()) && !args.is_distinct {
            true => self.accumulator(args),
            false if self.orders_floats(args.return_field.data_type()) => {
                Ok(Box::new(floats::OneNan(self.inner.create_sliding_accumulator(args)?)))
            }
            false => Ok(self.held(self.inner.create_sliding_accumulator(args)?)),
        }
    }

    fn with_beneficial_ordering(self: Arc<Self>, beneficial: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        let ordered = self.inner.as_ref().clone().with_beneficial_ordering(beneficial)?;
        let over = |inner| Arc::new(Self { inner: Arc::new(inner), better: self.better }) as Arc<dyn AggregateUDFImpl>;
        Ok(ordered.map(over))
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

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        self.inner.simplify()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Reversed(inner) => {
                ReversedUDAF::Reversed(Arc::new(AggregateUDF::new_from_impl(Self { inner, better: self.better })))
            }
            other => other,
        }
    }

    fn schema_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.schema_name(params)
    }

    fn human_display(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.human_display(params)
    }

    fn display_name(&self, params: &AggregateFunctionParams) -> Result<String> {
        self.inner.display_name(params)
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_schema_name(params)
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        self.inner.window_function_display_name(params)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn supports_within_group_clause(&self) -> bool {
        self.inner.supports_within_group_clause()
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
