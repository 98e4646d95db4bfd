//! Sessions, blocks, errors, cancelling, streaming.

use crate::{
    Running, code,
    raw::{Protocol, Raw, field},
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
    assert_eq!(run("SET statement_timeout = 5000; SELECT nosuch").await, "42703");
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

/// Up to where the server is ready; an error is none of what is told here.
async fn until_ready(raw: &mut Raw) {
    loop {
        match raw.receive().await.unwrap() {
            Backend::ErrorResponse(body) => panic!("{:?}", field(body.fields(), b'M')),
            Backend::ReadyForQuery(_) => return,
            _ => {}
        }
    }
}

fn bind(portal: &str, statement: &str, out: &mut bytes::BytesMut) {
    use postgres_protocol::{IsNull, message::frontend};
    assert!(frontend::bind(portal, statement, [], [0_u8; 0], |_, _| Ok(IsNull::No), [], out).is_ok());
}

/// A portal that was suspended keeps its query: until it or its statement is closed, it is bound anew, or its transaction has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_portal_that_cannot_be_named_any_more_runs_no_more() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let other = server.client().await;
    let running = || {
        column(&other, "SELECT count(*) FROM system.queries WHERE query LIKE '%generate_series(1, 1000000)%' AND query NOT LIKE '%system%'")
    };
    let mut raw = Raw::connect(server.address).await;
    type End = fn(&mut bytes::BytesMut);
    let endings: [(&str, End); 5] = [
        ("the portal is closed", |out| {
            frontend::close(b'P', "p", out).unwrap();
            frontend::sync(out);
        }),
        ("the statement is closed", |out| {
            frontend::close(b'S', "s", out).unwrap();
            frontend::sync(out);
        }),
        ("the portal is bound anew", |out| {
            bind("p", "s", out);
            frontend::sync(out);
        }),
        ("the block is committed", |out| frontend::query("COMMIT", out).unwrap()),
        ("the block is rolled back", |out| {
            frontend::parse("", "ROLLBACK", [], out).unwrap();
            bind("", "", out);
            frontend::execute("", 0, out).unwrap();
            frontend::sync(out);
        }),
    ];
    for (ending, end) in endings {
        raw.run("BEGIN", Protocol::Simple).await.unwrap();
        raw.send(|out| {
            frontend::parse("s", "SELECT value FROM generate_series(1, 1000000)", [], out).unwrap();
            bind("p", "s", out);
            frontend::execute("p", 1, out).unwrap();
            frontend::sync(out);
        })
        .await;
        until_ready(&mut raw).await;
        assert_eq!(running().await, ["1"], "{ending}");
        raw.send(end).await;
        until_ready(&mut raw).await;
        assert_eq!(running().await, ["0"], "{ending}");
        raw.run("ROLLBACK", Protocol::Simple).await.unwrap();
    }
    // It is no portal any more either.
    raw.send(|out| {
        frontend::execute("p", 1, out).unwrap();
        frontend::sync(out);
    })
    .await;
    let Some(Backend::ErrorResponse(body)) = raw.receive().await else { panic!("a portal outlived its transaction") };
    assert_eq!(field(body.fields(), b'C').unwrap(), "34000");
}

/// Asked again, a portal has no more to give, and nothing is done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_portal_is_run_once() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM once (a int64)").await.unwrap();
    let mut raw = Raw::connect(server.address).await;
    for (sql, expected) in [
        ("INSERT INTO once VALUES (1)", ["INSERT 0 1", "55000"]),
        ("SELECT value FROM generate_series(1, 3)", ["SELECT 3", "SELECT 0"]),
        ("SET application_name = 'x'", ["SET", "55000"]),
        ("SELECT 1 / (value - 1) FROM generate_series(1, 1)", ["22012", ""]),
    ] {
        raw.send(|out| {
            frontend::parse("", sql, [], out).unwrap();
            bind("", "", out);
            frontend::execute("", 0, out).unwrap();
            frontend::execute("", 0, out).unwrap();
            frontend::sync(out);
        })
        .await;
        let mut found = Vec::new();
        loop {
            match raw.receive().await.unwrap() {
                Backend::ReadyForQuery(_) => break,
                Backend::CommandComplete(body) => found.push(body.tag().unwrap().to_owned()),
                Backend::ErrorResponse(body) => found.push(field(body.fields(), b'C').unwrap()),
                _ => {}
            }
        }
        assert_eq!(found, expected.into_iter().filter(|e| !e.is_empty()).collect::<Vec<_>>(), "{sql}");
    }
    // The error took the insert with it, as a transaction of both.
    assert_eq!(column(&client, "SELECT count(*) FROM once").await, ["0"]);
    raw.send(|out| {
        frontend::parse("", "INSERT INTO once VALUES (1)", [], out).unwrap();
        bind("", "", out);
        frontend::execute("", 0, out).unwrap();
        frontend::sync(out);
    })
    .await;
    until_ready(&mut raw).await;
    assert_eq!(column(&client, "SELECT count(*) FROM once").await, ["1"]);
}

