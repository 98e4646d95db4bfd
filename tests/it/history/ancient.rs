//! The ancient history mark: what lies before it is refused, its rows go with merges, and who reads already is not disturbed.

use super::Lab;
use crate::support::lines;
use ebb::Outcome;
use futures::StreamExt;
use tokio_util::sync::CancellationToken;

const FIFTEEN_MINUTES: &str = "SETTINGS history_max_snapshot_age_ms = 900000";

// proves U1, U2, U3, U4, U5, U6, U7, I36, I42, I70, F11
#[tokio::test]
async fn a_scan_before_the_mark_is_rejected() {
    let mut lab = Lab::new().await;
    lab.rows(&format!("CREATE STREAM s (id int64) PARTITION BY tuple() ORDER BY id {FIFTEEN_MINUTES}")).await;
    for n in 1..=8 {
        lab.rows(&format!("INSERT INTO s VALUES ({n})")).await;
        lab.advance("5 minutes").await;
    }
    // 00:40 by now; the record of 00:20 was current until 00:25.
    lab.rows("SYSTEM SETTLE").await;
    let mark = "SELECT history_from_sn, history_from_time FROM system.streams WHERE name = 's'";
    assert_eq!(lab.row(mark).await, "5|2026-03-01 00:20:00+00");
    assert_eq!(lab.row("SELECT count(*) FROM s TIMESTAMP AS OF '2026-03-01 00:25'").await, "6");
    assert_eq!(lab.row("SELECT count(*) FROM s TIMESTAMP AS OF '2026-03-01 00:24'").await, "5");
    for at in ["TIMESTAMP AS OF '2026-03-01 00:19'", "VERSION AS OF 4", "FOR SYSTEM_TIME AS OF now() - INTERVAL '21 minutes'"] {
        let e = lab.fails(&format!("SELECT count(*) FROM s {at}")).await;
        assert!(e.message.contains("oldest available is sn 5 of 2026-03-01T00:20:00Z"), "{at}: {e}");
    }
    // Each stream has a value of its own, and another one at any time; nothing gives back what is ancient already.
    lab.rows("ALTER STREAM s MODIFY SETTING history_max_snapshot_age_ms = 432000000").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row(mark).await, "5|2026-03-01 00:20:00+00");
    lab.rows("ALTER STREAM s MODIFY SETTING history_max_snapshot_age_ms = 60000").await;
    lab.advance("1 hour").await;
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row(mark).await, "8|2026-03-01 00:35:00+00");
    assert_eq!(lab.row("SELECT count(*) FROM s").await, "8");
    crate::script::Runner::restart(&mut lab.inside).await;
    assert_eq!(lab.row(mark).await, "8|2026-03-01 00:35:00+00");
}

// proves U10, U11, U12, U13, U14, U15, U16, U17, I24
#[tokio::test]
async fn deleted_rows_go_with_merges_once_they_are_ancient() {
    let mut lab = Lab::new().await;
    lab.rows(&format!("CREATE STREAM s (id int64) PARTITION BY tuple() ORDER BY id {FIFTEEN_MINUTES}")).await;
    for n in 0..2 {
        lab.rows(&format!("INSERT INTO s SELECT value FROM generate_series({}, {})", n * 500, n * 500 + 499)).await;
        lab.rows("SYSTEM FLUSH").await;
    }
    lab.rows("DELETE FROM s WHERE id % 2 = 0").await;
    let parts = "SELECT count(*), sum(rows), sum(deleted_rows) FROM parts('s') WHERE active";
    // Within the window a merge keeps them, with their deletion: beside what the head sees, since they are many.
    lab.rows("OPTIMIZE STREAM s FINAL").await;
    assert_eq!(lab.row(parts).await, "2|1000|500");
    assert_eq!(lab.row("SELECT count(*) FROM s").await, "500");
    assert_eq!(lab.row("SELECT count(*), sum(id) FROM s VERSION AS OF 2").await, "1000|499500");
    lab.rows("DELETE FROM s WHERE id < 100").await;
    lab.rows("INSERT INTO s SELECT value FROM generate_series(1000, 1099)").await;
    lab.rows("SYSTEM FLUSH").await;
    // Past it they are out of reach at once, and nothing is rewritten for their sake.
    lab.advance("16 minutes").await;
    lab.rows("SYSTEM SETTLE").await;
    assert!(lab.fails("SELECT count(*) FROM s VERSION AS OF 2").await.message.contains("oldest available is sn 5"));
    assert_eq!(lab.row("SELECT sum(rows) FROM parts('s') WHERE active").await, "600");
    assert_eq!(lab.row("SELECT count(*) FROM s").await, "550");
    // The next merge takes them for good.
    lab.rows("OPTIMIZE STREAM s FINAL").await;
    assert_eq!(lab.row(parts).await, "1|550|0");
    assert_eq!(lab.row("SELECT count(*), min(id) FROM s").await, "550|101");
    // Rows that are deleted more recently stay through the same merge.
    lab.rows("DELETE FROM s WHERE id < 200").await;
    lab.rows("OPTIMIZE STREAM s FINAL").await;
    assert_eq!(lab.row(parts).await, "1|550|50");
}

