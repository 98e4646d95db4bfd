//! Printing and reading back, places, scripts of many statements.

use super::{CORPUS, one, says};
use crate::{
    parse::{parse, parse_expression, parse_interval},
    statement::*,
};
use ebb_storage::interval::Interval;

#[test]
fn every_statement_prints_to_an_equal_one() {
    let all = parse(CORPUS).unwrap_or_else(|e| panic!("{e} at {:?}", e.position));
    assert!(all.len() >= 150, "{}", all.len());
    for statement in &all {
        let printed = statement.to_string();
        let again = one(&printed);
        assert_eq!(statement, &again, "{printed}");
        assert_eq!(printed, again.to_string(), "printing is stable");
        assert_eq!(statement.parameters, again.parameters, "{printed}");
        // Its own text is the statement too.
        assert_eq!(statement, &one(statement.source.text()));
    }
}

#[test]
fn scripts_keep_each_statements_text_and_place() {
    let sql = ";; -- nothing\n SELECT 'ä;' ; /* ; */ DROP STREAM s ;\n\nCOMMIT";
    let all = parse(sql).unwrap();
    let texts: Vec<&str> = all.iter().map(|s| s.source.text()).collect();
    assert_eq!(texts, ["SELECT 'ä;'", "DROP STREAM s", "COMMIT"]);
    let places: Vec<usize> = all.iter().map(|s| s.source.position()).collect();
    assert_eq!(places, [16, 38, 55]);
    assert!(parse("").unwrap().is_empty());
    assert!(parse(" ; -- x\n ; ").unwrap().is_empty());
    assert!(parse("/* open").is_err());
}

#[test]
fn errors_point_at_the_character() {
    // Characters are counted, not bytes, and over lines.
    assert_eq!(says("SELECT 'ä';\nDROP STRAEM s", &["unknown statement 'DROP STRAEM'", "STREAM"]).position, Some(18));
    assert_eq!(says("ALTER STREAM s MODIFY TTL", &["time expression"]).position, Some(26));
    assert_eq!(says("SELECT a FROM s WHERE", &[]).position, Some(22));
    assert_eq!(says("SELECT 1 +* 2", &[]).position, Some(11));
    assert_eq!(says("COMMIT nonsense", &["the end of the statement", "'nonsense'"]).position, Some(8));
    assert_eq!(says("SELECT 'open", &[]).position, Some(8));
}

#[test]
fn unknown_statements_name_the_nearest() {
    says("SELCT 1", &["unknown statement 'SELCT'", "'SELECT'"]);
    says("OPTIMISE STREAM s", &["'OPTIMIZE'"]);
    says("CREATE STORAGE POLICE p AS ''", &["'STORAGE POLICY'"]);
    says("ALTER STREAM s MODFY TTL x", &["unknown action 'MODFY TTL'", "'MODIFY TTL'"]);
    says("CALL expire_snapshot('s')", &["'expire_snapshots'"]);
    says("SYSTEM STOP MERGE", &["'STOP MERGES'"]);
    says("CREATE STREAM s (a int) ODER BY a", &["'ORDER'"]);
    says("CREATE STREAM s (a integre)", &["unknown type 'integre'", "'integer'"]);
    says("CREATE STREAM s (a int CODEC(ZSDT))", &["'ZSTD'"]);
    says("COPY s FROM STDIN WITH (FORMT csv)", &["unknown option 'formt'", "'format'"]);
    assert!(!parse("xyzzyplugh").unwrap_err().message.contains("did you mean"));
}

#[test]
fn names_fold_and_quote() {
    let Verb::DropStream(drop) = one("DROP STREAM MyDb.\"MyStream\".`a\"b`").verb else { panic!() };
    assert_eq!(drop.names[0].parts.iter().map(Name::as_str).collect::<Vec<_>>(), ["mydb", "MyStream", "a\"b"]);
    assert_eq!(drop.names[0].to_string(), "mydb.\"MyStream\".\"a\"\"b\"");
    assert_eq!(quote_name("select"), "\"select\"");
    assert_eq!(quote_name("level"), "level");
    assert_eq!(quote_name("1a"), "\"1a\"");
    assert_eq!(quote_name(""), "\"\"");
    says("DROP STREAM a.b.c.d", &["at most three parts"]);
    says("DROP STREAM \"\"", &[]);
}