/// Rows of a portal, the command tags and the errors, up to where the server is ready.
async fn told(raw: &mut Raw) -> Vec<String> {
    let (mut told, mut rows) = (Vec::new(), 0);
    loop {
        match raw.receive().await.unwrap() {
            Backend::ReadyForQuery(_) => return told,
            Backend::DataRow(_) => rows += 1,
            Backend::PortalSuspended => told.push(format!("{} rows", std::mem::take(&mut rows))),
            Backend::CommandComplete(body) => told.push(body.tag().unwrap().to_owned()),
            Backend::NoData => told.push("no rows".to_owned()),
            Backend::ErrorResponse(body) => told.push(field(body.fields(), b'C').unwrap()),
            _ => {}
        }
    }
}

/// A statement's time is that of each Execute, and a request to end it reaches a portal that goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_portal_that_goes_on_is_watched_anew() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let mut raw = Raw::greet(server.address, &[("user", "ebb"), ("database", "default")]).await;
    let (mut pid, mut secret) = (0, 0);
    loop {
        match raw.receive().await.unwrap() {
            Backend::BackendKeyData(body) => (pid, secret) = (body.process_id(), body.secret_key()),
            Backend::ReadyForQuery(_) => break,
            _ => {}
        }
    }
    let fetch = |portal: &'static str, rows: i32| {
        move |out: &mut bytes::BytesMut| {
            frontend::execute(portal, rows, out).unwrap();
            frontend::sync(out);
        }
    };
    for (timeout, sql) in
        [("3000", "SELECT value FROM generate_series(1, 100000000)"), ("0", "SELECT value FROM generate_series(1, 100000000)")]
    {
        raw.run("BEGIN", Protocol::Simple).await.unwrap();
        raw.run(&format!("SET statement_timeout = {timeout}"), Protocol::Simple).await.unwrap();
        raw.send(|out| {
            frontend::parse("s", sql, [], out).unwrap();
            bind("p", "s", out);
            bind("q", "s", out);
        })
        .await;
        raw.send(fetch("p", 2)).await;
        assert_eq!(told(&mut raw).await, ["2 rows"]);
        raw.send(fetch("q", 2)).await;
        assert_eq!(told(&mut raw).await, ["2 rows"]);
        if timeout == "3000" {
            // Longer than the timeout, in which the client wants nothing: another statement's wait tells that it has passed.
            let other = server.client().await;
            other.batch_execute("SET statement_timeout = 3500").await.unwrap();
            assert_eq!(code(other.simple_query(ENDLESS).await), "57014");
            raw.send(fetch("p", 2)).await;
            assert_eq!(told(&mut raw).await, ["2 rows"]);
            raw.send(fetch("p", 0)).await;
        } else {
            raw.send(fetch("p", 0)).await;
            // The rows come: it runs.
            while !matches!(raw.receive().await.unwrap(), Backend::DataRow(_)) {}
            let mut request = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let mut out = bytes::BytesMut::new();
            frontend::cancel_request(pid, secret, &mut out);
            tokio::io::AsyncWriteExt::write_all(&mut request, &out).await.unwrap();
        }
        assert_eq!(told(&mut raw).await, ["57014"], "{timeout}");
        raw.run("ROLLBACK", Protocol::Simple).await.unwrap();
        raw.run("SET statement_timeout = 0", Protocol::Simple).await.unwrap();
        raw.send(|out| {
            frontend::close(b'S', "s", out).unwrap();
            frontend::sync(out);
        })
        .await;
        until_ready(&mut raw).await;
    }
}

/// Planning is stopped as running is, and others are served meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_is_planned_is_ended_too() {
    let server = Running::start().await;
    // Each joins what is before it with itself: the planner meets the first of them very often.
    let joined = |last: usize| {
        let of = |n: usize| format!("c{n} AS (SELECT * FROM c{} UNION ALL SELECT * FROM c{})", n - 1, n - 1);
        let with: Vec<String> = (1..=last).map(of).collect();
        format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c{last}", with.join(", "))
    };
    let client = server.client().await;
    assert_eq!(code(client.simple_query(&joined(17)).await), "54001");
    assert_eq!(column(&client, &joined(3)).await, ["8"]);
    let crossed: Vec<String> = (0..300).map(|n| format!("(SELECT {n} AS c{n}) AS t{n}")).collect();
    let crossed = format!("SELECT * FROM {}", crossed.join(", "));
    let token = client.cancel_token();
    let running = tokio::spawn(async move { code(client.simple_query(&crossed).await) });
    let other = server.client().await;
    assert_eq!(column(&other, "SELECT 1").await, ["1"]);
    while !running.is_finished() {
        token.cancel_query(NoTls).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(running.await.unwrap(), "57014");
}

