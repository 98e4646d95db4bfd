//! Definitions of streams: columns, types, keys, rules, stages.

use super::{create, one, says};
use crate::statement::*;
use ebb_storage::{
    codec::{Codec, ColumnCodec, Preprocessor},
    column_type::ColumnType,
    interval::Interval,
    rules::{Destination, DestinationKind},
    stream_def::{DefaultKind, IndexKind, SettingValue},
};

fn rules(ttl: &str) -> Vec<String> {
    create(&format!("CREATE STREAM s (d datetime) TTL {ttl}")).ttl.iter().map(ToString::to_string).collect()
}

// proves T5, T7, T8, T9, T10, T11
#[test]
fn rules_have_every_action() {
    assert_eq!(rules("d + INTERVAL 1 MONTH"), ["d + INTERVAL '1 month' DELETE"]);
    assert_eq!(rules("d DELETE"), ["d DELETE"]);
    assert_eq!(rules("d + INTERVAL 1 DAY WHERE a = 1"), ["d + INTERVAL '1 day' DELETE WHERE a = 1"]);
    assert_eq!(rules("d DELETE WHERE a = 1 OR b IN (1, 2)"), ["d DELETE WHERE a = 1 OR b IN (1, 2)"]);
    assert_eq!(rules("d RECOMPRESS CODEC(ZSTD)"), ["d RECOMPRESS CODEC(ZSTD(1))"]);
    assert_eq!(rules("d + INTERVAL 7 DAY TO DISK 'aaa'"), ["d + INTERVAL '7 day' TO DISK 'aaa'"]);
    assert_eq!(rules("d + INTERVAL 7 DAY TO VOLUME 'bbb'"), ["d + INTERVAL '7 day' TO VOLUME 'bbb'"]);
    assert_eq!(rules("d TO VOLUME IF EXISTS Cold"), ["d TO VOLUME IF EXISTS 'cold'"]);
    assert_eq!(rules("d + INTERVAL 1 DAY TO DISK 'a', d + INTERVAL 1 HOUR RECOMPRESS CODEC(NONE), d").len(), 3);
}

// proves T12
#[test]
fn where_belongs_to_its_own_rule() {
    let parsed = rules("d + INTERVAL 1 DAY DELETE WHERE a = 1, d + INTERVAL 2 DAY TO DISK 'x', d + INTERVAL 3 DAY WHERE b = 2");
    assert_eq!(
        parsed,
        ["d + INTERVAL '1 day' DELETE WHERE a = 1", "d + INTERVAL '2 day' TO DISK 'x'", "d + INTERVAL '3 day' DELETE WHERE b = 2"]
    );
}

// proves T12, F2
#[test]
fn where_after_another_action_is_an_error() {
    let ttl = |rule: &str| format!("CREATE STREAM s (d datetime) TTL {rule}");
    let e = says(&ttl("d RECOMPRESS CODEC(ZSTD) WHERE a = 1"), &["WHERE belongs to DELETE", "RECOMPRESS"]);
    assert_eq!((e.sqlstate, e.position), ("42601", Some(59)));
    says(&ttl("d TO DISK 'x' WHERE a = 1"), &["WHERE belongs to DELETE", "move"]);
    says(&ttl("d TO VOLUME 'x' WHERE a = 1"), &["WHERE belongs to DELETE"]);
    says(&ttl("d GROUP BY k WHERE a = 1"), &["WHERE belongs to DELETE"]);
    says(&ttl("d DELETE WHERE a = 1 WHERE b = 2"), &["already", "AND"]);
}

