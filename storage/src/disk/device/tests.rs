use super::*;
use crate::disk::open::DataDir;

fn def(path: PathBuf, id: u32) -> DiskDef {
    DiskDef { id: DiskId(id), name: "cold".into(), kind: DiskKind::Local { path }, capacity_bytes: Some(100), max_usage_pct: 100 }
}

#[tokio::test]
async fn a_disk_without_its_own_marker_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let (path, db) = (dir.path().join("a/b"), DatabaseId("one".into()));
    let disk = Disk::create(def(path.clone(), 1), &db).await.unwrap();
    let other = Disk::create(def(path.clone(), 1), &DatabaseId("two".into())).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Conflict);
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
    assert_eq!(disk.check(&db).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

/// A disk that is full, or may only be read, is opened by its marker as it is.
#[tokio::test]
async fn a_marker_that_is_there_is_not_written_again() {
    use crate::testkit::{Fault, FaultStore, Op};
    let dir = tempfile::tempdir().unwrap();
    let db = DatabaseId("one".into());
    Disk::create(def(dir.path().to_owned(), 1), &db).await.unwrap();
    let full = FaultStore::over(Arc::new(DurableFs::open(dir.path()).unwrap()));
    full.inject(Op::Put, "", 0, u64::MAX, Fault::DiskFull);
    let disk = Disk::over(def(dir.path().to_owned(), 1), Arc::new(full));
    disk.mark(&db).await.unwrap();
    std::fs::write(dir.path().join(MARKER), "{").unwrap();
    let damaged = disk.mark(&db).await.unwrap_err();
    assert!(damaged.message().contains("EBB-DISK is unreadable"), "{damaged}");
    std::fs::remove_file(dir.path().join(MARKER)).unwrap();
    assert_eq!(disk.mark(&db).await.unwrap_err().kind(), ErrorKind::Full);
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
