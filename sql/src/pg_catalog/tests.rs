use super::{names, rewrite, types};
use crate::statement::Verb;
use datafusion::sql::sqlparser::ast::Query;

fn query(sql: &str) -> Box<Query> {
    let statement = crate::parse::parse(sql).unwrap().remove(0);
    match statement.verb {
        Verb::Query(q) => q.ast,
        other => panic!("{other:?}"),
    }
}

fn rewritten(sql: &str) -> String {
    let mut ast = query(sql);
    rewrite(&mut ast, "default");
    ast.to_string()
}

#[test]
fn numbers_of_relations_follow_ids_and_stay_apart() {
    assert_eq!(names::stream_oid(ebb_storage::ids::StreamId(7)), 100_007);
    assert_eq!(names::database_oid("a"), names::database_oid("a"));
    assert_ne!(names::database_oid("a"), names::database_oid("b"));
    assert!(u32::try_from(names::database_oid("default")).is_ok());
}

#[test]
fn types_have_names_and_numbers_both_ways() {
    assert_eq!(types::format_type(1700, types::numeric_typmod(12, 3)), "numeric(12,3)");
    assert_eq!(types::format_type(1700, -1), "numeric");
    assert_eq!(types::format_type(1009, -1), "text[]");
    assert_eq!(types::format_type(0, -1), "-");
    for t in types::TYPES {
        assert_eq!(types::type_oid(t.name), Some(t.oid), "{}", t.name);
    }
    assert_eq!(types::type_oid("double precision[]"), Some(1022));
    assert_eq!(types::type_oid("nothing"), None);
}

#[test]
fn what_only_postgres_writes_is_rewritten() {
    let cases = [
        (
            "SELECT 1 FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(s)$' COLLATE pg_catalog.default",
            "SELECT 1 FROM pg_catalog.pg_class WHERE relname ~ '^(s)$'",
        ),
        ("SELECT 's'::regclass::oid", "SELECT ebb_regclass('s')::oid AS \"s\""),
        ("SELECT current_database()", "SELECT 'default' AS \"current_database\""),
        ("SELECT 1 WHERE 'r' = ANY (ARRAY['r','p'])", "SELECT 1 WHERE 'r' IN ('r', 'p')"),
        ("SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE weird(i.indkey))", "SELECT false"),
        ("SELECT (SELECT weird(x) FROM pg_policy) AS p", "SELECT NULL AS p"),
        ("SELECT weird(x) AS w, i.y FROM pg_index i ORDER BY odd(1)", "SELECT NULL AS \"w\", NULL AS \"y\" WHERE false"),
        ("SELECT (SELECT string_agg(x, weird(1)) FROM pg_class) AS q FROM pg_index", "SELECT NULL AS \"q\" WHERE false"),
        ("SELECT count(*) FROM pg_index", "SELECT count(*) FROM pg_catalog.pg_index"),
    ];
    for (from, to) in cases {
        let got = rewritten(from);
        if from.contains("regclass") {
            assert!(got.starts_with("SELECT ebb_regclass('s')::oid"), "{got}");
        } else {
            assert_eq!(got, to, "{from}");
        }
    }
}

#[test]
fn a_left_join_of_an_empty_table_keeps_rows() {
    let sql = "SELECT c.relname FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid";
    assert!(rewritten(sql).contains("pg_catalog.pg_class"), "{}", rewritten(sql));
}

#[test]
fn plain_queries_ask_for_nothing() {
    let mut ast = query("SELECT a, count(*) FROM s GROUP BY a");
    let before = ast.to_string();
    let ask = rewrite(&mut ast, "default");
    assert!(!ask.catalogue);
    assert_eq!(ast.to_string(), before);
}
