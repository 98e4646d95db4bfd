//! `a || b` of texts as a function, since functions are asked how much they will make before they make it.

use super::is_text;
use crate::memory::growth::{Makes, guarded};
use arrow::{
    array::{Array, ArrayRef, AsArray, StringViewBuilder},
    compute::cast,
    datatypes::DataType,
};
use datafusion::{
    common::{DFSchema, Result, ScalarValue},
    logical_expr::{
        BinaryExpr, ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    },
};
use std::sync::Arc;

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right }) = e else { return Ok(None) };
    if !is_text(&left.get_type(schema)?) || !is_text(&right.get_type(schema)?) {
        return Ok(None);
    }
    let joined = Joined { returns: e.get_type(schema)?, signature: Signature::any(2, Volatility::Immutable) };
    let joined = guarded(Arc::new(ScalarUDF::new_from_impl(joined)), Makes::All);
    Ok(Some(joined.call(vec![left.as_ref().clone(), right.as_ref().clone()])))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Joined {
    returns: DataType,
    signature: Signature,
}

impl Joined {
    fn of(&self, left: &ArrayRef, right: &ArrayRef) -> Result<ArrayRef> {
        let (left, right) = (cast(left, &DataType::Utf8View)?, cast(right, &DataType::Utf8View)?);
        let mut out = StringViewBuilder::with_capacity(left.len());
        let mut both = String::new();
        for pair in left.as_string_view().iter().zip(right.as_string_view()) {
            let (Some(l), Some(r)) = pair else {
                out.append_null();
                continue;
            };
            both.clear();
            both.push_str(l);
            both.push_str(r);
            out.append_value(&both);
        }
        Ok(cast(&out.finish(), &self.returns)?)
    }
}

impl ScalarUDFImpl for Joined {
    fn name(&self) -> &str {
        "joined"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let [ColumnarValue::Scalar(l), ColumnarValue::Scalar(r)] = args.args.as_slice() {
            let joined = self.of(&l.to_array()?, &r.to_array()?)?;
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&joined, 0)?));
        }
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        Ok(ColumnarValue::Array(self.of(&arrays[0], &arrays[1])?))
    }
}
