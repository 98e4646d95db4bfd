//! Retention of snapshots by tags, branches, counts and ages.

use super::Lab;

const REFS: &str = "SELECT name, type, sn, max_ref_age_ms, min_snapshots_to_keep, max_snapshot_age_ms FROM refs('orders') ORDER BY name";

/// Forty commits on main, a tag at the tenth, a branch cut at the thirtieth with four of its own.
async fn forty_four(lab: &mut Lab) {
    lab.rows("CREATE STREAM orders (id int64) ORDER BY id").await;
    lab.commits("orders", 0, 10).await;
    lab.rows("ALTER STREAM orders CREATE TAG q2_close RETAIN 3650 DAYS").await;
    lab.commits("orders", 10, 20).await;
    lab.rows("ALTER STREAM orders CREATE BRANCH dev WITH SNAPSHOT RETENTION 5 SNAPSHOTS").await;
    lab.commits("orders", 30, 10).await;
    lab.commits("orders.branch_dev", 100, 4).await;
    lab.rows("SYSTEM FLUSH orders").await;
}

// proves I1, I2, I4, I7, I17, I18, I19, I20, I21, I22, I23, I25, I67, F11
#[tokio::test]
async fn eight_survivors_of_forty_four() {
    let mut lab = Lab::new().await;
    forty_four(&mut lab).await;
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('orders')").await, "44");
    let refs = lab.rows(REFS).await;
    let wanted = ["dev|BRANCH|44|NULL|5|NULL", "main|BRANCH|40|NULL|NULL|NULL", "q2_close|TAG|10|315360000000|NULL|NULL"];
    assert_eq!(refs, wanted);
    let parts = lab.rows("SELECT name, bytes_on_disk FROM parts('orders') ORDER BY name").await;

    let call = "CALL expire_snapshots('orders', older_than => '2030-01-01', retain_last => 2";
    assert_eq!(lab.row(&format!("{call}, dry_run => true)")).await, "36|0|0|0|0");
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('orders')").await, "44");
    assert_eq!(lab.row(&format!("{call})")).await, "36|0|0|0|0");
    assert_eq!(lab.row(&format!("{call})")).await, "0|0|0|0|0");

    for _ in 0..2 {
        let left = lab.rows("SELECT branch, sn FROM snapshots('orders') ORDER BY sn").await;
        assert_eq!(left, ["main|10", "main|30", "main|39", "main|40", "dev|41", "dev|42", "dev|43", "dev|44"]);
        assert_eq!(lab.rows(REFS).await, refs);
        assert_eq!(lab.rows("SELECT name, bytes_on_disk FROM parts('orders') ORDER BY name").await, parts);
        let reads = "SELECT (SELECT count(*) FROM orders VERSION AS OF 'q2_close'), (SELECT count(*) FROM orders.branch_dev), \
                     (SELECT count(*) FROM orders VERSION AS OF 'dev'), (SELECT count(*) FROM orders)";
        assert_eq!(lab.row(reads).await, "10000|34000|34000|40000");
        // Each survivor is read, each of the others is refused with the oldest there is.
        for (sn, rows) in [(10, 10_000), (30, 30_000), (39, 39_000), (40, 40_000), (41, 31_000), (44, 34_000)] {
            assert_eq!(lab.row(&format!("SELECT count(*) FROM orders VERSION AS OF {sn}")).await, rows.to_string(), "{sn}");
        }
        for sn in [1, 9, 11, 29, 31, 38] {
            let e = lab.fails(&format!("SELECT count(*) FROM orders VERSION AS OF {sn}")).await;
            assert!(e.message.contains("oldest available is sn 39"), "{e}");
        }
        crate::script::Runner::restart(&mut lab.inside).await;
    }
    // What the survivors need outlives merges; the rest of history pays nothing.
    lab.rows("OPTIMIZE STREAM orders FINAL").await;
    let reads = "SELECT (SELECT count(*) FROM orders VERSION AS OF 10), (SELECT sum(id) FROM orders.branch_dev) - (SELECT sum(id) FROM orders VERSION AS OF 30), \
                 (SELECT count(*) FROM orders VERSION AS OF 39)";
    let own: i64 = (100_000..104_000).sum();
    assert_eq!(lab.row(reads).await, format!("10000|{own}|39000"));
}