#[test]
fn actions_need_their_own_time_and_codec() {
    let ttl = |rule: &str| format!("CREATE STREAM s (d datetime) TTL {rule}");
    says(&ttl("d DELETE TO DISK 'x'"), &["TO DISK needs its own time expression"]);
    says(&ttl("d DELETE, RECOMPRESS CODEC(ZSTD)"), &["RECOMPRESS needs its own time expression"]);
    says(&ttl("DELETE"), &["DELETE needs its own time expression"]);
    says(&ttl("d RECOMPRESS ZSTD(17)"), &["RECOMPRESS needs its codec", "CODEC(ZSTD(17))"]);
    says(&ttl("d RECOMPRESS"), &["RECOMPRESS needs its codec"]);
    says(&ttl("d RECOMPRESS CODEC(Delta)"), &["does not compress"]);
    says(&ttl("d RECOMPRESS CODEC(Delta, ZSTD)"), &["does not compress"]);
    says(&ttl("d RECOMPRESS CODEC(ZSTD, LZ4)"), &["one codec"]);
    says(&ttl("d RECOMPRESS CODEC(ZSTD(99))"), &["1 to 22"]);
    says(&ttl("d RECOMPRESS CODEC(LZ4(3))"), &["takes no level"]);
    says(&ttl("d TO 'x'"), &["DISK or VOLUME"]);
    says(&ttl("d TO DISK"), &["a disk"]);
    says(&ttl("d DELETE WHERE (SELECT true)"), &["subquery"]);
    says(&ttl("d + INTERVAL 1 DAY DELETE,"), &["time expression"]);
    says(&ttl("d + INTERVAL 1 FORTNIGHT"), &[]);
    says("CREATE STREAM s (d datetime, x int TTL d DELETE)", &["a column's TTL is a time"]);
}

#[test]
fn group_by_takes_keys_and_assignments() {
    let parsed = rules("d + INTERVAL 1 DAY GROUP BY k, to_date(d) SET x = max(x), y = sum(y), d + INTERVAL 1 YEAR DELETE");
    assert_eq!(parsed, ["d + INTERVAL '1 day' GROUP BY k, to_date(d) SET x = max(x), y = sum(y)", "d + INTERVAL '1 year' DELETE"]);
    assert_eq!(rules("d GROUP BY k, d TO DISK 'x'"), ["d GROUP BY k", "d TO DISK 'x'"]);
    assert_eq!(rules("d GROUP BY a, b"), ["d GROUP BY a, b"]);
}

// proves T16
#[test]
fn conditional_delete_example() {
    let s = create(
        "CREATE STREAM table_with_where (d datetime, a int) PARTITION BY to_YYYYMM(d) ORDER BY d \
         TTL d + INTERVAL 1 MONTH DELETE WHERE to_day_of_week(d) = 1;",
    );
    assert_eq!(s.partition_by.as_ref().unwrap()[0].text, "to_yyyymm(d)");
    assert_eq!(s.order_by.as_ref().unwrap()[0].text, "d");
    let [Rule { when, action: Action::Delete { only: Some(only) }, .. }] = s.ttl.as_slice() else { panic!("{:?}", s.ttl) };
    assert_eq!((when.text.as_str(), only.text.as_str()), ("d + INTERVAL '1 month'", "to_day_of_week(d) = 1"));
}

// proves T17, T18, T20
#[test]
fn recompression_example() {
    let s = create(
        "CREATE STREAM table_for_recompression (d datetime, key uint64, value string) ENGINE = Stream ORDER BY tuple() PARTITION BY key \
         TTL d + INTERVAL 1 MONTH RECOMPRESS CODEC(ZSTD(17)), d + INTERVAL 1 YEAR RECOMPRESS CODEC(LZ4HC(10)) \
         SETTINGS min_rows_for_wide_part = 0, min_bytes_for_wide_part = 0",
    );
    assert_eq!(s.order_by, Some(Vec::new()));
    assert_eq!(s.partition_by.as_ref().map(Vec::len), Some(1));
    let codecs: Vec<&Action> = s.ttl.iter().map(|r| &r.action).collect();
    assert_eq!(codecs, [&Action::Recompress(Codec::Zstd(17)), &Action::Recompress(Codec::Lz4hc(10))]);
    assert_eq!(s.settings.len(), 2);
    assert_eq!((s.settings[1].name.as_str(), &s.settings[1].value), ("min_bytes_for_wide_part", &SettingValue::Int(0)));
    let types: Vec<&ColumnType> = s.columns.iter().map(|c| &c.ty).collect();
    assert_eq!(types, [&ColumnType::DateTime(None), &ColumnType::UInt64, &ColumnType::String]);
}

