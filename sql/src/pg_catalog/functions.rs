//! PostgreSQL's catalogue functions over one cut. They are added to statements that ask for the catalogue only.

use super::{
    names::{Names, OWNER, OWNER_NAME},
    types::format_type,
};
use crate::functions::scalar::{Call, arity, build};
use arrow::{
    array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray},
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    common::{Result, exec_err},
    execution::FunctionRegistry,
    logical_expr::Volatility,
};
use std::sync::Arc;

/// An argument or a result.
#[derive(Clone, PartialEq)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
}
use Value::{Bool, Int, Null, Text};

impl Value {
    fn int(&self) -> i64 {
        if let Int(n) = self { *n } else { 0 }
    }
    fn text(&self) -> &str {
        if let Text(t) = self { t } else { "" }
    }
}

type Eval = fn(&Names, &[Value]) -> Result<Value>;

/// Name; arguments, one letter each (`i` number, `t` text, `a` anything), those behind `?` may be left out; result; what it does.
struct Function(&'static str, &'static str, DataType, Eval);

const BOOL: DataType = DataType::Boolean;
const INT: DataType = DataType::Int64;
const TEXT: DataType = DataType::Utf8;

/// Answers that do not depend on the arguments.
fn yes(_: &Names, _: &[Value]) -> Result<Value> {
    Ok(Bool(true))
}
fn no(_: &Names, _: &[Value]) -> Result<Value> {
    Ok(Bool(false))
}
fn null(_: &Names, _: &[Value]) -> Result<Value> {
    Ok(Null)
}
fn first(_: &Names, a: &[Value]) -> Result<Value> {
    Ok(a[0].clone())
}
fn size(n: &Names, a: &[Value]) -> Result<Value> {
    Ok(n.bytes.get(&a[0].int()).map_or(Null, |b| Int(*b)))
}

fn comment(n: &Names, oid: i64, column: i64) -> Value {
    let Some(s) = n.streams.get(&oid) else { return Null };
    let text = match usize::try_from(column) {
        Ok(0) => Some(&s.comment),
        Ok(at) => s.columns.get(at - 1).map(|c| &c.comment),
        Err(_) => None,
    };
    text.filter(|t| !t.is_empty()).map_or(Null, |t| Text(t.clone()))
}

fn pretty(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
    let (mut value, mut unit) = (bytes, 0);
    while value.unsigned_abs() >= 10_240 && unit + 1 < UNITS.len() {
        value = value.saturating_add(512) / 1024;
        unit += 1;
    }
    format!("{value} {}", UNITS[unit])
}

/// Settings of PostgreSQL that tools read and that are none here.
const FIXED: [(&str, &str); 5] = [
    ("default_table_access_method", "parts"),
    ("default_tablespace", ""),
    ("is_superuser", "on"),
    ("jit", "off"),
    ("max_identifier_length", "63"),
];

fn setting(n: &Names, a: &[Value]) -> Result<Value> {
    let name = a[0].text();
    let fixed = FIXED.iter().find(|(s, _)| *s == name).map(|(_, value)| (*value).to_owned());
    match n.settings.iter().find(|(s, _)| s.eq_ignore_ascii_case(name)).map(|(_, value)| value.clone()).or(fixed) {
        Some(value) => Ok(Text(value)),
        None if a.get(1) == Some(&Bool(true)) => Ok(Null),
        None => exec_err!("unrecognized configuration parameter \"{name}\""),
    }
}