// proves I15, I27, I28, I29, I30, I31, I74
#[tokio::test]
async fn refs_expire_by_themselves() {
    let mut lab = Lab::new().await;
    forty_four(&mut lab).await;
    lab.rows("ALTER STREAM orders CREATE BRANCH short_lived AS OF VERSION 5 RETAIN 1 MINUTES").await;
    lab.rows("INSERT INTO orders.branch_short_lived VALUES (-1)").await;
    assert_eq!(lab.row("SELECT max_ref_age_ms FROM refs('orders') WHERE name = 'short_lived'").await, "60000");
    let names = "SELECT string_agg(name, ',' ORDER BY name) FROM refs('orders')";
    let call = "CALL expire_snapshots('orders', older_than => '2030-01-01', retain_last => 2)";
    // Of its own record and the one that it was cut at, the branch's count of one keeps the head.
    lab.rows(call).await;
    assert_eq!(lab.row(names).await, "dev,main,q2_close,short_lived");
    assert_eq!(lab.row("SELECT count(*) FROM orders VERSION AS OF 'short_lived'").await, "5001");
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('orders') WHERE sn = 45").await, "1");
    lab.advance("70 seconds").await;
    // Refused at once, gone at the next pass with what only it held.
    let e = lab.fails("SELECT count(*) FROM orders VERSION AS OF 'short_lived'").await;
    assert_eq!(e.sqlstate, "42704", "{e}");
    let e = lab.fails("INSERT INTO orders.branch_short_lived VALUES (-2)").await;
    assert_eq!(e.sqlstate, "42704", "{e}");
    let gone = lab.row(call).await;
    assert!(gone.split('|').nth(1) == Some("1"), "{gone}");
    assert_eq!(lab.row(names).await, "dev,main,q2_close");
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('orders') WHERE sn IN (5, 45)").await, "0");
    assert_eq!(lab.row("SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM orders.branch_dev)").await, "40000|34000");
    // A ref's age counts from its creation, however old what it names is; and nobody needs to call.
    lab.advance("3 days").await;
    lab.rows("ALTER STREAM orders CREATE TAG forgotten AS OF VERSION 10 RETAIN 1 DAYS").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row(names).await, "dev,forgotten,main,q2_close");
    lab.advance("23 hours").await;
    assert_eq!(lab.row("SELECT count(*) FROM orders VERSION AS OF 'forgotten'").await, "10000");
    lab.advance("1 hour").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row(names).await, "dev,main,q2_close");
}

// proves I32, I33, I34, I75
#[tokio::test]
async fn a_tag_does_not_double_a_stream_that_is_merged() {
    let mut lab = Lab::new().await;
    for stream in ["held", "free"] {
        lab.rows(&format!("CREATE STREAM {stream} (id int64) PARTITION BY tuple() ORDER BY id")).await;
        for n in 0..20 {
            lab.rows(&format!("INSERT INTO {stream} SELECT value FROM generate_series({}, {})", n * 1000, n * 1000 + 999)).await;
            lab.rows(&format!("SYSTEM FLUSH {stream}")).await;
        }
    }
    lab.rows("ALTER STREAM held CREATE TAG hold").await;
    let listed = |stream: &str| format!("SELECT count(*), sum(bytes_on_disk) FROM parts('{stream}')");
    let before = lab.row(&listed("held")).await;
    assert!(before.starts_with("20|"), "{before}");
    assert_eq!(before, lab.row(&listed("free")).await);
    for stream in ["held", "free"] {
        lab.rows(&format!("OPTIMIZE STREAM {stream} FINAL")).await;
        lab.rows(&format!("CALL expire_snapshots('{stream}', older_than => '2030-01-01', retain_last => 1)")).await;
    }
    lab.rows("SYSTEM SETTLE").await;
    let after = lab.row(&listed("held")).await;
    assert!(after.starts_with("1|"), "{after}");
    assert_eq!(after, lab.row(&listed("free")).await);
    assert_eq!(lab.row("SELECT count(*) FROM held VERSION AS OF 'hold'").await, "20000");
    assert_eq!(lab.row("SELECT held_bytes FROM refs('held') WHERE name = 'hold'").await, "0");
}

