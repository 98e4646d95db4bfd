use super::*;

fn flush(stream: u64, policy: &str) -> Chore {
    Chore::Flush { stream: StreamId(stream), policy: policy.to_owned() }
}

/// What has a place, tried one after the other.
fn started(chores: impl IntoIterator<Item = Chore>) -> Vec<Chore> {
    let mut running = Vec::new();
    for chore in chores {
        if has_place(&chore, running.iter()) {
            running.push(chore);
        }
    }
    running
}

#[test]
fn of_each_chore_one_runs() {
    let twice = [Chore::Vacuum, Chore::Books, flush(1, "a"), Chore::Vacuum, Chore::Books, flush(1, "a")];
    assert_eq!(started(twice.clone()), twice[..3]);
    // A stream that was given another policy while it is flushed.
    assert_eq!(started([flush(1, "a"), flush(1, "b")]), [flush(1, "a")]);
}

#[test]
fn a_policy_whose_disk_hangs_leaves_places_to_others() {
    let of_one = started((0..100).map(|i| flush(i, "a")));
    assert_eq!(of_one.len(), FLUSHES_OF_A_POLICY);
    let others = started(of_one.into_iter().chain([flush(100, "b"), Chore::Vacuum, Chore::Books]));
    assert_eq!(others.len(), FLUSHES_OF_A_POLICY + 3);
    assert_eq!(started((0..100).map(|i| flush(i, &i.to_string()))).len(), FLUSHES_AT_ONCE);
    let all = (0..100).map(|i| flush(i, &i.to_string())).chain([Chore::Vacuum]);
    assert_eq!(started(all).last(), Some(&Chore::Vacuum));
}
