//! Cuts as parameters, through the Rust API.

use super::Lab;
use crate::support::lines;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use ebb::{Outcome, Session};
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

async fn run(session: &mut Session, sql: &str, values: Vec<ScalarValue>) -> ebb::Result<Vec<String>> {
    let statement = session.parse(sql)?.remove(0);
    let prepared = session.prepare(statement, &[]).await?;
    match session.execute(&prepared, values, CancellationToken::new()).await? {
        Outcome::Rows { mut stream, .. } => {
            let mut rows = Vec::new();
            while let Some(batch) = stream.next().await {
                rows.extend(lines(&batch?));
            }
            Ok(rows)
        }
        _ => Ok(Vec::new()),
    }
}

fn text(t: &str) -> ScalarValue {
    ScalarValue::Utf8(Some(t.to_owned()))
}

#[tokio::test]
async fn parameters_are_cuts_and_are_resolved_as_the_statement_runs() {
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM s (a int64) ORDER BY a").await;
    for n in 1..=3 {
        lab.rows(&format!("INSERT INTO s VALUES ({n})")).await;
        lab.advance("1 hour").await;
    }
    lab.rows("ALTER STREAM s CREATE TAG t AS OF VERSION 2").await;
    let mut session = lab.inside.db.session();
    let by_version = "SELECT count(*) FROM s VERSION AS OF $1";
    for (value, rows) in [
        (ScalarValue::Int64(Some(1)), "1"),
        (ScalarValue::Int32(Some(3)), "3"),
        (text("t"), "2"),
        // A client that sends everything as text: no ref is called so.
        (text("1"), "1"),
    ] {
        assert_eq!(run(&mut session, by_version, vec![value.clone()]).await.unwrap(), [rows], "{value}");
    }
    let e = run(&mut session, by_version, vec![ScalarValue::Utf8(None)]).await.unwrap_err();
    assert_eq!(e.sqlstate(), "42804", "{e}");
    for (sql, values) in [("'1'", vec![]), ("'1'::text", vec![]), ("$1::text", vec![text("1")])] {
        let sql = format!("SELECT count(*) FROM s VERSION AS OF {sql}");
        assert_eq!(run(&mut session, &sql, values).await.unwrap_err().sqlstate(), "42704", "{sql}: a text is a name");
    }

    // What a client is told of the parameters, and of the columns.
    let parser = lab.inside.db.session();
    let told = |sql: &str| parser.parse(sql).unwrap().remove(0);
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for (sql, types) in [
        ("SELECT a FROM s VERSION AS OF $1 WHERE a > $2", vec![DataType::Int64, DataType::Int64]),
        ("SELECT a FROM s VERSION AS OF $1::text", vec![DataType::Utf8View]),
        ("SELECT a FROM s TIMESTAMP AS OF $1", vec![utc.clone()]),
        ("SELECT * FROM snapshots($1)", vec![DataType::Utf8]),
        ("DELETE FROM s WHERE a = $1 AND a IN (SELECT a FROM s VERSION AS OF $2)", vec![DataType::Int64, DataType::Int64]),
        (
            "CALL expire_snapshots($1, older_than => $2, retain_last => $3, dry_run => $4)",
            vec![DataType::Utf8, utc, DataType::Int64, DataType::Boolean],
        ),
        ("ALTER STREAM s CREATE TAG x AS OF VERSION $1", vec![DataType::Int64]),
    ] {
        let prepared = session.prepare(told(sql), &[]).await.unwrap();
        assert_eq!(prepared.parameter_types(), types, "{sql}");
    }

    // Columns that only a parameter tells are told once it is there.
    lab.rows("CREATE READER r ON s FROM 1").await;
    for (sql, types, params, columns, rows) in [
        (
            "SELECT * FROM changes($1, $2, $3)",
            vec![DataType::Utf8, DataType::Int64, DataType::Int64],
            vec![text("s"), ScalarValue::Int64(Some(1)), ScalarValue::Int64(Some(3))],
            vec!["a", "_tp_sn"],
            vec!["2|2", "3|3"],
        ),
        ("SELECT a + 1 AS b FROM read($1) ORDER BY a", vec![DataType::Utf8], vec![text("r")], vec!["b"], vec!["3", "4"]),
    ] {
        let prepared = session.prepare(told(sql), &[]).await.unwrap();
        assert_eq!((prepared.parameter_types(), &prepared.result), (types, &None), "{sql}");
        assert_eq!(prepared.undecided.as_ref().unwrap().sqlstate(), "42P18", "{sql}");
        let schema = session.columns(&prepared, &params).await.unwrap().unwrap();
        assert_eq!(schema.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>(), columns, "{sql}");
        let mut found = run(&mut session, sql, params).await.unwrap();
        found.sort();
        assert_eq!(found, rows, "{sql}");
    }
    let unknown = session.prepare(told("SELECT * FROM read($1)"), &[]).await.unwrap();
    assert_eq!(session.columns(&unknown, &[text("rr")]).await.unwrap_err().sqlstate(), "42704");
    // Nor is any other mistake hidden by it.
    assert_eq!(session.prepare(told("SELECT * FROM read($1), nowhere"), &[]).await.unwrap().parameters.len(), 1);
    assert_eq!(session.prepare(told("SELECT * FROM nowhere"), &[]).await.unwrap_err().sqlstate(), "42P01");

    // One prepared statement: its cut is that of each run.
    let head = session.prepare(told("SELECT count(*) FROM s TIMESTAMP AS OF now()"), &[]).await.unwrap();
    for rows in 3..6 {
        let Outcome::Rows { mut stream, .. } = session.execute(&head, Vec::new(), CancellationToken::new()).await.unwrap() else {
            panic!()
        };
        assert_eq!(lines(&stream.next().await.unwrap().unwrap()), [rows.to_string()]);
        lab.rows(&format!("INSERT INTO s VALUES ({rows})")).await;
    }
    // EXPLAIN shows the cut, and no other position reads anything else.
    let plans = lab.rows("EXPLAIN SELECT a FROM s VERSION AS OF 't' UNION ALL SELECT a FROM s VERSION AS OF 1").await.join("\n");
    assert!(plans.contains("default.s VERSION AS OF 't'") && plans.contains("default.s VERSION AS OF 1"), "{plans}");
    // Equal but for the cut: each keeps its own answer.
    let twins = "SELECT (SELECT max(a) FROM s VERSION AS OF 1), (SELECT max(a) FROM s VERSION AS OF 2), (SELECT max(a) FROM s), \
                 (SELECT max(a) FROM s TIMESTAMP AS OF '2026-03-01 00:00')";
    assert_eq!(lab.row(twins).await, "1|2|5|1");
    // A tag of other columns is no answer to who was told of these.
    lab.rows("ALTER STREAM s ADD COLUMN b string DEFAULT 'x'").await;
    let all = session.prepare(told("SELECT * FROM s VERSION AS OF $1"), &[]).await.unwrap();
    assert!(session.execute(&all, vec![ScalarValue::Int64(Some(1))], CancellationToken::new()).await.is_ok());
    let e = session.execute(&all, vec![text("t")], CancellationToken::new()).await.err().unwrap();
    assert!(e.message().contains("must not change result type"), "{e}");
}