// proves I35, I36, I37, I38, I39, I40, I41, I42, I72
#[tokio::test]
async fn reads_and_rollback_after_an_expiry() {
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM orders (id int64) ORDER BY id").await;
    lab.commits("orders", 0, 20).await;
    lab.rows("ALTER STREAM orders CREATE TAG hold").await;
    lab.rows("CALL expire_snapshots('orders', older_than => '2030-01-01', retain_last => 1)").await;
    assert_eq!(lab.row("SELECT count(*) FROM orders VERSION AS OF 'hold'").await, "20000");
    let e = lab.fails("SELECT count(*) FROM orders TIMESTAMP AS OF '2026-01-01'").await;
    assert!(e.message.contains("oldest available is sn 20 of 2026-03-01"), "{e}");
    lab.commits("orders", 20, 1).await;
    assert_eq!(lab.row("SELECT count(*) FROM orders").await, "21000");
    assert_eq!(lab.row("CALL rollback_to_snapshot('orders', 20)").await, "21|20|22");
    assert_eq!(lab.row("SELECT count(*) FROM orders").await, "20000");
    assert_eq!(lab.rows("SELECT name FROM refs('orders') ORDER BY name").await, ["hold", "main"]);
    for (unknown, says) in
        [(1, "oldest available is sn 20"), (19, "oldest available is sn 20"), (1_234_567_890, "does not exist: the newest is 22")]
    {
        let e = lab.fails(&format!("CALL rollback_to_snapshot('orders', {unknown})")).await;
        assert!(e.message.contains(&format!("snapshot {unknown} of default.orders")) && e.message.contains(says), "{e}");
    }
    // What was rolled past is left to the next expiry, and is the undo until then.
    assert_eq!(lab.row("SELECT is_current_ancestor FROM history('orders') WHERE sn = 21").await, "f");
    assert_eq!(lab.row("SELECT count(*) FROM orders VERSION AS OF 21").await, "21000");
    lab.advance("1 minute").await;
    lab.rows("CALL expire_snapshots('orders', older_than => '2030-01-01', retain_last => 1)").await;
    assert_eq!(lab.rows("SELECT sn, operation FROM snapshots('orders') ORDER BY sn").await, ["20|append", "22|rollback"]);
    assert_eq!(lab.row("SELECT count(*) FROM orders").await, "20000");
}

// proves I5, I9, I10, I13, I50, I51, I52, I53, I54
#[tokio::test]
async fn the_scheduled_job_takes_no_arguments() {
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM s (id int64) ORDER BY id").await;
    lab.commits("s", 0, 10).await;
    assert!(lab.row("CALL expire_snapshots('s')").await.starts_with("0|"));
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('s')").await, "10");
    lab.rows("ALTER STREAM s MODIFY SETTING history_max_snapshot_age_ms = 1, history_min_snapshots_to_keep = 3").await;
    assert!(lab.row("CALL expire_snapshots('s')").await.starts_with("7|"));
    assert_eq!(lab.rows("SELECT sn FROM snapshots('s') ORDER BY sn").await, ["8", "9", "10"]);
    lab.rows("ALTER STREAM s CREATE BRANCH keep_more WITH SNAPSHOT RETENTION 5 SNAPSHOTS").await;
    lab.commits("s.branch_keep_more", 100, 6).await;
    lab.rows("CALL expire_snapshots('s')").await;
    let left = lab.rows("SELECT branch, count(*) FROM snapshots('s') GROUP BY branch ORDER BY branch").await;
    assert_eq!(left, ["keep_more|5", "main|3"]);
}

