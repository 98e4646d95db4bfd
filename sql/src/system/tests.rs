//! Every table through SQL, over real parts, on a clock that stands still.

use super::NAMES;
use crate::{Config, Database};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use ebb_engine::{Clock, Timestamp};

async fn open(dir: &tempfile::TempDir) -> Database {
    let clock = Clock::simulated(Timestamp::from_secs(1_772_323_200));
    Database::open(Config::new(dir.path()).with_clock(clock).with_background(false)).await.unwrap()
}

/// The rows, cells parted by `|`.
async fn rows(db: &Database, sql: &str) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in db.sql(sql).await.unwrap().collect().await.unwrap() {
        let cells: Vec<_> = batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        lines.extend((0..batch.num_rows()).map(|i| cells.iter().map(|c| c.value(i).to_string()).collect::<Vec<_>>().join("|")));
    }
    lines
}

async fn with_stream(dir: &tempfile::TempDir) -> Database {
    let db = open(dir).await;
    let create = "CREATE STREAM s (t datetime, v int64 COMMENT 'the value') PARTITION BY to_YYYYMM(t) ORDER BY t TTL t + INTERVAL 1 DAY";
    db.execute(create).await.unwrap();
    db.execute("INSERT INTO s VALUES ('2026-02-28 23:00:00', 1), ('2026-03-01 00:00:00', 2), ('2026-03-02 00:00:00', 3)").await.unwrap();
    db
}

#[test]
fn names_are_those_of_the_tables_in_order() {
    let mut tables: Vec<&str> = super::TABLES.iter().map(|t| t.name).collect();
    tables.extend(ebb_engine::Log::ALL.iter().map(|l| l.name()));
    tables.sort_unstable();
    assert_eq!(tables, NAMES);
    assert!(NAMES.is_sorted());
}

#[tokio::test]
async fn every_table_answers_in_its_schema_with_and_without_streams() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir).await;
    for round in 0..2 {
        for name in NAMES {
            db.sql(&format!("SELECT * FROM system.{name}")).await.unwrap().collect().await.unwrap();
            assert_eq!(rows(&db, &format!("SELECT count(*) FROM system.{name}")).await.len(), 1, "{name}");
        }
        if round == 0 {
            db.execute("CREATE STREAM s (v int64) ORDER BY v").await.unwrap();
            db.execute("INSERT INTO s VALUES (1)").await.unwrap();
        }
    }
    db.close().await.unwrap();
}

#[tokio::test]
async fn streams_count_tail_rows_before_a_flush_and_parts_after_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = with_stream(&dir).await;
    let sql = "SELECT database, name, storage_policy, total_rows, tail_rows, parts, head_sn, applied_sn FROM system.streams";
    assert_eq!(rows(&db, sql).await, ["default|s|default|3|3|0|1|0"]);
    db.execute("SYSTEM FLUSH").await.unwrap();
    assert_eq!(rows(&db, sql).await, ["default|s|default|3|0|2|1|1"]);
    db.close().await.unwrap();
}

#[tokio::test]
async fn parts_say_what_rules_will_do_and_where_the_file_is() {
    let dir = tempfile::tempdir().unwrap();
    let db = with_stream(&dir).await;
    db.execute("SYSTEM FLUSH").await.unwrap();
    let sql = "SELECT partition, active, rows, level, min_sn, max_sn, branch, disk_name, due_rows, never_due_rows, lifecycle_state \
               FROM system.parts WHERE stream = 's' ORDER BY partition";
    assert_eq!(rows(&db, sql).await, ["202602|true|1|0|1|1|main|default|1|0|not_due", "202603|true|2|0|1|1|main|default|2|0|not_due"]);
    for path in rows(&db, "SELECT path FROM system.parts").await {
        assert!(std::path::Path::new(&path).is_absolute() && std::path::Path::new(&path).is_file(), "{path}");
    }
    // Earlier cuts keep what was truncated, until nobody can read them; a removed part is shown until its object is deleted.
    db.execute("TRUNCATE STREAM s").await.unwrap();
    assert_eq!(rows(&db, "SELECT count(*) FROM system.parts WHERE active").await, ["2"]);
    db.execute("ALTER STREAM s MODIFY SETTING history_max_snapshot_age_ms = 1").await.unwrap();
    db.execute("SYSTEM ADVANCE CLOCK INTERVAL 1 MINUTE").await.unwrap();
    db.execute("SYSTEM SETTLE").await.unwrap();
    assert_eq!(rows(&db, "SELECT count(*) FROM system.parts WHERE active").await, ["0"]);
    assert_eq!(rows(&db, "SELECT count(*) FROM system.parts WHERE NOT active AND removed_at IS NULL").await, ["0"]);
    assert_eq!(
        rows(&db, "SELECT event_type, count(*) FROM system.part_log GROUP BY 1 ORDER BY 1").await.first().map(String::as_str),
        Some("DropPart|2")
    );
    db.close().await.unwrap();
}

#[tokio::test]
async fn columns_and_settings_say_what_was_defined() {
    let dir = tempfile::tempdir().unwrap();
    let db = with_stream(&dir).await;
    let sql = "SELECT name, position, type, comment FROM system.columns WHERE stream = 's' ORDER BY position";
    assert_eq!(rows(&db, sql).await, ["t|1|datetime|", "v|2|int64|the value"]);
    let sql = "SELECT value, \"default\" FROM system.stream_settings WHERE name = 'flush_threshold_count'";
    assert_eq!(rows(&db, sql).await, ["100000|100000"]);
    assert_eq!(rows(&db, "SELECT scope FROM system.settings WHERE name = 'background_pool_size'").await, ["server"]);
    db.close().await.unwrap();
}

