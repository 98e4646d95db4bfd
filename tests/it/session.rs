//! What needs parameters, batches or cancellation.

use crate::support::{clock, lines, open};
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use ebb::Outcome;
use futures::StreamExt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn parameters_have_the_types_of_their_places() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string, d date)").await.unwrap();
    let mut session = db.session();
    let insert = session.parse("INSERT INTO s (b, a, d) VALUES ($2, $1, $3)").unwrap().remove(0);
    let insert = session.prepare(insert, &[]).await.unwrap();
    assert_eq!(insert.parameter_types(), [DataType::Int64, DataType::Utf8View, DataType::Date32]);
    let values = vec![ScalarValue::Int64(Some(7)), ScalarValue::Utf8(Some("x".into())), ScalarValue::Date32(Some(1))];
    let done = session.execute(&insert, values, CancellationToken::new()).await.unwrap();
    assert!(matches!(done, Outcome::Command { tag } if tag == "INSERT 0 1"));

    let select = session.parse("SELECT a, b FROM s WHERE a = $1 LIMIT $2").unwrap().remove(0);
    let select = session.prepare(select, &[]).await.unwrap();
    assert_eq!(select.parameter_types(), [DataType::Int64, DataType::Int64]);
    assert_eq!(select.result.as_ref().unwrap().fields().len(), 2);
    let values = vec![ScalarValue::Int64(Some(7)), ScalarValue::Int64(Some(5))];
    let Outcome::Rows { mut stream, .. } = session.execute(&select, values, CancellationToken::new()).await.unwrap() else { panic!() };
    let batch = stream.next().await.unwrap().unwrap();
    assert_eq!(lines(&batch), ["7|x"]);
}

#[tokio::test]
async fn appended_batches_match_columns_by_name_and_fill_defaults() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string DEFAULT concat('n', a::string), c int32)").await.unwrap();
    let batch = RecordBatch::try_from_iter([("a", Arc::new(Int64Array::from(vec![1, 2])) as _)]).unwrap();
    assert_eq!(db.stream("s").append(batch).await.unwrap(), 2);
    let texts: arrow::array::DictionaryArray<arrow::datatypes::Int32Type> = ["x", "y", "x"].into_iter().collect();
    let batch = RecordBatch::try_from_iter([("b", Arc::new(texts) as _), ("a", Arc::new(Int64Array::from(vec![3, 4, 5])) as _)]).unwrap();
    assert_eq!(db.stream("default.s").append(batch).await.unwrap(), 3);
    let rows = db.sql("SELECT a, b, c FROM s ORDER BY a").await.unwrap().collect().await.unwrap();
    let got: Vec<String> = rows.iter().flat_map(lines).collect();
    assert_eq!(got, ["1|n1|0", "2|n2|0", "3|x|0", "4|y|0", "5|x|0"]);
    let wrong = RecordBatch::try_from_iter([("q", Arc::new(StringArray::from(vec!["z"])) as _)]).unwrap();
    assert_eq!(db.stream("s").append(wrong).await.unwrap_err().sqlstate(), "42703");
}

