use super::*;
use arrow::{
    array::{Int64Array, StringViewArray, TimestampMicrosecondArray},
    datatypes::Int64Type,
};
use ebb_storage::{
    Timestamp,
    column_type::ColumnType,
    ids::{SchemaVersion, StreamId},
    stream_def::{ColumnDef, ColumnDefault, DefaultKind},
};

fn column(id: i32, name: &str, ty: ColumnType) -> ColumnDef {
    let default = (name == "al").then(|| ColumnDefault { kind: DefaultKind::Alias, expr: "a + 1".into() });
    ColumnDef { nullable: name == "n", default, ..ColumnDef::plain(id, name, ty) }
}

fn def() -> StreamDef {
    StreamDef {
        id: StreamId(1),
        database: "default".into(),
        name: "s".into(),
        columns: vec![
            column(1, "d", ColumnType::DateTime(None)),
            column(2, "a", ColumnType::Int64),
            column(3, "Level", ColumnType::String),
            column(4, "n", ColumnType::Int64),
            column(5, "al", ColumnType::Int64),
        ],
        next_column: ColumnId(6),
        schema_version: SchemaVersion(1),
        policy_version: 1,
        partition_by: vec![],
        order_by: vec![],
        primary_key: vec![],
        series_key: vec![],
        indexes: vec![],
        policy: Default::default(),
        settings: Default::default(),
        comment: String::new(),
        created_at: Timestamp(0),
    }
}

fn rows() -> RecordBatch {
    let day = 86_400_000_000i64;
    RecordBatch::try_from_iter([
        ("d", Arc::new(TimestampMicrosecondArray::from(vec![0, day, 2 * day])) as ArrayRef),
        ("a", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("Level", Arc::new(StringViewArray::from(vec!["debug", "info", "debug"]))),
        ("n", Arc::new(Int64Array::from(vec![Some(1), None, Some(0)]))),
    ])
    .unwrap()
}

fn eval(text: &str) -> ArrayRef {
    Compiler::new().compile(text, &def()).unwrap().evaluate(&rows()).unwrap()
}

#[test]
fn expressions_are_computed_over_rows() {
    assert_eq!(eval("a * 2").as_primitive::<Int64Type>().values(), &[2, 4, 6]);
    assert_eq!(eval("to_YYYYMM(d)").as_primitive::<arrow::datatypes::Int32Type>().values(), &[197001, 197001, 197001]);
    assert_eq!(eval("a").as_primitive::<Int64Type>().values(), &[1, 2, 3]);
    // A condition is never NULL.
    let condition = eval("n > 0");
    assert_eq!(condition.as_boolean().iter().collect::<Vec<_>>(), [Some(true), Some(false), Some(false)]);
    assert_eq!(eval("\"Level\" = 'debug'").as_boolean().true_count(), 2);
}

#[test]
fn what_fails_on_a_row_is_an_error_with_its_cause() {
    let error = Compiler::new().compile("10 / (a - 2)", &def()).unwrap().evaluate(&rows()).unwrap_err();
    assert!(error.message().contains("division by zero"), "{error}");
}

#[test]
fn unknown_names_come_with_the_nearest() {
    let message = |t: &str| Compiler::new().bind(t, &def()).unwrap_err().message().to_owned();
    assert!(message("leve1 = 'x'").contains("'leve1' does not exist in default.s; did you mean 'Level'"), "{}", message("leve1 = 'x'"));
    assert!(message("to_yyymm(d)").contains("did you mean 'to_yyyymm'"), "{}", message("to_yyymm(d)"));
    assert!(message("_tp_sn > 1").contains("_tp_sn cannot be used here"));
    assert!(message("al > 1").contains("'al' is an ALIAS"));
}

#[test]
fn binding_says_what_an_expression_is() {
    let c = Compiler::new();
    let bound = |t: &str| c.bind(t, &def()).unwrap();
    assert_eq!(bound("d + INTERVAL 1 MONTH").columns, [ColumnId(1)]);
    assert_eq!(bound("_tp_time").columns, [ColumnId::TP_TIME]);
    // proves F4
    assert_ne!(bound("now() + INTERVAL 1 MONTH").volatility, Volatility::Immutable);
    assert_ne!(bound("random()").volatility, Volatility::Immutable);
    assert!(bound("sum(a)").has_aggregate);
    assert!(bound("row_number() over ()").has_window);
    assert!(bound("d + to_interval_day(a)").columns.len() == 2);
    assert!(bound("n").nullable && !bound("a").nullable);
}

#[test]
fn identity_survives_renaming_and_spelling() {
    // proves F1
    let c = Compiler::new();
    let mut renamed = def();
    renamed.columns[0].name = "moment".into();
    let id = |t: &str, d: &StreamDef| c.identity(&c.bind(t, d).unwrap(), d).unwrap();
    assert_eq!(id("d + INTERVAL 1 DAY", &def()), id("moment + interval '1 day'", &renamed));
    assert_ne!(id("d + INTERVAL 1 DAY", &def()), id("d + INTERVAL 2 DAY", &def()));
    assert_ne!(fingerprint(&["a", "bc"]), fingerprint(&["ab", "c"]));
}

#[test]
fn bounds_of_a_column_bound_what_rises_with_it() {
    let c = Compiler::new();
    let monotone = |t: &str| c.compile(t, &def()).unwrap().monotone_in();
    assert_eq!(monotone("d"), Some(ColumnId(1)));
    assert_eq!(monotone("_tp_time + INTERVAL 1 MONTH"), Some(ColumnId::TP_TIME));
    assert_eq!(monotone("d + to_interval_day(a)"), None);
    assert_eq!(monotone("a"), None);
}

#[test]
fn fixed_intervals_are_added_as_durations_with_the_same_answer() {
    let (compiler, def) = (Compiler::new(), def());
    let of = |text: &str| {
        let compiled = compiler.physical(&compiler.bind(text, &def).unwrap(), &def).unwrap();
        let values = compiled.evaluate(&rows()).unwrap();
        (format!("{:?}", compiled.expr), values.as_primitive::<arrow::datatypes::TimestampMicrosecondType>().values().to_vec())
    };
    let day = 86_400_000_000i64;
    for (text, shift) in [
        ("d + INTERVAL 30 DAY", Some(30 * day)),
        ("INTERVAL '2 hours' + d", Some(day / 12)),
        ("d - INTERVAL '1 day 1 microsecond'", Some(-day - 1)),
        ("d + INTERVAL 1 MONTH", None),
    ] {
        let (shape, values) = of(text);
        assert_eq!(shape.contains("DurationMicrosecond"), shift.is_some(), "{text}: {shape}");
        let expected: Vec<i64> = match shift {
            Some(shift) => vec![shift, day + shift, 2 * day + shift],
            None => vec![31 * day, 32 * day, 33 * day],
        };
        assert_eq!(values, expected, "{text}");
    }
}