/// proves D11
#[tokio::test]
async fn logs_read_the_same_wherever_their_rows_lie_and_are_nobody_elses_streams() {
    let dir = tempfile::tempdir().unwrap();
    let db = with_stream(&dir).await;
    db.execute("SYSTEM ADVANCE CLOCK INTERVAL 1 DAY").await.unwrap();
    db.execute("SYSTEM SETTLE").await.unwrap();
    let all = [
        "SELECT * FROM system.part_log ORDER BY event_time, part, event_type",
        "SELECT * FROM system.lifecycle_log ORDER BY event_time, part",
    ];
    let mut before = Vec::new();
    for sql in all {
        before.push(rows(&db, sql).await);
        assert!(!before[before.len() - 1].is_empty(), "{sql}");
    }
    for step in 0..2 {
        match step {
            0 => db.engine().checkpoint().await.unwrap(),
            _ => db.engine().flush(None).await.unwrap(),
        }
        for (sql, then) in all.iter().zip(&before) {
            assert_eq!(rows(&db, sql).await, *then, "step {step}");
        }
    }
    db.execute("INSERT INTO s VALUES ('2026-03-09', 4)").await.unwrap();
    db.execute("SYSTEM FLUSH").await.unwrap();
    assert_eq!(rows(&db, "SELECT count(*) FROM system.part_log").await, [(before[0].len() + 1).to_string()]);
    assert_eq!(rows(&db, "SELECT name FROM system.streams").await, ["s"]);
    assert_eq!(rows(&db, "SELECT DISTINCT stream FROM system.parts").await, ["s"]);
    assert_eq!(rows(&db, "SHOW STREAMS FROM system").await, [] as [&str; 0]);
    for sql in [
        "INSERT INTO system.part_log (part) VALUES ('x')",
        "ALTER STREAM system.part_log MODIFY COMMENT 'x'",
        "TRUNCATE STREAM system.lifecycle_log",
        "DROP STREAM system.part_log",
        "OPTIMIZE STREAM system.part_log",
    ] {
        let e = db.execute(sql).await.unwrap_err();
        assert_eq!(e.sqlstate(), "42809", "{sql}: {e}");
    }
    db.close().await.unwrap();
}

/// A large insert's parts have their lines before a flush lists them.
#[tokio::test]
async fn parts_of_the_tail_say_what_rules_will_do_too() {
    let dir = tempfile::tempdir().unwrap();
    let db = with_stream(&dir).await;
    db.execute("INSERT INTO s SELECT '2026-03-01'::timestamp, value FROM generate_series(1, 70000)").await.unwrap();
    let sql = "SELECT rows, due_rows, lifecycle_state, next_action, next_action_at FROM system.parts";
    assert_eq!(rows(&db, "SELECT parts, tail_rows FROM system.streams").await, ["1|3"]);
    assert_eq!(rows(&db, sql).await, ["70000|70000|not_due|drop|2026-03-02T00:00:00Z"]);
    assert_eq!(rows(&db, "EXPLAIN LIFECYCLE FOR STREAM s").await.len(), 1);
    db.close().await.unwrap();
}

/// Whoever asks is told how disks are, not how they were when somebody last used them.
#[tokio::test]
async fn a_disk_that_goes_away_is_seen_by_who_looks() {
    let dir = tempfile::tempdir().unwrap();
    let (data, cold) = (tempfile::tempdir_in(dir.path()).unwrap(), dir.path().join("cold"));
    let db = open(&data).await;
    db.execute(&format!("CREATE DISK cold disk(type = 'local', path = '{}')", cold.display())).await.unwrap();
    let sql = "SELECT available, error LIKE 'disk ''cold''%' FROM system.disks WHERE name = 'cold'";
    assert_eq!(rows(&db, sql).await, ["true|NULL"]);
    std::fs::rename(&cold, dir.path().join("elsewhere")).unwrap();
    assert_eq!(rows(&db, sql).await, ["false|true"]);
    std::fs::rename(dir.path().join("elsewhere"), &cold).unwrap();
    assert_eq!(rows(&db, sql).await, ["true|NULL"]);
    db.close().await.unwrap();
}

/// On a clock that runs, now has passed when it is looked at.
#[tokio::test]
async fn now_is_no_moment_that_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let db = Database::open(Config::new(dir.path()).with_background(false)).await.unwrap();
    db.execute("CREATE STREAM s (t datetime, v int64) ORDER BY t").await.unwrap();
    db.execute("INSERT INTO s VALUES ('2020-01-01', 1)").await.unwrap();
    for at in ["", " AT TIMESTAMP now()"] {
        let lines = rows(&db, &format!("PREVIEW ALTER STREAM s MODIFY TTL t + INTERVAL 1 DAY{at}")).await;
        assert_eq!(lines.len(), 1, "{at}: {lines:?}");
        db.execute(&format!("EXPLAIN LIFECYCLE FOR STREAM s{at}")).await.unwrap();
    }
    db.close().await.unwrap();
}
