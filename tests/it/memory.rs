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

    // A sort spills, and inside the data directory.
    let plan = client.query("EXPLAIN ANALYZE SELECT a, b FROM s ORDER BY b", &[]).await.unwrap();
    let plan: String = plan.iter().map(|r| r.get::<_, String>(1)).collect();
    assert!(plan.split("spill_count=").skip(1).any(|rest| !rest.starts_with('0')), "{plan}");
    let sorted = client.query("SELECT a, b FROM s ORDER BY b", &[]).await.unwrap();
    assert_eq!(sorted.len() as i64, ROWS);
    assert!(sorted.is_sorted_by_key(|r| r.get::<_, String>(1)));
    assert!(dir.path().join("spill").is_dir());

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

fn refusal(e: &tokio_postgres::Error) -> (String, String) {
    let e = e.as_db_error().unwrap_or_else(|| panic!("{e:?}"));
    (e.code().code().to_owned(), e.message().to_owned())
}

/// proves Q1
#[tokio::test(flavor = "multi_thread")]
async fn what_keeps_or_makes_too_much_is_refused_and_the_server_lives() {
    let dir = tempfile::tempdir().unwrap();
    // What `--set` says holds whatever SET GLOBAL says.
    let serving = Serving::start(dir.path(), &[]);
    let client = serving.connect().await.unwrap();
    client.batch_execute("SET GLOBAL memory_limit_bytes = 24000000").await.unwrap();
    client.batch_execute("CREATE STREAM s (a int64, b string) ORDER BY a").await.unwrap();
    client.batch_execute("INSERT INTO s SELECT value, repeat(md5(value::text), 4) FROM generate_series(1, 200000)").await.unwrap();
    for refused in [
        "SELECT array_agg(b) FROM s",
        "SELECT group_array(b) FROM s",
        "SELECT string_agg(b, ',') FROM s",
        "SELECT string_agg(b, ',' ORDER BY a) FROM s",
        "SELECT a % 2, array_agg(b) FROM s GROUP BY 1",
        "SELECT a % 2, string_agg(b, ',') FROM s GROUP BY 1",
        "SELECT sum(length(repeat(b, 100000))) FROM s",
        "SELECT repeat('x', 100000000)",
        "SELECT length(repeat('x', a * 100000000)) FROM s",
        "SELECT max(length(lpad(b, 1000000))) FROM s",
        "SELECT max(length(rpad(b, 1000000, 'xy'))) FROM s",
        "SELECT max(length(replace(b, substr(b, 1, 1), repeat('y', 10000)))) FROM s",
        "SELECT max(length(concat(b, repeat('y', 50000), b))) FROM s",
        "SELECT max(length(b || repeat('y', 50000))) FROM s",
        "SELECT max(array_length(array_repeat(b, 100000))) FROM s",
        "SELECT max(array_length(range(0, 100000 + a))) FROM s",
    ] {
        match client.query(refused, &[]).await {
            Ok(rows) => panic!("{refused}: {} rows", rows.len()),
            Err(e) => assert_eq!(refusal(&e).0, "53200", "{refused}: {e:?}"),
        }
    }
    // Doubled again and again.
    let doubled = (0..40).fold("SELECT b AS x FROM s".to_owned(), |q, _| format!("SELECT x || x AS x FROM ({q})"));
    let refused = client.query(&format!("SELECT max(length(x)) FROM ({doubled})"), &[]).await.unwrap_err();
    assert_eq!(refusal(&refused).0, "53200", "{refused:?}");
    // What fits does what it always did.
    let fits = client.query_one("SELECT length(repeat('x', 10000000)), max(length(lpad(b, 200, 'é'))), max(b || 'z' || NULL) FROM s", &[]);
    let fits = fits.await.unwrap();
    assert_eq!((fits.get::<_, i32>(0), fits.get::<_, i32>(1), fits.get::<_, Option<String>>(2)), (10_000_000, 200, None));
    let few = client.query_one("SELECT array_agg(b ORDER BY a), string_agg(b, '') FROM s WHERE a < 3", &[]).await.unwrap();
    assert_eq!((few.get::<_, Vec<String>>(0).len(), few.get::<_, String>(1).len()), (2, 256));
    // A constant beside every row.
    let constants = client.query_one("SELECT sum(length(x)) FROM (SELECT a, repeat('x', 1000000) AS x FROM s WHERE a <= 2000) t", &[]);
    assert_eq!(constants.await.unwrap().get::<_, i64>(0), 2_000_000_000);
    // More is allowed, at once.
    client.batch_execute("SET GLOBAL memory_limit_bytes = 1000000000").await.unwrap();
    assert_eq!(client.query_one("SELECT array_agg(b) FROM s", &[]).await.unwrap().get::<_, Vec<String>>(0).len(), 200_000);
    client.batch_execute("SET GLOBAL memory_limit_bytes = 24000000").await.unwrap();
    assert_eq!(refusal(&client.query("SELECT array_agg(b) FROM s", &[]).await.unwrap_err()).0, "53200");
}