const FUNCTIONS: &[Function] = &[
    Function("pg_table_is_visible", "i", BOOL, |n, a| Ok(Bool(n.visible(a[0].int())))),
    Function("pg_type_is_visible", "i", BOOL, yes),
    Function("pg_function_is_visible", "i", BOOL, yes),
    Function("pg_operator_is_visible", "i", BOOL, yes),
    Function("pg_opclass_is_visible", "i", BOOL, yes),
    Function("pg_collation_is_visible", "i", BOOL, yes),
    Function("pg_statistics_obj_is_visible", "i", BOOL, yes),
    Function("pg_conversion_is_visible", "i", BOOL, yes),
    Function("pg_ts_config_is_visible", "i", BOOL, yes),
    Function("pg_ts_dict_is_visible", "i", BOOL, yes),
    Function("pg_relation_is_publishable", "a", BOOL, no),
    Function("pg_is_other_temp_schema", "i", BOOL, no),
    Function("pg_is_in_recovery", "", BOOL, no),
    Function("pg_my_temp_schema", "", INT, |_, _| Ok(Int(0))),
    Function("format_type", "ii", TEXT, |_, a| {
        Ok(if a[0] == Null { Null } else { Text(format_type(a[0].int(), if a[1] == Null { -1 } else { a[1].int() })) })
    }),
    Function("pg_get_expr", "ti?b", TEXT, first),
    Function("pg_get_userbyid", "i", TEXT, |_, a| {
        Ok(Text(if a[0].int() == OWNER { OWNER_NAME.to_owned() } else { format!("unknown (OID={})", a[0].int()) }))
    }),
    Function("pg_encoding_to_char", "i", TEXT, |_, a| Ok(Text(if a[0].int() == 6 { "UTF8" } else { "" }.to_owned()))),
    Function("pg_char_to_encoding", "t", INT, |_, a| Ok(Int(if a[0].text().eq_ignore_ascii_case("utf8") { 6 } else { -1 }))),
    Function("obj_description", "i?t", TEXT, |n, a| Ok(comment(n, a[0].int(), 0))),
    Function("col_description", "ii", TEXT, |n, a| Ok(comment(n, a[0].int(), a[1].int()))),
    Function("shobj_description", "it", TEXT, null),
    Function("current_setting", "t?b", TEXT, setting),
    // The setting itself is set before the statement runs.
    Function("set_config", "ttb", TEXT, |_, a| Ok(a[1].clone())),
    Function("pg_get_viewdef", "a?a", TEXT, null),
    Function("pg_get_indexdef", "i?ib", TEXT, null),
    Function("pg_get_constraintdef", "i?b", TEXT, null),
    Function("pg_get_triggerdef", "i?b", TEXT, null),
    Function("pg_get_ruledef", "i?b", TEXT, null),
    Function("pg_get_functiondef", "i", TEXT, null),
    Function("pg_get_function_result", "i", TEXT, null),
    Function("pg_get_function_arguments", "i", TEXT, null),
    Function("pg_get_function_identity_arguments", "i", TEXT, null),
    Function("pg_get_function_sqlbody", "i", TEXT, null),
    Function("pg_get_partkeydef", "i", TEXT, null),
    Function("pg_get_partition_constraintdef", "i", TEXT, null),
    Function("pg_get_statisticsobjdef_columns", "i", TEXT, null),
    Function("pg_get_serial_sequence", "tt", TEXT, null),
    Function("pg_tablespace_location", "i", TEXT, null),
    Function("pg_backend_pid", "", INT, |_, _| Ok(Int(i64::from(std::process::id())))),
    Function("pg_advisory_unlock_all", "", TEXT, |_, _| Ok(Text(String::new()))),
    Function("pg_size_pretty", "i", TEXT, |_, a| Ok(if a[0] == Null { Null } else { Text(pretty(a[0].int())) })),
    Function("pg_table_size", "i", INT, size),
    Function("pg_relation_size", "i?t", INT, size),
    Function("pg_total_relation_size", "i", INT, size),
    Function("pg_indexes_size", "i", INT, |_, _| Ok(Int(0))),
    Function("pg_database_size", "a", INT, |n, _| Ok(Int(n.bytes.values().fold(0, |a, b| a.saturating_add(*b))))),
    Function("pg_tablespace_size", "a", INT, |n, _| Ok(Int(n.bytes.values().fold(0, |a, b| a.saturating_add(*b))))),
    Function("has_table_privilege", "aa?a", BOOL, yes),
    Function("has_any_column_privilege", "aa?a", BOOL, yes),
    Function("has_column_privilege", "aaa?a", BOOL, yes),
    Function("has_schema_privilege", "aa?a", BOOL, yes),
    Function("has_database_privilege", "aa?a", BOOL, yes),
    Function("has_function_privilege", "aa?a", BOOL, yes),
    Function("has_sequence_privilege", "aa?a", BOOL, yes),
    Function("has_tablespace_privilege", "aa?a", BOOL, yes),
    Function("has_type_privilege", "aa?a", BOOL, yes),
    Function("pg_has_role", "aa?a", BOOL, yes),
    Function("to_regclass", "t", INT, |n, a| Ok(n.relation(a[0].text()).map_or(Null, Int))),
    Function("to_regtype", "t", INT, |_, a| Ok(Names::type_oid(a[0].text()).map_or(Null, Int))),
    Function("ebb_regclass", "t", INT, |n, a| match &a[0] {
        Text(t) => n.relation(t).map_or_else(|| exec_err!("relation \"{t}\" does not exist"), |oid| Ok(Int(oid))),
        _ => Ok(Null),
    }),
    Function("ebb_regclass_name", "i", TEXT, |n, a| Ok(if a[0] == Null { Null } else { Text(n.relation_name(a[0].int())) })),
    Function("ebb_regtype", "t", INT, |_, a| match &a[0] {
        Text(t) => Names::type_oid(t).map_or_else(|| exec_err!("type \"{t}\" does not exist"), |oid| Ok(Int(oid))),
        _ => Ok(Null),
    }),
    Function("ebb_regtype_name", "i", TEXT, |_, a| Ok(if a[0] == Null { Null } else { Text(format_type(a[0].int(), -1)) })),
];

