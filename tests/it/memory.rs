//! The limit of memory for queries: what can be spilled is, what cannot is refused, and the server lives on.

use crate::program::Serving;

const ROWS: i64 = 300_000;

/// proves Q1
#[tokio::test(flavor = "multi_thread")]
async fn queries_over_the_memory_limit_spill_or_are_refused_and_the_server_lives() {
    let dir = tempfile::tempdir().unwrap();
    let serving = Serving::start(dir.path(), &["memory_limit_bytes=24000000"]);
    let client = serving.connect().await.unwrap();
    client.batch_execute("CREATE STREAM s (a int64, b string) ORDER BY a").await.unwrap();
    let fill = format!("INSERT INTO s SELECT value, repeat(md5(value::text), 2) FROM generate_series(1, {ROWS})");
    client.batch_execute(&fill).await.unwrap();

    // Groups of more than the limit.
    let plan = client.query("EXPLAIN ANALYZE SELECT b, count(*) FROM s GROUP BY b", &[]).await.unwrap();
    let plan: String = plan.iter().map(|r| r.get::<_, String>(1)).collect();
    assert!(plan.split("spill_count=").skip(1).any(|rest| !rest.starts_with('0')), "{plan}");
    let groups = client.query_one("SELECT count(*), max(n) FROM (SELECT b, count(*) n FROM s GROUP BY b)", &[]).await.unwrap();
    assert_eq!((groups.get::<_, i64>(0), groups.get::<_, i64>(1)), (ROWS, 1));

    // A sort spills, unless there is not even the memory to merge what it spilled.
    match client.query("SELECT a, b FROM s ORDER BY b", &[]).await {
        Ok(sorted) => {
            assert_eq!(sorted.len() as i64, ROWS);
            assert!(sorted.is_sorted_by_key(|r| r.get::<_, String>(1)));
        }
        Err(e) => assert_eq!(e.as_db_error().unwrap().code().code(), "53200", "{e:?}"),
    }

    // The table that a join looks up in must be in memory.
    let refused = client.query("SELECT count(*) FROM s x JOIN s y ON x.b = y.b WHERE x.a <> y.a + 1", &[]).await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "53200", "{refused:?}");
    assert!(refused.message().to_lowercase().contains("memory"), "{refused:?}");

    // The same connection, a new one, reading and writing.
    for client in [client, serving.connect().await.unwrap()] {
        client.batch_execute("INSERT INTO s VALUES (0, 'x')").await.unwrap();
        assert!(client.query_one("SELECT count(*) FROM s", &[]).await.unwrap().get::<_, i64>(0) > ROWS);
    }
}
