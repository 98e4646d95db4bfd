use super::*;
use crate::{
    ErrorKind,
    testkit::{Fault, FaultStore, Op},
};
use object_store::memory::InMemory;

fn faulty() -> (FaultStore, Arc<dyn ObjectStore>, Path) {
    let faulty = FaultStore::over(Arc::new(InMemory::new()));
    (faulty.clone(), Arc::new(faulty), Path::from("a"))
}

/// Sends pieces, and their end.
fn pieces(of: &[&'static [u8]]) -> mpsc::Receiver<Option<Bytes>> {
    let (sender, receiver) = mpsc::channel(of.len() + 1);
    of.iter().map(|p| Some(Bytes::from_static(p))).chain([None]).for_each(|p| sender.try_send(p).unwrap());
    receiver
}

#[tokio::test]
async fn an_upload_that_cannot_be_completed_leaves_no_pieces() {
    for fault in [Fault::Fail, Fault::AppliedNotAcknowledged, Fault::DiskFull] {
        let (faults, store, key) = faulty();
        faults.inject(Op::Complete, "a", 0, 1, fault);
        let said = upload(&store, &key, pieces(&[b"1", b"2", b"3"])).await.unwrap_err();
        assert_eq!(said.kind(), if fault == Fault::DiskFull { ErrorKind::Full } else { ErrorKind::Unavailable });
        assert_eq!(faults.open_uploads(), 0, "{fault:?}");
        assert!(upload(&store, &key, pieces(&[b"1", b"2"])).await.unwrap());
        assert_eq!((faults.open_uploads(), store.get(&key).await.unwrap().bytes().await.unwrap().as_ref()), (0, b"12".as_slice()));
    }
}

#[tokio::test]
async fn an_upload_that_nobody_waits_for_is_given_up() {
    let (faults, store, key) = faulty();
    let (sender, receiver) = mpsc::channel(3);
    for piece in [b"1".as_slice(), b"2"] {
        sender.try_send(Some(Bytes::from_static(piece))).unwrap();
    }
    {
        let running = upload(&store, &key, receiver);
        tokio::pin!(running);
        for _ in 0..20 {
            assert!(futures::poll!(&mut running).is_pending());
            tokio::task::yield_now().await;
        }
        assert_eq!(faults.open_uploads(), 1);
    }
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(faults.open_uploads(), 0);
    // Its pieces end without their end.
    let (sender, receiver) = mpsc::channel(3);
    for piece in [b"1".as_slice(), b"2"] {
        sender.try_send(Some(Bytes::from_static(piece))).unwrap();
    }
    drop(sender);
    assert!(!upload(&store, &key, receiver).await.unwrap());
    assert_eq!(faults.open_uploads(), 0);
    assert!(store.get(&key).await.is_err());
}

/// A client that sends a put again, its answer lost, is told that the object is there.
#[tokio::test]
async fn an_object_that_is_there_is_ours_if_its_bytes_are() {
    let (_, store, key) = faulty();
    assert!(upload(&store, &key, pieces(&[b"1"])).await.unwrap());
    assert!(upload(&store, &key, pieces(&[b"1"])).await.unwrap());
    for other in [b"2".as_slice(), b"12", b""] {
        let said = upload(&store, &key, pieces(&[other])).await.unwrap_err();
        assert_eq!(said.kind(), ErrorKind::Conflict, "{said}");
    }
    assert_eq!(store.get(&key).await.unwrap().bytes().await.unwrap(), "1");
}

#[test]
fn a_server_is_not_sent_more_pieces_than_it_takes() {
    let (mib, gib) = (1u64 << 20, 1u64 << 30);
    assert_eq!(piece_bytes(false, 500 * gib), LOCAL_PIECE_BYTES);
    for bytes in [0, 1, 8 * mib, 70 * gib, 78 * gib, 150 * gib, 5 * 1024 * gib] {
        let piece = piece_bytes(true, bytes) as u64;
        assert!(piece >= 8 * mib && bytes.div_ceil(piece) <= 9_000, "{bytes}");
        // S3's own limit.
        assert!(piece <= 5 * gib);
    }
    // Twice what was expected, and a hundred times.
    for times in [2, 100] {
        let (mut full_at, mut sent, mut count) = (PIECE_BYTES as u64, 0u64, 0u64);
        while sent < times * 9_000 * PIECE_BYTES as u64 {
            count += 1;
            if count >= PIECES_PLANNED {
                full_at += full_at / PIECE_GROWTH as u64;
            }
            sent += full_at;
        }
        assert!(count < 10_000, "{count}");
    }
}
