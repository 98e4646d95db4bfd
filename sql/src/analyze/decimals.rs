//! Decimals beside literals with a fraction, which DataFusion reads as floats: compared digit by digit, and made of a float's own digits
//! and not of its binary value.

use super::literal_text;
use crate::types::{coerce::digits_of_floats, parse_text, text::decimal};
use arrow::{
    array::ArrayRef,
    datatypes::{DECIMAL128_MAX_PRECISION, DataType, FieldRef},
};
use datafusion::{
    common::{DFSchema, Result, ScalarValue},
    logical_expr::{
        Between, BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
        Signature, Volatility, expr::InList,
    },
};
use ebb_storage::column_type::ColumnType;
use std::sync::Arc;

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match e {
        Expr::BinaryExpr(b) if b.op.supports_propagation() => {
            let sides = match (float(&b.left, schema)?, float(&b.right, schema)?) {
                (Some(l), None) => as_float(&b.right, schema)?.map(|r| (l, r)),
                (None, Some(r)) => as_float(&b.left, schema)?.map(|l| (l, r)),
                _ => None,
            };
            if let Some((l, r)) = sides {
                return Ok(Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(l), b.op, Box::new(r)))));
            }
            let sides = match (decimal(&b.left, schema)?, literal(&b.right), decimal(&b.right, schema)?, literal(&b.left)) {
                (Some(of), Some(text), ..) => together(of, &[text]).map(|(of, mut texts)| (of, texts.remove(0))),
                (.., Some(of), Some(text)) => together(of, &[text]).map(|(of, mut texts)| (texts.remove(0), of)),
                _ => None,
            };
            Ok(sides.map(|(l, r)| Expr::BinaryExpr(BinaryExpr::new(Box::new(l), b.op, Box::new(r)))))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            if let (Some(of), Some(low), Some(high)) = (float(expr, schema)?, as_float(low, schema)?, as_float(high, schema)?) {
                return Ok(Some(Expr::Between(Between::new(Box::new(of), *negated, Box::new(low), Box::new(high)))));
            }
            let (Some(of), Some(l), Some(h)) = (decimal(expr, schema)?, literal(low), literal(high)) else { return Ok(None) };
            let Some((of, mut texts)) = together(of, &[l, h]) else { return Ok(None) };
            let (high, low) = (texts.remove(1), texts.remove(0));
            Ok(Some(Expr::Between(Between::new(Box::new(of), *negated, Box::new(low), Box::new(high)))))
        }
        Expr::InList(InList { expr, list, negated }) => {
            if let Some(of) = float(expr, schema)? {
                let list = list.iter().map(|e| as_float(e, schema)).collect::<Result<Option<Vec<_>>>>()?;
                return Ok(list.map(|list| Expr::InList(InList { expr: Box::new(of), list, negated: *negated })));
            }
            let (Some(of), Some(texts)) = (decimal(expr, schema)?, list.iter().map(literal).collect::<Option<Vec<_>>>()) else {
                return Ok(None);
            };
            Ok(together(of, &texts).map(|(of, list)| Expr::InList(InList { expr: Box::new(of), list, negated: *negated })))
        }
        // A literal of more digits than a float has, where a float is needed after all: it is read anew.
        Expr::Cast(Cast { expr, field }) if field.data_type().is_floating() => match expr.as_ref() {
            Expr::Literal(value @ ScalarValue::Decimal128(Some(_), ..), metadata) => {
                let text = value.cast_to(&DataType::Utf8)?;
                let read: Option<f64> = text.try_as_str().flatten().and_then(|t| t.parse().ok());
                let float = ScalarValue::Float64(read).cast_to(field.data_type())?;
                Ok(Some(Expr::Literal(float, metadata.clone())))
            }
            _ => Ok(None),
        },
        Expr::Cast(Cast { expr, field }) => {
            let DataType::Decimal128(precision, scale) = *field.data_type() else { return Ok(None) };
            if let Some(text) = literal_text(expr) {
                let ty = ColumnType::Decimal(precision, scale);
                let value = parse_text(std::iter::once(Some(text)), &ty, "").map_err(|r| crate::Error::from(r.of_value()))?;
                return Ok(Some(Expr::Literal(ScalarValue::try_from_array(&value, 0)?, None)));
            }
            let floating = expr.get_type(schema)?.is_floating();
            let to = Digits { precision, scale, signature: Signature::any(1, Volatility::Immutable) };
            Ok(floating.then(|| ScalarUDF::new_from_impl(to).call(vec![expr.as_ref().clone()])))
        }
        _ => Ok(None),
    }
}

/// A float that is no literal, which DataFusion would compare as a decimal.
fn float(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let inner = digits_of(e).unwrap_or(e);
    let is = literal(inner).is_none() && inner.get_type(schema)?.is_floating() && !matches!(inner, Expr::Cast(_));
    Ok(is.then(|| inner.clone()))
}

