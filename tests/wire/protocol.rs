//! Sessions, blocks, errors, cancelling, streaming.

use crate::{
    Running, code,
    raw::{Raw, field},
};
use ebb::wire::Server;
use futures::TryStreamExt;
use postgres_protocol::message::backend::Message as Backend;
use std::pin::pin;
use tokio_postgres::{NoTls, SimpleQueryMessage as Message};

/// More rows than could be computed while a test runs.
const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 10000000) a(x), generate_series(1, 10000000) b(y) WHERE (a.x * b.y) % 7 = 3";

#[tokio::test(flavor = "multi_thread")]
async fn several_statements_in_one_text() {
    let server = Running::start().await;
    let client = server.client().await;
    let messages = client
        .simple_query("CREATE STREAM s (a int32) ORDER BY a; INSERT INTO s VALUES (1), (2); SELECT a FROM s ORDER BY a")
        .await
        .unwrap();
    let rows: Vec<&str> = messages.iter().filter_map(|m| if let Message::Row(r) = m { r.get(0) } else { None }).collect();
    assert_eq!(rows, ["1", "2"]);
    let counts: Vec<u64> = messages.iter().filter_map(|m| if let Message::CommandComplete(n) = m { Some(*n) } else { None }).collect();
    assert_eq!(counts, [0, 2, 2]);
    client.simple_query("").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_codes_and_places() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a").await.unwrap();
    let cases = [
        ("SELEC 1", "42601"),
        ("SELECT b FROM s", "42703"),
        ("SELECT * FROM t", "42P01"),
        ("SELECT nothing(1)", "42883"),
        ("SELECT 1/0", "22012"),
    ];
    for (sql, expected) in cases {
        assert_eq!(code(client.simple_query(sql).await), expected, "simple: {sql}");
        assert_eq!(code(client.query(sql, &[]).await), expected, "extended: {sql}");
    }
    let error = client.simple_query("SELECT nosuch FROM s").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.position(), Some(&tokio_postgres::error::ErrorPosition::Original(8)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_that_failed_only_ends() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a; BEGIN; INSERT INTO s VALUES (1)").await.unwrap();
    assert_eq!(code(client.batch_execute("CREATE STREAM t (a int32) ORDER BY a").await), "25001");
    assert_eq!(code(client.query("SELECT 1", &[]).await), "25P02");
    client.batch_execute("ROLLBACK").await.unwrap();
    assert_eq!(client.query_one("SELECT count(*) FROM s", &[]).await.unwrap().get::<_, i64>(0), 0);
    client.batch_execute("BEGIN; INSERT INTO s VALUES (1); COMMIT").await.unwrap();
    assert_eq!(client.query_one("SELECT count(*) FROM s", &[]).await.unwrap().get::<_, i64>(0), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_portal_is_fetched_in_pieces() {
    let server = Running::start().await;
    let mut client = server.client().await;
    let block = client.transaction().await.unwrap();
    let portal = block.bind("SELECT * FROM generate_series(1, 5)", &[]).await.unwrap();
    let mut sizes = Vec::new();
    for _ in 0..3 {
        sizes.push(block.query_portal(&portal, 2).await.unwrap().len());
    }
    assert_eq!(sizes, [2, 2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_stay_in_their_session() {
    let server = Running::start().await;
    let (one, two) = (server.client().await, server.client().await);
    one.batch_execute("SET TimeZone = 'Europe/Berlin'").await.unwrap();
    let zone = async |c: &tokio_postgres::Client| match c
        .simple_query("SHOW TimeZone")
        .await
        .unwrap()
        .into_iter()
        .find_map(|m| if let Message::Row(r) = m { Some(r) } else { None })
    {
        Some(row) => row.get(0).unwrap().to_owned(),
        None => String::new(),
    };
    assert_eq!(zone(&one).await, "Europe/Berlin");
    assert_eq!(zone(&two).await, "UTC");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_statement_is_cancelled_or_times_out() {
    let server = Running::start().await;
    // Joins that bring a row now and then, all rows, and none: the last computes for hours between two rows.
    let all = "SELECT sum(a.x * b.y) FROM generate_series(1, 1000000) a(x) CROSS JOIN generate_series(1, 1000000) b(y)";
    let none = "SELECT count(*) FROM generate_series(1, 1000000) a(x) JOIN generate_series(1, 1000000) b(y) ON a.x * b.y = 7.5";
    for endless in [ENDLESS, all, none] {
        let client = server.client().await;
        let token = client.cancel_token();
        let running = tokio::spawn(async move {
            let done = code(client.simple_query(endless).await);
            (client, done)
        });
        // Others are served meanwhile.
        let other = server.client().await;
        assert_eq!(other.query_one("SELECT 1::int4", &[]).await.unwrap().get::<_, i32>(0), 1);
        // A request may come before the statement: then it has no effect and is sent again.
        while !running.is_finished() {
            token.cancel_query(NoTls).await.unwrap();
            tokio::task::yield_now().await;
        }
        let (client, done) = running.await.unwrap();
        assert_eq!(done, "57014", "{endless}");
        client.batch_execute("SET statement_timeout = 50").await.unwrap();
        assert_eq!(code(client.simple_query(endless).await), "57014", "{endless}");
        client.batch_execute("SET statement_timeout = 0").await.unwrap();
        assert_eq!(client.query_one("SELECT 1::int4", &[]).await.unwrap().get::<_, i32>(0), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_before_the_result_ends() {
    let server = Running::start().await;
    let client = server.client().await;
    let sql = "SELECT a.x FROM generate_series(1, 10000000) a(x), generate_series(1, 1000000) b(y)";
    let none: [&str; 0] = [];
    let mut rows = pin!(client.query_raw(sql, none).await.unwrap());
    // A result that is never complete: only streaming brings its first rows.
    for _ in 0..1000 {
        assert!(rows.try_next().await.unwrap().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_let_in_and_where() {
    let server = Running::start().await;
    let wrong = server.config().replace("dbname=default", "dbname=nothing");
    let error = server.client_as(&wrong).await.err().unwrap();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "3D000");
    assert!(error.message().contains("default"), "{}", error.message());
    let refused = Server::bind("0.0.0.0:0").await.err().unwrap().to_string();
    assert!(refused.contains("refusing to listen"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_follows_a_fatal_error() {
    let server = Running::start().await;
    for (parameters, state) in [
        (vec![("user", "ebb"), ("database", "nothing")], "3D000"),
        (vec![("user", "ebb"), ("database", "default"), ("client_encoding", "LATIN1")], "22023"),
        (vec![("user", "ebb"), ("database", "default"), ("no_such_setting", "1")], "42704"),
    ] {
        let mut raw = Raw::greet(server.address, &parameters).await;
        let Some(Backend::ErrorResponse(body)) = raw.receive().await else { panic!("no error for {state}") };
        assert_eq!(field(body.fields(), b'S').as_deref(), Some("FATAL"));
        assert_eq!(field(body.fields(), b'C').as_deref(), Some(state));
        assert!(raw.receive().await.is_none(), "the connection goes on after {state}");
    }
    // The others go on.
    server.client().await.batch_execute("SELECT 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_are_refused_as_a_statement_is_prepared() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a").await.unwrap();
    for (sql, state) in [
        ("COPY nothing FROM STDIN", "42P01"),
        ("COPY nothing TO STDOUT", "42P01"),
        ("COPY s (b) FROM STDIN", "42703"),
        ("INSERT INTO nothing VALUES (1)", "42P01"),
        ("INSERT INTO s (b) VALUES (1)", "42703"),
        ("SELECT b FROM s", "42703"),
    ] {
        assert_eq!(code(client.prepare(sql).await), state, "{sql}");
    }
    client.prepare("COPY s FROM STDIN").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_graceful() {
    let mut server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("SELECT 1").await.unwrap();
    drop(client);
    server.stop.cancel();
    (&mut server.served).await.unwrap().unwrap();
    assert!(server.client_as(&server.config()).await.is_err());
}
