//! The types that clients meet, with PostgreSQL's numbers and names.
//!
//! Must agree with what the wire announces: a driver looks the number of a column's type up here.

/// A type and, where it has one, its array.
pub struct PgType {
    pub oid: i64,
    pub name: &'static str,
    /// As `format_type` writes it.
    pub display: &'static str,
    pub array: i64,
    pub len: i16,
    pub category: &'static str,
}

const fn of(oid: i64, name: &'static str, display: &'static str, array: i64, len: i16, category: &'static str) -> PgType {
    PgType { oid, name, display, array, len, category }
}

pub const TYPES: &[PgType] = &[
    of(16, "bool", "boolean", 1000, 1, "B"),
    of(17, "bytea", "bytea", 1001, -1, "U"),
    of(18, "char", "\"char\"", 1002, 1, "Z"),
    of(19, "name", "name", 1003, 64, "S"),
    of(20, "int8", "bigint", 1016, 8, "N"),
    of(21, "int2", "smallint", 1005, 2, "N"),
    of(23, "int4", "integer", 1007, 4, "N"),
    of(24, "regproc", "regproc", 1008, 4, "N"),
    of(25, "text", "text", 1009, -1, "S"),
    of(26, "oid", "oid", 1028, 4, "N"),
    of(114, "json", "json", 199, -1, "U"),
    of(700, "float4", "real", 1021, 4, "N"),
    of(701, "float8", "double precision", 1022, 8, "N"),
    of(705, "unknown", "unknown", 0, -2, "X"),
    of(869, "inet", "inet", 1041, -1, "I"),
    of(1042, "bpchar", "character", 1014, -1, "S"),
    of(1043, "varchar", "character varying", 1015, -1, "S"),
    of(1082, "date", "date", 1182, 4, "D"),
    of(1083, "time", "time without time zone", 1183, 8, "D"),
    of(1114, "timestamp", "timestamp without time zone", 1115, 8, "D"),
    of(1184, "timestamptz", "timestamp with time zone", 1185, 8, "D"),
    of(1186, "interval", "interval", 1187, 16, "T"),
    of(1700, "numeric", "numeric", 1231, -1, "N"),
    of(2205, "regclass", "regclass", 2210, 4, "N"),
    of(2206, "regtype", "regtype", 2211, 4, "N"),
    of(2249, "record", "record", 2287, -1, "P"),
    of(2278, "void", "void", 0, 4, "P"),
    of(2950, "uuid", "uuid", 2951, 16, "U"),
    of(3802, "jsonb", "jsonb", 3807, -1, "U"),
];

/// The type with this number, and whether the number is that of its array.
fn find(oid: i64) -> Option<(&'static PgType, bool)> {
    TYPES.iter().find_map(|t| match oid {
        0 => None,
        _ if t.oid == oid => Some((t, false)),
        _ if t.array == oid => Some((t, true)),
        _ => None,
    })
}

/// `format_type(oid, typmod)`.
pub fn format_type(oid: i64, typmod: i64) -> String {
    let Some((ty, array)) = find(oid) else { return if oid == 0 { "-".to_owned() } else { "???".to_owned() } };
    let mut text = ty.display.to_owned();
    if ty.oid == 1700 && typmod >= 4 {
        let packed = typmod - 4;
        text = format!("numeric({},{})", packed >> 16, packed & 0x7ff);
    }
    if array {
        text.push_str("[]");
    }
    text
}

/// The number of a type by any of its names.
pub fn type_oid(name: &str) -> Option<i64> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let (name, array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let alias = match name {
        "int" => "int4",
        "decimal" => "numeric",
        "string" => "text",
        "float" => "float8",
        "time" | "timestamp" => name,
        other => other,
    };
    let ty = TYPES.iter().find(|t| t.name == alias || t.display == alias)?;
    Some(if array { ty.array } else { ty.oid })
}

/// What PostgreSQL keeps beside a numeric column: precision and scale.
pub fn numeric_typmod(precision: u8, scale: i8) -> i64 {
    (i64::from(precision) << 16 | i64::from(scale)) + 4
}
