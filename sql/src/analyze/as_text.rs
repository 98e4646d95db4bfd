//! Casts to text in PostgreSQL's forms, and from text where Arrow would make something else of it.

use super::{declared, is_text};
use crate::{
    functions::read_times,
    types::{of_arrow, parse_text},
    wire::encode::{Zone, texts},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, make_array},
    compute::cast,
    datatypes::{DataType, Field, FieldRef, TimeUnit},
};
use datafusion::{
    common::{DFSchema, Result, ScalarValue},
    logical_expr::{
        Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use std::sync::Arc;

/// Values whose text Arrow writes otherwise.
fn differs(t: &DataType) -> bool {
    match t {
        t if t.is_floating() || t.is_nested() => true,
        DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 | DataType::Time32(_) | DataType::Time64(_) => true,
        DataType::Interval(_) | DataType::Duration(_) => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => true,
        _ => false,
    }
}

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::Cast(Cast { expr, field }) = e else { return Ok(None) };
    let (from, to) = (expr.get_type(schema)?, field.data_type());
    if is_text(to) {
        if differs(&from) {
            return Ok(Some(Text::to(to).call(vec![expr.as_ref().clone()])));
        }
        // Text that was declared to be more becomes plain; what is plain already loses only the mark of the cast.
        if is_text(&from) && declared::is_plain(field) {
            return Ok(Some(match declared::of(expr, schema)? {
                Some(_) => Text::to(to).call(vec![expr.as_ref().clone()]),
                None if from == *to => expr.as_ref().clone(),
                None => Expr::Cast(Cast::new(expr.clone(), to.clone())),
            }));
        }
        return Ok(None);
    }
    // Arrow makes a list of one of a text, takes a text's bytes for bytea, counts every time in nanoseconds and cuts a decimal's digits.
    let read = matches!(
        to,
        DataType::Decimal128(..)
            | DataType::List(_)
            | DataType::Map(..)
            | DataType::Binary
            | DataType::BinaryView
            | DataType::Timestamp(..)
    );
    Ok((read && is_text(&from)).then(|| Value::of(to).call(vec![expr.as_ref().clone()])))
}

/// The text of any value, as it would be sent.
pub fn text_of(array: &ArrayRef, zone: Option<&str>) -> Result<ArrayRef> {
    let zone = zone.and_then(Zone::named).unwrap_or(Zone::Utc);
    let field = Field::new("", array.data_type().clone(), true);
    Ok(Arc::new(texts(&field, array, &zone)?))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Text {
    to: DataType,
    signature: Signature,
}

impl Text {
    fn to(to: &DataType) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { to: to.clone(), signature: Signature::any(1, Volatility::Stable) })
    }
}

/// Runs `f` over an argument, once for a constant.
pub fn over(args: &ScalarFunctionArgs, f: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    match &args.args[0] {
        ColumnarValue::Array(a) => f(a).map(ColumnarValue::Array),
        ColumnarValue::Scalar(s) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&f(&s.to_array()?)?, 0)?)),
    }
}

/// The field of a function's result, which is NULL where an argument is.
pub fn like(args: &ReturnFieldArgs, name: &str, ty: &DataType) -> FieldRef {
    Arc::new(Field::new(name, ty.clone(), args.arg_fields.iter().any(|f| f.is_nullable())))
}

impl ScalarUDFImpl for Text {
    fn name(&self) -> &str {
        "as_text"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(like(&args, self.name(), &self.to))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over(&args, |a| Ok(cast(&text_of(a, args.config_options.execution.time_zone.as_deref())?, &self.to)?))
    }
}

/// A time that is read from a text in nanoseconds, in microseconds.
pub fn in_microseconds(e: &Expr) -> Option<Expr> {
    let Expr::ScalarFunction(f) = e else { return None };
    let value = f.func.inner().as_ref() as &dyn std::any::Any;
    let DataType::Timestamp(TimeUnit::Nanosecond, zone) = &value.downcast_ref::<Value>()?.to else { return None };
    Some(Value::of(&DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).call(f.args.clone()))
}

/// A value read from its text.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Value {
    to: DataType,
    signature: Signature,
}

impl Value {
    fn of(to: &DataType) -> ScalarUDF {
        // A moment without an offset is read in the session's zone.
        let volatility = if matches!(to, DataType::Timestamp(_, Some(_))) { Volatility::Stable } else { Volatility::Immutable };
        ScalarUDF::new_from_impl(Self { to: to.clone(), signature: Signature::any(1, volatility) })
    }
}

impl ScalarUDFImpl for Value {
    fn name(&self) -> &str {
        "from_text"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(like(&args, self.name(), &self.to))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over(&args, |a| {
            if let DataType::Timestamp(_, zone) = &self.to {
                let zone = zone.as_ref().and(args.config_options.execution.time_zone.as_deref());
                return read_times(&cast(a, &DataType::Utf8)?, &self.to, zone);
            }
            let Some(ty) = of_arrow(&self.to) else { return datafusion::common::not_impl_err!("a text does not become {}", self.to) };
            let words = cast(a, &DataType::Utf8)?;
            let read = parse_text(words.as_string::<i32>().iter(), &ty, "").map_err(|r| crate::Error::from(r.of_value()))?;
            let read = cast(&read, &self.to)?;
            // Marks of elements are no part of their values.
            Ok(if *read.data_type() == self.to {
                read
            } else {
                make_array(read.to_data().into_builder().data_type(self.to.clone()).build()?)
            })
        })
    }
}

/// `array`, text, as values of a declared type, in their canonical form.
pub fn canonical(array: &ArrayRef, ty: &ebb_storage::column_type::ColumnType) -> Result<ArrayRef> {
    debug_assert!(is_text(array.data_type()));
    let words = cast(array, &DataType::Utf8)?;
    Ok(parse_text(words.as_string::<i32>().iter(), ty, "").map_err(|r| crate::Error::from(r.of_value()))?)
}