/// What a decimal is made of, where that is a float.
fn digits_of(e: &Expr) -> Option<&Expr> {
    let Expr::ScalarFunction(f) = e else { return None };
    let is_digits = (f.func.inner().as_ref() as &dyn std::any::Any).is::<Digits>();
    f.args.first().filter(|_| is_digits)
}

/// A decimal, or a literal that was made one, as the float that PostgreSQL compares it as beside a float.
fn as_float(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let e = digits_of(e).unwrap_or(e);
    let e = widened(e, schema)?.unwrap_or(e);
    Ok(match (e, e.get_type(schema)?) {
        (Expr::Literal(ScalarValue::Float64(_), _), _) => Some(e.clone()),
        (Expr::Literal(value @ ScalarValue::Decimal128(Some(_), ..), _), _) => {
            let text = value.cast_to(&DataType::Utf8)?;
            let read: Option<f64> = text.try_as_str().flatten().and_then(|t| t.parse().ok());
            Some(Expr::Literal(ScalarValue::Float64(read), None))
        }
        (_, DataType::Decimal128(..)) => Some(Expr::Cast(Cast::new(Box::new(e.clone()), DataType::Float64))),
        _ => None,
    })
}

/// The decimal below a cast to one with more digits on both sides of the point.
fn widened<'a>(e: &'a Expr, schema: &DFSchema) -> Result<Option<&'a Expr>> {
    let Expr::Cast(Cast { expr, field }) = e else { return Ok(None) };
    Ok(match (expr.get_type(schema)?, field.data_type()) {
        (DataType::Decimal128(p, s), DataType::Decimal128(wide_p, wide_s)) => {
            let holds = *wide_s >= s && i16::from(*wide_p) - i16::from(*wide_s) >= i16::from(p) - i16::from(s);
            holds.then_some(expr.as_ref())
        }
        _ => None,
    })
}

/// A decimal that is compared as a float, with its type.
fn decimal<'a>(e: &'a Expr, schema: &DFSchema) -> Result<Option<(&'a Expr, u8, i8)>> {
    let inner = match e {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_floating() => expr.as_ref(),
        e => widened(e, schema)?.unwrap_or(e),
    };
    if digits_of(inner).is_some() {
        return Ok(None);
    }
    Ok(match inner.get_type(schema)? {
        DataType::Decimal128(precision, scale) if scale >= 0 => Some((inner, precision, scale)),
        _ => None,
    })
}

/// The digits of a float literal: the shortest that are it, which are those that were written where there are no more than fifteen.
fn literal(e: &Expr) -> Option<String> {
    match digits_of(e).unwrap_or(e) {
        Expr::Literal(ScalarValue::Float64(Some(v)), _) if v.is_finite() => Some(v.to_string()),
        Expr::Negative(inner) => literal(inner).map(|text| match text.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{text}"),
        }),
        _ => None,
    }
}

/// Both in a type that holds all of them; `None` where none does.
fn together((of, precision, scale): (&Expr, u8, i8), texts: &[String]) -> Option<(Expr, Vec<Expr>)> {
    let (mut whole, mut fraction) = (i32::from(precision) - i32::from(scale), i32::from(scale));
    for text in texts {
        let (w, f) = text.trim_start_matches('-').split_once('.').unwrap_or((text.trim_start_matches('-'), ""));
        whole = whole.max(i32::try_from(w.len()).ok()?);
        fraction = fraction.max(i32::try_from(f.len()).ok()?);
    }
    let (p, s) = match whole + fraction {
        all if all <= i32::from(precision) => (precision, scale),
        all if all <= i32::from(DECIMAL128_MAX_PRECISION) => (DECIMAL128_MAX_PRECISION, i8::try_from(fraction).ok()?),
        _ => return None,
    };
    let values = texts.iter().map(|text| {
        let value = decimal::parse(text, p, s).ok()?;
        Some(Expr::Literal(ScalarValue::Decimal128(Some(value), p, s), None))
    });
    let values = values.collect::<Option<Vec<_>>>()?;
    let of =
        if (p, s) == (precision, scale) { of.clone() } else { Expr::Cast(Cast::new(Box::new(of.clone()), DataType::Decimal128(p, s))) };
    Some((of, values))
}

/// Floats as decimals by their digits.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Digits {
    precision: u8,
    scale: i8,
    signature: Signature,
}

impl Digits {
    fn of(&self, array: &ArrayRef) -> Result<ArrayRef> {
        digits_of_floats(array, self.precision, self.scale, "").map_err(|r| crate::Error::from(r.of_value()).into())
    }
}

impl ScalarUDFImpl for Digits {
    fn name(&self) -> &str {
        "as_decimal"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(self.precision, self.scale))
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        Ok(Arc::new(arrow::datatypes::Field::new(self.name(), DataType::Decimal128(self.precision, self.scale), nullable)))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(array) => self.of(array).map(ColumnarValue::Array),
            ColumnarValue::Scalar(value) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&self.of(&value.to_array()?)?, 0)?)),
        }
    }
}
