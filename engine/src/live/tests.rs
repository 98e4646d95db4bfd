use super::*;
use ebb_storage::{
    ids::{Generation, PartId},
    manifest::{Commit, Edit, edit::RemoveReason},
    testkit::defs,
};

const KEY: PinKey = (StreamId(1), PartId(1), Generation(1));

fn after(manifest: &Manifest, edits: Vec<Edit>) -> Arc<Manifest> {
    let (no, epoch, time) = (manifest.no.next(), manifest.epoch, manifest.time);
    Arc::new(manifest.apply(&Commit { no, epoch, nonce: String::new(), time, edits }).unwrap())
}

/// A state that is read is seen by whoever looks for readers until it is let go of, however many come after it.
#[test]
fn what_an_earlier_state_names_is_held_while_it_is_read() {
    let stream = after(&Manifest::empty(), vec![Edit::CreateStream(Box::new(defs::stream("s", vec![])))]);
    let with =
        after(&stream, vec![Edit::AddPart(Box::new(ebb_storage::part::PartMeta { origins: vec![], ..defs::part(PartId(1), 1, 1) }))]);
    let cell = LiveCell::new(Live::new(with.clone()));
    assert!(cell.held().names(&KEY));
    let reader = cell.read();
    let without = after(&with, vec![Edit::RemovePart { stream: StreamId(1), part: PartId(1), why: RemoveReason::Replaced }]);
    for _ in 0..3 {
        cell.publish(|live| live.manifest = without.clone());
        assert!(cell.held().names(&KEY));
        assert_eq!(cell.holders(&KEY), 1);
    }
    drop(reader);
    assert!(!cell.held().names(&KEY));
    assert_eq!(cell.holders(&KEY), 0);
}