#[test]
fn queries_name_their_versions() {
    let sql = "SELECT * FROM db.S VERSION AS OF 'Tag' a, t VERSION AS OF $1 JOIN (SELECT * FROM u TIMESTAMP AS OF '2026-01-01') q ON true \
               WHERE x IN (SELECT y FROM v FOR SYSTEM_TIME AS OF now())";
    let statement = one(sql);
    assert_eq!(statement.parameters, 1);
    let Verb::Query(query) = statement.verb else { panic!() };
    let named: Vec<String> = query.versions.iter().map(|v| format!("{} {}", v.name, describe(&v.at))).collect();
    assert_eq!(named, ["db.s version 'Tag'", "t version $1", "u time '2026-01-01'", "v time now()"]);
    assert_eq!(query.versions[1].position.0, 43);
    // The tree says what was written, not how it was read.
    assert!(query.ast.to_string().contains("VERSION AS OF 'Tag'"), "{}", query.ast);
    says("SELECT * FROM s VERSION AS OF 1 + ", &[]);
    let sql = "DELETE FROM s AS old WHERE a IN (SELECT b FROM t VERSION AS OF 'x')";
    assert_eq!(one(sql).verb.to_string(), sql);
    assert_eq!(one(sql), one("delete from s old where a in (select b from t version as of 'x')"));
    says("INSERT INTO s VALUES ((SELECT b FROM t VERSION AS OF 3))", &["version"]);
    says("SELECT __ebb_version('x')", &["behind a stream"]);
}

#[test]
fn versions_are_constants_parameters_or_brackets_and_casts_of_them() {
    for version in ["3", "'t'", "$1", "$1::bigint", "'41'::decimal(3, 0)::bigint", "(1 + 2)"] {
        for behind in ["", " AS x", " x WHERE a = 1", " JOIN t ON true", " VERSION"] {
            let sql = format!("SELECT * FROM s VERSION AS OF {version}{behind}");
            let Verb::Query(query) = one(&sql).verb else { panic!() };
            let AsOf::Version(said) = &query.versions[0].at else { panic!("{sql}") };
            assert_eq!(said.to_string().to_lowercase().replace(' ', ""), version.replace(' ', ""), "{sql}");
        }
    }
    for wrong in [
        "SELECT * FROM s VERSION AS OF",
        "SELECT * FROM s VERSION AS OF a",
        "SELECT * FROM s x VERSION AS OF 3",
        "SELECT * FROM s VERSION AS OF (1",
    ] {
        says(wrong, &[]);
    }
}

fn describe(at: &AsOf) -> String {
    match at {
        AsOf::Version(e) => format!("version {e}"),
        AsOf::Timestamp(e) => format!("time {e}"),
    }
}

#[test]
fn insert_values_keep_defaults_and_count_values() {
    let Verb::Insert(insert) = one("INSERT INTO s VALUES (1, DEFAULT, -2), ('a', NULL, $3)").verb else { panic!() };
    let InsertRows::Values { rows, .. } = insert.rows else { panic!() };
    assert_eq!(rows.len(), 2);
    assert!(is_default(&rows[0][1]));
    assert!(!is_default(&rows[1][1]));
    assert_eq!(rows[0][2].to_string(), "-2");
    assert_eq!(says("INSERT INTO s VALUES (1, 2), (3)", &["row 2", "1 values", "2"]).position, Some(30));
    says("INSERT INTO s VALUES ()", &["a value"]);
    says("INSERT INTO s VALUES (1,)", &["a value"]);
    says("INSERT INTO s VALUES (1", &["','"]);
    says("INSERT INTO s (a) (b) VALUES (1)", &[]);
}

#[test]
fn large_inserts_parse() {
    let row = "(1, 'some text', -2.5, NULL, '2026-01-01 00:00:00')";
    let sql = format!("INSERT INTO s VALUES {}", vec![row; 50_000].join(","));
    let Verb::Insert(Insert { rows: InsertRows::Values { rows, .. }, .. }) = one(&sql).verb else { panic!() };
    assert_eq!((rows.len(), rows[49_999].len()), (50_000, 5));
}

