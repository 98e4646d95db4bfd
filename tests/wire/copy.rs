//! COPY in and out.

use crate::{Running, code};
use bytes::Bytes;
use futures::{SinkExt, TryStreamExt};
use std::pin::pin;
use tokio_postgres::Client;

async fn copy_in(client: &Client, sql: &str, data: &'static str) -> Result<u64, tokio_postgres::Error> {
    let mut sink = pin!(client.copy_in::<_, Bytes>(sql).await?);
    sink.send(Bytes::from_static(data.as_bytes())).await?;
    sink.finish().await
}

async fn copy_out(client: &Client, sql: &str) -> String {
    let stream = client.copy_out(sql).await.unwrap();
    let parts: Vec<Bytes> = stream.try_collect().await.unwrap();
    String::from_utf8(parts.concat()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_and_text_both_ways() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32, t string NULL) ORDER BY a").await.unwrap();
    assert_eq!(copy_in(&client, "COPY s FROM STDIN WITH (FORMAT csv, HEADER)", "a,t\n1,\"x, \"\"y\"\"\"\n2,\n").await.unwrap(), 2);
    assert_eq!(copy_in(&client, "COPY s FROM STDIN", "3\ttab\\there\n4\t\\N\n").await.unwrap(), 2);
    assert_eq!(
        copy_out(&client, "COPY (SELECT a, t FROM s ORDER BY a) TO STDOUT WITH (FORMAT csv)").await,
        "1,\"x, \"\"y\"\"\"\n2,\n3,tab\there\n4,\n"
    );
    assert_eq!(copy_out(&client, "COPY (SELECT a, t FROM s WHERE a > 2 ORDER BY a) TO STDOUT").await, "3\ttab\\there\n4\t\\N\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_line_is_named_and_nothing_is_kept() {
    let server = Running::start().await;
    let client = server.client().await;
    client.batch_execute("CREATE STREAM s (a int32) ORDER BY a").await.unwrap();
    let error = copy_in(&client, "COPY s FROM STDIN WITH (FORMAT csv)", "1\n2\nthree\n").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "22P02");
    assert!(error.message().contains("line 3"), "{}", error.message());
    assert_eq!(client.query_one("SELECT count(*) FROM s", &[]).await.unwrap().get::<_, i64>(0), 0);
    assert_eq!(code(client.simple_query("COPY nothing FROM STDIN").await), "42P01");
    assert_eq!(copy_in(&client, "COPY s FROM STDIN", "7\n").await.unwrap(), 1);
}