// proves T19, T20
#[test]
fn rules_keep_the_order_written() {
    let s = create(
        "CREATE STREAM example_table (d datetime, a int) PARTITION BY to_YYYYMM(d) ORDER BY d \
         TTL d + INTERVAL 1 MONTH DELETE, d + INTERVAL 1 WEEK TO VOLUME 'aaa', d + INTERVAL 2 WEEK TO DISK 'bbb'",
    );
    let to = |kind, name: &str| Action::Move(Destination { kind, name: name.to_owned(), if_exists: false });
    let actions: Vec<Action> = s.ttl.iter().map(|r| r.action.clone()).collect();
    assert_eq!(actions, [Action::Delete { only: None }, to(DestinationKind::Volume, "aaa"), to(DestinationKind::Disk, "bbb")]);
    assert_eq!(s.ttl[2].when.text, "d + INTERVAL '14 day'");
    assert_eq!(s.columns[1].ty, ColumnType::Int32);
}

// proves T13
#[test]
fn modify_ttl_replaces_the_list() {
    let Verb::AlterStream(alter) = one("ALTER STREAM db.s MODIFY TTL d + INTERVAL 2 DAY").verb else { panic!() };
    assert_eq!(alter.name.to_string(), "db.s");
    let [AlterAction::ModifyTtl(rules)] = alter.actions.as_slice() else { panic!() };
    assert_eq!(rules[0].to_string(), "d + INTERVAL '2 day' DELETE");
}

#[test]
fn several_actions_of_one_alter() {
    let sql =
        "ALTER STREAM s MODIFY TTL d TO DISK 'x', d + INTERVAL 1 DAY, DROP COLUMN a, MODIFY SETTING k = 1, l = 'x', RESET SETTING m, n";
    let Verb::AlterStream(alter) = one(sql).verb else { panic!() };
    assert_eq!(alter.actions.len(), 4);
    assert!(matches!(&alter.actions[0], AlterAction::ModifyTtl(rules) if rules.len() == 2));
    assert!(matches!(&alter.actions[2], AlterAction::ModifySetting(all) if all.len() == 2));
    assert!(matches!(&alter.actions[3], AlterAction::ResetSetting(all) if all.len() == 2));
}

#[test]
fn clauses_stand_in_any_order_each_once() {
    let a = create("CREATE STREAM s (a int, b int) SETTINGS x = 1 TTL b ORDER BY (a, b) PARTITION BY a COMMENT 'c' RETENTION 1 DAY DROP");
    let b = create(
        "CREATE STREAM s (a int, b int) PARTITION BY a RETENTION 1 DAY DROP COMMENT 'c' ORDER BY (a, b) TTL b DELETE SETTINGS x = 1",
    );
    assert_eq!(a, b);
    says("CREATE STREAM s (a int) ORDER BY a ORDER BY a", &["ORDER BY is said twice"]);
    says("CREATE STREAM s (a int) TTL a SETTINGS x = 1 TTL a", &["TTL is said twice"]);
    says("CREATE STREAM s (a int, PRIMARY KEY (a)) PRIMARY KEY (a)", &["PRIMARY KEY is said twice"]);
    says("CREATE STREAM s (a int, a text)", &["column a is defined twice"]);
    says("CREATE STREAM s (a int) SETTINGS x = 1, x = 2", &["setting x is said twice"]);
    says("CREATE STREAM s", &["columns"]);
    says("CREATE STREAM s ()", &[]);
    says("CREATE STREAM s (a)", &["type of column a"]);
    says("CREATE STREAM s (a int b int)", &["','"]);
    says("CREATE STREAM s (a int DEFAULT 1 DEFAULT 2)", &["twice"]);
}

