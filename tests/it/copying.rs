//! COPY in and out.

use crate::support::{clock, lines, open};
use bytes::Bytes;
use ebb::{Database, Error, Outcome, Session};
use tokio_util::sync::CancellationToken;

async fn start(session: &mut Session, sql: &str) -> Outcome {
    let statement = session.parse(sql).unwrap().remove(0);
    let prepared = session.prepare(statement, &[]).await.unwrap();
    session.execute(&prepared, Vec::new(), CancellationToken::new()).await.unwrap()
}

/// The data in pieces of `piece` bytes.
async fn copy(db: &Database, sql: &str, data: &[u8], piece: usize) -> Result<u64, Error> {
    let mut session = db.session();
    let Outcome::CopyIn(mut copy) = start(&mut session, sql).await else { panic!("no COPY") };
    for bytes in data.chunks(piece) {
        copy.data(Bytes::copy_from_slice(bytes)).await?;
    }
    copy.finish().await
}

async fn all(db: &Database, sql: &str) -> Vec<String> {
    db.sql(sql).await.unwrap().collect().await.unwrap().iter().flat_map(lines).collect()
}

#[tokio::test]
async fn csv_in_pieces_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b nullable(string))").await.unwrap();
    let data = "a,b\n1,x\n2,\"ü, \"\"q\"\"\nline\"\n3,\n4,\"\"\r\n";
    for piece in [1, 2, 7, 1000] {
        db.execute("TRUNCATE STREAM s").await.unwrap();
        let n = copy(&db, "COPY s FROM STDIN WITH (FORMAT csv, HEADER)", data.as_bytes(), piece).await.unwrap();
        assert_eq!(n, 4);
        assert_eq!(all(&db, "SELECT a, b FROM s ORDER BY a").await, ["1|x", "2|ü, \"q\"\nline", "3|NULL", "4|"]);
    }
}

#[tokio::test]
async fn text_with_escapes() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b nullable(string))").await.unwrap();
    let data = "1\ta\\tb\n2\t\\N\n3\t\\\\N\\n\n\\.\n";
    for piece in [1, 3, 1000] {
        db.execute("TRUNCATE STREAM s").await.unwrap();
        assert_eq!(copy(&db, "COPY s (a, b) FROM STDIN", data.as_bytes(), piece).await.unwrap(), 3);
        assert_eq!(all(&db, "SELECT a, b FROM s ORDER BY a").await, ["1|a\tb", "2|NULL", "3|\\N\n"]);
    }
}

#[tokio::test]
async fn errors_name_the_line_and_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string)").await.unwrap();
    let cases: [(&str, &[u8], &str, &str); 5] = [
        ("COPY s FROM STDIN", b"1\tx\nq\ty\n", "22P02", "line 2"),
        ("COPY s FROM STDIN", b"1\tx\n2\n", "22P04", "line 2"),
        ("COPY s FROM STDIN", b"1\tx\n2\ty\tz\n", "22P04", "line 2"),
        ("COPY s FROM STDIN", b"1\tx\n2\t\xff\n", "22021", "line 2"),
        ("COPY s FROM STDIN WITH (FORMAT csv)", b"1,x\n2,\"y\n", "22P04", "line 2"),
    ];
    for (sql, data, state, line) in cases {
        let e = copy(&db, sql, data, 1000).await.unwrap_err();
        assert_eq!(e.sqlstate(), state, "{e}");
        assert!(e.message().contains(line), "{e}");
        assert_eq!(all(&db, "SELECT count(*) FROM s").await, ["0"]);
    }
}

#[tokio::test]
async fn a_copy_in_a_block_is_part_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64)").await.unwrap();
    let mut session = db.session();
    start(&mut session, "BEGIN").await;
    let Outcome::CopyIn(mut copying) = start(&mut session, "COPY s FROM STDIN").await else { panic!() };
    copying.data(Bytes::from_static(b"1\n2\n")).await.unwrap();
    assert_eq!(copying.finish().await.unwrap(), 2);
    assert_eq!(all(&db, "SELECT count(*) FROM s").await, ["0"]);
    start(&mut session, "COMMIT").await;
    assert_eq!(all(&db, "SELECT count(*) FROM s").await, ["2"]);
}