#[tokio::test]
async fn appended_dictionaries_of_texts_are_texts() {
    const ROWS: i64 = 300_000;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let keys = "PARTITION BY substring(host, 1, 2) ORDER BY (upper(host), ts) TTL ts + INTERVAL 1 DAY DELETE WHERE host = 'h9'";
    let columns = "ts datetime64(6), host low_cardinality(string), note nullable(string) DEFAULT concat(host, '!')";
    db.execute(&format!("CREATE STREAM s ({columns}) {keys} SETTINGS event_time_column = 'ts'")).await.unwrap();
    // Of many rows, in two batches: they are staged. Of a few, in one: they are logged.
    let batch = |from: i64, to: i64, words: Vec<Option<&str>>| {
        let key = |i: i64| (i % 4 != 3).then_some((i % words.len() as i64) as i32);
        let hosts = Int32Array::from_iter_values((from..to).map(|i| (i % words.len() as i64) as i32));
        let notes = Int32Array::from_iter((from..to).map(key));
        let ts = TimestampMicrosecondArray::from_iter_values((from..to).map(|i| 1_767_225_600_000_000 + i));
        let filled: StringArray = words.iter().map(|w| Some(w.unwrap_or("h0"))).collect();
        let coded = |keys: Int32Array, values: StringArray| Arc::new(DictionaryArray::new(keys, Arc::new(values))) as ArrayRef;
        RecordBatch::try_from_iter_with_nullable([
            ("ts", Arc::new(ts) as ArrayRef, false),
            ("host", coded(hosts, filled), false),
            ("note", coded(notes, words.into_iter().collect()), true),
        ])
        .unwrap()
    };
    let many = [batch(0, ROWS / 2, vec![Some("h1"), Some("h2")]), batch(ROWS / 2, ROWS, vec![Some("h2"), None, Some("h3")])];
    assert_eq!(db.stream("s").append_all(futures::stream::iter(many.map(Ok))).await.unwrap(), ROWS as u64);
    assert_eq!(db.stream("s").append(batch(0, 12, vec![Some("h1"), None])).await.unwrap(), 12);
    let sql = "SELECT host, count(*), count(note), min(note) FROM s GROUP BY host ORDER BY host";
    let got: Vec<String> = db.sql(sql).await.unwrap().collect().await.unwrap().iter().flat_map(lines).collect();
    assert_eq!(got, ["h0|50006|0|NULL", "h1|75006|75006|h1", "h2|125000|75000|h2", "h3|50000|37500|h3"]);
    let wrong = "SELECT count(*) FROM s WHERE note <> host";
    let got: Vec<String> = db.sql(wrong).await.unwrap().collect().await.unwrap().iter().flat_map(lines).collect();
    assert_eq!(got, ["0"]);
}

#[tokio::test]
async fn a_cancelled_statement_ends_with_57014() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let mut session = db.session();
    let select = session.parse("SELECT count(*) FROM generate_series(1, 100000000000) a").unwrap().remove(0);
    let select = session.prepare(select, &[]).await.unwrap();
    let cancel = CancellationToken::new();
    let Outcome::Rows { mut stream, .. } = session.execute(&select, Vec::new(), cancel.clone()).await.unwrap() else { panic!() };
    cancel.cancel();
    let mut last = None;
    while let Some(batch) = stream.next().await {
        last = Some(batch);
    }
    let e: ebb::Error = last.unwrap().unwrap_err().into();
    assert_eq!(e.sqlstate(), "57014");
}

#[tokio::test]
async fn a_hundred_thousand_values_in_one_insert() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string, x float64)").await.unwrap();
    let values = (0..100_000).map(|i| format!("({i}, 'host-{}', {}.5)", i % 10, i)).collect::<Vec<_>>().join(",");
    let done = db.execute(&format!("INSERT INTO s VALUES {values}")).await.unwrap();
    assert_eq!((done.rows, done.tag.as_str()), (100_000, "INSERT 0 100000"));
    let rows = db.sql("SELECT count(*), sum(a), min(x), max(b) FROM s").await.unwrap().collect().await.unwrap();
    assert_eq!(lines(&rows[0]), ["100000|4999950000|0.5|host-9"]);
}

/// proves F10, F12: a result that is read slowly finds its parts, merged and vacuumed meanwhile though they are.
#[tokio::test]
async fn a_result_keeps_its_parts_until_it_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64) ORDER BY a").await.unwrap();
    // More rows than a query reads ahead.
    for a in 0..4 {
        db.execute(&format!("INSERT INTO s SELECT {a} FROM generate_series(1, 60000)")).await.unwrap();
        db.execute("SYSTEM FLUSH s").await.unwrap();
    }
    let mut session = db.session();
    let select = session.parse("SELECT a FROM s").unwrap().remove(0);
    let select = session.prepare(select, &[]).await.unwrap();
    let Outcome::Rows { stream, .. } = session.execute(&select, Vec::new(), CancellationToken::new()).await.unwrap() else { panic!() };
    db.execute("OPTIMIZE STREAM s FINAL").await.unwrap();
    db.execute("SYSTEM SETTLE").await.unwrap();
    let mut rows: Vec<String> = stream.map(|b| lines(&b.unwrap())).concat().await;
    assert_eq!(rows.len(), 240_000);
    rows.sort();
    rows.dedup();
    assert_eq!(rows, ["0", "1", "2", "3"]);
    let removed = db.sql("SELECT count(*) FROM system.part_log WHERE event_type = 'RemovePart'").await.unwrap().collect().await.unwrap();
    assert_eq!(lines(&removed[0]), ["0"]);
    db.execute("SYSTEM SETTLE").await.unwrap();
    let removed = db.sql("SELECT count(*) FROM system.part_log WHERE event_type = 'RemovePart'").await.unwrap().collect().await.unwrap();
    assert_eq!(lines(&removed[0]), ["4"]);
}

