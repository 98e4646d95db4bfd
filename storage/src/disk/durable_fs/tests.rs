use super::*;
use object_store::ObjectStoreExt;

fn names(dir: &FsPath) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Parts are synced while later ones are written: what is completed is whole, and nothing is left beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_is_synced_on_the_way_and_completed_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableFs::open(dir.path()).unwrap();
    let key = Path::from("part");
    for round in 0..2 {
        let mut upload = store.put_multipart(&key).await.unwrap();
        for n in 0..20u8 {
            upload.put_part(vec![n; 100_000].into()).await.unwrap();
        }
        let completed = upload.complete().await;
        match round {
            0 => assert!(completed.is_ok(), "{completed:?}"),
            _ => assert!(matches!(completed, Err(object_store::Error::AlreadyExists { .. })), "{completed:?}"),
        }
        let got = store.get(&key).await.unwrap().bytes().await.unwrap();
        assert!(got.len() == 2_000_000 && got.chunks(100_000).zip(0..20u8).all(|(c, n)| c.iter().all(|b| *b == n)));
        assert_eq!(names(dir.path()), ["part"]);
        assert!(upload.complete().await.is_err(), "an upload ends once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_is_given_up_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = DurableFs::open(dir.path()).unwrap();
    let mut upload = store.put_multipart(&Path::from("part")).await.unwrap();
    for n in 0..20u8 {
        upload.put_part(vec![n; 100_000].into()).await.unwrap();
    }
    assert_eq!(names(dir.path()), ["part#1"]);
    upload.abort().await.unwrap();
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A sync that failed on the way is not told a second time by the file: the completion must know of it.
#[tokio::test]
async fn a_part_that_could_not_be_synced_is_not_completed() {
    let dir = tempfile::tempdir().unwrap();
    let staged = DurableFs::open(dir.path()).unwrap().dirs.stage(&dir.path().join("part")).unwrap();
    let progress = Arc::new(Progress::default());
    *progress.failed.lock() = Some(io::Error::other("the device is gone"));
    let location = Path::from("part");
    let dirs = DurableFs::open(dir.path()).unwrap().dirs;
    let mut upload = Upload { location, dirs, staged: Some(Arc::new(staged)), end: 0, progress };
    let e = upload.complete().await.unwrap_err();
    assert!(format!("{e:?}").contains("the device is gone"), "{e}");
    assert_eq!(names(dir.path()), [""; 0]);
}

/// A name whose sync failed can be read, and is never told as created, nor as there already: a second sync may succeed and lie.
#[tokio::test]
async fn a_name_that_could_not_be_synced_stays_in_doubt() {
    static BROKEN: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(true);
    let dir = tempfile::tempdir().unwrap();
    let sync = |dir: &FsPath| if BROKEN.load(Ordering::SeqCst) { Err(io::ErrorKind::StorageFull.into()) } else { sync_dir(dir) };
    let open = DurableFs::open(dir.path()).unwrap();
    let dirs =
        Dirs { root: open.root().to_owned(), known: Mutex::new(HashSet::from([open.root().to_owned()])), doubtful: Mutex::default(), sync };
    let store = DurableFs { dirs: Arc::new(dirs), ..open };
    let key = Path::from("x");
    let create = |key: Path| {
        let store = store.clone();
        async move { store.put_opts(&key, "1".into(), PutMode::Create.into()).await.map(drop).map_err(crate::Error::from) }
    };
    let said = create(key.clone()).await.unwrap_err();
    assert!(said.is_unsynced() && said.kind() == crate::ErrorKind::Full, "{said}");
    assert_eq!(names(dir.path()), ["x"]);
    BROKEN.store(false, Ordering::SeqCst);
    let said = create(key).await.unwrap_err();
    assert!(said.is_unsynced() && said.to_string().contains("may not survive"), "{said}");
    create(Path::from("y")).await.unwrap();
    let there = create(Path::from("y")).await.unwrap_err();
    assert!(!there.is_unsynced() && there.kind() == crate::ErrorKind::Conflict, "{there}");
}