const BINARY: &str = "COPY s (a, b) FROM STDIN WITH (FORMAT binary)";
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A row of an int64 and a text.
fn binary_row(a: i64, b: Option<&[u8]>) -> Vec<u8> {
    let mut row = [&2i16.to_be_bytes()[..], &8i32.to_be_bytes(), &a.to_be_bytes()].concat();
    row.extend(b.map_or(-1, |b| b.len() as i32).to_be_bytes());
    row.extend(b.unwrap_or_default());
    row
}

#[tokio::test]
async fn binary_in_pieces_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b nullable(string))").await.unwrap();
    let rows = [binary_row(1, Some("ü".as_bytes())), binary_row(-2, None), binary_row(i64::MAX, Some(b""))].concat();
    for end in [&[0xff, 0xff][..], &[]] {
        for piece in [1, 2, 7, 1000] {
            db.execute("TRUNCATE STREAM s").await.unwrap();
            assert_eq!(copy(&db, BINARY, &[HEADER, &rows, end].concat(), piece).await.unwrap(), 3);
            assert_eq!(all(&db, "SELECT a, b FROM s ORDER BY a").await, ["-2|NULL", "1|ü", "9223372036854775807|"]);
        }
    }
}

#[tokio::test]
async fn bad_binary_data_is_refused_with_its_row_and_nothing_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64, b string)").await.unwrap();
    let good = [HEADER, &binary_row(1, Some(b"x"))].concat();
    let with = |more: &[u8]| [&good, more].concat();
    let extended = b"PGCOPY\n\xff\r\n\0\0\0\0\0\x7f\xff\xff\xff";
    let cases: [(Vec<u8>, &str, &str); 14] = [
        (b"1\tx\n".to_vec(), "22P04", "not in binary format"),
        (Vec::new(), "22P04", "not in binary format"),
        (HEADER[..10].to_vec(), "22P04", "not in binary format"),
        (extended.to_vec(), "22P04", "header"),
        (b"PGCOPY\n\xff\r\n\0\0\x01\0\0\0\0\0\0".to_vec(), "22P04", "header"),
        (with(&[0, 1]), "22P04", "row 2: 1 values for 2 columns"),
        (with(&[0xff, 0xfe]), "22P04", "row 2"),
        (with(&binary_row(2, Some(b"y"))[..9]), "22P04", "row 2"),
        (with(&[0xff, 0xff, 0]), "22P04", "after"),
        (with(&[&2i16.to_be_bytes()[..], &4i32.to_be_bytes(), &7i32.to_be_bytes(), &(-1i32).to_be_bytes()].concat()), "22P02", "row 2"),
        (with(&[&2i16.to_be_bytes()[..], &i32::MAX.to_be_bytes()].concat()), "54000", "row 2"),
        (with(&[&2i16.to_be_bytes()[..], &(-7i32).to_be_bytes()].concat()), "22P04", "row 2"),
        (with(&binary_row(2, Some(b"\xff"))), "22021", "row 2"),
        (with(&binary_row(2, None)), "23502", "row 2: column 'b'"),
    ];
    for (data, state, said) in cases {
        let e = copy(&db, BINARY, &data, 5).await.unwrap_err();
        assert_eq!(e.sqlstate(), state, "{e}");
        assert!(e.message().contains(said) || said == "after" && e.message().contains("follows the end"), "{e} does not say {said}");
        assert_eq!(all(&db, "SELECT count(*) FROM s").await, ["0"]);
    }
}

#[tokio::test]
async fn a_copy_is_cancelled_at_any_piece_and_at_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    db.execute("CREATE STREAM s (a int64)").await.unwrap();
    let mut session = db.session();
    for in_time in 0..4 {
        let statement = session.parse("COPY s FROM STDIN").unwrap().remove(0);
        let prepared = session.prepare(statement, &[]).await.unwrap();
        let cancel = CancellationToken::new();
        let Ok(Outcome::CopyIn(mut copy)) = session.execute(&prepared, Vec::new(), cancel.clone()).await else { panic!("no COPY") };
        let mut done = Ok(());
        for piece in 0..3 {
            if piece == in_time {
                cancel.cancel();
            }
            done = copy.data(Bytes::from_static(b"1\n")).await;
            if done.is_err() {
                break;
            }
        }
        cancel.cancel();
        let e = match done {
            Ok(()) => copy.finish().await.unwrap_err(),
            Err(e) => e,
        };
        assert_eq!(e.sqlstate(), "57014", "after {in_time} pieces: {e}");
        assert_eq!(all(&db, "SELECT count(*) FROM s").await, ["0"]);
    }
}
