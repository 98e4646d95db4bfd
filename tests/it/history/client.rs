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
    assert_eq!(run(&mut session, "SELECT count(*) FROM s VERSION AS OF '1'", Vec::new()).await.unwrap_err().sqlstate(), "42704");

    // What a client is told of the parameters, and of the columns.
    let parser = lab.inside.db.session();
    let told = |sql: &str| parser.parse(sql).unwrap().remove(0);
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    for (sql, types) in [
        ("SELECT a FROM s VERSION AS OF $1 WHERE a > $2", vec![DataType::Utf8, DataType::Int64]),
        ("SELECT a FROM s VERSION AS OF $1::bigint", vec![DataType::Int64]),
        ("SELECT a FROM s TIMESTAMP AS OF $1", vec![utc.clone()]),
        ("SELECT * FROM snapshots($1)", vec![DataType::Utf8]),
        ("DELETE FROM s WHERE a = $1 AND a IN (SELECT a FROM s VERSION AS OF $2)", vec![DataType::Int64, DataType::Utf8]),
        (
            "CALL expire_snapshots($1, older_than => $2, retain_last => $3, dry_run => $4)",
            vec![DataType::Utf8, utc, DataType::Int64, DataType::Boolean],
        ),
        ("ALTER STREAM s CREATE TAG x AS OF VERSION $1", vec![DataType::Utf8]),
    ] {
        let prepared = session.prepare(told(sql), &[]).await.unwrap();
        assert_eq!(prepared.parameter_types(), types, "{sql}");
    }

    // One prepared statement: its cut is that of each run.
    let head = session.prepare(told("SELECT count(*) FROM s TIMESTAMP AS OF now()"), &[]).await.unwrap();
    for rows in 3..6 {
        let Outcome::Rows { mut stream, .. } = session.execute(&head, Vec::new(), CancellationToken::new()).await.unwrap() else {
            panic!()
        };
        assert_eq!(lines(&stream.next().await.unwrap().unwrap()), [rows.to_string()]);
        lab.rows(&format!("INSERT INTO s VALUES ({rows})")).await;
    }
    // A tag of other columns is no answer to who was told of these.
    lab.rows("ALTER STREAM s ADD COLUMN b string DEFAULT 'x'").await;
    let all = session.prepare(told("SELECT * FROM s VERSION AS OF $1"), &[]).await.unwrap();
    assert!(session.execute(&all, vec![ScalarValue::Int64(Some(1))], CancellationToken::new()).await.is_ok());
    let e = session.execute(&all, vec![text("t")], CancellationToken::new()).await.err().unwrap();
    assert!(e.message().contains("must not change result type"), "{e}");
}
