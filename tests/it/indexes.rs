//! INDEX over an expression: parts that cannot hold what a filter asks for are not opened, and no row is passed over.

use crate::support::{clock, lines, open};
use ebb::Database;

async fn rows(db: &Database, sql: &str) -> Vec<String> {
    let rows = Box::pin(async { db.sql(sql).await?.collect().await }).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    rows.iter().flat_map(lines).collect()
}

/// How many parts a query reads.
async fn opened(db: &Database, stream: &str, filter: &str) -> usize {
    rows(db, &format!("EXPLAIN SELECT k FROM {stream} WHERE {filter}")).await.join("\n").matches(".parquet").count()
}

#[tokio::test]
async fn an_index_over_an_expression_keeps_parts_from_being_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let columns = "k int64, code nullable(string), t datetime";
    let indexes = ", INDEX c lower(code) TYPE set(4), INDEX m k % 100 TYPE bloom_filter, INDEX d to_date(t) TYPE minmax, \
                   INDEX l length(code) + 1 TYPE minmax, INDEX two concat(lower(code), '/', k % 2) TYPE set(10)";
    for (name, indexes) in [("i", indexes), ("plain", "")] {
        db.execute(&format!("CREATE STREAM {name} ({columns}{indexes}) PARTITION BY tuple() ORDER BY k")).await.unwrap();
        for values in [
            "(1, 'A', '2026-01-01'), (101, 'M', '2026-01-05 10:00:00'), (901, 'z', '2026-01-09')",
            "(2, 'a', '2026-01-02'), (102, 'Nn', '2026-01-04'), (902, 'Z', '2026-01-08')",
            "(3, 'a', '2026-02-01'), (103, 'b', '2026-02-01'), (203, 'c', '2026-02-01'), (303, 'D', '2026-02-01'), (903, 'z', '2026-02-02')",
            "(4, NULL, '2026-03-01'), (104, 'A', '2026-03-01')",
        ] {
            db.execute(&format!("INSERT INTO {name} VALUES {values}")).await.unwrap();
            db.execute("SYSTEM FLUSH").await.unwrap();
        }
    }
    let filters = [
        // The third has too many values for the set: its bounds alone tell.
        ("lower(code) = 'm'", Some(2)),
        ("lower(code) IN ('nn', 'q')", Some(2)),
        ("lower(code) = 'a'", Some(4)),
        ("lower(code) = 'q'", Some(1)),
        ("lower(code) > 'y'", Some(3)),
        ("lower(code) = 'M'", Some(0)),
        ("LOWER(code) LIKE 'n%'", None),
        ("lower(code) IS NULL", None),
        ("lower(code) <> 'a'", None),
        ("NOT (lower(code) = 'a')", None),
        ("lower(code) NOT IN ('a', 'z')", None),
        ("coalesce(lower(code), 'none') = 'none'", None),
        ("lower(code) = 'm' OR k = 4", Some(4)),
        ("lower(code) = 'm' AND k < 50", None),
        ("k % 100 = 2", Some(1)),
        ("k % 100 IN (1, 4)", Some(2)),
        ("2 = k % 100 AND lower(code) = 'nn'", Some(1)),
        ("k % 101 = 2", None),
        ("to_date(t) = '2026-01-05'", None),
        ("to_date(t) BETWEEN '2026-01-20' AND '2026-02-10'", Some(1)),
        ("length(code) + 1 = 3", None),
        ("length(code) + 1 > 2", None),
        ("length(code) > 1", None),
        ("concat(lower(code), '/', k % 2) = 'm/1'", Some(1)),
        ("concat(lower(code), '/', k % 2) = 'm/0'", Some(0)),
        ("upper(code) = 'M'", None),
    ];
    let check = async |of_parts: bool| {
        for (filter, parts) in filters {
            let select = |name: &str| format!("SELECT k, code FROM {name} WHERE {filter} ORDER BY k");
            assert_eq!(rows(&db, &select("i")).await, rows(&db, &select("plain")).await, "{filter}");
            if let Some(parts) = parts.filter(|_| of_parts) {
                assert_eq!(opened(&db, "i", filter).await, parts, "{filter}");
            }
        }
    };
    check(true).await;
    // DELETE looks only where it may find something, and finds all.
    for (filter, n) in [("lower(code) = 'nn'", 1), ("k % 100 = 3 AND lower(code) IN ('b', 'q')", 1), ("lower(code) = 'q'", 0)] {
        for name in ["i", "plain"] {
            let count = format!("SELECT count(*) FROM {name} WHERE {filter}");
            assert_eq!(rows(&db, &count).await, [n.to_string()], "{filter}");
            db.execute(&format!("DELETE FROM {name} WHERE {filter}")).await.unwrap();
            assert_eq!(rows(&db, &count).await, ["0"], "{filter}");
        }
    }
    check(true).await;
    assert_eq!(rows(&db, "SELECT count(*) FROM i VERSION AS OF 2 WHERE lower(code) = 'nn'").await, ["1"]);
    // Merged, a part has the values of all.
    db.execute("OPTIMIZE STREAM i FINAL").await.unwrap();
    check(false).await;
    assert_eq!((opened(&db, "i", "k % 100 = 50").await, opened(&db, "i", "k % 100 = 4").await), (0, 1));
    db.execute("INSERT INTO i VALUES (5, 'Q', '2026-04-01')").await.unwrap();
    assert_eq!(rows(&db, "SELECT k FROM i WHERE lower(code) = 'q'").await, ["5"], "rows of the tail are there");
    // Under another name what was written before is read, and what is written then is known.
    db.execute("ALTER STREAM i RENAME COLUMN code TO name").await.unwrap();
    let shown = rows(&db, "SHOW CREATE STREAM i").await.concat();
    assert!(shown.contains("INDEX c lower(name)") || shown.contains("INDEX c lower(\"name\")"), "{shown}");
    assert_eq!(rows(&db, "SELECT k FROM i WHERE lower(name) = 'm'").await, ["101"]);
    assert_eq!(rows(&db, "SELECT k FROM i WHERE k % 100 = 5").await, ["5"]);
    db.execute("OPTIMIZE STREAM i FINAL").await.unwrap();
    assert_eq!((opened(&db, "i", "k % 100 = 50").await, rows(&db, "SELECT k FROM i WHERE k % 100 = 4").await.len()), (0, 2));
    db.close().await.unwrap();
}

