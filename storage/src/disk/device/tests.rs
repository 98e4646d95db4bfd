use super::*;
use crate::disk::{DurableFs, open::DataDir};

fn def(path: PathBuf, id: u32) -> DiskDef {
    DiskDef { id: DiskId(id), name: "cold".into(), kind: DiskKind::Local { path }, capacity_bytes: Some(100), max_usage_pct: 100 }
}

async fn create(def: &DiskDef, database: &DatabaseId) -> Result<Arc<dyn ObjectStore>> {
    let store = Real.connect(def, true)?;
    mark(def, &store, database, |_| false).await.map(|()| store)
}

#[tokio::test]
async fn a_disk_without_its_own_marker_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let (path, db) = (dir.path().join("a/b"), DatabaseId("one".into()));
    create(&def(path.clone(), 1), &db).await.unwrap();
    let disk = Disk::open(def(path.clone(), 1), &db).await.unwrap();
    let other = create(&def(path.clone(), 1), &DatabaseId("two".into())).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict);
    assert!(other.message().contains("disk 1 of database one"), "{other}");
    assert_eq!(Disk::open(def(path.clone(), 2), &db).await.unwrap_err().kind(), ErrorKind::Unavailable);
    let key = Path::from("x/y");
    disk.store.put_opts(&key, "1".into(), PutMode::Create.into()).await.unwrap();
    let again = disk.store.put_opts(&key, "2".into(), PutMode::Create.into()).await.unwrap_err();
    assert_eq!(Error::from(again).kind(), ErrorKind::Conflict);
    assert_eq!(disk.store.get(&key).await.unwrap().bytes().await.unwrap(), "1");
    let held = disk.space.reserve(60).unwrap();
    assert_eq!(disk.space.reserve(60).unwrap_err().kind(), ErrorKind::Full);
    drop(held);
    assert_eq!(disk.space.available().unwrap(), 100);
    std::fs::remove_file(path.join(MARKER)).unwrap();
    assert_eq!(check(&disk.def, &disk.store, &db).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

/// A place whose disk is no more can be used again; one whose disk is there cannot.
#[tokio::test]
async fn the_marker_of_a_disk_that_is_no_more_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second, db) = (def(dir.path().to_owned(), 1), def(dir.path().to_owned(), 2), DatabaseId("one".into()));
    let store = create(&first, &db).await.unwrap();
    create(&first, &db).await.unwrap();
    assert_eq!(mark(&second, &store, &db, |_| false).await.unwrap_err().kind(), ErrorKind::Conflict);
    mark(&second, &store, &db, |id| id == DiskId(1)).await.unwrap();
    assert!(check(&second, &store, &db).await.is_ok() && check(&first, &store, &db).await.is_err());
    let elsewhere = mark(&first, &store, &DatabaseId("two".into()), |_| true).await.unwrap_err();
    assert_eq!(elsewhere.kind(), ErrorKind::Conflict);
}

/// A disk that is full, or may only be read, is opened by its marker as it is.
#[tokio::test]
async fn a_marker_that_is_there_is_not_written_again() {
    use crate::testkit::{Fault, FaultStore, Op};
    let dir = tempfile::tempdir().unwrap();
    let (db, def) = (DatabaseId("one".into()), def(dir.path().to_owned(), 1));
    create(&def, &db).await.unwrap();
    let full = FaultStore::over(Arc::new(DurableFs::open(dir.path()).unwrap()));
    full.inject(Op::Put, "", 0, u64::MAX, Fault::DiskFull);
    let store: Arc<dyn ObjectStore> = Arc::new(full);
    mark(&def, &store, &db, |_| false).await.unwrap();
    std::fs::write(dir.path().join(MARKER), "{").unwrap();
    let damaged = mark(&def, &store, &db, |_| false).await.unwrap_err();
    assert!(damaged.message().contains("EBB-DISK is unreadable"), "{damaged}");
    std::fs::remove_file(dir.path().join(MARKER)).unwrap();
    assert_eq!(mark(&def, &store, &db, |_| false).await.unwrap_err().kind(), ErrorKind::Full);
}

