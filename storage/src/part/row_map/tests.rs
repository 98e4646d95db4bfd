use super::*;

#[test]
fn rows_are_found_where_they_went() {
    let mut map = RowMap::default();
    map.push(Run { source: 0, from: 0, to: 0, len: 2 });
    map.push(Run { source: 1, from: 0, to: 2, len: 3 });
    map.push(Run { source: 0, from: 3, to: 5, len: 2 });
    map.push(Run { source: 0, from: 5, to: 7, len: 1 });
    assert_eq!(map.runs().len(), 3);
    let rows = RowSet([1, 2, 3, 5].into_iter().collect());
    // Row 2 of source 0 was removed.
    assert_eq!(map.translate(0, &rows), RowSet([1, 5, 7].into_iter().collect()));
    assert_eq!(map.translate(1, &rows), RowSet([3, 4].into_iter().collect()));
    assert!(map.translate(2, &rows).is_empty());
}
