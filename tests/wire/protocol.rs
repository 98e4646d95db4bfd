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

/// The values of the first column of the rows there are.
async fn column(client: &tokio_postgres::Client, sql: &str) -> Vec<String> {
    let messages = client.simple_query(sql).await.unwrap();
    messages.iter().filter_map(|m| if let Message::Row(r) = m { r.get(0).map(str::to_owned) } else { None }).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_several_statements_is_one_transaction() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a").await.unwrap();
    let kept = async || column(&client, "SELECT a FROM s ORDER BY a").await;
    let run = async |sql: &str| code(client.batch_execute(sql).await);
    assert_eq!(run("INSERT INTO s VALUES (1); INSERT INTO s VALUES (2); SELECT 1/0").await, "22012");
    assert_eq!(run("SET statement_timeout = 5; SELECT nosuch").await, "42703");
    assert_eq!((kept().await, column(&client, "SHOW statement_timeout").await), (vec![], vec!["0".to_owned()]));
    // What a text has written its next statement sees.
    assert_eq!(column(&client, "INSERT INTO s VALUES (1); SELECT count(*) FROM s").await, ["1"]);
    // COMMIT and ROLLBACK end it, another begins; BEGIN makes a block of it, which outlives the text.
    assert_eq!(run("INSERT INTO s VALUES (2); COMMIT; INSERT INTO s VALUES (3); SELECT 1/0").await, "22012");
    assert_eq!(run("INSERT INTO s VALUES (4); ROLLBACK; INSERT INTO s VALUES (5)").await, "no error");
    assert_eq!(kept().await, ["1", "2", "5"]);
    assert_eq!(run("INSERT INTO s VALUES (6); BEGIN; INSERT INTO s VALUES (7)").await, "no error");
    assert_eq!(run("SELECT 1/0").await, "22012");
    assert_eq!(run("SELECT 1").await, "25P02");
    assert_eq!(run("ROLLBACK").await, "no error");
    assert_eq!(run("INSERT INTO s VALUES (8); SAVEPOINT a").await, "25P01");
    assert_eq!(kept().await, ["1", "2", "5"]);
    // What cannot be in a block ends what was before it, and stays allowed.
    assert_eq!(run("INSERT INTO s VALUES (9); CREATE STREAM t (a int32) ORDER BY a; INSERT INTO t VALUES (1); SELECT 1/0").await, "22012");
    assert_eq!(
        (kept().await, column(&client, "SELECT count(*) FROM t").await),
        (vec!["1".into(), "2".into(), "5".into(), "9".into()], vec!["0".to_owned()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_before_a_sync_is_one_transaction() {
    use postgres_protocol::message::{backend::Message as Raw, frontend};
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a").await.unwrap();
    let mut raw = crate::raw::Raw::connect(server.address).await;
    let run = async |raw: &mut crate::raw::Raw, statements: &[&str]| {
        raw.send(|out| {
            for sql in statements {
                frontend::parse("", sql, [], out).unwrap();
                assert!(frontend::bind("", "", [], [0_u8; 0], |_, _| Ok(postgres_protocol::IsNull::No), [], out).is_ok());
                frontend::execute("", 0, out).unwrap();
            }
            frontend::sync(out);
        })
        .await;
        let mut told = Vec::new();
        loop {
            match raw.receive().await.unwrap() {
                Raw::ReadyForQuery(ready) => {
                    told.push(char::from(ready.status()).to_string());
                    return told;
                }
                Raw::CommandComplete(done) => told.push(done.tag().unwrap().to_owned()),
                Raw::ErrorResponse(body) => told.push(crate::raw::field(body.fields(), b'C').unwrap()),
                _ => {}
            }
        }
    };
    let insert = "INSERT INTO s VALUES (1)";
    assert_eq!(run(&mut raw, &[insert, insert, "SELECT 1/0", insert]).await, ["INSERT 0 1", "INSERT 0 1", "22012", "I"]);
    assert_eq!(column(&client, "SELECT count(*) FROM s").await, ["0"]);
    assert_eq!(run(&mut raw, &[insert, "SELECT a FROM s", insert]).await, ["INSERT 0 1", "SELECT 1", "INSERT 0 1", "I"]);
    assert_eq!(run(&mut raw, &["BEGIN", insert]).await, ["BEGIN", "INSERT 0 1", "T"]);
    assert_eq!(run(&mut raw, &["SELECT nosuch"]).await, ["42703", "E"]);
    assert_eq!(run(&mut raw, &["ROLLBACK"]).await, ["ROLLBACK", "I"]);
    assert_eq!(
        run(&mut raw, &[insert, "CREATE STREAM t (a int32) ORDER BY a", "SELECT 1/0"]).await,
        ["INSERT 0 1", "CREATE STREAM", "22012", "I"]
    );
    assert_eq!(column(&client, "SELECT count(*) FROM s").await, ["3"]);
}

/// Drivers ask for the first row alone and let the rest be: what a portal left is nobody's once its name stands for another.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_were_left_are_not_those_of_the_next_portal() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let mut raw = Raw::connect(server.address).await;
    for first in 0..300 {
        let sql = format!("SELECT value FROM generate_series({first}, {})", first + i64::from(first % 3 == 0));
        raw.send(|out| {
            frontend::parse("", &sql, [], out).unwrap();
            assert!(frontend::bind("", "", [], [0_u8; 0], |_, _| Ok(postgres_protocol::IsNull::No), [], out).is_ok());
            frontend::execute("", 1, out).unwrap();
            frontend::sync(out);
        })
        .await;
        let mut found = Vec::new();
        loop {
            match raw.receive().await.unwrap() {
                Backend::ReadyForQuery(_) => break,
                Backend::DataRow(row) => found.push(String::from_utf8_lossy(&row.buffer()[4..]).into_owned()),
                Backend::ErrorResponse(body) => panic!("{sql}: {:?}", field(body.fields(), b'M')),
                _ => {}
            }
        }
        assert_eq!(found, [first.to_string()], "{sql}");
    }
}

/// Bytes that no driver would send: each is answered, and the server goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_malformed_is_refused() {
    use postgres_protocol::message::backend::Message as Raw;
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a string) ORDER BY a").await.unwrap();
    let sync: &[u8] = b"S\0\0\0\x04";
    let cases: [(&[u8], &str, bool); 6] = [
        (b"B\0\0\0\x08\0\0\xff\xff", "08P01", true),
        (b"P\0\0\0\x09\0\xff\0\0\0", "22021", true),
        (b"Q\0\0\0\x21INSERT INTO s VALUES ('a\xffb')\0", "22021", false),
        (b"~\0\0\0\x04", "08P01", false),
        (b"Q\xff\xff\xff\xff", "08P01", false),
        (b"B\0\0\0\x03", "08P01", false),
    ];
    for (bytes, expected, extended) in cases {
        let mut raw = crate::raw::Raw::connect(server.address).await;
        raw.send(|out| {
            out.extend_from_slice(bytes);
            if extended {
                out.extend_from_slice(sync);
            }
        })
        .await;
        let Some(Raw::ErrorResponse(body)) = raw.receive().await else { panic!("no error for {bytes:?}") };
        assert_eq!(crate::raw::field(body.fields(), b'C').unwrap(), expected, "{bytes:?}");
        match crate::raw::field(body.fields(), b'S').unwrap().as_str() {
            "FATAL" => assert!(raw.receive().await.is_none(), "{bytes:?}"),
            _ => {
                assert!(matches!(raw.receive().await, Some(Raw::ReadyForQuery(_))), "{bytes:?}");
                assert!(raw.run("SELECT 1", crate::raw::Protocol::Simple).await.is_ok());
            }
        }
    }
    assert_eq!(column(&client, "SELECT count(*) FROM s").await, ["0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_has_the_columns_that_were_described() {
    let server = Running::start().await;
    let (client, other) = (server.client().await, server.client().await);
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a; INSERT INTO s VALUES (1)").await.unwrap();
    let all = client.prepare("SELECT * FROM s").await.unwrap();
    let some = client.prepare("SELECT * FROM s WHERE a > $1").await.unwrap();
    let one = client.prepare("SELECT a FROM s").await.unwrap();
    other.batch_execute("ALTER STREAM s ADD COLUMN b string DEFAULT 'q'").await.unwrap();
    assert_eq!(code(client.query(&all, &[]).await), "0A000");
    assert_eq!(code(client.query(&some, &[&0_i32]).await), "0A000");
    assert_eq!(client.query(&one, &[]).await.unwrap().len(), 1);
    assert_eq!(client.query("SELECT * FROM s", &[]).await.unwrap()[0].len(), 2);
}
