use super::*;
use crate::{
    ErrorKind,
    part::{
        reader::source::WHOLE_BYTES,
        remote::{Remote, STRETCH_BYTES},
    },
    testkit::{Fault, FaultStore, Op},
};
use object_store::{ObjectStoreExt, memory::InMemory};
use parquet::file::reader::{ChunkReader, Length};

/// Each of those who read by one reader is told what the disk said, however it came to them and whoever was told first.
#[tokio::test]
async fn a_failing_disk_is_unavailable_to_everyone_and_no_damage() {
    let key = Path::from("a");
    let damage = || Error::corrupt("a decoder keeps of it only text");
    let dir = tempfile::tempdir().unwrap();
    let local = Source::local(std::fs::File::open(dir.path()).unwrap(), 100);
    assert_eq!(local.blame(&key, damage()).kind(), ErrorKind::Corrupt);
    assert!(local.get_bytes(90, 20).is_err());
    assert_eq!(local.blame(&key, damage()).kind(), ErrorKind::Corrupt, "beyond its end the bytes are at fault");
    assert!(local.get_bytes(0, 10).is_err(), "a folder cannot be read");
    let faults = FaultStore::over(Arc::new(InMemory::new()));
    faults.put(&key, vec![0; 100].into()).await.unwrap();
    faults.inject(Op::Get, "a", 0, u64::MAX, Fault::Fail);
    let remote = Remote::new(Arc::new(faults), key.clone(), 100, tokio::runtime::Handle::current());
    let remote = Source::Remote(Arc::new(remote));
    let remote = tokio::task::spawn_blocking(move || {
        let both = [remote.get_bytes(0, 10), remote.get_bytes(20, 10)];
        assert!(both.iter().all(Result::is_err));
        remote
    });
    for source in [local, remote.await.unwrap()] {
        for _ in 0..2 {
            let said = source.blame(&key, damage());
            assert_eq!(said.kind(), ErrorKind::Unavailable, "{said}");
            assert!(said.message().starts_with("a: "), "{said}");
        }
    }
}

/// What is fetched to learn an object's size is of use, and nothing is fetched twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_is_opened_by_its_end() {
    let (stretch, key) = (STRETCH_BYTES as usize, Path::from("a"));
    for (size, requests) in [(1, 1), (stretch, 1), (stretch + 1, 2), (WHOLE_BYTES as usize, 2), (WHOLE_BYTES as usize + 1, 1)] {
        let data: Vec<u8> = (0..size).map(|i| (i * 31 % 251) as u8).collect();
        let faults = FaultStore::over(Arc::new(InMemory::new()));
        faults.put(&key, data.clone().into()).await.unwrap();
        faults.inject(Op::Get, "a", requests, u64::MAX, Fault::Fail);
        let store: Arc<dyn ObjectStore> = Arc::new(faults.clone());
        let source = Source::open(&store, &key).await.unwrap();
        assert_eq!(source.len(), size as u64);
        let (end, from) = (data.clone(), source.clone());
        let of_end = move || {
            let n = size.min(stretch);
            assert_eq!(from.get_bytes((size - n) as u64, n.min(100)).unwrap(), &end[size - n..size - n + n.min(100)]);
        };
        tokio::task::spawn_blocking(of_end).await.unwrap();
        faults.clear();
        assert_eq!(matches!(source, Source::Remote(_)), size as u64 > WHOLE_BYTES);
        let all = tokio::task::spawn_blocking(move || source.get_bytes(0, size).unwrap()).await.unwrap();
        assert_eq!(all, data, "{size}");
    }
}