/// A part whose bytes changed: what cannot be read names the part; ebb check names what can.
#[tokio::test]
async fn a_damaged_part_is_named_by_the_query_that_meets_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string) PARTITION BY tuple() ORDER BY a").await.unwrap();
    db.execute("INSERT INTO s SELECT value, 'text' || (value % 1000)::text FROM generate_series(1, 5000)").await.unwrap();
    db.execute("SYSTEM FLUSH").await.unwrap();
    let rows = db.sql("SELECT name, path FROM system.parts WHERE stream = 's'").await.unwrap().collect().await.unwrap();
    let line = lines(&rows[0]).remove(0);
    let (name, path) = line.split_once('|').unwrap();
    let (name, path) = (name.to_owned(), dir.path().join(path));
    db.close().await.unwrap();
    drop(db);
    let sound = std::fs::read(&path).unwrap();
    let mut garbled = sound.clone();
    let end = garbled.len() - 100;
    garbled[4..end].iter_mut().for_each(|b| *b = !*b);
    for damaged in [Some(&garbled[..]), Some(&sound[..sound.len() / 2]), Some(&[]), None] {
        match damaged {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let db = open(dir.path(), &clock()).await;
        let said = match db.sql("SELECT sum(a), count(DISTINCT b) FROM s").await {
            Ok(rows) => rows.collect().await.expect_err("nothing of the part can be read"),
            Err(e) => e,
        };
        assert!(said.sqlstate() == "XX001" && said.message().contains(&name), "{}: {said}", said.sqlstate());
        db.close().await.unwrap();
    }
}

/// What an INDEX is for: a row group without the value is passed over, though its bounds allow it.
#[tokio::test]
async fn an_index_keeps_row_groups_from_being_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let table = |name: &str, index: &str| format!("CREATE STREAM {name} (k int64, code string{index}) PARTITION BY tuple() ORDER BY k");
    let mut metrics = Vec::new();
    for (name, index) in [("plain", ""), ("indexed", ", INDEX c code TYPE bloom_filter(0.001)")] {
        db.execute(&table(name, index)).await.unwrap();
        let rows = "SELECT x, 'code' || (x * 7919 % 100003) FROM generate_series(1, 50000) AS t(x)";
        db.execute(&format!("INSERT INTO {name} {rows}")).await.unwrap();
        db.execute("SYSTEM FLUSH").await.unwrap();
        let plan = db.sql(&format!("EXPLAIN ANALYZE SELECT k FROM {name} WHERE code = 'code5x'")).await.unwrap().collect().await.unwrap();
        let text = arrow::util::pretty::pretty_format_batches(&plan).unwrap().to_string();
        metrics.push(text.split("row_groups_pruned_bloom_filter=").nth(1).map(|t| t.chars().take(40).collect::<String>()));
    }
    assert_ne!(metrics[0], metrics[1], "{metrics:?}");
    let pruned = metrics[1].as_deref().unwrap_or_default();
    assert!(pruned.starts_with("1 total → 0 matched") || pruned.starts_with('1'), "{pruned}");
}

