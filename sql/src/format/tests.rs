//! A definition prints to SQL that parses to the same definition.

use super::create_stream;
use crate::{
    parse::{parse, parse_expression},
    statement::{self, CreateStream, Verb},
};
use ebb_storage::{
    Timestamp,
    codec::{Codec, ColumnCodec, Preprocessor},
    column_type::ColumnType,
    ids::{ColumnId, Fingerprint, SchemaVersion, StreamId},
    interval::Interval,
    rules::{Action, Destination, DestinationKind, Policy, Rule, Stage},
    stream_def::{ColumnDef, ColumnDefault, ColumnTtl, DefaultKind, IndexDef, IndexKind, SettingValue, StreamDef},
};
use proptest::{collection::vec, option, prelude::*};
use std::sync::Arc;

fn parsed(sql: &str) -> CreateStream {
    match parse(sql).unwrap_or_else(|e| panic!("{sql}\n{e} at {:?}", e.position)).remove(0).verb {
        Verb::CreateStream(create) => *create,
        other => panic!("{other:?}"),
    }
}

/// What bind does to a definition, as far as syntax goes: ids, times and versions are the caller's.
fn define(create: CreateStream, like: &StreamDef) -> StreamDef {
    let texts = |exprs: Option<Vec<statement::Expression>>| exprs.unwrap_or_default().into_iter().map(|e| e.text).collect();
    let columns = create.columns.into_iter().zip(&like.columns).map(|(c, like)| ColumnDef {
        id: like.id,
        name: c.name.text,
        ty: c.ty,
        nullable: c.nullable,
        default: c.default.map(|d| ColumnDefault { kind: d.kind, expr: d.expr.text }),
        codec: c.codec,
        ttl: c.ttl.map(|t| ColumnTtl { when: t.text, fingerprint: Fingerprint(0) }),
        comment: c.comment.unwrap_or_default(),
        since: like.since,
        fill: like.fill.clone(),
    });
    let indexes = create.indexes.into_iter();
    let rule = |r: statement::Rule| Rule {
        when: r.when.text,
        fingerprint: Fingerprint(0),
        action: match r.action {
            statement::Action::Delete { only } => Action::Delete { only: only.map(|e| e.text) },
            statement::Action::Recompress(codec) => Action::Recompress(codec),
            statement::Action::Move(to) => Action::Move(to),
            statement::Action::GroupBy { keys, set } => Action::GroupBy {
                keys: keys.into_iter().map(|e| e.text).collect(),
                set: set.into_iter().map(|(n, e)| (n.text, e.text)).collect(),
            },
        },
    };
    let stage = |s: statement::Stage| match s {
        statement::Stage::Keep { after, keep } => Stage::Keep { after, keep: keep.text },
        statement::Stage::Drop { after } => Stage::Drop { after },
        statement::Stage::MaxAge(age) => Stage::MaxAge(age),
        statement::Stage::MaxBytes(n) => Stage::MaxBytes(n),
        statement::Stage::MaxRows(n) => Stage::MaxRows(n),
    };
    StreamDef {
        database: create.name.parts[0].text.clone(),
        name: create.name.parts[1].text.clone(),
        columns: columns.collect(),
        partition_by: texts(create.partition_by),
        order_by: texts(create.order_by),
        primary_key: texts(create.primary_key),
        series_key: create.series_key.into_iter().map(|n| n.text).collect(),
        indexes: indexes.map(|i| IndexDef { name: i.name.text, expr: i.expr.text, kind: i.kind, granularity: i.granularity }).collect(),
        policy: Policy { ttl: create.ttl.into_iter().map(rule).collect(), retention: create.retention.into_iter().map(stage).collect() },
        settings: create.settings.into_iter().map(|s| (s.name.text, s.value)).collect(),
        comment: create.comment.unwrap_or_default(),
        ..like.clone()
    }
}

/// Plain, reserved, mixed case, and names with anything in them.
fn name() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "select",
        "to",
        "delete",
        "set",
        "primary",
        "index",
        "Mixed",
        "with \"quotes\"",
        "a b",
        "ttl",
        "date",
        "timestamp",
        "interval",
        "ä",
        "1st",
        "user",
        "tuple",
        "at",
        "key",
        "settings",
        "comment",
        "codec",
        "where",
        "case",
        "null",
    ]);
    prop_oneof![4 => "[a-z_][a-z0-9_]{0,8}", 2 => odd.prop_map(str::to_owned), 1 => "[^\\x00\\r\\n]{1,5}"]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{0,8}",
        prop::sample::select(vec!["it's", "''", "\\'", "\\", "'a''b'", "$$", "--", "/*", "ä\n"]).prop_map(str::to_owned)
    ]
}

