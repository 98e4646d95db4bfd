use super::names::{Care, label, shown};
use crate::statement::Verb;
use datafusion::sql::sqlparser::ast::{Query, SelectItem, SetExpr};

fn query(sql: &str) -> Box<Query> {
    match crate::parse::parse(sql).unwrap().remove(0).verb {
        Verb::Query(q) => q.ast,
        other => panic!("{other:?}"),
    }
}

/// Names of the outermost select's columns as they are shown, after asserting that they differ to the planner.
fn named(sql: &str, care: Care) -> Vec<String> {
    let mut q = query(sql);
    label(&mut q, care).unwrap();
    let SetExpr::Select(select) = q.body.as_ref() else { panic!("{sql}") };
    let name = |i: &SelectItem| match i {
        SelectItem::UnnamedExpr(e) => e.to_string(),
        SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
        other => other.to_string(),
    };
    let names: Vec<String> = select.projection.iter().map(name).collect();
    for (i, n) in names.iter().enumerate() {
        assert!(!names[..i].contains(n), "{sql}: {n} twice");
    }
    names.iter().map(|n| shown(n).to_owned()).collect()
}

#[test]
fn columns_have_postgres_names() {
    for (sql, expected) in [
        ("SELECT 1, 1 + 1, 'x', NULL", vec!["?column?", "?column?", "?column?", "?column?"]),
        ("SELECT count(*), sum(a), COUNT(1) FROM s", vec!["count", "sum", "count"]),
        ("SELECT a, a, s.a, A, \"B\" FROM s", vec!["a", "a", "a", "a", "\"B\""]),
        ("SELECT a::text, a::int, 1::int, '2'::bigint, date '2024-01-01' FROM s", vec!["a", "a", "int4", "int8", "date"]),
        ("SELECT *, a FROM s", vec!["*", "a"]),
        ("SELECT a AS x, b AS x FROM s", vec!["x", "x"]),
        ("SELECT CASE WHEN a THEN 1 ELSE 2 END, CASE WHEN a THEN b ELSE c END FROM s", vec!["case", "c"]),
        ("SELECT (SELECT max(a) FROM s), true, m['k'], now() AT TIME ZONE 'UTC' FROM s", vec!["max", "bool", "m", "timezone"]),
        ("SELECT sum_if(a, b), if(a, 1, 2) FROM s", vec!["sum_if", "if"]),
    ] {
        assert_eq!(named(sql, Care::Text), expected, "{sql}");
    }
}

#[test]
fn what_is_shown_has_no_invisible_ending() {
    let mut q = query("SELECT 1, 1");
    label(&mut q, Care::Text).unwrap();
    assert!(q.to_string().contains('\u{2060}'));
    assert_eq!(shown("k"), "k");
}

#[test]
fn columns_that_are_named_once_stay_as_they_are() {
    for sql in ["SELECT a, b AS c FROM s", "SELECT * FROM s", "SELECT * FROM (SELECT a, b FROM s) AS t", "SELECT a FROM s GROUP BY a"] {
        let mut q = query(sql);
        let before = q.to_string();
        label(&mut q, Care::Text).unwrap();
        assert_eq!(q.to_string(), before);
    }
}

#[test]
fn inner_names_are_what_outer_selects_call_them() {
    let mut q = query("SELECT count FROM (SELECT count(*) FROM s) AS t");
    label(&mut q, Care::Text).unwrap();
    assert_eq!(q.to_string(), "SELECT count FROM (SELECT count(*) AS \"count\" FROM s) AS t");
}

#[test]
fn an_order_by_what_two_columns_are_called_is_refused() {
    let refused = |sql| label(&mut query(sql), Care::Text).unwrap_err().sqlstate();
    assert_eq!(refused("SELECT a AS x, b AS x FROM s ORDER BY x"), "42702");
    assert!(label(&mut query("SELECT a AS x, a AS x FROM s ORDER BY x"), Care::Text).is_ok());
}
