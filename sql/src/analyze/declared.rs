//! Types that are carried as text and compare as more: a uuid by its value however it is written, an enum by its numbers, addresses as
//! addresses.
//!
//! What a column was declared as travels in its field's metadata. Only constants are made canonical: a text column compared with a uuid
//! is compared as it is. A constant that is no value of the type is refused, as PostgreSQL refuses it.

use super::{as_text::canonical, extreme, is_text, literal_text, text_literal};
use crate::{Error, parse, types::parse_text};
use arrow::{
    array::{ArrayRef, AsArray, BinaryArray, Int16Array, StringArray},
    compute::cast,
    datatypes::{DataType, Field, FieldRef},
};
use datafusion::{
    common::{DFSchema, Result, ScalarValue},
    functions_aggregate::first_last::first_value_udaf,
    logical_expr::{
        Between, BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
        ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition,
        expr::{AggregateFunction, InList, Sort},
    },
};
use ebb_storage::{column_type::ColumnType, stream_def::TYPE_META_KEY};
use std::{collections::HashMap, net::IpAddr, sync::Arc};

/// How values of a declared type are written and compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Declared {
    Column(ColumnType),
    /// An address of either family.
    Inet,
}

/// The name under which [`Declared::Inet`] is marked.
pub const INET: &str = "inet";
/// The mark of a plain text, which hides what its source was declared as.
pub const PLAIN: &str = "string";

/// Whether a cast's target is marked as plain text.
pub fn is_plain(field: &Field) -> bool {
    field.metadata().get(TYPE_META_KEY).is_some_and(|t| t == PLAIN)
}

fn of_field(field: &Field) -> Option<Declared> {
    let declared = field.metadata().get(TYPE_META_KEY)?;
    // Most columns: no type to parse.
    if !is_text(field.data_type()) || declared == PLAIN {
        return None;
    }
    if declared == INET {
        return Some(Declared::Inet);
    }
    let ty = parse::parse_type(declared).ok()?;
    match ty.plain() {
        ty @ (ColumnType::Uuid | ColumnType::Ipv4 | ColumnType::Ipv6 | ColumnType::Json | ColumnType::Enum { .. }) => {
            Some(Declared::Column(ty.clone()))
        }
        _ => None,
    }
}

/// What `e` was declared as, if that is more than text.
pub fn of(e: &Expr, schema: &DFSchema) -> Result<Option<Declared>> {
    Ok(of_field(&e.to_field(schema)?.1))
}

impl Declared {
    /// Whether the order of texts is not the order of values.
    fn has_key(&self) -> bool {
        matches!(self, Self::Inet | Self::Column(ColumnType::Ipv4 | ColumnType::Ipv6 | ColumnType::Enum { .. }))
    }

    /// The type of what [`keys`] makes.
    pub fn key_type(&self) -> DataType {
        if matches!(self, Self::Column(ColumnType::Enum { .. })) { DataType::Int16 } else { DataType::Binary }
    }

    /// Whether two texts may be one value.
    fn has_forms(&self) -> bool {
        !matches!(self, Self::Column(ColumnType::Json))
    }

    fn canonical(&self, text: &str) -> Result<String> {
        match self {
            Self::Column(ty) => {
                let read = parse_text(std::iter::once(Some(text)), ty, "").map_err(|r| Error::from(r.of_value()))?;
                Ok(cast(&read, &DataType::Utf8)?.as_string::<i32>().value(0).to_owned())
            }
            Self::Inet => match text.trim().parse::<IpAddr>() {
                Ok(ip) => Ok(ip.to_string()),
                Err(_) => Err(Error::invalid(format!("'{text}' is no address")).with_sqlstate("22P02").into()),
            },
        }
    }

    fn array(&self, texts: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Column(ty) => canonical(texts, ty),
            Self::Inet => {
                let words = cast(texts, &DataType::Utf8)?;
                let all = words.as_string::<i32>().iter().map(|t| t.map(|t| self.canonical(t)).transpose());
                Ok(Arc::new(all.collect::<Result<arrow::array::StringViewArray>>()?))
            }
        }
    }

    fn mark(&self) -> String {
        match self {
            Self::Column(ty) => ty.to_string(),
            Self::Inet => INET.to_owned(),
        }
    }
}