/// A set tells that a part has none of the values, though its bounds allow them: its file is not opened.
#[tokio::test]
async fn a_set_keeps_parts_from_being_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (k int64, code nullable(string), INDEX c code TYPE set(4)) PARTITION BY tuple() ORDER BY k").await.unwrap();
    for (k, codes) in
        [(1, "('a'), ('m'), ('z')"), (2, "('a'), ('n'), ('z')"), (3, "('a'), ('b'), ('c'), ('d'), ('z')"), (4, "(NULL), ('a')")]
    {
        db.execute(&format!("INSERT INTO s SELECT {k}, column1 FROM (VALUES {codes})")).await.unwrap();
        db.execute("SYSTEM FLUSH").await.unwrap();
    }
    let opened = async |filter: &str| {
        let plan = db.sql(&format!("EXPLAIN SELECT k FROM s WHERE {filter}")).await.unwrap().collect().await.unwrap();
        let text = arrow::util::pretty::pretty_format_batches(&plan).unwrap().to_string();
        text.matches(".parquet").count()
    };
    let found = async |filter: &str| {
        let rows = db.sql(&format!("SELECT k FROM s WHERE {filter} ORDER BY k")).await.unwrap().collect().await.unwrap();
        rows.iter().flat_map(lines).collect::<Vec<_>>().join(" ")
    };
    // The third has too many values for a set: its bounds alone tell.
    for (filter, parts, rows) in [
        ("code = 'm'", 2, "1"),
        ("code IN ('n', 'q')", 2, "2"),
        ("code = 'a'", 4, "1 2 3 4"),
        ("code = 'q'", 1, ""),
        ("code NOT IN ('a', 'm', 'z')", 2, "2 3 3 3"),
        ("code IN ('m', 'n') AND k < 9", 3, "1 2"),
    ] {
        assert_eq!((opened(filter).await, found(filter).await.as_str()), (parts, rows), "{filter}");
    }
    // What is merged has the values of all; what is written anew has its own.
    db.execute("ALTER STREAM s MODIFY SETTING max_parts_to_merge_at_once = 10").await.unwrap();
    db.execute("OPTIMIZE STREAM s FINAL").await.unwrap();
    assert_eq!((opened("code = 'm'").await, found("code = 'n'").await.as_str()), (1, "2"));
    db.execute("ALTER STREAM s RENAME COLUMN code TO name").await.unwrap();
    assert_eq!(found("name = 'm'").await, "1");
    db.close().await.unwrap();
}

#[tokio::test]
async fn a_preview_has_a_row_for_each_rule_and_action() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM p (d datetime, k int64) PARTITION BY to_YYYYMM(d) ORDER BY k SETTINGS event_time_column = 'd'")
        .await
        .unwrap();
    let rows = "SELECT '2026-01-01'::timestamp + x * INTERVAL '1 hour', x FROM generate_series(0, 1415) AS t(x)";
    db.execute(&format!("INSERT INTO p {rows}")).await.unwrap();
    let sql = "PREVIEW ALTER STREAM p MODIFY TTL d + INTERVAL 14 DAY, d + INTERVAL 1 DAY DELETE WHERE k % 2 = 0";
    let batches = db.sql(sql).await.unwrap().collect().await.unwrap();
    let names: Vec<_> = batches[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["rule", "action", "parts", "rows", "bytes_before", "bytes_after"]);
    // January is due whole; of February what is older than 14 days, and the even ones older than a day.
    let told: Vec<String> = batches.iter().flat_map(lines).map(|l| l.split('|').take(4).collect::<Vec<_>>().join("|")).collect();
    assert_eq!(
        told,
        [
            "d + INTERVAL '1 day' DELETE WHERE k % 2 = 0|delete|1|156",
            "d + INTERVAL '14 day' DELETE|delete|1|337",
            "d + INTERVAL '14 day' DELETE|drop|1|744",
        ]
    );
}

