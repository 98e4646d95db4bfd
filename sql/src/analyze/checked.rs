//! Integer arithmetic that fails where a result does not fit. DataFusion's operators wrap.

use crate::{Error, functions::type_name, sqlstate};
use arrow::{
    array::{ArrayRef, Datum},
    compute::kernels::numeric::{add, mul, neg, sub},
    datatypes::DataType,
    error::ArrowError,
};
use datafusion::{
    common::{DFSchema, Result, ScalarValue, exec_err},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
        binary::BinaryTypeCoercer,
    },
};

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match e {
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus | Operator::Multiply), right }) => {
            let (l, r) = (left.get_type(schema)?, right.get_type(schema)?);
            if !l.is_integer() || !r.is_integer() || BinaryTypeCoercer::new(&l, op, &r).get_input_types()?.0 != l || l != r {
                return widened(left, *op, right, (&l, &r));
            }
            Ok(Some(Checked::function(Some(*op)).call(vec![left.as_ref().clone(), right.as_ref().clone()])))
        }
        // The number may be the negative half of what an integer holds.
        Expr::Negative(inner) if !matches!(**inner, Expr::Literal(..)) && inner.get_type(schema)?.is_integer() => {
            Ok(Some(Checked::function(None).call(vec![inner.as_ref().clone()])))
        }
        _ => Ok(None),
    }
}

/// Operands of two integer types, before DataFusion has made them agree; `None` where they would become something else.
fn widened(left: &Expr, op: Operator, right: &Expr, (l, r): (&DataType, &DataType)) -> Result<Option<Expr>> {
    if !l.is_integer() || !r.is_integer() {
        return Ok(None);
    }
    let (l, r) = BinaryTypeCoercer::new(l, &op, r).get_input_types()?;
    if l != r || !l.is_integer() {
        return Ok(None);
    }
    Ok(Some(Checked::function(Some(op)).call(vec![left.clone(), right.clone()])))
}

/// One operator; `None` is the sign.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    op: Option<Operator>,
    signature: Signature,
}

impl Checked {
    fn function(op: Option<Operator>) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { op, signature: Signature::user_defined(Volatility::Immutable) })
    }

    fn run(&self, args: &[&dyn Datum]) -> Result<ArrayRef, ArrowError> {
        match (self.op, args) {
            (Some(Operator::Plus), [l, r]) => add(*l, *r),
            (Some(Operator::Minus), [l, r]) => sub(*l, *r),
            (Some(_), [l, r]) => mul(*l, *r),
            (None, [v]) => neg(v.get().0),
            _ => Err(ArrowError::InvalidArgumentError("an operator has one or two operands".into())),
        }
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.op {
            Some(Operator::Plus) => "checked_plus",
            Some(Operator::Minus) => "checked_minus",
            Some(_) => "checked_times",
            None => "checked_negative",
        }
    }

    /// As the operator, so that the names of columns stay.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match (self.op, args) {
            (Some(op), [l, r]) => format!("{} {op} {}", l.schema_name(), r.schema_name()),
            (_, [v]) => format!("(- {})", v.schema_name()),
            _ => self.name().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match (self.op, types) {
            (Some(op), [l, r]) => BinaryTypeCoercer::new(l, &op, r).get_input_types().map(|(l, r)| vec![l, r]),
            _ => Ok(types.to_vec()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types.first() {
            Some(t) => Ok(t.clone()),
            None => exec_err!("an operator has operands"),
        }
    }

    fn return_field_from_args(&self, args: datafusion::logical_expr::ReturnFieldArgs) -> Result<arrow::datatypes::FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(std::sync::Arc::new(arrow::datatypes::Field::new(self.name(), self.return_type(&types)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let operand = |a: &ColumnarValue| -> Result<Box<dyn Datum>> {
            Ok(match a {
                ColumnarValue::Scalar(s) => Box::new(s.to_scalar()?),
                ColumnarValue::Array(a) => Box::new(a.clone()),
            })
        };
        let operands = args.args.iter().map(operand).collect::<Result<Vec<_>>>()?;
        let operands: Vec<&dyn Datum> = operands.iter().map(AsRef::as_ref).collect();
        let out = self.run(&operands).map_err(|e| out_of_range(e, args.return_field.data_type(), self.op))?;
        match constant {
            true => ScalarValue::try_from_array(&out, 0).map(ColumnarValue::Scalar),
            false => Ok(ColumnarValue::Array(out)),
        }
    }
}

/// Names the operation and the type that its result does not fit.
fn out_of_range(e: ArrowError, ty: &DataType, op: Option<Operator>) -> datafusion::error::DataFusionError {
    let ArrowError::ArithmeticOverflow(m) = &e else { return e.into() };
    let what = m.rsplit_once("on: ").map_or(m.as_str(), |(_, what)| what);
    let signed = if ty.is_unsigned_integer() && op == Some(Operator::Minus) { ": cast to a signed type first" } else { "" };
    Error::invalid(format!("{what} is out of range of {}{signed}", type_name(ty))).with_sqlstate(sqlstate::NUMERIC_OUT_OF_RANGE).into()
}
