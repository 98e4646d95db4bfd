//! A disk in a bucket, on a real S3 server: written to, read, away, back and emptied, by statements over the wire.
//!
//! The server forgets everything when it stops; so it stays, and what is between it and Ebb goes away.

use crate::{
    Running, code,
    python::{environment, file},
};
use ebb_storage::disk::{DiskKind, Secret, s3};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, path::Path as Key};
use parking_lot::Mutex;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_postgres::{Client, SimpleQueryMessage};

const SECRET: &str = "a-secret-that-nobody-sees";
const BUCKET: &str = "bucket";

struct Moto {
    process: Child,
    address: SocketAddr,
}

impl Moto {
    fn start(python: &Path) -> Self {
        let mut process = Command::new(python).arg(file("s3.py")).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        tokio::task::block_in_place(|| BufReader::new(output).read_line(&mut line)).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        Self { process, address: ([127, 0, 0, 1], port).into() }
    }

    async fn make_bucket(&self) {
        let mut connection = TcpStream::connect(self.address).await.unwrap();
        let request = format!("PUT /{BUCKET} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", self.address);
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// Straight to the server, not by way of the gate.
    fn store(&self, prefix: &str) -> Arc<dyn ObjectStore> {
        s3::connect(&kind(&format!("http://{}/{BUCKET}{prefix}", self.address))).unwrap()
    }

    async fn keys(&self) -> Vec<String> {
        let all: Vec<_> = self.store("").list(None).try_collect().await.unwrap();
        all.into_iter().map(|o| o.location.to_string()).collect()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn kind(endpoint: &str) -> DiskKind {
    DiskKind::S3 {
        endpoint: endpoint.to_owned(),
        region: None,
        access_key_id: Some("id".into()),
        secret_access_key: Some(Secret::new(SECRET)),
        use_environment_credentials: false,
    }
}

/// What is between Ebb and the server: open, or nobody is there, or somebody who accepts and never answers.
struct Gate {
    address: SocketAddr,
    to: SocketAddr,
    open: Mutex<Option<JoinHandle<()>>>,
}

impl Gate {
    async fn before(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gate = Self { address: listener.local_addr().unwrap(), to, open: Mutex::new(None) };
        gate.serve(listener);
        gate
    }

    fn serve(&self, listener: TcpListener) {
        let to = self.to;
        let accept = async move {
            // Connections end with the set that they are in.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((mut from, _)) = listener.accept().await {
                connections.spawn(async move {
                    if let Ok(mut server) = TcpStream::connect(to).await {
                        let _ = copy_bidirectional(&mut from, &mut server).await;
                    }
                });
            }
        };
        *self.open.lock() = Some(tokio::spawn(accept));
    }

    async fn close(&self) {
        let open = self.open.lock().take();
        if let Some(open) = open {
            open.abort();
            let _ = open.await;
        }
    }

    /// Connections are accepted and never served.
    async fn mute(&self) {
        self.close().await;
        let listener = TcpListener::bind(self.address).await.unwrap();
        let accept = async move {
            let mut kept = Vec::new();
            while let Ok((connection, _)) = listener.accept().await {
                kept.push(connection);
            }
        };
        *self.open.lock() = Some(tokio::spawn(accept));
    }

    async fn open(&self) {
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }
}

async fn rows(client: &Client, sql: &str) -> Result<Vec<String>, tokio_postgres::Error> {
    let messages = client.simple_query(sql).await?;
    let row = |m: &SimpleQueryMessage| match m {
        SimpleQueryMessage::Row(r) => Some((0..r.len()).map(|i| r.get(i).unwrap_or("NULL")).collect::<Vec<_>>().join("|")),
        _ => None,
    };
    Ok(messages.iter().filter_map(row).collect())
}

fn message(e: &tokio_postgres::Error) -> String {
    e.as_db_error().map_or_else(|| e.to_string(), |e| e.message().to_owned())
}

/// Files below `dir` that hold the secret, but for the manifest's.
fn leaks(dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("meta") {
                found.extend(leaks(&path));
            }
        } else if std::fs::read(&path).is_ok_and(|b| b.windows(SECRET.len()).any(|w| w == SECRET.as_bytes())) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// proves T9, T10, T33, F9, F10
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_in_a_bucket() {
    let Some(python) = environment("s3", "s3-requirements.txt", "moto.server, werkzeug.serving") else { return };
    let moto = Moto::start(&python);
    moto.make_bucket().await;
    let gate = Gate::before(moto.address).await;
    let mut server = Running::start().await;
    let client = server.client().await;
    let run = async |sql: &str| client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {}", message(&e)));

    // A server that has no such bucket, or does not answer, is refused when the disk is made.
    let endpoint = |bucket: &str| format!("http://{}/{bucket}", gate.address);
    let create = |name: &str, bucket: &str| {
        let endpoint = endpoint(bucket);
        format!("CREATE DISK {name} disk(type = 's3', endpoint = '{endpoint}', access_key_id = 'id', secret_access_key = '{SECRET}')")
    };
    let refused = client.batch_execute(&create("nowhere", "no-such-bucket")).await.unwrap_err();
    assert!(message(&refused).contains("disk 'nowhere'") && !message(&refused).contains(SECRET), "{}", message(&refused));
    run(&create("far", &format!("{BUCKET}/ebb"))).await;
    let taken = client.batch_execute(&create("twin", &format!("{BUCKET}/ebb/below"))).await;
    assert_eq!(code(taken), "55000");

    run("CREATE STORAGE POLICY p AS $$volumes: {hot: {disk: default}, cold: {disk: far, prefer_not_to_merge: true}}$$").await;
    run("CREATE STREAM s (t datetime, v int64) PARTITION BY tuple() ORDER BY t TTL t + INTERVAL 1 DAY TO VOLUME 'cold' \
         SETTINGS storage_policy = 'p', merge_with_ttl_timeout = 0")
    .await;
    run("CREATE STREAM near (v int64) ORDER BY v").await;
    run("INSERT INTO near VALUES (1)").await;
    run("INSERT INTO s SELECT to_datetime('2025-01-01') + value * INTERVAL 1 SECOND, value FROM generate_series(1, 70000) t(value)").await;
    run("SYSTEM FLUSH").await;
    let parts = rows(&client, "SELECT disk_name, volume_name, path, rows FROM system.parts WHERE stream = 's' AND active").await.unwrap();
    let [part] = parts.as_slice() else { panic!("{parts:?}") };
    assert!(part.starts_with(&format!("far|cold|s3://{BUCKET}/ebb/")) && part.ends_with(".parquet|70000"), "{part}");
    let key = part.split('|').nth(2).unwrap().trim_start_matches(&format!("s3://{BUCKET}/")).to_owned();
    assert!(moto.keys().await.contains(&key), "{key}: {:?}", moto.keys().await);
    let sum = "SELECT count(*), sum(v), max(v) FROM s";
    assert_eq!(rows(&client, sum).await.unwrap(), ["70000|2450035000|70000"]);
    assert_eq!(rows(&client, "SELECT v FROM s WHERE t = to_datetime('2025-01-01') + INTERVAL 5 SECOND").await.unwrap(), ["5"]);

    // What is shown of it.
    let shown = rows(&client, "SHOW CREATE DISK far").await.unwrap().concat();
    assert!(shown.contains("secret_access_key = '[HIDDEN]'") && !shown.contains(SECRET), "{shown}");
    let listed = rows(&client, "SELECT * FROM system.disks WHERE name = 'far'").await.unwrap();
    assert_eq!(listed, [format!("far|s3|s3://{BUCKET}/ebb|NULL|NULL|NULL|100|t|NULL")]);

    // Nobody answers any more.
    gate.close().await;
    let gone = client.simple_query(sum).await.unwrap_err();
    assert_eq!(gone.as_db_error().map(|e| e.code().code().to_owned()).as_deref(), Some("58030"));
    assert!(message(&gone).contains("disk 'far'") && !message(&gone).contains(SECRET), "{}", message(&gone));
    assert_eq!(rows(&client, "SELECT * FROM near").await.unwrap(), ["1"]);
    run("INSERT INTO s VALUES ('2025-01-02 00:00:00', 100000)").await;
    run("INSERT INTO near VALUES (2)").await;
    run("SYSTEM FLUSH").await;
    let on = "SELECT disk_name, rows FROM system.parts WHERE stream = 's' AND active ORDER BY rows";
    assert_eq!(rows(&client, on).await.unwrap(), ["default|1", "far|70000"]);
    let away = rows(&client, "SELECT available, error FROM system.disks WHERE name = 'far'").await.unwrap();
    assert!(away[0].starts_with("f|disk 'far'"), "{away:?}");

    // Nor at the next start: the rest works.
    drop(client);
    server.restart().await;
    let client = server.client().await;
    assert_eq!(rows(&client, "SELECT sum(v) FROM near").await.unwrap(), ["3"]);
    assert_eq!(code(client.simple_query(sum).await), "58030");

    // It is back, and used again without a restart.
    gate.open().await;
    assert_eq!(rows(&client, "SHOW DISKS").await.unwrap().len(), 2);
    assert_eq!(rows(&client, sum).await.unwrap(), ["70001|2450135000|100000"]);
    let run = async |sql: &str| client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {}", message(&e)));
    run("INSERT INTO s VALUES ('2025-01-03 00:00:00', 1)").await;
    run("SYSTEM FLUSH").await;
    assert!(rows(&client, on).await.unwrap().contains(&"far|1".to_owned()));

    // What is dropped leaves nothing behind but what the disk itself is.
    run("DROP STREAM s").await;
    run("SYSTEM SETTLE").await;
    let left: Vec<String> = moto.keys().await.into_iter().filter(|k| k != "ebb/EBB-DISK" && !k.contains("/epoch/")).collect();
    assert!(left.is_empty(), "{left:?}");
    run("DROP STORAGE POLICY p; DROP DISK far").await;
    assert_eq!(leaks(&server.data()), Vec::<String>::new());
    let manifest = std::fs::metadata(server.data().join("meta")).unwrap().permissions();
    assert_eq!(manifest.mode() & 0o077, 0, "only its owner reads the manifest");
}

/// proves F14: who accepts connections and never answers is away, for whoever reads, writes or asks; and is used again when it answers.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_accepts_and_never_answers() {
    let Some(python) = environment("s3", "s3-requirements.txt", "moto.server, werkzeug.serving") else { return };
    let moto = Moto::start(&python);
    moto.make_bucket().await;
    let gate = Gate::before(moto.address).await;
    let server = Running::start().await;
    let client = server.client().await;
    let run = async |sql: &str| client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {}", message(&e)));
    let create = |name: &str| {
        let at = gate.address;
        format!(
            "CREATE DISK {name} disk(type = 's3', endpoint = 'http://{at}/{BUCKET}/{name}', access_key_id = 'id', secret_access_key = '{SECRET}')"
        )
    };
    run(&create("far")).await;
    run("CREATE STORAGE POLICY p AS $$volumes: {hot: {disk: default}, cold: {disk: far}}$$").await;
    run("CREATE STREAM s (t datetime, v int64) PARTITION BY tuple() ORDER BY t TTL t + INTERVAL 1 DAY TO VOLUME 'cold' \
         SETTINGS storage_policy = 'p', merge_with_ttl_timeout = 0")
    .await;
    run("INSERT INTO s VALUES ('2025-01-01 00:00:00', 7)").await;
    run("SYSTEM FLUSH").await;
    assert_eq!(rows(&client, "SELECT disk_name FROM system.parts WHERE stream = 's' AND active").await.unwrap(), ["far"]);

    gate.mute().await;
    // Nobody has used it since, and its state is not what it was then.
    let away = rows(&client, "SELECT available, error FROM system.disks WHERE name = 'far'").await.unwrap();
    assert!(away[0].starts_with("f|disk 'far'") && away[0].contains("no answer within"), "{away:?}");
    let refused = client.batch_execute(&create("mute")).await.unwrap_err();
    assert!(message(&refused).contains("disk 'mute'") && message(&refused).contains("no answer within"), "{}", message(&refused));

    gate.close().await;
    gate.open().await;
    assert_eq!(rows(&client, "SELECT available FROM system.disks WHERE name = 'far'").await.unwrap(), ["t"]);
    assert_eq!(rows(&client, "SELECT v FROM s").await.unwrap(), ["7"]);
    // A part that nobody has opened yet.
    run("INSERT INTO s VALUES ('2025-01-01 00:00:01', 1)").await;
    run("SYSTEM FLUSH").await;
    gate.mute().await;
    let gone = client.simple_query("SELECT v FROM s").await.unwrap_err();
    assert_eq!(gone.as_db_error().map(|e| e.code().code().to_owned()).as_deref(), Some("58030"));
    assert!(message(&gone).contains("disk 'far'") && message(&gone).contains("no answer within"), "{}", message(&gone));
    run("INSERT INTO s VALUES ('2025-01-02 00:00:00', 8)").await;
    run("SYSTEM FLUSH").await;
    gate.close().await;
    gate.open().await;
    assert_eq!(rows(&client, "SELECT available FROM system.disks WHERE name = 'far'").await.unwrap(), ["t"]);
    assert_eq!(rows(&client, "SELECT sum(v) FROM s").await.unwrap(), ["16"]);
}

/// History of a stream whose parts lie in a bucket, and of one whose parts move there meanwhile: deletes, tags, branches, rollback and expiry
/// are what they are anywhere, and what nobody can read any more leaves the bucket.
#[tokio::test(flavor = "multi_thread")]
async fn history_in_a_bucket() {
    let Some(python) = environment("s3", "s3-requirements.txt", "moto.server, werkzeug.serving") else { return };
    let moto = Moto::start(&python);
    moto.make_bucket().await;
    let mut server = Running::start().await;
    let client = server.client().await;
    let run = async |client: &Client, sql: &str| client.batch_execute(sql).await.unwrap_or_else(|e| panic!("{sql}: {}", message(&e)));
    let at = moto.address;
    run(
        &client,
        &format!(
            "CREATE DISK far disk(type = 's3', endpoint = 'http://{at}/{BUCKET}', access_key_id = 'id', secret_access_key = '{SECRET}')"
        ),
    )
    .await;
    run(&client, "CREATE STORAGE POLICY p AS $$volumes: {hot: {disk: default}, cold: {disk: far}}$$").await;
    // By turns, so that what is deleted is no run of rows and its set lies beside the part.
    run(
        &client,
        "CREATE STREAM s (t datetime, v int64, x int64) PARTITION BY tuple() ORDER BY v TTL t + INTERVAL 1 DAY TO VOLUME 'cold' \
         SETTINGS storage_policy = 'p', merge_with_ttl_timeout = 0, event_time_column = 't'",
    )
    .await;
    let insert = |from: i64| {
        format!(
            "INSERT INTO s SELECT to_datetime('2025-06-15'), value, (value * 7919) % 2 + (value / 7) % 3 \
             FROM generate_series({from}, {}) t(value); SYSTEM FLUSH s",
            from + 19_999
        )
    };
    run(&client, &insert(1)).await;
    run(&client, &insert(20_001)).await;
    let on = "SELECT DISTINCT disk_name FROM system.parts WHERE stream = 's' AND active ORDER BY 1";
    assert_eq!(rows(&client, on).await.unwrap(), ["default"]);
    // Deleted where they are written, then moved: the deletion stays behind and holds.
    run(&client, "DELETE FROM s WHERE x = 1 AND v <= 20000").await;
    let left = rows(&client, "SELECT count(*), sum(v) FROM s").await.unwrap();
    run(&client, "ALTER STREAM s CREATE TAG t; ALTER STREAM s CREATE BRANCH b").await;
    run(&client, "SYSTEM ADVANCE CLOCK INTERVAL '2 days'; SYSTEM SETTLE").await;
    assert_eq!(rows(&client, on).await.unwrap(), ["far"]);
    let whole = ["40000|800020000".to_owned()];
    let cut = |of: &str| format!("SELECT count(*), sum(v) FROM s VERSION AS OF {of}");
    for (sql, wanted) in [(cut("2"), whole.as_slice()), (cut("3"), &left), (cut("'t'"), &left), (cut("'b'"), &left), (cut("'main'"), &left)]
    {
        assert_eq!(rows(&client, &sql).await.unwrap(), wanted, "{sql}");
    }
    // Deleted where they lie now, on main and on the branch; merged, too.
    run(&client, "DELETE FROM s WHERE x = 2").await;
    run(&client, "DELETE FROM s.branch_b WHERE v > 100; INSERT INTO s.branch_b VALUES ('2025-06-15', 77777, 9); SYSTEM FLUSH s").await;
    run(&client, "OPTIMIZE STREAM s FINAL").await;
    let head = rows(&client, "SELECT count(*), sum(v) FROM s").await.unwrap();
    let branch = rows(&client, "SELECT count(*), sum(v) FROM s.branch_b").await.unwrap();
    assert_eq!(rows(&client, "SELECT count(*) FROM s WHERE x = 2").await.unwrap(), ["0"]);
    assert_eq!(rows(&client, "SELECT max(v), max(x) FROM s.branch_b").await.unwrap(), ["77777|9"]);
    drop(client);
    server.restart().await;
    let client = server.client().await;
    for (sql, wanted) in [(cut("2"), whole.as_slice()), (cut("'t'"), &left), (cut("'b'"), &branch), (cut("'main'"), &head)] {
        assert_eq!(rows(&client, &sql).await.unwrap(), wanted, "{sql}");
    }
    // Taken back, taken over, deduplicated.
    run(&client, "CALL rollback_to_snapshot('s', 2)").await;
    assert_eq!(rows(&client, "SELECT count(*), sum(v) FROM s").await.unwrap(), whole);
    run(&client, "INSERT INTO s SELECT t, v, x FROM s VERSION AS OF 2 WHERE v <= 500; OPTIMIZE STREAM s FINAL DEDUPLICATE").await;
    assert_eq!(rows(&client, "SELECT count(*), sum(v) FROM s").await.unwrap(), whole);
    assert_eq!(rows(&client, "SELECT DISTINCT disk_name FROM system.parts WHERE stream = 's' AND active").await.unwrap(), ["far"]);
    // Once the window has passed, what only it and the refs held goes from the bucket.
    run(&client, "SYSTEM ADVANCE CLOCK INTERVAL '10 days'; SYSTEM SETTLE").await;
    let refused = client.simple_query(&cut("2")).await.unwrap_err();
    assert!(message(&refused).contains("oldest available"), "{}", message(&refused));
    assert_eq!(rows(&client, &cut("'t'")).await.unwrap(), left);
    run(&client, "ALTER STREAM s DROP TAG t; ALTER STREAM s DROP BRANCH b; DELETE FROM s WHERE v > 1000").await;
    run(&client, "SYSTEM ADVANCE CLOCK INTERVAL '10 days'; CALL expire_snapshots('s'); OPTIMIZE STREAM s FINAL; SYSTEM SETTLE").await;
    assert_eq!(rows(&client, "SELECT count(*), sum(v) FROM s").await.unwrap(), ["1000|500500"]);
    let parts = rows(&client, "SELECT path, rows FROM system.parts WHERE stream = 's' AND active").await.unwrap();
    let [part] = parts.as_slice() else { panic!("{parts:?}") };
    assert!(part.ends_with(".parquet|1000"), "{part}");
    let kept: Vec<String> = moto.keys().await.into_iter().filter(|k| k.ends_with(".parquet")).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
}

/// What Ebb relies on: of two creations one wins, and an upload in pieces is what was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_creates_on_condition_and_in_pieces() {
    let Some(python) = environment("s3", "s3-requirements.txt", "moto.server, werkzeug.serving") else { return };
    let moto = Moto::start(&python);
    moto.make_bucket().await;
    let store = moto.store("/deep/prefix");
    let key = Key::from("x");
    store.put_opts(&key, "1".into(), PutMode::Create.into()).await.unwrap();
    let again = store.put_opts(&key, "2".into(), PutMode::Create.into()).await.unwrap_err();
    assert!(matches!(again, object_store::Error::AlreadyExists { .. }), "{again}");
    assert_eq!(store.get(&key).await.unwrap().bytes().await.unwrap(), "1");
    let pieces: Vec<Vec<u8>> = (0..3u8).map(|n| vec![n; 6 << 20]).collect();
    let mut upload = store.put_multipart(&Key::from("y")).await.unwrap();
    for piece in &pieces {
        upload.put_part(piece.clone().into()).await.unwrap();
    }
    upload.complete().await.unwrap();
    assert_eq!(store.get(&Key::from("y")).await.unwrap().bytes().await.unwrap(), pieces.concat());
    let ranges = store.get_ranges(&Key::from("y"), &[0..3, (6 << 20) - 1..(6 << 20) + 1]).await.unwrap();
    assert_eq!((ranges[0].as_ref(), ranges[1].as_ref()), ([0, 0, 0].as_slice(), [0, 1].as_slice()));
    assert_eq!(moto.keys().await, ["deep/prefix/x", "deep/prefix/y"]);
}