const HOT: &str = "SETTINGS history_max_snapshot_age_ms = 1, history_min_snapshots_to_keep = 2";

// proves I6, I8, I11, I12, I14, I16, I26, I55, I56, I57, I58, I59, I60, I61, I65, I76
#[tokio::test]
async fn the_three_classes_expired_together() {
    let mut lab = Lab::new().await;
    for class in ["hot", "audit", "dev"] {
        lab.rows(&format!("CREATE STREAM {class} (id int64) ORDER BY id {HOT}")).await;
        lab.commits(class, 0, 6).await;
        if class == "audit" {
            lab.rows("ALTER STREAM audit CREATE TAG month_end RETAIN 2555 DAYS").await;
        }
        lab.commits(class, 6, 4).await;
        if class == "audit" {
            lab.rows("ALTER STREAM audit CREATE TAG week_end RETAIN 30 DAYS").await;
        }
        lab.commits(class, 10, 2).await;
    }
    lab.rows("ALTER STREAM dev CREATE BRANCH feature RETAIN 7 DAYS WITH SNAPSHOT RETENTION 10 SNAPSHOTS").await;
    lab.commits("dev.branch_feature", 100, 6).await;
    let count = |class: &str| format!("SELECT count(*) FROM snapshots('{class}')");
    for (class, before, after) in [("hot", "12", "2"), ("audit", "12", "4"), ("dev", "18", "10")] {
        assert_eq!(lab.row(&count(class)).await, before, "{class}");
        lab.rows(&format!("CALL expire_snapshots('{class}')")).await;
        assert_eq!(lab.row(&count(class)).await, after, "{class}");
    }
    let reads = "SELECT (SELECT count(*) FROM audit VERSION AS OF 'month_end'), (SELECT count(*) FROM audit VERSION AS OF 'week_end'), \
                 (SELECT count(*) FROM audit), (SELECT count(*) FROM dev), (SELECT count(*) FROM dev.branch_feature)";
    assert_eq!(lab.row(reads).await, "6000|10000|12000|12000|18000");
    let shared = lab.rows("SELECT sn FROM snapshots('dev') WHERE branch = 'main' ORDER BY sn").await;
    assert_eq!(shared, ["9", "10", "11", "12"]);
    // The audit state is not writable; the branch removes itself in a week, the tag of thirty days on the thirty-first.
    let e = lab.fails("INSERT INTO audit.branch_month_end VALUES (1)").await;
    assert!(e.message.contains("is a tag"), "{e}");
    lab.advance("7 days").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.rows("SELECT name FROM refs('dev')").await, ["main"]);
    assert_eq!(lab.row(&count("dev")).await, "2");
    lab.advance("23 days").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.rows("SELECT name FROM refs('audit') ORDER BY name").await, ["main", "month_end"]);
}

