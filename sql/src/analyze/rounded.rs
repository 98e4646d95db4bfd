//! Fractions cast to integers, which PostgreSQL rounds and DataFusion cuts.

use super::as_text::{like, over};
use crate::{
    functions::type_name,
    sqlstate,
    types::{coerce, shown},
};
use arrow::{
    array::{Array, ArrayRef},
    datatypes::{DataType, FieldRef},
    util::display::{ArrayFormatter, FormatOptions},
};
use datafusion::{
    common::{DFSchema, Result},
    logical_expr::{
        Cast, ColumnarValue, Expr, ExprSchemable, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match e {
        Expr::Cast(Cast { expr, field }) if field.data_type().is_integer() => {
            let from = expr.get_type(schema)?;
            let fraction = from.is_floating() || matches!(from, DataType::Decimal128(_, 1..));
            let rounded = Rounded { to: field.data_type().clone(), signature: Signature::any(1, Volatility::Immutable) };
            Ok(fraction.then(|| ScalarUDF::new_from_impl(rounded).call(vec![expr.as_ref().clone()])))
        }
        _ => Ok(None),
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    to: DataType,
    signature: Signature,
}

impl Rounded {
    fn of(&self, array: &ArrayRef) -> Result<ArrayRef> {
        if let Some(rounded) = coerce::rounded(array, &self.to) {
            return Ok(rounded);
        }
        // One of them does not fit: the first is named.
        let fits = |row: &usize| array.is_null(*row) || coerce::rounded(&array.slice(*row, 1), &self.to).is_some();
        let row = (0..array.len()).find(|row| !fits(row)).unwrap_or(0);
        let value = ArrayFormatter::try_new(array, &FormatOptions::default())?.value(row).to_string();
        let message = format!("{} is out of range of {}", shown(&value), type_name(&self.to));
        Err(crate::Error::invalid(message).with_sqlstate(sqlstate::NUMERIC_OUT_OF_RANGE).into())
    }
}

impl ScalarUDFImpl for Rounded {
    fn name(&self) -> &str {
        "rounded"
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
        over(&args, |a| self.of(a))
    }
}