#[tokio::test]
async fn min_max_and_count_of_all_rows_read_none() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (t datetime, v nullable(int64), w float64) PARTITION BY to_YYYYMM(t) ORDER BY t").await.unwrap();
    for values in ["('2026-01-01', 5, 1)", "('2026-02-01', NULL, 2), ('2026-02-02', 7, 3)"] {
        db.execute(&format!("INSERT INTO s VALUES {values}")).await.unwrap();
        db.execute("SYSTEM FLUSH").await.unwrap();
    }
    // Of the tail.
    db.execute("INSERT INTO s VALUES ('2025-12-01', 6, 4)").await.unwrap();
    let of = |what: &str, more: &str| format!("SELECT {what} FROM s {more}");
    for (what, more, answer, reads) in [
        ("min(t), max(v), count(*)", "", "2025-12-01 00:00:00|7|4", false),
        ("max(t)", "", "2026-02-02 00:00:00", false),
        ("min(w), max(v)", "", "1|7", true),
        ("min(t)", "WHERE v > 5", "2025-12-01 00:00:00", true),
        ("min(t)", "WHERE t::date > '2025-12-01'", "2026-01-01 00:00:00", true),
    ] {
        let sql = of(what, more);
        assert_eq!(rows(&db, &sql).await, [answer], "{sql}");
        let plan = rows(&db, &format!("EXPLAIN {sql}")).await.join("\n");
        assert_eq!(plan.contains("DataSource"), reads, "{sql}: {plan}");
    }
}
