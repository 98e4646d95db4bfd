use super::*;
use crate::{
    part::{copy::copy, store::verify},
    testkit::FaultStore,
};
use object_store::memory::InMemory;
use xxhash_rust::xxh3::xxh3_64;

fn bytes(n: u64) -> Vec<u8> {
    (0..n).map(|i| (i * 31 % 251) as u8).collect()
}

/// A server whose answers end after a range's bytes, and the same looked at by bounded requests.
async fn slow(data: &[u8]) -> (FaultStore, Arc<dyn ObjectStore>, Path) {
    let (faulty, key) = (FaultStore::over(Arc::new(InMemory::new())), Path::from("a"));
    faulty.put(&key, data.to_vec().into()).await.unwrap();
    faulty.cut_bodies_at(RANGE_BYTES);
    (faulty.clone(), Arc::new(Bounded::over(Arc::new(faulty))), key)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn however_much_is_asked_for_no_answer_is_longer_than_a_range() {
    for size in [1, RANGE_BYTES, RANGE_BYTES + 1, 3 * RANGE_BYTES + 5] {
        let data = bytes(size);
        let (raw, store, key) = slow(&data).await;
        let found = store.get(&key).await.unwrap();
        assert_eq!((found.range.clone(), found.meta.size), (0..size, size));
        assert_eq!(found.bytes().await.unwrap(), data, "{size}");
        for range in [0..size, size / 2..size, size / 3..size.min(size / 3 + RANGE_BYTES + 7), 0..size + 100] {
            let want = &data[range.start as usize..range.end.min(size) as usize];
            if !want.is_empty() {
                assert_eq!(store.get_range(&key, range.clone()).await.unwrap(), want, "{range:?} of {size}");
            }
        }
        let joined = store.get_ranges(&key, &[0..size / 2, size / 2..size]).await.unwrap();
        assert_eq!(joined.concat(), data);
        for (range, from) in [(GetRange::Offset(size / 2), size / 2), (GetRange::Suffix(size), 0)] {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let found = store.get_opts(&key, options).await.unwrap();
            assert_eq!(found.range, from..size);
            assert_eq!(found.bytes().await.unwrap(), &data[from as usize..]);
        }
        assert_eq!(raw.get(&key).await.unwrap().bytes().await.is_ok(), size <= RANGE_BYTES, "the double cuts answers off");
    }
}

/// What takes longer than one request may is checked and copied all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_objects_are_verified_and_copied_by_ranges() {
    let data = bytes(2 * RANGE_BYTES + 9);
    let (size, hash) = (data.len() as u64, xxh3_64(&data));
    let (raw, store, key) = slow(&data).await;
    assert!(verify(&(Arc::new(raw) as Arc<dyn ObjectStore>), &key, size, hash).await.is_err());
    verify(&store, &key, size, hash).await.unwrap();
    let (to, at): (Arc<dyn ObjectStore>, Path) = (Arc::new(InMemory::new()), Path::from("b"));
    copy((&store, &key), (&to, &at, RANGE_BYTES as usize), size, hash).await.unwrap();
    assert_eq!(to.get(&at).await.unwrap().bytes().await.unwrap(), data);
}