/// Names by which a statement is seen to ask for the catalogue.
pub fn is_ours(name: &str) -> bool {
    FUNCTIONS.iter().any(|f| f.0 == name)
}

fn value(array: &ArrayRef, row: usize) -> Value {
    match array.data_type() {
        _ if array.is_null(row) => Null,
        DataType::Boolean => Bool(array.as_boolean().value(row)),
        DataType::Int64 => Int(array.as_primitive::<Int64Type>().value(row)),
        DataType::Utf8 => Text(array.as_string::<i32>().value(row).to_owned()),
        _ => Null,
    }
}

fn array(returns: &DataType, values: Vec<Value>) -> ArrayRef {
    let values = values.into_iter();
    match returns {
        DataType::Boolean => Arc::new(values.map(|v| if let Bool(b) = v { Some(b) } else { None }).collect::<BooleanArray>()),
        DataType::Int64 => Arc::new(values.map(|v| if let Int(n) = v { Some(n) } else { None }).collect::<Int64Array>()),
        _ => Arc::new(values.map(|v| if let Text(t) = v { Some(t) } else { None }).collect::<StringArray>()),
    }
}

/// Adds the functions, answering for `names`.
pub(crate) fn register(registry: &mut dyn FunctionRegistry, names: &Arc<Names>) -> Result<()> {
    for Function(name, takes, returns, eval) in FUNCTIONS {
        let (name, returns, eval, names) = (*name, returns.clone(), *eval, names.clone());
        let least = takes.find('?').unwrap_or(takes.len());
        let kinds: Vec<char> = takes.chars().filter(|c| *c != '?').collect();
        let coerce = move |types: &[DataType]| {
            arity(name, types, least..=kinds.len())?;
            let coerced = types.iter().zip(&kinds).map(|(given, kind)| match kind {
                'i' => INT,
                't' => TEXT,
                'b' => BOOL,
                _ => given.clone(),
            });
            Ok(coerced.collect())
        };
        let eval = move |arrays: &[ArrayRef], call: &Call<'_>| {
            let row = |row: usize| eval(&names, &arrays.iter().map(|a| value(a, row)).collect::<Vec<_>>());
            Ok(array(call.returns, (0..call.rows).map(row).collect::<Result<Vec<_>>>()?))
        };
        let parts = (Arc::new(coerce) as _, Arc::new(move |_: &[DataType]| Ok(returns.clone())) as _, Arc::new(eval) as _);
        registry.register_udf(Arc::new(build(name, &[], Volatility::Stable, parts)))?;
    }
    Ok(())
}