#[test]
fn keys_are_lists_or_expressions() {
    let key = |sql: &str| -> Vec<String> {
        let s = create(&format!("CREATE STREAM s (a int) ORDER BY {sql}"));
        s.order_by.unwrap().into_iter().map(|e| e.text).collect()
    };
    assert_eq!(key("a"), ["a"]);
    assert_eq!(key("(a, lower(b))"), ["a", "lower(b)"]);
    assert_eq!(key("(a)"), ["a"]);
    assert_eq!(key("(a + 1) * 2"), ["(a + 1) * 2"]);
    assert_eq!(key("tuple(a, b)"), ["a", "b"]);
    assert!(key("TUPLE()").is_empty());
    assert_eq!(key("(a ASC, b)"), ["a", "b"]);
    says("CREATE STREAM s (a int) ORDER BY a, b", &["in brackets"]);
    says("CREATE STREAM s (a int) ORDER BY a DESC", &["ascending"]);
    says("CREATE STREAM s (a int) ORDER BY ()", &["tuple()"]);
}

#[test]
fn columns_have_all_options() {
    let s = create(
        "CREATE STREAM s (a int NOT NULL DEFAULT 1 + 2 COMMENT 'c' CODEC(Delta, ZSTD(3)) TTL d + INTERVAL 1 DAY, b nullable(text), \
         c text NULL, d datetime DEFAULT now() NOT NULL, e int MATERIALIZED a IS NOT NULL, f int ALIAS a)",
    );
    let a = &s.columns[0];
    assert_eq!(a.codec, Some(ColumnCodec { preprocessor: Some(Preprocessor::Delta), codec: Codec::Zstd(3) }));
    assert_eq!((a.nullable, a.comment.as_deref(), a.ttl.as_ref().unwrap().text.as_str()), (false, Some("c"), "d + INTERVAL '1 day'"));
    assert_eq!(s.columns.iter().map(|c| c.nullable).collect::<Vec<_>>(), [false, true, true, false, false, false]);
    let default = |i: usize| s.columns[i].default.as_ref().map(|d| (d.kind, d.expr.text.as_str()));
    assert_eq!(default(0), Some((DefaultKind::Default, "1 + 2")));
    assert_eq!(default(3), Some((DefaultKind::Default, "now()")));
    assert_eq!(default(4), Some((DefaultKind::Materialized, "a IS NOT NULL")));
    assert_eq!(default(5), Some((DefaultKind::Alias, "a")));
    says("CREATE STREAM s (a nullable(int) NOT NULL)", &["contradict"]);
    says("CREATE STREAM s (a int CODEC(Delta))", &["does not compress"]);
    says("CREATE STREAM s (a int CODEC(LZ4, ZSTD))", &["one codec"]);
    says("CREATE STREAM s (a int CODEC())", &["a codec"]);
}

#[test]
fn indexes() {
    let s = create(
        "CREATE STREAM s (a int, index int, INDEX i a TYPE minmax, INDEX j lower(b) TYPE bloom_filter, INDEX k (a) TYPE set(9) GRANULARITY 3)",
    );
    assert_eq!(s.columns.len(), 2);
    let kinds: Vec<IndexKind> = s.indexes.iter().map(|i| i.kind.clone()).collect();
    assert_eq!(kinds, [IndexKind::MinMax, IndexKind::BloomFilter(25_000), IndexKind::Set(9)]);
    assert_eq!(s.indexes[2].granularity, 3);
    says("CREATE STREAM s (a int, INDEX i a TYPE bloom_filter(2))", &["0.5"]);
    says("CREATE STREAM s (a int, INDEX i a TYPE ngrambf_v1(3))", &["unknown index type"]);
    says("CREATE STREAM s (a int, INDEX i a TYPE set)", &["set(100)"]);
    says("CREATE STREAM s (a int, INDEX i a TYPE minmax GRANULARITY 0)", &["at least 1"]);
}

