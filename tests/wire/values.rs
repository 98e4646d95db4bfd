//! Every column type, in as text, parameters and binary, out as text and binary.

use crate::Running;
use std::time::{Duration, SystemTime};
use tokio_postgres::SimpleQueryMessage as Message;

/// Type, a literal, the text that clients see.
const TYPES: &[(&str, &str, &str)] = &[
    ("int8", "-8", "-8"),
    ("int16", "-16", "-16"),
    ("int32", "-32", "-32"),
    ("int64", "-64", "-64"),
    ("uint8", "200", "200"),
    ("uint16", "60000", "60000"),
    ("uint32", "4000000000", "4000000000"),
    ("uint64", "18446744073709551615", "18446744073709551615"),
    ("float32", "1.5", "1.5"),
    ("float64", "-0.1", "-0.1"),
    ("decimal(12,3)", "1.25", "1.250"),
    ("bool", "true", "t"),
    ("string", "'äöü'", "äöü"),
    ("bytea", "'\\x00ff'", "\\x00ff"),
    ("date", "'2025-06-15'", "2025-06-15"),
    ("datetime64(3)", "'2025-06-15 10:00:00.125'", "2025-06-15 10:00:00.125"),
    ("timestamptz", "'2025-06-15 10:00:00+00'", "2025-06-15 10:00:00+00"),
    ("uuid", "'6f1c1a3e-8d0e-4a53-9a36-0d6b2c9f3f11'", "6f1c1a3e-8d0e-4a53-9a36-0d6b2c9f3f11"),
    ("ipv4", "'10.0.0.1'", "10.0.0.1"),
    ("array(int32)", "[1, 2]", "{1,2}"),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_type_as_text_and_null() {
    let server = Running::start().await;
    let client = server.client().await;
    for (n, (ty, literal, shown)) in TYPES.iter().enumerate() {
        client
            .batch_execute(&format!("CREATE STREAM t{n} (k int32, v {ty} NULL) ORDER BY k"))
            .await
            .unwrap_or_else(|e| panic!("{ty}: {e:?}"));
        client.batch_execute(&format!("INSERT INTO t{n} VALUES (1, {literal}), (2, NULL)")).await.unwrap_or_else(|e| panic!("{ty}: {e:?}"));
        let messages = client.simple_query(&format!("SELECT v FROM t{n} ORDER BY k")).await.unwrap();
        let rows: Vec<Option<&str>> = messages.iter().filter_map(|m| if let Message::Row(r) = m { Some(r.get(0)) } else { None }).collect();
        assert_eq!(rows, [Some(*shown), None], "{ty}");
        // Binary: the driver asks for it always.
        let rows = client.query(&format!("SELECT v FROM t{n} ORDER BY k"), &[]).await.unwrap();
        assert_eq!(rows.len(), 2, "{ty}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_in_binary() {
    let server = Running::start().await;
    let client = server.client().await;
    client
        .batch_execute("CREATE STREAM s (i int32, l int64, f float64, b bool, t string, y bytea, w timestamptz, n int64 NULL) ORDER BY i")
        .await
        .unwrap();
    let when = SystemTime::UNIX_EPOCH + Duration::from_micros(1_750_000_000_123_000);
    let insert = client.prepare("INSERT INTO s VALUES ($1, $2, $3, $4, $5, $6, $7, $8)").await.unwrap();
    let bytes: &[u8] = &[0, 255];
    for i in 0..3_i32 {
        client.execute(&insert, &[&i, &7_i64, &0.25_f64, &true, &"text", &bytes, &when, &None::<i64>]).await.unwrap();
    }
    let row = client.query_one("SELECT i, l, f, b, t, y, w, n FROM s WHERE i = $1 AND t = $2", &[&2_i32, &"text"]).await.unwrap();
    assert_eq!((row.get::<_, i32>(0), row.get::<_, i64>(1), row.get::<_, f64>(2), row.get::<_, bool>(3)), (2, 7, 0.25, true));
    assert_eq!((row.get::<_, &str>(4), row.get::<_, &[u8]>(5)), ("text", bytes));
    assert_eq!(row.get::<_, SystemTime>(6), SystemTime::UNIX_EPOCH + Duration::from_millis(1_750_000_000_123));
    assert_eq!(row.get::<_, Option<i64>>(7), None);
}
