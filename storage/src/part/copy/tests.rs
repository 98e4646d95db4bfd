use super::*;
use crate::ErrorKind;
use object_store::{PutPayload, memory::InMemory};
use xxhash_rust::xxh3::xxh3_64;

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 % 251) as u8).collect()
}

async fn with(data: &[u8]) -> (Arc<dyn ObjectStore>, Path) {
    let (store, key): (Arc<dyn ObjectStore>, Path) = (Arc::new(InMemory::new()), Path::from("a"));
    store.put(&key, PutPayload::from(data.to_vec())).await.unwrap();
    (store, key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_is_the_same_bytes_of_one_piece_or_many() {
    for n in [1, 1000, 20 << 20] {
        let data = bytes(n);
        let (from, key) = with(&data).await;
        let dir = tempfile::tempdir().unwrap();
        let to: Arc<dyn ObjectStore> = Arc::new(crate::disk::DurableFs::open(dir.path()).unwrap());
        let at = Path::from("x/b");
        copy((&from, &key), (&to, &at, 8 << 20), n as u64, xxh3_64(&data)).await.unwrap();
        assert_eq!(to.get(&at).await.unwrap().bytes().await.unwrap(), data);
        let (back, again): (Arc<dyn ObjectStore>, Path) = (Arc::new(InMemory::new()), Path::from("c"));
        copy((&to, &at), (&back, &again, 8 << 20), n as u64, xxh3_64(&data)).await.unwrap();
        assert_eq!(back.get(&again).await.unwrap().bytes().await.unwrap(), data);
        let other: Vec<u8> = data.iter().map(|b| b ^ 1).collect();
        let (from, key) = with(&other).await;
        let taken = copy((&from, &key), (&to, &at, 8 << 20), n as u64, xxh3_64(&other)).await;
        assert!(taken.is_err(), "an object is never overwritten");
        assert_eq!(to.get(&at).await.unwrap().bytes().await.unwrap(), data);
    }
}

#[tokio::test]
async fn a_damaged_source_leaves_nothing_behind() {
    let data = bytes(5000);
    let (from, key) = with(&data).await;
    let (to, at): (Arc<dyn ObjectStore>, Path) = (Arc::new(InMemory::new()), Path::from("b"));
    for (length, hash) in [(5000, 7), (4999, xxh3_64(&data))] {
        let refused = copy((&from, &key), (&to, &at, 8 << 20), length, hash).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
        assert!(to.get(&at).await.is_err());
    }
    let absent = copy((&to, &at), (&from, &at, 8 << 20), 1, 1).await.unwrap_err();
    assert_eq!(absent.kind(), ErrorKind::NotFound);
}
