//! Which name is near.

use super::{did_you_mean, nearest};

#[test]
fn the_nearest_has_the_fewest_edits() {
    let names = ["ttl_only_drop_parts", "ttl_hide_expired", "storage_policy"];
    assert_eq!(nearest("ttl_only_drop_part", names), Some("ttl_only_drop_parts"));
    assert_eq!(nearest("STORAGE_POLCIY", names), Some("storage_policy"));
    assert_eq!(nearest("sotrage_policy", names), Some("storage_policy"), "neighbours swapped are one edit");
    assert_eq!(nearest("memory_limit", names), None);
    assert_eq!(nearest("", names), None);
    assert_eq!(nearest("x", []), None);
    assert_eq!(did_you_mean("storagepolicy", names), "; did you mean 'storage_policy'?");
    assert_eq!(did_you_mean("zzz", names), "");
}

#[test]
fn long_words_cost_no_more_than_their_beginning() {
    assert_eq!(nearest(&"x".repeat(1_000_000), ["storage_policy"]), None);
}