#[tokio::test]
async fn running_statements_of_all_sessions_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64)").await.unwrap();
    let (mut one, mut two) = (db.session(), db.session());
    one.set_user("anna");
    let endless = one.parse("SELECT count(*) FROM generate_series(1, 100000000000) a").unwrap().remove(0);
    let endless = one.prepare(endless, &[]).await.unwrap();
    let Outcome::Rows { stream, .. } = one.execute(&endless, Vec::new(), CancellationToken::new()).await.unwrap() else { panic!() };
    let copy = two.parse("COPY s FROM STDIN").unwrap().remove(0);
    let copy = two.prepare(copy, &[]).await.unwrap();
    let Outcome::CopyIn(copying) = two.execute(&copy, Vec::new(), CancellationToken::new()).await.unwrap() else { panic!() };
    let listed = || async {
        let rows = db.sql("SELECT user_name, query FROM system.queries WHERE query NOT LIKE '%system.queries%' ORDER BY id").await.unwrap();
        rows.collect().await.unwrap().iter().flat_map(lines).collect::<Vec<String>>()
    };
    assert_eq!(listed().await, ["anna|SELECT count(*) FROM generate_series(1, 100000000000) a", "|COPY s FROM STDIN"]);
    drop(stream);
    assert_eq!(listed().await, ["|COPY s FROM STDIN"]);
    copying.finish().await.unwrap();
    assert_eq!(listed().await, [""; 0]);
}

/// A statement that says it was cancelled has changed nothing, one that says it is done has, whenever the request comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_has_changed_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (i int64) PARTITION BY i % 3").await.unwrap();
    let mut session = db.session();
    let mut cancelled = 0;
    for i in 0..40 {
        let made = format!("CREATE STREAM c{i} (i int64)");
        let filled = format!("CREATE STREAM f{i} AS SELECT x AS i FROM generate_series(1, 100) AS t(x)");
        let written = format!("INSERT INTO s SELECT {i} FROM generate_series(1, 2000)");
        let deleted = format!("DELETE FROM s WHERE i = {i}");
        let count = format!("SELECT count(*) FROM s WHERE i = {i}");
        let is_there = |name: &str| format!("SELECT count(*) FROM system.streams WHERE name = '{name}{i}'");
        let steps = [
            (made, is_there("c"), ["0", "1"]),
            (filled, is_there("f"), ["0", "1"]),
            (written, count.clone(), ["0", "2000"]),
            ("SYSTEM FLUSH".to_owned(), count.clone(), ["", ""]),
            (deleted, count, ["2000", "0"]),
        ];
        for (sql, question, [before, after]) in steps {
            let answer = async || db.sql(&question).await.unwrap().collect().await.unwrap().iter().flat_map(lines).collect::<Vec<_>>();
            let there = answer().await;
            let statement = session.parse(&sql).unwrap().remove(0);
            let prepared = session.prepare(statement, &[]).await.unwrap();
            let cancel = CancellationToken::new();
            let later = async {
                for _ in 0..i * i {
                    tokio::task::yield_now().await;
                }
                cancel.cancel();
            };
            let (done, ()) = tokio::join!(session.execute(&prepared, Vec::new(), cancel.clone()), later);
            let now = answer().await;
            match done {
                Ok(_) if before == after => {}
                Ok(Outcome::Command { tag }) if tag.starts_with("DELETE 0") => assert_eq!(now, there),
                Ok(_) => assert_eq!(now, [after], "done: {sql}"),
                Err(e) => {
                    assert_eq!(e.sqlstate(), "57014", "{sql}: {e}");
                    cancelled += 1;
                    if before != after {
                        // A stream that was being filled goes on its own.
                        let mut now = now;
                        for _ in 0..100 {
                            if now == there {
                                break;
                            }
                            tokio::task::yield_now().await;
                            now = answer().await;
                        }
                        assert_eq!(now, there, "cancelled: {sql}");
                    }
                }
            }
        }
    }
    assert!(cancelled >= 4, "those that are cancelled before they begin");
}

#[tokio::test]
async fn plans_are_shown_in_the_format_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let shown = async |sql: &str| -> ebb::Result<Vec<String>> {
        let batches = db.sql(sql).await?.collect().await?;
        Ok(batches.iter().flat_map(lines).collect())
    };
    for (options, kinds, says) in [
        ("", vec!["logical_plan", "physical_plan"], "Projection"),
        ("VERBOSE", vec!["logical_plan", "physical_plan"], "Projection"),
        ("FORMAT indent", vec!["logical_plan", "physical_plan"], "ProjectionExec"),
        ("FORMAT tree", vec!["physical_plan"], "│"),
        ("FORMAT pgjson", vec!["logical_plan"], "\"Node Type\": \"Projection\""),
        ("(FORMAT graphviz)", vec!["logical_plan"], "digraph"),
        ("ANALYZE", vec!["Plan with Metrics"], "output_rows=1"),
        ("ANALYZE VERBOSE", vec!["Plan with Metrics"], "output_rows"),
    ] {
        let rows = shown(&format!("EXPLAIN {options} SELECT a + 1 AS b FROM (VALUES (1)) AS t(a)")).await.unwrap();
        let found: Vec<&str> = rows.iter().filter_map(|r| Some(r.split_once('|')?.0)).collect();
        assert_eq!(found, kinds, "{options}");
        assert!(rows.iter().any(|r| r.contains(says)), "{options}: {rows:?}");
    }
    let e = shown("EXPLAIN (ANALYZE, FORMAT tree) SELECT 1").await.unwrap_err();
    assert_eq!(e.sqlstate(), "0A000", "{e}");
}

