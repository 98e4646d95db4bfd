use super::*;
use crate::ingest::content::NewLineage;
use arrow::{
    array::{AsArray, RecordBatch},
    datatypes::{DataType, Field, Int64Type, Schema},
};
use ebb_storage::{ids::SchemaVersion, lineage::SnSet, verb::Verb};
use proptest::prelude::*;

fn record(sn: u64, version: u32) -> RecordInfo {
    RecordInfo {
        sn: Sn(sn),
        count: 1,
        parent: Sn(sn - 1),
        branch: BranchId::MAIN,
        time: Timestamp(sn as i64),
        verb: Verb::Insert,
        rows_added: 0,
        rows_deleted: 0,
        schema_version: SchemaVersion(version),
        key: None,
        runs: None,
        since: None,
    }
}

/// Rows that carry their own sn, so that tests can tell.
fn rows_of(sn: u64, n: usize) -> RecordBatch {
    let schema = Arc::new(Schema::new(vec![Field::new("v", DataType::Int64, false)]));
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_value(sn as i64, n))]).unwrap()
}

fn read(tail: &Tail) -> Vec<i64> {
    let mut out = Vec::new();
    for c in tail.chunks() {
        let values = c.rows.column(0).as_primitive::<Int64Type>().values().to_vec();
        let sns = c.sn_column();
        assert_eq!(sns.as_primitive::<Int64Type>().values().to_vec(), values, "each row's sn is its record's");
        out.extend(values);
    }
    out
}

proptest! {
    #[test]
    fn every_row_is_there_once_in_order_and_trimming_takes_a_prefix(
        sizes in proptest::collection::vec((0usize..6, 1u32..3), 0..60), applied in 0u64..70
    ) {
        let mut tail = Tail::new(Sn(0));
        let mut expected = Vec::new();
        for (i, (n, version)) in sizes.iter().enumerate() {
            let sn = i as u64 + 1;
            tail.push(record(sn, *version), Lsn(sn), Content::Rows(rows_of(sn, *n)));
            expected.extend(std::iter::repeat_n(sn as i64, *n));
        }
        prop_assert_eq!(read(&tail), expected.clone());
        prop_assert_eq!(tail.rows(), expected.len() as u64);
        let trimmed = tail.trimmed(Sn(applied));
        prop_assert_eq!(read(&trimmed), expected.into_iter().filter(|sn| *sn > applied as i64).collect::<Vec<_>>());
        prop_assert_eq!(trimmed.records().count(), sizes.len().saturating_sub(applied as usize));
    }
}

#[test]
fn many_small_records_are_few_chunks() {
    let mut tail = Tail::new(Sn(0));
    for sn in 1..=2000 {
        tail.push(record(sn, 1), Lsn(sn), Content::Rows(rows_of(sn, 1)));
    }
    assert!(tail.chunks().len() < 16, "{}", tail.chunks().len());
    assert_eq!((tail.rows(), tail.head()), (2000, Sn(2000)));
}

#[test]
fn what_branches_see_stays_until_it_is_flushed_and_rows_are_of_one_branch() {
    let mut tail = Tail::new(Sn(0));
    tail.push(record(1, 1), Lsn(1), Content::Rows(rows_of(1, 3)));
    tail.push(record(2, 1), Lsn(2), Content::Lineage(Arc::new(NewLineage::default())));
    tail.push(RecordInfo { branch: BranchId(4), ..record(3, 1) }, Lsn(3), Content::Rows(rows_of(3, 2)));
    tail.push(record(4, 1), Lsn(4), Content::Rows(rows_of(4, 1)));
    // Earlier cuts still read what a truncation takes from later ones.
    assert_eq!(read(&tail), [1, 1, 1, 3, 3, 4]);
    assert_eq!(tail.chunks().iter().map(|c| c.branch.0).collect::<Vec<_>>(), [0, 4, 0]);
    assert_eq!(tail.heads(), [(BranchId::MAIN, Sn(4)), (BranchId(4), Sn(3))]);
    let after = Lineage { from: Sn(2), sees: vec![(BranchId::MAIN, SnSet::above(Sn(2)))] };
    assert_eq!(tail.lineages(), [(BranchId::MAIN, after)]);
    let trimmed = tail.trimmed(Sn(2));
    assert!(trimmed.lineages().is_empty());
    assert_eq!((read(&trimmed), trimmed.head_of(BranchId(4))), (vec![3, 3, 4], Some(Sn(3))));
}