/// Canonical texts of expressions over a column of any name.
fn expr() -> impl Strategy<Value = String> {
    let shapes = prop::sample::select(vec![
        "{c}",
        "{c} + interval 1 month",
        "({c} + interval '1 day' * 3)",
        "to_YYYYMM({c})",
        "lower({c}) = {s} and {c} is not null",
        "{c} not in ({s}, {s}) or {c} like {s}",
        "case when {c} > 1 then {s} else null end",
        "{c} between -1 and 2.5",
        "{c}::text || {s}",
        "cast({c} as int8)",
        "coalesce({c}, date '2026-01-01', {s})",
        "{c}[1] + -{c}",
        "extract(day from {c})",
        "substring({c} from 1 for 2)",
        "{c} at time zone 'UTC'",
        "not ({c} or {c})",
    ]);
    (shapes, name(), text()).prop_filter_map("canonical", |(shape, column, text)| {
        let sql = shape.replace("{c}", &statement::quote_name(&column)).replace("{s}", &statement::quote_text(&text));
        parse_expression(&sql).ok().map(|e| e.text)
    })
}

fn interval() -> impl Strategy<Value = Interval> {
    prop_oneof![
        (1..50_i32).prop_map(|months| Interval { months, ..Interval::ZERO }),
        (1..1000_i32).prop_map(Interval::days),
        (1..100_000_i64).prop_map(Interval::seconds),
        (1..100_i32, 1..100_i32, 1..10_000_000_000_i64).prop_map(|(months, days, micros)| Interval { months, days, micros }),
    ]
}

fn codec() -> impl Strategy<Value = Codec> {
    prop_oneof![
        Just(Codec::None),
        Just(Codec::Lz4),
        Just(Codec::Snappy),
        (1..=12_u8).prop_map(Codec::Lz4hc),
        (1..=22_u8).prop_map(Codec::Zstd),
        (1..=9_u8).prop_map(Codec::Gzip),
        (1..=11_u8).prop_map(Codec::Brotli),
    ]
}

fn column_type() -> impl Strategy<Value = ColumnType> {
    use ColumnType as T;
    let zone = || option::of(prop::sample::select(vec!["UTC", "Europe/Berlin", "+05:30"]).prop_map(Arc::<str>::from));
    let simple = vec![
        T::Int8,
        T::Int16,
        T::Int32,
        T::Int64,
        T::UInt8,
        T::UInt16,
        T::UInt32,
        T::UInt64,
        T::Float32,
        T::Float64,
        T::Bool,
        T::String,
        T::Bytes,
        T::Date,
        T::Uuid,
        T::Json,
        T::Ipv4,
        T::Ipv6,
    ];
    let leaf = prop_oneof![
        prop::sample::select(simple),
        (1..=38_u8).prop_flat_map(|p| (Just(p), 0..=p as i8)).prop_map(|(p, s)| T::Decimal(p, s)),
        (1..1000_u32).prop_map(T::FixedString),
        zone().prop_map(T::DateTime),
        (0..=9_u8, zone()).prop_map(|(digits, zone)| T::DateTime64(digits, zone)),
        (prop::sample::select(vec![8_u8, 16]), prop::collection::btree_set(text(), 1..4)).prop_map(|(bits, labels)| T::Enum {
            bits,
            labels: labels.into_iter().enumerate().map(|(i, l)| (l.into(), i as i16 - 1)).collect()
        }),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (inner.clone(), any::<bool>()).prop_map(|(t, null)| T::Array(Box::new(t), null)),
            (inner.clone(), inner.clone(), any::<bool>()).prop_map(|(k, v, null)| T::Map(Box::new(k), Box::new(v), null)),
            inner.prop_map(|t| T::LowCardinality(Box::new(t))),
        ]
    })
}