#[tokio::test]
async fn settings_of_this_opening_are_shown() {
    use ebb_storage::stream_def::SettingValue;
    let dir = tempfile::tempdir().unwrap();
    let config = ebb::Config::new(dir.path()).with_clock(clock()).with_background(false);
    let db = ebb::Database::open(config.with_setting("background_pool_size", SettingValue::Int(4))).await.unwrap();
    for sql in ["SHOW background_pool_size", "SELECT value FROM system.settings WHERE name = 'background_pool_size'"] {
        let rows = db.sql(sql).await.unwrap().collect().await.unwrap();
        assert_eq!(rows.iter().flat_map(lines).collect::<Vec<_>>(), ["4"], "{sql}");
    }
    db.execute("SET GLOBAL background_pool_size = 3").await.unwrap();
    let rows = db.sql("SELECT value FROM system.settings WHERE name = 'background_pool_size'").await.unwrap().collect().await.unwrap();
    assert_eq!(rows.iter().flat_map(lines).collect::<Vec<_>>(), ["4"]);
}

/// CREATE STREAM IF NOT EXISTS ... AS that finds the stream made by another leaves it alone, whatever its query does then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stream_that_another_made_meanwhile_is_neither_filled_nor_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    // Looked up long after it was seen that no such stream is there.
    let with: Vec<String> = (1..=10).map(|n| format!("c{n} AS (SELECT * FROM c{} UNION ALL SELECT * FROM c{})", n - 1, n - 1)).collect();
    let query = format!("WITH c0 AS (SELECT value AS x FROM generate_series(0, 0)), {} SELECT 1 / x AS x FROM c10", with.join(", "));
    for round in 0..3 {
        let other = db.session();
        let fill = format!("CREATE STREAM IF NOT EXISTS race{round} AS {query}");
        let filling = tokio::spawn(async move {
            let mut other = other;
            other.run(&fill).await.err().map(|e| e.sqlstate().to_owned())
        });
        while db.sql("SELECT * FROM system.queries WHERE query LIKE 'CREATE STREAM IF%'").await.unwrap().collect().await.unwrap().is_empty()
        {
            tokio::task::yield_now().await;
        }
        if db.execute(&format!("CREATE STREAM race{round} (x int64)")).await.is_err() {
            // The other was first.
            filling.await.unwrap();
            continue;
        }
        db.execute(&format!("INSERT INTO race{round} VALUES (1), (2), (3)")).await.unwrap();
        filling.await.unwrap();
        let rows = db.sql(&format!("SELECT count(*) FROM race{round}")).await.unwrap().collect().await.unwrap();
        assert_eq!(rows.iter().flat_map(lines).collect::<Vec<_>>(), ["3"]);
    }
}

#[tokio::test]
async fn secrets_of_a_statement_are_shown_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let disk = "CREATE DISK d DISK(type = 's3', endpoint = 'https://h/b', access_key_id = 'k', secret_access_key = 'hush')";
    let session = db.session();
    for text in [disk.to_owned(), format!("PREPARE p AS {disk}")] {
        for statement in session.parse(&text).unwrap_or_default() {
            assert!(statement.source.text().contains("hush"));
            assert!(statement.shown().contains("DISK") && !statement.shown().contains("hush"), "{}", statement.shown());
        }
    }
    assert_eq!(session.parse(disk).unwrap().len(), 1);
}
