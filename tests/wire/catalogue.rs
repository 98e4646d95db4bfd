//! psql's descriptions and commands.

use crate::{Running, has, must_have};
use std::process::Command;

async fn psql(server: &Running, commands: &[&str]) -> String {
    let port = server.address.port().to_string();
    let mut psql = Command::new("psql");
    psql.args(["-X", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "ebb", "-d", "default", "-p", &port]);
    for c in commands {
        psql.args(["-c", c]);
    }
    let out = tokio::task::block_in_place(|| psql.output()).unwrap();
    let (text, errors) = (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned());
    assert!(out.status.success(), "{commands:?}: {errors}");
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn psql_describes_and_copies() {
    if !has("psql") {
        must_have("psql");
        return;
    }
    let server = Running::start().await;
    let create = "CREATE STREAM s (ts timestamptz, d string, v float64 DEFAULT 1.5, n decimal(12,3), u uuid NULL) \
                  PARTITION BY to_yyyymm(ts) ORDER BY (d, ts) COMMENT 'readings'";
    psql(&server, &[create]).await;
    for list in ["\\d", "\\dt"] {
        let text = psql(&server, &[list]).await;
        assert!(text.contains(" public | s    | table | ebb"), "{text}");
    }
    let described = psql(&server, &["\\d s"]).await;
    assert!(described.contains("Table \"public.s\""), "{described}");
    assert!(described.contains("timestamp with time zone") && described.contains("numeric(12,3)"), "{described}");
    let default = described.lines().find(|l| l.trim_start().starts_with("v ")).unwrap();
    assert!(default.contains("double precision") && default.contains("not null") && default.contains("1.5"), "{default}");
    assert!(psql(&server, &["\\dt+"]).await.contains("readings"));
    assert!(psql(&server, &["\\d+ s"]).await.contains("double precision"));
    assert!(psql(&server, &["\\l"]).await.contains("default"));
    assert!(psql(&server, &["\\dn"]).await.contains("public"));
    for nothing in ["\\df", "\\di", "\\dv", "\\z", "\\du", "\\dT", "\\dx"] {
        psql(&server, &[nothing]).await;
    }
    assert!(psql(&server, &["\\timing", "SELECT 1"]).await.contains("Time: "));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "ts,d,n\n2025-06-15 10:00:00+00,a,1.250\n2025-06-15 10:00:01+00,b,2\n").unwrap();
    let copy = format!("\\copy s (ts, d, n) FROM '{}' WITH (FORMAT csv, HEADER)", file.path().display());
    assert!(psql(&server, &[&copy]).await.contains("COPY 2"));
    assert!(psql(&server, &["SELECT d, n, v FROM s ORDER BY d"]).await.contains(" b | 2.000 | 1.5"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalogue_answers_for_the_connections_database() {
    let server = Running::start().await;
    let client = server.client().await;
    client
        .batch_execute(
            "CREATE STREAM s (a int32) ORDER BY tuple(); CREATE DATABASE other; CREATE STREAM other.o (a int32) ORDER BY tuple()",
        )
        .await
        .unwrap();
    let row = client.query_one("SELECT oid, relkind, relname FROM pg_class WHERE oid = 's'::regclass", &[]).await.unwrap();
    assert!(row.get::<_, u32>(0) > 100_000);
    assert_eq!(row.get::<_, i8>(1), b'r' as i8);
    assert_eq!(row.get::<_, &str>(2), "s");
    let visible =
        client.query("SELECT relname FROM pg_class c WHERE pg_table_is_visible(c.oid) AND relkind = ANY (ARRAY['r'])", &[]).await.unwrap();
    assert_eq!(visible.iter().map(|r| r.get::<_, String>(0)).collect::<Vec<_>>(), ["s"]);
    let row = client
        .query_one("SELECT version(), current_database(), current_schema(), current_setting('timezone'), to_regclass('nothing')", &[])
        .await
        .unwrap();
    assert!(row.get::<_, &str>(0).starts_with("PostgreSQL 16"));
    assert_eq!((row.get::<_, &str>(1), row.get::<_, &str>(2), row.get::<_, &str>(3)), ("default", "public", "UTC"));
    assert_eq!(row.get::<_, Option<i64>>(4), None);
    assert!(client.query("SELECT 'nothing'::regclass", &[]).await.is_err());
    assert!(client.query("SELECT * FROM pg_index", &[]).await.unwrap().is_empty());
}
