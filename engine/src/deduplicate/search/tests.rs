#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Rows = Vec<Vec<(u64, Vec<u8>)>>;

fn found(parts: &Rows, bounds: &Bounds, hash: fn(&[u8]) -> u64) -> Vec<Vec<u32>> {
    let rows = parts.iter().map(|p| p.len() as u64).sum();
    let mut scan = |see: &mut dyn FnMut(Row<'_>)| -> Result<()> {
        for (part, of_part) in parts.iter().enumerate() {
            for (row, (sn, key)) in of_part.iter().enumerate() {
                see(Row { at: Place { sn: Sn(*sn), part, row: row as u32 }, key });
            }
        }
        Ok(())
    };
    copies(rows, parts.len(), bounds, hash, &mut scan).unwrap().iter().map(|rows| rows.0.iter().collect()).collect()
}

fn expected(parts: &Rows) -> Vec<Vec<u32>> {
    let mut by_key: BTreeMap<&[u8], Vec<Place>> = BTreeMap::new();
    for (part, of_part) in parts.iter().enumerate() {
        for (row, (sn, key)) in of_part.iter().enumerate() {
            by_key.entry(key).or_default().push(Place { sn: Sn(*sn), part, row: row as u32 });
        }
    }
    let mut out = vec![Vec::new(); parts.len()];
    for places in by_key.values_mut() {
        places.sort();
        places[1..].iter().for_each(|p| out[p.part].push(p.row));
    }
    out.iter_mut().for_each(|rows| rows.sort_unstable());
    out
}

fn xxh3(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}

/// Hashes that mean little.
fn by_length(key: &[u8]) -> u64 {
    key.len() as u64
}

proptest! {
    /// Whatever the bounds and however bad the hash, all copies go and nothing else.
    #[test]
    fn copies_are_found_whatever_the_bounds_and_the_hash(
        parts in prop::collection::vec(prop::collection::vec((1u64..6, prop::collection::vec(0u8..3, 0..4)), 0..40), 0..4),
        hashes in 1usize..50,
        key_bytes in 1usize..2000,
    ) {
        let bounds = Bounds { hashes, key_bytes };
        for hash in [xxh3 as fn(&[u8]) -> u64, by_length, |_| 7] {
            prop_assert_eq!(found(&parts, &bounds, hash), expected(&parts));
        }
    }
}

#[test]
fn the_row_of_the_lowest_record_stays_and_the_first_of_one_record() {
    let key = |k: &str| k.as_bytes().to_vec();
    let parts = vec![vec![(3, key("a")), (2, key("b")), (2, key("b"))], vec![(1, key("a")), (3, key("b")), (1, key("c"))]];
    assert_eq!(found(&parts, &Bounds::default(), xxh3), [vec![0, 2], vec![1]]);
}