/// A constant in its canonical form; anything else as it is.
fn constant(e: &Expr, ty: &Declared) -> Result<Expr> {
    match literal_text(e) {
        Some(text) => Ok(text_literal(&ty.canonical(text)?)),
        None => Ok(e.clone()),
    }
}

/// What `e` is ordered by, where that is not itself.
pub fn order_key(e: &Expr, schema: &DFSchema) -> Option<Expr> {
    let ty = of(e, schema).ok()?.filter(Declared::has_key)?;
    Some(Key::function(ty).call(vec![e.clone()]))
}

pub fn change(e: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    match e {
        Expr::BinaryExpr(b) if b.op.supports_propagation() => compared(b, schema),
        Expr::InList(InList { expr, list, negated }) => {
            let Some(ty) = of(expr, schema)?.filter(Declared::has_forms) else { return Ok(None) };
            let list = list.iter().map(|e| constant(e, &ty)).collect::<Result<Vec<_>>>()?;
            Ok(Some(Expr::InList(InList { expr: expr.clone(), list, negated: *negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let Some(ty) = of(expr, schema)?.filter(Declared::has_forms) else { return Ok(None) };
            let (low, high) = (constant(low, &ty)?, constant(high, &ty)?);
            let key = |e: Expr| if ty.has_key() { Key::function(ty.clone()).call(vec![e]) } else { e };
            let between = Between {
                expr: Box::new(key(expr.as_ref().clone())),
                negated: *negated,
                low: Box::new(key(low)),
                high: Box::new(key(high)),
            };
            Ok(Some(Expr::Between(between)))
        }
        Expr::Cast(Cast { expr, field }) => {
            let from = if is_text(&expr.get_type(schema)?) { of(expr, schema)? } else { None };
            match (from, of_field(field)) {
                (Some(from), Some(to)) if from == to => Ok(Some(expr.as_ref().clone())),
                (_, Some(to)) => {
                    let text = expr.as_ref().clone().cast_to(&DataType::Utf8View, schema)?;
                    Ok(Some(Typed::function(to).call(vec![text])))
                }
                (Some(from @ Declared::Column(ColumnType::Enum { .. })), None) if field.data_type().is_numeric() => {
                    let number = Key::function(from).call(vec![expr.as_ref().clone()]);
                    Ok(Some(Expr::Cast(Cast::new_from_field(Box::new(number), field.clone()))))
                }
                _ => Ok(None),
            }
        }
        Expr::AggregateFunction(f) => aggregated(f, schema),
        Expr::WindowFunction(w) => {
            let mut w = w.clone();
            let mut changed = false;
            if let (WindowFunctionDefinition::AggregateUDF(f), [arg]) = (&w.fun, w.params.args.as_slice())
                && ["min", "max"].contains(&f.name())
                && !extreme::is(f)
                && let Some(ty) = of(arg, schema)?.filter(Declared::has_key)
            {
                w.fun = WindowFunctionDefinition::AggregateUDF(Arc::new(extreme::function(ty, f.name() == "max")));
                changed = true;
            }
            if let Some(order_by) = keyed(&w.params.order_by, schema) {
                w.params.order_by = order_by;
                changed = true;
            }
            Ok(changed.then_some(Expr::WindowFunction(w)))
        }
        _ => Ok(None),
    }
}

fn compared(b: &BinaryExpr, schema: &DFSchema) -> Result<Option<Expr>> {
    if !is_text(&b.left.get_type(schema)?) {
        return Ok(None);
    }
    let (left, right) = (of(&b.left, schema)?, of(&b.right, schema)?);
    let Some(ty) = left.clone().or(right.clone()).filter(Declared::has_forms) else { return Ok(None) };
    let (l, r) = (constant(&b.left, &ty)?, constant(&b.right, &ty)?);
    // Where one side is plain text and not constant, both are compared as text.
    let known = |declared: &Option<Declared>, e: &Expr| declared.is_some() || literal_text(e).is_some();
    let orders = matches!(b.op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    let key = |e: Expr| {
        if orders && ty.has_key() && known(&left, &b.left) && known(&right, &b.right) { Key::function(ty.clone()).call(vec![e]) } else { e }
    };
    Ok(Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(key(l)), b.op, Box::new(key(r))))))
}

fn keyed(order_by: &[Sort], schema: &DFSchema) -> Option<Vec<Sort>> {
    let mut changed = false;
    let keyed = order_by.iter().map(|s| match order_key(&s.expr, schema) {
        Some(key) => {
            changed = true;
            Sort { expr: key, ..s.clone() }
        }
        None => s.clone(),
    });
    let keyed: Vec<Sort> = keyed.collect();
    changed.then_some(keyed)
}

/// The smallest value is the first by its key.
fn aggregated(f: &AggregateFunction, schema: &DFSchema) -> Result<Option<Expr>> {
    let name = f.func.name();
    if let ("min" | "max", [arg]) = (name, f.params.args.as_slice())
        && let Some(key) = order_key(arg, schema)
    {
        let mut first = f.clone();
        first.func = first_value_udaf();
        first.params.distinct = false;
        first.params.order_by = vec![Sort { expr: key, asc: name == "min", nulls_first: false }];
        return Ok(Some(Expr::AggregateFunction(first)));
    }
    let Some(order_by) = keyed(&f.params.order_by, schema) else { return Ok(None) };
    let mut f = f.clone();
    f.params.order_by = order_by;
    Ok(Some(Expr::AggregateFunction(f)))
}

/// What values order by: an enum's number, an address's bytes after its family. What is no value has no key.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    ty: Declared,
    signature: Signature,
}

impl Key {
    fn function(ty: Declared) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { ty, signature: Signature::any(1, Volatility::Immutable) })
    }
}