fn column() -> impl Strategy<Value = ColumnDef> {
    let kinds = prop::sample::select(vec![DefaultKind::Default, DefaultKind::Materialized, DefaultKind::Alias]);
    let preprocessors = [Preprocessor::Delta, Preprocessor::DoubleDelta, Preprocessor::Gorilla, Preprocessor::T64];
    let codec = (option::of(prop::sample::select(preprocessors.to_vec())), codec());
    (column_type(), any::<bool>(), option::of((kinds, expr())), option::of(codec), option::of(expr()), text()).prop_map(
        |(ty, nullable, default, codec, ttl, comment)| ColumnDef {
            id: ColumnId(1),
            name: String::new(),
            ty,
            nullable,
            default: default.map(|(kind, expr)| ColumnDefault { kind, expr }),
            codec: codec.map(|(preprocessor, codec)| ColumnCodec { preprocessor, codec }),
            ttl: ttl.map(|when| ColumnTtl { when, fingerprint: Fingerprint(0) }),
            comment,
            since: SchemaVersion(1),
            fill: None,
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    let kind = prop::sample::select(vec![DestinationKind::Disk, DestinationKind::Volume]);
    let place = text().prop_filter("a place has a name", |t| !t.is_empty());
    prop_oneof![
        option::of(expr()).prop_map(|only| Action::Delete { only }),
        codec().prop_map(Action::Recompress),
        (kind, place, any::<bool>()).prop_map(|(kind, name, if_exists)| Action::Move(Destination { kind, name, if_exists })),
        (vec(expr(), 1..3), vec((name(), expr()), 0..3)).prop_map(|(keys, set)| Action::GroupBy { keys, set }),
    ]
}

fn stage() -> impl Strategy<Value = Stage> {
    prop_oneof![
        (interval(), expr()).prop_map(|(after, keep)| Stage::Keep { after, keep }),
        interval().prop_map(|after| Stage::Drop { after }),
        interval().prop_map(Stage::MaxAge),
        any::<u64>().prop_map(Stage::MaxBytes),
        any::<u64>().prop_map(Stage::MaxRows),
    ]
}

fn setting() -> impl Strategy<Value = SettingValue> {
    prop_oneof![any::<bool>().prop_map(SettingValue::Bool), any::<i64>().prop_map(SettingValue::Int), text().prop_map(SettingValue::Text)]
}

fn index() -> impl Strategy<Value = IndexDef> {
    let kind =
        prop_oneof![Just(IndexKind::MinMax), (1..=500_000_u32).prop_map(IndexKind::BloomFilter), any::<u64>().prop_map(IndexKind::Set)];
    (expr(), kind, 1..u64::MAX).prop_map(|(expr, kind, granularity)| IndexDef { name: String::new(), expr, kind, granularity })
}

/// Names are given here, so that none stands twice.
fn definition() -> impl Strategy<Value = StreamDef> {
    let keys = (vec(expr(), 0..3), vec(expr(), 0..3), vec(expr(), 0..2), vec(name(), 0..3));
    let names = (name(), name(), prop::collection::btree_set(name(), 8));
    let rules = vec((expr(), action()).prop_map(|(when, action)| Rule { when, action, fingerprint: Fingerprint(0) }), 0..4);
    let settings = prop::collection::btree_map(name(), setting(), 0..4);
    (names, vec(column(), 1..5), vec(index(), 0..3), keys, (rules, vec(stage(), 0..3)), settings, text()).prop_map(
        |((database, name, names), mut columns, mut indexes, keys, (ttl, retention), settings, comment)| {
            let mut names = names.into_iter();
            columns.iter_mut().for_each(|c| c.name = names.next().expect("eight names"));
            indexes.iter_mut().for_each(|i| i.name = names.next().expect("eight names"));
            StreamDef {
                id: StreamId(1),
                database,
                name,
                columns,
                next_column: ColumnId(9),
                schema_version: SchemaVersion(1),
                policy_version: 1,
                partition_by: keys.0,
                order_by: keys.1,
                primary_key: keys.2,
                series_key: keys.3,
                indexes,
                policy: Policy { ttl, retention },
                settings,
                comment,
                created_at: Timestamp(0),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_definition_prints_to_what_parses_to_it(def in definition()) {
        let printed = create_stream(&def);
        let again = parsed(&printed);
        // A statement prints through the same lines.
        let reprinted = parsed(&again.to_string());
        prop_assert_eq!(&again, &reprinted);
        let back = define(again, &def);
        prop_assert_eq!(&back, &def, "{}", printed);
        prop_assert_eq!(create_stream(&back), printed);
    }
}

#[test]
fn one_clause_a_line_and_only_what_is_set() {
    let sql = "create table db.S (d datetime, \"A b\" nullable(int) default 1 codec(zstd), index i d type minmax) order by (d) \
               ttl d + interval 1 week to volume 'x', d + interval 1 month retention 1 day drop settings b = 2, a = 'x' comment 'c'";
    let expected = "CREATE STREAM db.s (\n    d datetime,\n    \"A b\" nullable(int32) DEFAULT 1 CODEC(ZSTD(1)),\n    \
                    INDEX i d TYPE minmax GRANULARITY 1\n)\nORDER BY (d)\nTTL d + INTERVAL '7 day' TO VOLUME 'x',\n    \
                    d + INTERVAL '1 month' DELETE\nRETENTION INTERVAL '1 day' DROP\nSETTINGS b = 2,\n    a = 'x'\nCOMMENT 'c'";
    assert_eq!(parsed(sql).to_string(), expected);
    assert_eq!(parsed("CREATE STREAM s (a int)").to_string(), "CREATE STREAM s (\n    a int32\n)");
}
