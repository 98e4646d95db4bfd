use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn fate(deleted: Vec<Vec<u32>>, expired: Vec<Vec<u32>>) -> Fate {
    let set = |rows: Vec<u32>| RowSet(rows.into_iter().collect());
    let deleted: Vec<_> = deleted.into_iter().enumerate().map(|(i, r)| ((BranchId::MAIN, Sn(i as u64 + 1)), set(r))).collect();
    let expired: Vec<_> = expired.into_iter().enumerate().map(|(i, r)| (CommitNo(i as u64 + 1), set(r))).collect();
    Fate {
        origins: Vec::new(),
        deleted,
        expired,
        marked: RowSet::default(),
        alive: HashMap::new(),
        aged: SnSet::default(),
        seen: SnSet::default(),
        hidden: RowSet::default(),
        all_seen: false,
        all_alive: false,
        all_aged: false,
    }
}

const ROWS: u32 = 24;

fn sets(most: usize) -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec(prop::collection::vec(0..ROWS, 0..12), 0..most)
}

proptest! {
    /// Each combination that a row has, that of no mark, and no other; each once.
    #[test]
    fn marks_are_those_that_rows_have(deleted in sets(8), expired in sets(4)) {
        let fate = fate(deleted, expired);
        let found = fate.marks();
        // One row more than any set names.
        let wanted: HashSet<Marks> = (0..=ROWS).map(|row| fate.marks_of(row)).collect();
        prop_assert_eq!(found.len(), wanted.len());
        prop_assert_eq!(found.into_iter().collect::<HashSet<_>>(), wanted);
    }
}

/// One row that many records deleted, as when it is erased on each branch, is one combination.
#[test]
fn a_row_that_many_records_deleted_is_one_combination() {
    let fate = fate((0..200).map(|i| vec![7, i + 100]).collect(), vec![vec![7]; 50]);
    assert_eq!(fate.marks().len(), 202);
}