fn address_key(text: &str) -> Option<Vec<u8>> {
    Some(match text.parse::<IpAddr>().ok()? {
        IpAddr::V4(ip) => [&[4][..], &ip.octets()].concat(),
        IpAddr::V6(ip) => [&[6][..], &ip.octets()].concat(),
    })
}

impl ScalarUDFImpl for Key {
    fn name(&self) -> &str {
        "order_key"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.ty.key_type())
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over(&args.args[0], |a| Ok(keys(&self.ty, cast(a, &DataType::Utf8)?.as_string())))
    }
}

/// What values order by; nothing for what is no value.
pub fn keys(ty: &Declared, words: &StringArray) -> ArrayRef {
    match ty {
        Declared::Column(ColumnType::Enum { labels, .. }) => {
            let numbers: HashMap<&str, i16> = labels.iter().map(|(l, n)| (l.as_ref(), *n)).collect();
            Arc::new(words.iter().map(|t| numbers.get(t?).copied()).collect::<Int16Array>())
        }
        _ => Arc::new(words.iter().map(|t| address_key(t?)).collect::<BinaryArray>()),
    }
}

/// A text as a value of the type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Typed {
    ty: Declared,
    signature: Signature,
}

impl Typed {
    fn function(ty: Declared) -> ScalarUDF {
        ScalarUDF::new_from_impl(Self { ty, signature: Signature::any(1, Volatility::Immutable) })
    }
}

impl ScalarUDFImpl for Typed {
    fn name(&self) -> &str {
        "as_type"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|f| f.is_nullable());
        let mark = HashMap::from([(TYPE_META_KEY.to_owned(), self.ty.mark())]);
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8View, nullable).with_metadata(mark)))
    }
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        over(&args.args[0], |a| self.ty.array(a))
    }
}

/// Runs `f` over an argument, once for a constant.
fn over(arg: &ColumnarValue, f: impl FnOnce(&ArrayRef) -> Result<ArrayRef>) -> Result<ColumnarValue> {
    match arg {
        ColumnarValue::Array(a) => f(a).map(ColumnarValue::Array),
        ColumnarValue::Scalar(s) => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&f(&s.to_array()?)?, 0)?)),
    }
}