// proves U9
#[tokio::test]
async fn a_lease_outlives_the_window() {
    let mut lab = Lab::new().await;
    lab.rows(&format!("CREATE STREAM s (id int64) PARTITION BY tuple() ORDER BY id {FIFTEEN_MINUTES}")).await;
    for n in 1..=3 {
        lab.rows(&format!("INSERT INTO s VALUES ({n})")).await;
        lab.rows("SYSTEM FLUSH").await;
    }
    lab.rows("DELETE FROM s WHERE id = 1").await;
    assert_eq!(lab.fails("SET read_lease = '2 d'").await.sqlstate, "22023");
    lab.rows("SET read_lease = '2 h'").await;
    for hours in 0..3 {
        // Each read renews it.
        assert_eq!(lab.row("SELECT sum(id) FROM s VERSION AS OF 2").await, "3", "after {hours} hours");
        lab.advance("1 hour").await;
        lab.rows("SYSTEM SETTLE").await;
        lab.rows("OPTIMIZE STREAM s FINAL").await;
    }
    assert!(lab.fails("SELECT sum(id) FROM s VERSION AS OF 1").await.message.contains("oldest available"));
    lab.advance("2 hours").await;
    lab.rows("SYSTEM SETTLE").await;
    assert!(lab.fails("SELECT sum(id) FROM s VERSION AS OF 2").await.message.contains("oldest available"));
    assert_eq!(lab.row("SELECT sum(id) FROM s").await, "5");
}

// proves U8, I73, F11
#[tokio::test]
async fn an_open_scan_is_not_disturbed() {
    let mut lab = Lab::new().await;
    lab.rows(&format!("CREATE STREAM s (id int64, pad string) PARTITION BY tuple() ORDER BY id {FIFTEEN_MINUTES}")).await;
    for n in 0..4 {
        let from = n * 50_000;
        let rows = format!("SELECT value, repeat('x', 20) FROM generate_series({from}, {})", from + 49_999);
        lab.rows(&format!("INSERT INTO s {rows}")).await;
        lab.rows("SYSTEM FLUSH").await;
    }
    let mut session = lab.inside.db.session();
    let statement = session.parse("SELECT id FROM s VERSION AS OF 3").unwrap().remove(0);
    let prepared = session.prepare(statement, &[]).await.unwrap();
    let Outcome::Rows { mut stream, .. } = session.execute(&prepared, Vec::new(), CancellationToken::new()).await.unwrap() else {
        panic!()
    };
    let mut read = lines(&stream.next().await.unwrap().unwrap()).len();
    lab.rows("DELETE FROM s WHERE id < 150000").await;
    lab.advance("1 hour").await;
    lab.rows("SYSTEM SETTLE").await;
    lab.rows("OPTIMIZE STREAM s FINAL").await;
    lab.rows("SYSTEM SETTLE").await;
    assert!(lab.fails("SELECT count(*) FROM s VERSION AS OF 3").await.message.contains("oldest available"));
    while let Some(batch) = stream.next().await {
        read += batch.unwrap().num_rows();
    }
    assert_eq!(read, 150_000);
    drop(stream);
    lab.rows("SYSTEM SETTLE").await;
    assert_eq!(lab.row("SELECT count(*), sum(rows) FROM parts('s')").await, "1|50000");
}
