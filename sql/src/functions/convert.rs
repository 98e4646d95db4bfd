//! Small functions over values of any kind.

use super::scalar::{arity, pure};
use crate::{analyze::text_of, types::of_field};
use arrow::{
    array::{ArrayRef, AsArray, StringArray, StringViewArray},
    compute::cast,
    datatypes::{DataType, Float64Type, Int64Type},
};
use datafusion::{common::Result, logical_expr::ScalarUDF};
use ebb_storage::stream_def::TYPE_META_KEY;
use std::sync::Arc;

/// `1.50 MiB`
fn readable_size(bytes: f64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let step = if bytes.abs() < 1.0 { 0 } else { ((bytes.abs().log2() / 10.0) as usize).min(UNITS.len() - 1) };
    format!("{:.2} {}", bytes / 1024f64.powi(step as i32), UNITS[step])
}

/// The language's name of an Arrow type.
pub fn type_name(t: &DataType) -> String {
    match t {
        DataType::Null => "null".into(),
        DataType::Boolean => "bool".into(),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "string".into(),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => "bytea".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(unit, zone) => {
            let digits = if *unit == arrow::datatypes::TimeUnit::Nanosecond { 9 } else { 6 };
            zone.as_ref().map_or(format!("datetime64({digits})"), |z| format!("datetime64({digits}, '{z}')"))
        }
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => format!("decimal({p}, {s})"),
        DataType::Interval(_) | DataType::Duration(_) => "interval".into(),
        DataType::List(f) | DataType::LargeList(f) => format!("array({})", type_name(f.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(of) if of.len() == 2 => format!("map({}, {})", type_name(of[0].data_type()), type_name(of[1].data_type())),
            _ => "map".into(),
        },
        DataType::Dictionary(_, v) => type_name(v),
        other => other.to_string().to_ascii_lowercase(),
    }
}

/// No text holds a zero byte: PostgreSQL's protocol ends texts with one.
fn character(n: i64) -> Result<String> {
    let found = u32::try_from(n).ok().and_then(char::from_u32).filter(|c| *c != '\0');
    let refused = || if n == 0 { "null character not permitted".to_owned() } else { format!("chr: there is no character {n}") };
    found.map(String::from).ok_or_else(|| crate::Error::invalid(refused()).with_sqlstate("54000").into())
}

pub fn functions() -> Vec<ScalarUDF> {
    let readable = pure(
        "format_readable_size",
        |types| arity("format_readable_size", types, 1..=1).map(|()| vec![DataType::Float64]),
        |_| Ok(DataType::Utf8View),
        |args, _| {
            let sizes = args[0].as_primitive::<Float64Type>().iter().map(|b| b.map(readable_size));
            Ok(Arc::new(sizes.collect::<StringViewArray>()) as ArrayRef)
        },
    );
    let named = pure(
        "to_type_name",
        |types| arity("to_type_name", types, 1..=1).map(|()| types.to_vec()),
        |_| Ok(DataType::Utf8View),
        |args, call| {
            let declared = call.fields.first().filter(|f| f.metadata().contains_key(TYPE_META_KEY)).and_then(|f| of_field(f));
            let name = declared.map_or_else(|| type_name(args[0].data_type()), |ty| ty.to_string());
            Ok(Arc::new(StringViewArray::from_iter_values(std::iter::repeat_n(name, call.rows))) as ArrayRef)
        },
    );
    let text = pure(
        "to_string",
        |types| arity("to_string", types, 1..=1).map(|()| types.to_vec()),
        |_| Ok(DataType::Utf8View),
        |args, call| -> Result<ArrayRef> {
            match args[0].data_type() {
                DataType::Boolean => Ok(cast(&args[0], &DataType::Utf8View)?),
                _ => text_of(&args[0], call.config.execution.time_zone.as_deref()),
            }
        },
    );
    let character = pure(
        "chr",
        |types| arity("chr", types, 1..=1).map(|()| vec![DataType::Int64]),
        |_| Ok(DataType::Utf8),
        |args, _| {
            let texts = args[0].as_primitive::<Int64Type>().iter().map(|n| n.map(character).transpose());
            Ok(Arc::new(texts.collect::<Result<StringArray>>()?) as ArrayRef)
        },
    );
    vec![readable, named, text, character]
}
