use super::*;
use crate::{
    column_type::ColumnType,
    ids::{CommitNo, PartId, Sn},
    lineage::Cut,
    refs::{Ref, testkit::History},
    testkit::defs,
};

const B: ColumnId = ColumnId(2);

/// Version 1 has a and b, 2 has b as int64, 3 has no b, 4 has another b.
fn history() -> History {
    let mut h = History::new();
    let a = defs::column(1, "a", ColumnType::Int64);
    let versions = [
        vec![a.clone(), defs::column(2, "b", ColumnType::Int32)],
        vec![a.clone(), defs::column(2, "b", ColumnType::Int64)],
        vec![a.clone()],
        vec![a, defs::column(3, "b", ColumnType::String)],
    ];
    for (i, columns) in versions.into_iter().enumerate() {
        let version = SchemaVersion(i as u32 + 1);
        h.state.def = Arc::new(StreamDef { schema_version: version, ..defs::stream("s", columns) });
        h.state.schemas.insert_mut(version, h.state.def.clone());
    }
    h
}

fn tag(h: &mut History, sn: u64, version: u32) {
    let cut = Cut { branch: crate::ids::BranchId::MAIN, sn: Sn(sn), horizon: CommitNo(1) };
    let r = Ref {
        name: format!("t{sn}"),
        kind: RefKind::Tag,
        cut,
        fork: Sn(sn),
        created_at: h.time(sn),
        max_ref_age_ms: None,
        min_snapshots: None,
        max_snapshot_age_ms: None,
        schema_version: SchemaVersion(version),
    };
    h.state.refs.insert_mut(r.name.clone(), Arc::new(r));
}

#[test]
fn a_tag_reads_what_was_dropped_of_the_rows_that_it_sees() {
    let mut h = history();
    h.inserts(5);
    tag(&mut h, 2, 1);
    let dropped = Dropped::of(&h.state);
    let (old, new) = (defs::part(PartId(1), 2, 10), defs::part(PartId(2), 3, 10));
    assert_eq!(dropped.read_of(&old), BTreeSet::from([B]));
    assert_eq!(dropped.read_of(&new), BTreeSet::new());
    let by = dropped.reader_of(&old, B).unwrap();
    assert_eq!(by.column("b").unwrap().ty, ColumnType::Int64, "in the widest type it ever had");
    assert!(dropped.reader_of(&new, B).is_none() && dropped.reader_of(&old, ColumnId(3)).is_none());
    h.state.refs.remove_mut("t2");
    tag(&mut h, 4, 4);
    assert_eq!(Dropped::of(&h.state).read_of(&old), BTreeSet::new(), "a tag of today reads nothing that is gone");
}

#[test]
fn carried_columns_have_names_of_their_own() {
    let h = history();
    let with = h.state.carrying(&h.state.def, &[B]);
    let named: Vec<(&str, ColumnId)> = with.columns.iter().map(|c| (c.name.as_str(), c.id)).collect();
    assert_eq!(named, [("a", ColumnId(1)), ("b", ColumnId(3)), ("b@2", B)]);
    let before = h.state.carrying(h.state.schema(SchemaVersion(3)), &[B]);
    assert_eq!((before.columns[1].name.as_str(), &before.columns[1].ty), ("b", &ColumnType::Int64));
    let part = PartMeta { carried: vec![B], schema_version: SchemaVersion(3), ..defs::part(PartId(1), 1, 1) };
    assert_eq!(h.state.written(&part).columns, before.columns);
}