/// What is said in the wrong state of a block, of a COPY, of a message.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_at_the_wrong_time_changes_nothing() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int64)").await.unwrap();
    // A statement that is parsed while its block has failed is no statement.
    let mut raw = Raw::connect(server.address).await;
    raw.run("BEGIN", Protocol::Simple).await.unwrap();
    raw.run("SELECT 1 / 0", Protocol::Simple).await.unwrap_err();
    raw.send(|out| {
        frontend::parse("late", "SELECT 1", [], out).unwrap();
        frontend::sync(out);
    })
    .await;
    assert_eq!(told(&mut raw).await, ["25P02"]);
    raw.send(|out| {
        frontend::parse("", "ROLLBACK", [], out).unwrap();
        bind("", "", out);
        frontend::execute("", 0, out).unwrap();
        frontend::sync(out);
    })
    .await;
    assert_eq!(told(&mut raw).await, ["ROLLBACK"]);
    // A query within a COPY ends it.
    raw.send(|out| frontend::query("COPY s FROM STDIN", out).unwrap()).await;
    while !matches!(raw.receive().await.unwrap(), Backend::CopyInResponse(_)) {}
    raw.send(|out| {
        frontend::CopyData::new(&b"1\n"[..]).unwrap().write(out);
        frontend::query("SELECT 1", out).unwrap();
    })
    .await;
    assert_eq!(told(&mut raw).await.len(), 1);
    assert_eq!(column(&client, "SELECT count(*) FROM system.queries WHERE query LIKE 'COPY%'").await, ["0"]);
    assert_eq!(column(&client, "SELECT count(*) FROM s").await, ["0"]);
    // A server's setting is nothing that a transaction could undo: it stands for itself.
    client.batch_execute("SET GLOBAL background_pool_size = 3; SELECT 1").await.unwrap();
    client.batch_execute("RESET GLOBAL background_pool_size; SELECT 1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_of_a_command_line_hold_for_the_connection() {
    let server = Running::start().await;
    let with = |options: &str| format!("{} options='{options}'", server.config());
    let client = server.client_as(&with("-c statement_timeout=1234 --timezone=Asia/Tokyo -capplication_name=a\\\\ b")).await.unwrap();
    let shown = "SELECT current_setting('statement_timeout'), current_setting('TimeZone'), current_setting('application_name')";
    let of = |row: &tokio_postgres::Row| [0, 1, 2].map(|i| row.get::<_, String>(i));
    assert_eq!(of(&client.query_one(shown, &[]).await.unwrap()), ["1234", "Asia/Tokyo", "a b"]);
    client.batch_execute("SET TimeZone = 'UTC'; RESET TimeZone; SET statement_timeout = 5000; DISCARD ALL").await.unwrap();
    assert_eq!(of(&client.query_one(shown, &[]).await.unwrap()), ["1234", "Asia/Tokyo", "a b"]);
    for (options, state) in [("-c nosuch=1", "42704"), ("-x", "42601"), ("-c", "42601"), ("-c TimeZone=Nowhere", "22023")] {
        let error = server.client_as(&with(options)).await.err().unwrap();
        assert_eq!(error.code().map(|c| c.code()), Some(state), "{options}");
    }
}

/// What would ask the server for all of its memory or stack.
#[tokio::test(flavor = "multi_thread")]
async fn what_would_end_the_server_is_refused() {
    use postgres_protocol::message::frontend;
    let server = Running::start().await;
    let mut raw = Raw::connect(server.address).await;
    for (sql, code) in [("SELECT $2000000000::int", "42P02"), ("SELECT $0::int", "42P02"), ("SELECT $99999999999999999999", "42P02")] {
        for protocol in [Protocol::Simple, Protocol::Extended] {
            assert_eq!(raw.run(sql, protocol).await.unwrap_err().sqlstate, code, "{sql}");
        }
    }
    // One dimension, no NULL, elements that are arrays themselves, one of them.
    let mut nested = Vec::new();
    for _ in 0..100_000 {
        let left = i32::try_from(nested.len()).unwrap();
        let mut around: Vec<u8> = [1, 0, 1007, 1, 1, left].iter().flat_map(|w: &i32| w.to_be_bytes()).rev().collect();
        nested.append(&mut around);
    }
    nested.reverse();
    raw.send(|out| {
        frontend::parse("", "SELECT $1::int4[]", [1007], out).unwrap();
        let write = |bytes: &Vec<u8>, out: &mut bytes::BytesMut| {
            out.extend_from_slice(bytes);
            Ok(postgres_protocol::IsNull::No)
        };
        assert!(frontend::bind("", "", [1], [&nested], write, [], out).is_ok());
        frontend::execute("", 0, out).unwrap();
        frontend::sync(out);
    })
    .await;
    let refused = loop {
        if let Backend::ErrorResponse(body) = raw.receive().await.unwrap() {
            break field(body.fields(), b'C').unwrap();
        }
    };
    assert_eq!(refused, "22P02");
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
