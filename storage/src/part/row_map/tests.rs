use super::*;

#[test]
fn rows_are_found_where_they_went() {
    let mut map = RowMap::default();
    map.push(Run { source: 0, from: 0, to: 0, len: 2 });
    map.push(Run { source: 1, from: 0, to: 2, len: 3 });
    map.push(Run { source: 0, from: 3, to: 5, len: 2 });
    map.push(Run { source: 0, from: 5, to: 7, len: 1 });
    assert_eq!(map.runs().count(), 3);
    let rows = RowSet([1, 2, 3, 5].into_iter().collect());
    // Row 2 of source 0 was removed.
    assert_eq!(map.translate(0, &rows), RowSet([1, 5, 7].into_iter().collect()));
    assert_eq!(map.translate(1, &rows), RowSet([3, 4].into_iter().collect()));
    assert!(map.translate(2, &rows).is_empty());
}

#[test]
fn runs_come_back_as_they_were_and_take_little() {
    // Every other row of one source, then stretches of several, far apart and to the last row there can be.
    let mut runs: Vec<Run> = (0..300_000).map(|i| Run { source: 0, from: 2 * i + 1, to: i, len: 1 }).collect();
    let far = [(3, 0, 400_000, 7), (1, 5, 400_007, 90_000), (3, 4_000_000_000, 490_007, 294_967_295), (0, 600_001, 3_000_000_000, 2)];
    runs.extend(far.map(|(source, from, to, len)| Run { source, from, to, len }));
    let mut map = RowMap::default();
    runs.iter().for_each(|r| map.push(*r));
    assert_eq!(map.runs().collect::<Vec<_>>(), runs);
    let bytes: usize = map.blocks.iter().map(Vec::len).sum();
    assert!(bytes < 4 * runs.len() + 100, "{bytes}");
    let rows = RowSet([1, 2, 3, 599_999, 600_002].into_iter().collect());
    assert_eq!(map.translate(0, &rows), RowSet([0, 1, 299_999, 3_000_000_001].into_iter().collect()));
}
