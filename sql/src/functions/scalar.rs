//! The frame of a scalar function: a name, what types it takes, what it returns, and a plain function over arrays.

use arrow::{
    array::ArrayRef,
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{Result, ScalarValue, config::ConfigOptions, exec_err},
    logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility},
};
use std::{fmt, hash::Hash, sync::Arc};

/// What a call knows beside its arguments.
pub struct Call<'a> {
    pub rows: usize,
    pub returns: &'a DataType,
    /// Of the arguments, with what they were declared as.
    pub fields: &'a [FieldRef],
    pub config: &'a ConfigOptions,
}

pub type Coerce = Arc<dyn Fn(&[DataType]) -> Result<Vec<DataType>> + Send + Sync>;
pub type Returns = Arc<dyn Fn(&[DataType]) -> Result<DataType> + Send + Sync>;
/// The result's type from those of the arguments and the values of those that are constant.
pub type TypeOf = Arc<dyn Fn(&[DataType], &[Option<&ScalarValue>]) -> Result<DataType> + Send + Sync>;
pub type Eval = Arc<dyn Fn(&[ArrayRef], &Call<'_>) -> Result<ArrayRef> + Send + Sync>;

/// Functions are told apart by their names.
pub struct Scalar {
    name: String,
    aliases: Vec<String>,
    signature: Signature,
    coerce: Coerce,
    returns: TypeOf,
    eval: Eval,
}

/// A function of its arguments alone.
pub fn pure(
    name: &str,
    coerce: impl Fn(&[DataType]) -> Result<Vec<DataType>> + Send + Sync + 'static,
    returns: impl Fn(&[DataType]) -> Result<DataType> + Send + Sync + 'static,
    eval: impl Fn(&[ArrayRef], &Call<'_>) -> Result<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    build(name, &[], Volatility::Immutable, (Arc::new(coerce), Arc::new(returns), Arc::new(eval)))
}

pub fn build(name: &str, aliases: &[&str], volatility: Volatility, (coerce, returns, eval): (Coerce, Returns, Eval)) -> ScalarUDF {
    typed(name, aliases, volatility, (coerce, Arc::new(move |types, _| returns(types)), eval))
}

/// A function whose type depends on a constant argument.
pub fn typed(name: &str, aliases: &[&str], volatility: Volatility, (coerce, returns, eval): (Coerce, TypeOf, Eval)) -> ScalarUDF {
    ScalarUDF::new_from_impl(Scalar {
        name: name.to_owned(),
        aliases: aliases.iter().map(|a| (*a).to_owned()).collect(),
        signature: Signature::user_defined(volatility),
        coerce,
        returns,
        eval,
    })
}

/// Refuses a call with another number of arguments.
pub fn arity(name: &str, types: &[DataType], takes: std::ops::RangeInclusive<usize>) -> Result<()> {
    if takes.contains(&types.len()) {
        return Ok(());
    }
    let wanted = if takes.start() == takes.end() { takes.start().to_string() } else { format!("{} to {}", takes.start(), takes.end()) };
    datafusion::common::plan_err!("{name} takes {wanted} arguments, not {}", types.len())
}

impl fmt::Debug for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Scalar {
    fn name(&self) -> &str {
        &self.name
    }
    fn aliases(&self) -> &[String] {
        &self.aliases
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        (self.coerce)(types)
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        (self.returns)(types, &vec![None; types.len()])
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|f| f.data_type().clone()).collect();
        Ok(Arc::new(Field::new(&self.name, (self.returns)(&types, args.scalar_arguments)?, true)))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // Constants are computed once, whatever the number of rows.
        let constant = args.args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|a| a.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let call = Call { rows, returns: args.return_field.data_type(), fields: &args.arg_fields, config: &args.config_options };
        let out = (self.eval)(&arrays, &call)?;
        if out.len() != rows {
            return exec_err!("{} made {} values of {rows}", self.name, out.len());
        }
        match constant {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&out, 0)?)),
            false => Ok(ColumnarValue::Array(out)),
        }
    }
}