// proves I68, I69, I72, F11
#[tokio::test]
async fn ages_counts_and_refs_without_an_owner() {
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM s (id int64) ORDER BY id SETTINGS history_max_snapshot_age_ms = 604800000").await;
    lab.commits("s", 0, 3).await;
    // A week of history is kept; an expiry asked for a day takes what it names and says how much.
    lab.advance("2 days").await;
    lab.commits("s", 3, 2).await;
    assert!(lab.row("CALL expire_snapshots('s')").await.starts_with("0|"));
    assert!(lab.row("CALL expire_snapshots('s', older_than => now() - INTERVAL '1 day', dry_run => true)").await.starts_with("2|"));
    assert!(lab.row("CALL expire_snapshots(table => 's', older_than => now() - INTERVAL '1 day')").await.starts_with("2|"));
    // What was current within the day can be read: the third was superseded only then.
    assert_eq!(lab.rows("SELECT sn FROM snapshots('s') ORDER BY sn").await, ["3", "4", "5"]);
    assert_eq!(lab.row("SELECT count(*) FROM s TIMESTAMP AS OF now() - INTERVAL '1 day'").await, "3000");
    let e = lab.fails("CALL expire_snapshots('s', older_than => 5)").await;
    assert!(e.message.contains("takes a time"), "{e}");
    // A branch's own age.
    lab.rows("ALTER STREAM s CREATE BRANCH b WITH SNAPSHOT RETENTION 1 DAYS").await;
    lab.commits("s.branch_b", 50, 3).await;
    lab.rows("CALL expire_snapshots('s')").await;
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('s') WHERE branch = 'b'").await, "3");
    lab.advance("2 days").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('s') WHERE branch = 'b'").await, "1");
    assert_eq!(lab.row("SELECT count(*) FROM s.branch_b").await, "8000");
    // Refs that nobody ends: found, given an end, dropped.
    let unowned = "SELECT name FROM refs('s') WHERE max_ref_age_ms IS NULL AND name <> 'main'";
    assert_eq!(lab.rows(unowned).await, ["b"]);
    lab.rows("ALTER STREAM s REPLACE BRANCH b RETAIN 2 DAYS").await;
    assert!(lab.rows(unowned).await.is_empty());
    lab.rows("ALTER STREAM s DROP BRANCH b").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row("SELECT count(*) FROM snapshots('s') WHERE branch <> 'main'").await, "0");
}

// proves I43, I44, I45, I46, I47, I48, I49
#[tokio::test]
async fn a_reader_that_fell_behind_hears_of_it() {
    let mut lab = Lab::new().await;
    lab.rows("CREATE STREAM s (id int64) ORDER BY id SETTINGS history_max_snapshot_age_ms = 1").await;
    lab.commits("s", 0, 8).await;
    lab.rows("CREATE READER slow ON s FROM 3").await;
    lab.rows("CREATE READER kept ON s FROM 4 MAX LAG INTERVAL 1 HOUR").await;
    lab.commits("s", 8, 2).await;
    lab.rows("CALL expire_snapshots('s', older_than => '2030-01-01', retain_last => 3)").await;
    // From a start that is there, its two thousand rows.
    assert_eq!(lab.row("SELECT count(*) FROM changes('s', 8, 10)").await, "2000");
    // From one that is not: refused where it is defined, and where it is read.
    for statement in ["SELECT count(*) FROM changes('s', 3, 10)", "CREATE READER more ON s FROM 3", "SELECT * FROM read('slow')"] {
        let e = lab.fails(statement).await;
        assert!(e.message.contains("oldest available is sn 4"), "{statement}: {e}");
    }
    assert_eq!(lab.row("SELECT state FROM system.readers WHERE name = 'slow'").await, "expired");
    // One that is registered with its lag keeps its start, and all that it has not read.
    assert_eq!(lab.row("SELECT count(*), min(_tp_sn) FROM read('kept')").await, "6000|5");
    lab.advance("2 hours").await;
    lab.rows("SYSTEM SETTLE").await;
    let e = lab.fails("SELECT * FROM read('kept')").await;
    assert!(e.message.contains("MAX LAG") && e.message.contains("oldest available is sn 10"), "{e}");
    let e = lab.fails("CREATE READER more ON s FROM 4 MAX LAG INTERVAL 1 HOUR").await;
    assert!(e.message.contains("oldest available is sn 10"), "{e}");
    // The way out is a full read, and on from there.
    lab.rows("CALL advance_reader('kept', 10)").await;
    lab.commits("s", 10, 1).await;
    assert_eq!(lab.row("SELECT count(*) FROM read('kept')").await, "1000");
}
