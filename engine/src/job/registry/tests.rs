use super::*;
use crate::plan::{MoveWhy, Target};
use ebb_storage::codec::Codec;

fn server(places: usize, for_rules: usize) -> ServerSettings {
    ServerSettings { ttl_jobs_max: for_rules, pool_size: places, memory_limit_bytes: 0, default_codec: Codec::Lz4 }
}

fn prune() -> Plan {
    Plan::Prune { stream: StreamId(1), partition: "a".into(), parts: vec![], targets: vec![], cutoff: Timestamp(0) }
}

fn recompress() -> Plan {
    Plan::Recompress { stream: StreamId(1), partition: "a".into(), parts: vec![], targets: vec![] }
}

fn merge() -> Plan {
    let target = Target::new(Codec::Lz4, DiskId::DEFAULT);
    let (partition, reason) = ("a".into(), String::new());
    Plan::Merge { stream: StreamId(1), partition, parts: vec![], target, cutoff: Timestamp(0), delete_due: true, reason }
}

fn moving() -> Plan {
    let target = Target::new(Codec::Lz4, DiskId(1));
    Plan::Move { stream: StreamId(1), part: PartId(1), target, why: MoveWhy::Rule }
}

#[test]
fn no_deletion_waits_for_recompressions() {
    // proves F5: two long recompressions never take all places
    for (places, for_rules) in [(1, 1), (2, 2), (2, 1), (8, 2), (8, 8)] {
        let server = server(places, for_rules);
        let mut counts = Counts::default();
        while counts.admit(&recompress(), &server) {
            counts.recompressions += 1;
        }
        assert!(counts.recompressions >= 1 && counts.admit(&prune(), &server), "{places} places, {for_rules} for rules");
        counts.prunes = for_rules;
        assert!(!counts.admit(&prune(), &server));
    }
}

#[test]
fn moves_and_drops_have_places_of_their_own() {
    let server = server(2, 2);
    let mut counts = Counts { all: 4, merges: 2, ..Counts::default() };
    assert!(!counts.admit(&merge(), &server) && !counts.admit(&prune(), &server) && counts.admit(&moving(), &server));
    counts.moves = limits::MOVES_AT_ONCE;
    assert!(!counts.admit(&moving(), &server));
    assert!(counts.admit(&Plan::Drop { stream: StreamId(1), parts: vec![], cutoff: Timestamp(0) }, &server));
}