#[test]
fn types() {
    let ty = |text: &str| {
        let c = create(&format!("CREATE STREAM s (c {text})")).columns.remove(0);
        (c.ty, c.nullable)
    };
    for (written, canonical) in [
        ("int8", "int8"),
        ("TINYINT", "int8"),
        ("smallint", "int16"),
        ("integer", "int32"),
        ("bigint", "int64"),
        ("UInt64", "uint64"),
        ("float", "float32"),
        ("double", "float64"),
        ("double precision", "float64"),
        ("decimal(10,2)", "decimal(10, 2)"),
        ("numeric(5)", "decimal(5, 0)"),
        ("varchar", "string"),
        ("character varying", "string"),
        ("FixedString(3)", "fixed_string(3)"),
        ("timestamp", "datetime64(6)"),
        ("timestamp(0) with time zone", "datetime64(0, 'UTC')"),
        ("timestamptz", "datetime64(6, 'UTC')"),
        ("DateTime64", "datetime64(3)"),
        ("datetime64(9, '+05:30')", "datetime64(9, '+05:30')"),
        ("LowCardinality(Nullable(String))", "low_cardinality(string)"),
        ("int[][]", "array(nullable(array(nullable(int32))))"),
        ("map(string, array(uint8))", "map(string, array(uint8))"),
        ("enum('a', 'b' = 200)", "enum16('a' = 1, 'b' = 200)"),
    ] {
        let (parsed, null) = ty(written);
        if !written.contains("[][]") {
            assert_eq!(parsed.to_string(), canonical, "{written}");
        }
        let wrapped = if null { format!("nullable({parsed})") } else { parsed.to_string() };
        assert_eq!(ty(&wrapped), (parsed, null), "{written} reads back");
    }
    assert!(ty("low_cardinality(nullable(string))").1);
    for (text, part) in [
        ("decimal", "decimal(18, 4)"),
        ("decimal(39, 2)", "1 to 38"),
        ("decimal(5, 6)", "the scale"),
        ("varchar(255)", "fixed_string(n)"),
        ("char(3)", "fixed_string(n)"),
        ("datetime64(10)", "0 to 9"),
        ("datetime('Europe/Berln')", "'Europe/Berlin'"),
        ("enum8('a' = 1, 'b' = 1)", "once"),
        ("enum8('a' = 500)", "-128 to 127"),
        ("nullable(nullable(int))", "once"),
        ("map(nullable(int), int)", "keys cannot be NULL"),
        ("fixed_string(0)", "1 to"),
        ("strnig", "'string'"),
    ] {
        says(&format!("CREATE STREAM s (c {text})"), &[part]);
    }
    let deep = format!("{}int{}", "array(".repeat(60), ")".repeat(60));
    says(&format!("CREATE STREAM s (c {deep})"), &["nested"]);
}

#[test]
fn retention_stages() {
    let s = create(
        "CREATE STREAM s (a int) RETENTION 7 DAY KEEP WHERE level IN ('a', 'b') AND x, INTERVAL '1 month' DROP, MAX AGE 1 QUARTER, \
         MAX BYTES 1_000, MAX ROWS 5 ORDER BY a",
    );
    let texts: Vec<String> = s.retention.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "INTERVAL '7 day' KEEP WHERE level IN ('a', 'b') AND x",
            "INTERVAL '1 month' DROP",
            "MAX AGE INTERVAL '3 month'",
            "MAX BYTES 1000",
            "MAX ROWS 5"
        ]
    );
    assert_eq!(s.retention[2], Stage::MaxAge(Interval { months: 3, ..Interval::ZERO }));
    says("CREATE STREAM s (a int) RETENTION 7 DAY", &["KEEP WHERE"]);
    says("CREATE STREAM s (a int) RETENTION 0 DAY DROP", &["more than zero"]);
    says("CREATE STREAM s (a int) RETENTION KEEP WHERE x", &["a stage"]);
    says("CREATE STREAM s (a int) RETENTION MAX FILES 3", &["AGE, BYTES or ROWS"]);
    says("CREATE STREAM s (a int) RETENTION MAX BYTES 1.5", &["whole number"]);
}
