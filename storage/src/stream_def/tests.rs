use super::*;
use crate::{rules::Stage, testkit::defs};

fn old() -> StreamDef {
    StreamDef { schema_version: SchemaVersion(3), policy_version: 7, ..defs::stream("s", vec![defs::column(1, "v", ColumnType::Int64)]) }
}

/// The versions of what `change` makes of the definition.
fn raised(change: impl FnOnce(&mut StreamDef)) -> (u32, u64) {
    let mut new = old();
    change(&mut new);
    // Versions, id and time are not the caller's to give.
    (new.id, new.schema_version, new.policy_version, new.created_at) = (StreamId(9), SchemaVersion(9), 9, Timestamp(9));
    let new = new.following(&old());
    assert_eq!((new.id, new.created_at), (old().id, old().created_at));
    (new.schema_version.0, new.policy_version)
}

#[test]
fn every_change_raises_a_version_and_none_raises_none() {
    let ttl = |when: &str| Some(ColumnTtl { when: when.to_owned(), fingerprint: Fingerprint(1) });
    assert_eq!(raised(|_| {}), (3, 7));
    assert_eq!(raised(|d| d.columns[0].ttl = ttl("t")), (3, 8), "a column's TTL is a rule");
    assert_eq!(raised(|d| d.columns[0].codec = Some(ColumnCodec { preprocessor: None, codec: Default::default() })), (3, 8));
    assert_eq!(raised(|d| d.policy.retention.push(Stage::MaxRows(1))), (3, 8));
    assert_eq!(raised(|d| _ = d.settings.insert("flush_threshold_ms".into(), SettingValue::Int(1))), (3, 8));
    assert_eq!(raised(|d| d.name = "t".into()), (3, 8));
    assert_eq!(raised(|d| d.comment = "c".into()), (3, 8));
    assert_eq!(raised(|d| d.columns[0].comment = "c".into()), (3, 8));
    assert_eq!(raised(|d| d.columns[0].name = "w".into()), (4, 7));
    assert_eq!(raised(|d| d.columns[0].nullable = true), (4, 7));
    assert_eq!(raised(|d| d.columns.clear()), (4, 8), "with its codec");
    assert_eq!(
        raised(|d| {
            d.columns[0].nullable = true;
            d.columns[0].ttl = ttl("t");
        }),
        (4, 8)
    );
}

#[test]
fn a_new_column_begins_with_the_version_that_brings_it() {
    let mut new = old();
    new.columns.push(defs::column(2, "w", ColumnType::Int64));
    let new = new.following(&old());
    assert_eq!(new.columns.iter().map(|c| c.since).collect::<Vec<_>>(), [SchemaVersion(1), SchemaVersion(4)]);
}