/// COPY of a branch, of a cut, and into a branch.
#[tokio::test]
async fn copy_reads_cuts_and_writes_branches() {
    use bytes::Bytes;
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM s (a int64, b string) ORDER BY a").await;
    lab.rows("INSERT INTO s VALUES (1, 'x')").await;
    lab.rows("ALTER STREAM s CREATE BRANCH dev").await;
    lab.rows("INSERT INTO s VALUES (2, 'main')").await;
    let mut session = lab.inside.db.session();
    let begin = async |session: &mut Session, sql: &str| {
        let statement = session.parse(sql)?.remove(0);
        let prepared = session.prepare(statement, &[]).await?;
        session.execute(&prepared, Vec::new(), CancellationToken::new()).await
    };
    let Outcome::CopyIn(mut copy) = begin(&mut session, "COPY s.branch_dev (a, b) FROM STDIN (FORMAT csv)").await.unwrap() else {
        panic!()
    };
    copy.data(Bytes::from_static(b"10,copied\n11,copied\n")).await.unwrap();
    assert_eq!(copy.finish().await.unwrap(), 2);
    // As do batches of the API.
    let batch =
        arrow::array::RecordBatch::try_from_iter([("a", std::sync::Arc::new(arrow::array::Int64Array::from(vec![12])) as _)]).unwrap();
    assert_eq!(lab.inside.db.stream("s.branch_dev").append(batch).await.unwrap(), 1);
    lab.rows("DELETE FROM s.branch_dev WHERE a = 12").await;
    let unknown = begin(&mut session, "COPY s.branch_nothing FROM STDIN").await;
    assert_eq!(unknown.err().unwrap().sqlstate(), "42704");
    for (sql, wanted) in [
        ("COPY s.branch_dev TO STDOUT (FORMAT csv)", vec!["10|copied", "11|copied", "1|x"]),
        ("COPY default.s.branch_dev (b) TO STDOUT (FORMAT csv)", vec!["copied", "copied", "x"]),
        ("COPY (SELECT a FROM s VERSION AS OF 1) TO STDOUT (FORMAT csv)", vec!["1"]),
        ("COPY (SELECT a FROM s VERSION AS OF 'dev' WHERE a > 10) TO STDOUT (FORMAT csv)", vec!["11"]),
        ("COPY s TO STDOUT (FORMAT csv)", vec!["1|x", "2|main"]),
    ] {
        let Outcome::CopyOut(mut copy) = begin(&mut session, sql).await.unwrap() else { panic!() };
        let mut found = Vec::new();
        while let Some(batch) = copy.stream.next().await {
            found.extend(lines(&batch.unwrap()));
        }
        found.sort_unstable();
        assert_eq!(found, wanted, "{sql}");
    }
}

/// The statements that the README shows, in its order.
#[tokio::test]
async fn the_readme_runs() {
    let mut lab = Lab::new().await;
    let text = include_str!("../../../README.md");
    let section = |title: &str| {
        let from = text.find(&format!("## {title}\n")).unwrap();
        let rest = &text[from + 3..];
        let rest = &rest[..rest.find("\n## ").unwrap()];
        let sql = rest.split("```sql\n").nth(1).unwrap();
        sql[..sql.find("```").unwrap()].to_owned()
    };
    lab.rows(&section("A minute of it")).await;
    for n in 0..45 {
        lab.rows(&format!("INSERT INTO requests (ts, host, ms) VALUES (now(), 'h', {n})")).await;
    }
    lab.advance("2 hours").await;
    let history = section("History");
    let code: Vec<&str> = history.lines().map(|l| l.split("--").next().unwrap()).collect();
    for statement in code.join("\n").split(';').filter(|s| !s.trim().is_empty()) {
        lab.rows(statement).await;
    }
    assert_eq!(lab.row("SELECT sn FROM system.readers").await, "41");
}