/// proves I7: of two openings that share a remote disk, the one with the lower number stops.
#[tokio::test]
async fn a_later_opening_ends_an_earlier_one() {
    use crate::{disk::epoch, ids::Epoch};
    let store: Arc<dyn ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let db = DatabaseId("one".into());
    epoch::begin(&store, &db, Epoch(2), "a").await.unwrap();
    epoch::begin(&store, &db, Epoch(2), "a").await.unwrap();
    assert_eq!(epoch::begin(&store, &db, Epoch(2), "b").await.unwrap_err().kind(), ErrorKind::Fenced);
    epoch::is_newest(&store, &db, Epoch(2)).await.unwrap();
    epoch::begin(&store, &DatabaseId("two".into()), Epoch(9), "a").await.unwrap();
    epoch::is_newest(&store, &db, Epoch(2)).await.unwrap();
    epoch::begin(&store, &db, Epoch(11), "a").await.unwrap();
    let e = epoch::is_newest(&store, &db, Epoch(2)).await.unwrap_err();
    assert!(e.kind() == ErrorKind::Fenced && e.message().contains("epoch 11"), "{e}");
}

/// proves D6: what made the directory is there, or nothing is written.
#[test]
fn a_data_directory_without_its_marker_is_refused_and_a_cut_creation_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data");
    let id = DataDir::open(&root, 0).unwrap().database().clone();
    let marker = std::fs::read(root.join(MARKER)).unwrap();
    std::fs::remove_file(root.join(MARKER)).unwrap();
    let e = DataDir::open(&root, 0).unwrap_err();
    assert!(e.kind() == ErrorKind::Corrupt && e.message().contains("EBB-DISK is missing"), "{e}");
    assert!(!root.join(MARKER).exists());
    let other = serde_json::to_vec(&Marker::new(DiskId::DEFAULT, &DatabaseId("other".into()))).unwrap();
    std::fs::write(root.join(MARKER), other).unwrap();
    let e = DataDir::open(&root, 0).unwrap_err();
    assert!(e.kind() == ErrorKind::Corrupt && e.message().contains("of database other"), "{e}");
    // The creation was cut between the two files.
    std::fs::write(root.join(MARKER), marker).unwrap();
    std::fs::remove_file(root.join("FORMAT")).unwrap();
    assert_eq!(DataDir::open(&root, 0).unwrap().database(), &id);
    // A disk of a database is no data directory.
    let cold = dir.path().join("cold");
    std::fs::create_dir(&cold).unwrap();
    std::fs::write(cold.join(MARKER), serde_json::to_vec(&Marker::new(DiskId(3), &id)).unwrap()).unwrap();
    assert_eq!(DataDir::open(&cold, 0).unwrap_err().kind(), ErrorKind::Invalid);
    assert!(!cold.join("FORMAT").exists());
}

#[test]
fn one_opener_at_a_time_and_known_formats_only() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("data");
    let open = DataDir::open(&root, 4096).unwrap();
    let id = open.database().clone();
    assert_eq!(DataDir::open(&root, 4096).unwrap_err().kind(), ErrorKind::Conflict);
    assert!(open.release_reserve().unwrap());
    assert!(open.restore_reserve_if_roomy().unwrap());
    assert!(open.release_reserve().unwrap(), "it was made again");
    open.restore_reserve().unwrap();
    assert!(open.restore_reserve_if_roomy().unwrap());
    drop(open);
    assert_eq!(DataDir::open(&root, 4096).unwrap().database(), &id);
    std::fs::write(root.join("FORMAT"), r#"{"ebb_format":9,"database":"x"}"#).unwrap();
    assert_eq!(DataDir::open(&root, 4096).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(DataDir::open(dir.path(), 0).unwrap_err().kind(), ErrorKind::Invalid);
}