#[test]
fn settings_take_every_form_of_set() {
    let set = |sql: &str| match one(sql).verb {
        Verb::Set(set) => (set.scope, set.name, set.value),
        other => panic!("{other:?}"),
    };
    let text = |t: &str| SetValue::Values(vec![Literal::Text(t.to_owned())]);
    assert_eq!(set("SET TimeZone TO UTC"), (SetScope::Session, "timezone".to_owned(), text("utc")));
    assert_eq!(set("SET TIME ZONE 'Europe/Berlin'"), (SetScope::Session, "timezone".to_owned(), text("Europe/Berlin")));
    assert_eq!(set("SET TIME ZONE DEFAULT"), (SetScope::Session, "timezone".to_owned(), SetValue::Default));
    assert_eq!(set("SET GLOBAL row_retention = on"), (SetScope::Global, "row_retention".to_owned(), text("on")));
    assert_eq!(set("SET LOCAL a.b = -1").2, SetValue::Values(vec![Literal::Number("-1".to_owned())]));
    assert_eq!(set("SET global = 1").1, "global");
    assert_eq!(set("SET SCHEMA 'x'"), (SetScope::Session, "search_path".to_owned(), text("x")));
    let Verb::Begin(modes) = one("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE").verb else { panic!() };
    assert_eq!(modes, TransactionModes { isolation: Some(Isolation::Serializable), read_only: Some(true), deferrable: Some(true) });
}

#[test]
fn intervals_are_read_as_people_write_them() {
    let interval = |text: &str| parse_interval(text).unwrap();
    let of = |months, days, micros| Interval { months, days, micros };
    assert_eq!(interval("1 quarter"), of(3, 0, 0));
    assert_eq!(interval("2 weeks"), of(0, 14, 0));
    assert_eq!(interval("1 year 6 months 3 days 04:05:06.5"), of(18, 3, 14_706_500_000));
    assert_eq!(interval("-1.5 hours"), of(0, 0, -5_400_000_000));
    assert_eq!(interval("1.5 days"), of(0, 1, 43_200_000_000));
    assert_eq!(interval("0.5 year"), of(6, 0, 0));
    assert_eq!(interval("10ms"), of(0, 0, 10_000));
    for (wrong, says) in [
        ("", "empty"),
        ("5", "lacks a unit"),
        ("day", "no interval"),
        ("1 dya", "'day'"),
        ("0.3 month", "no fixed length"),
        ("99999999999 years", "out of range"),
        ("9999999999999999999999 days", "out of range"),
        ("1:2:3:4", "no time"),
        ("1-2 days", "no number"),
    ] {
        let e = parse_interval(wrong).unwrap_err();
        assert!(e.message.contains(says), "{wrong}: {e}");
    }
}

#[test]
fn expressions_have_one_text() {
    let text = |sql: &str| parse_expression(sql).unwrap_or_else(|e| panic!("{sql}: {e}")).text;
    assert_eq!(text("to_YYYYMM(D)"), "to_yyyymm(d)");
    assert_eq!(text("(\"d\" + interval 1 MONTH)"), "d + INTERVAL '1 month'");
    assert_eq!(text("d + INTERVAL '1' QUARTER"), "d + INTERVAL '3 month'");
    assert_eq!(text("`Order` <> $$it's$$"), "\"Order\" <> 'it''s'");
    assert_eq!(text("\"select\" != 1"), "\"select\" <> 1");
    assert_eq!(text("a IS NOT NULL and B in (1,2)"), "a IS NOT NULL AND b IN (1, 2)");
    assert_eq!(text("x = 'a''''b'"), text("X='a''''b'"));
    assert_eq!(text("CAST(a AS int8)"), "CAST(a AS INT8)");
    let same = parse_expression("d + INTERVAL 30 DAY").unwrap();
    assert_eq!(parse_expression(&same.text).unwrap(), same);
    assert!(parse_expression("a, b").is_err());
    assert!(parse_expression("").is_err());
    assert!(parse_expression("a; b").is_err());
    assert!(parse_expression("(SELECT 1)").unwrap_err().message.contains("subquery"));
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_text() {
    assert_eq!(parse("\u{feff}SELECT 1; SELECT 2").unwrap().len(), 2);
    let e = parse("\u{feff}SELEKT 1").unwrap_err();
    assert_eq!(e.position, Some(2), "{e:?}");
}
