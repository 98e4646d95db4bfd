//! Parts that age over disks and codecs: where they are, what is told, what readers see, what power cuts and full or absent disks do.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Clock, Engine, ErrorKind, Existing, NewDisk, Result, Stop, Timestamp, Which};
use ebb_storage::{
    codec::Codec,
    disk::{DiskKind, Volume},
    ids::StreamId,
    interval::Interval,
    manifest::{edit::PartEvent, invariants},
    rules::Rule,
    stream_def::SettingValue,
    testkit::crash_store::CrashDisk,
};
use object_store::{ObjectStoreExt, path::Path as Key};
use support::{
    power::{Loss, cut_everywhere, losses, steps, whole},
    tiered::*,
    *,
};

async fn with_rooms(rooms: [u64; 3]) -> (CrashDisk, std::sync::Arc<Engine>) {
    let machine = CrashDisk::default();
    let e = open_tiered(&machine, START, false).await.unwrap();
    make_tiers(&e, rooms).await.unwrap();
    (machine, e)
}

async fn ready() -> (CrashDisk, std::sync::Arc<Engine>) {
    with_rooms([ROOM; 3]).await
}

/// Five days to ZSTD, seven to warm, fourteen to cold, thirty and they are gone.
fn life() -> Vec<Rule> {
    vec![
        recompress("ts + 5 days", Codec::Zstd(3), 2),
        to("ts + 7 days", volume("warm"), 3),
        to("ts + 14 days", disk("c"), 4),
        delete("ts + 30 days", None, 1),
    ]
}

async fn insert(e: &Engine, s: StreamId, v: i64, days: i64) {
    e.insert(s, vec![rows(&[("a", day(days), v)])], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
}

fn at(disk: &str, codec: &str) -> (String, String) {
    (disk.to_owned(), codec.to_owned())
}

fn states(e: &Engine, s: StreamId) -> Vec<(String, String)> {
    e.explain_lifecycle(s, e.now()).unwrap().into_iter().map(|x| (x.action, x.state)).collect()
}

/// proves T1, T2, T9, T10, T19
#[tokio::test]
async fn a_part_grows_old_over_codecs_and_disks() {
    let (machine, e) = ready().await;
    let s = e.create_stream(with(tiered("s", life()), "ttl_move_grace_seconds", 0), false).await.unwrap();
    insert(&e, s, 1, 0).await;
    assert_eq!(placed(&e, s), [at("h", "LZ4")]);
    let early = e.read();
    let mut seen = Vec::new();
    for days in [4, 1, 2, 6, 1, 15, 1] {
        advance(&e, days);
        e.settle(None).await.unwrap();
        seen.push(placed(&e, s));
        assert_eq!(values(&e, s).await.len(), usize::from(!placed(&e, s).is_empty()));
    }
    let expected = [at("h", "LZ4"), at("h", "ZSTD(3)"), at("w", "ZSTD(3)"), at("w", "ZSTD(3)"), at("c", "ZSTD(3)"), at("c", "ZSTD(3)")];
    assert_eq!(seen[..6].concat(), expected);
    assert!(seen[6].is_empty());
    // Who reads an earlier cut still does; then everything goes.
    assert_eq!(read_view(&early, s).await, [(1, 1)]);
    assert_eq!((stored(&machine, "h").await, stored(&machine, "w").await), (1, 0));
    drop(early);
    e.settle(None).await.unwrap();
    for d in ["h", "w", "c"] {
        assert_eq!(stored(&machine, d).await, 0, "{d}");
    }
    let events: Vec<_> = e.part_log().await.unwrap().into_iter().filter(|r| r.stream == "s").map(|r| (r.event, r.disk)).collect();
    let changes: Vec<_> = events.iter().filter(|(e, _)| *e != PartEvent::RemovePart).map(|(e, d)| (*e, d.as_str())).collect();
    let moved = [(PartEvent::MovePart, "w"), (PartEvent::MovePart, "c")];
    assert_eq!(
        changes,
        [&[(PartEvent::NewPart, "h"), (PartEvent::RecompressPart, "h")], &moved[..], &[(PartEvent::DropPart, "c")]].concat()
    );
    let log = e.lifecycle_log().await.unwrap();
    let told: Vec<_> = log.iter().map(|r| (r.action.as_str(), r.rows_before, r.rows_after)).collect();
    assert_eq!(log.last().map(|r| r.rule.as_str()), Some("ts + 30 days DELETE"), "the rule that did it");
    assert_eq!(told, [("recompress", 1, 1), ("move", 1, 1), ("move", 1, 1), ("drop", 1, 0)]);
}

#[tokio::test]
async fn idle_rounds_change_nothing() {
    // proves F17: with timers of 0, no rewrite loop
    let (_machine, e) = ready().await;
    let s = e.create_stream(tiered("s", life()), false).await.unwrap();
    insert(&e, s, 1, -6).await;
    e.settle(None).await.unwrap();
    let commit = e.manifest().no;
    for _ in 0..5 {
        e.settle(None).await.unwrap();
    }
    assert_eq!((e.manifest().no, placed(&e, s)), (commit, vec![at("h", "ZSTD(3)")]));
}

#[tokio::test]
async fn what_is_due_together_is_done_in_one_rewrite() {
    let (_machine, e) = ready().await;
    let rules = vec![
        delete("ts + 9 days", Some("host = 'b'"), 1),
        recompress("ts + 5 days", Codec::Zstd(1), 2),
        to("ts + 7 days", volume("warm"), 3),
    ];
    let s = e.create_stream(tiered("s", rules), false).await.unwrap();
    e.insert(s, vec![rows_ab()], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    advance(&e, 10);
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), values(&e, s).await), (vec![at("w", "ZSTD(1)")], vec![1]));
    let events: Vec<_> = e.part_log().await.unwrap().into_iter().filter(|r| r.stream == "s" && r.event != PartEvent::RemovePart).collect();
    assert_eq!(events.iter().map(|r| r.event).collect::<Vec<_>>(), [PartEvent::NewPart, PartEvent::PrunePart]);
    let told: Vec<_> = e.lifecycle_log().await.unwrap().into_iter().map(|r| (r.action, r.rows_after)).collect();
    assert_eq!(told, [("recompress".to_owned(), 1), ("move".to_owned(), 1), ("delete".to_owned(), 1)]);
}

fn rows_ab() -> arrow::array::RecordBatch {
    rows(&[("a", day(0), 1), ("b", day(0), 2)])
}

/// proves T21, T22, T23, T24, T27, T28, T29, T34, F8, F14
#[tokio::test]
async fn old_rows_are_pooled_before_they_move_to_a_volume_without_merges() {
    let (_machine, e) = ready().await;
    let s = e.create_stream(tiered("s", vec![to("ts + 7 days", volume("cold"), 1)]), false).await.unwrap();
    insert(&e, s, 1, -15).await;
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), states(&e, s)), (vec![at("h", "LZ4")], vec![("move".into(), "held_lone_part".into())]));
    e.advance_clock(Interval::seconds(200)).unwrap();
    insert(&e, s, 2, -15).await;
    let waiting = states(&e, s);
    assert_eq!(waiting, vec![("move".to_owned(), "waiting_partner".to_owned()); 2]);
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("h", "LZ4")], "merged, and lone again");
    e.advance_clock(Interval::seconds(299)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("h", "LZ4")]);
    e.advance_clock(Interval::seconds(1)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), values(&e, s).await), (vec![at("c", "LZ4")], vec![1, 2]));
    // However often it is merged, no part waits longer than ten times the grace.
    let mut waited = 0;
    for v in 10.. {
        insert(&e, s, v, -15).await;
        e.settle(None).await.unwrap();
        if placed(&e, s).len() > 2 || placed(&e, s).iter().filter(|p| p.0 == "c").count() > 1 {
            break;
        }
        e.advance_clock(Interval::seconds(250)).unwrap();
        e.settle(None).await.unwrap();
        waited += 250;
        assert!(waited <= 3250, "still waiting");
    }
    assert!(waited >= 2750, "moved after {waited} s");
    // Without grace a lone part goes at once.
    let now =
        e.create_stream(with(tiered("n", vec![to("ts + 7 days", volume("cold"), 1)]), "ttl_move_grace_seconds", 0), false).await.unwrap();
    insert(&e, now, 1, -15).await;
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, now), [at("c", "LZ4")]);
}

/// proves T30: in each case parts move at once
#[tokio::test]
async fn where_nothing_is_merged_nothing_waits() {
    let (_machine, e) = ready().await;
    for (name, value) in [("max_parts_to_merge_at_once", 1), ("max_bytes_to_merge_at_max_space_in_pool", 0)] {
        let s = e.create_stream(with(tiered(name, vec![to("ts + 7 days", volume("cold"), 1)]), name, value), false).await.unwrap();
        insert(&e, s, 1, -15).await;
        e.settle(None).await.unwrap();
        assert_eq!(placed(&e, s), [at("c", "LZ4")], "{name}");
    }
    let s = e.create_stream(tiered("s", vec![to("ts + 7 days", volume("cold"), 1)]), false).await.unwrap();
    insert(&e, s, 1, -15).await;
    e.stop(Stop::Moves, Some(s));
    e.stop(Stop::Merges, None);
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), states(&e, s)), (vec![at("h", "LZ4")], vec![("move".into(), "moves_stopped".into())]));
    let refused = e.move_parts(s, Which::Partition("666"), &volume("warm")).await.unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.message().contains("START MOVES"), "{refused}");
    e.start(Stop::Moves, None);
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("c", "LZ4")]);
}

/// proves F8: what somebody moved stays, whatever the rules of others; a shortened rule is applied at once, a longer one brings nothing back
#[tokio::test]
async fn a_part_moved_by_hand_stays() {
    let (machine, e) = ready().await;
    let s = e.create_stream(tiered("s", vec![to("ts + 30 days", volume("warm"), 1)]), false).await.unwrap();
    insert(&e, s, 1, 0).await;
    insert(&e, s, 2, 9).await;
    let partition = e.manifest().stream(s).unwrap().partitions.keys().next().unwrap().to_string();
    let moved = e.move_parts(s, Which::Partition(&partition), &disk("c")).await.unwrap();
    assert_eq!((moved.parts, placed(&e, s)), (2, vec![at("c", "LZ4"); 2]));
    assert_eq!(e.move_parts(s, Which::Partition(&partition), &disk("c")).await.unwrap().parts, 0);
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), stored(&machine, "h").await), (vec![at("c", "LZ4"); 2], 0));
    let name = e.manifest().stream(s).unwrap().parts.values().next().unwrap().name.clone();
    assert_eq!(e.move_parts(s, Which::Part(&name), &volume("hot")).await.unwrap().parts, 1);
    assert_eq!(placed(&e, s), [at("c", "LZ4"), at("h", "LZ4")]);
    for (which, to, says) in [
        (Which::Part("none"), volume("hot"), "no part 'none'"),
        (Which::Partition("zz"), volume("hot"), "no partition 'zz'"),
        (Which::Part(&name), volume("host"), "has no volume 'host'"),
    ] {
        let refused = e.move_parts(s, which, &to).await.unwrap_err();
        assert!(refused.kind() == ErrorKind::NotFound && refused.message().contains(says), "{refused}");
    }
    // Only now the rule is due for it: it names a hotter volume than where one of them is.
    advance(&e, 39);
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), vec![at("w", "LZ4"); 2]);
}

/// proves F8: full: the next rule, or stay with the reason; never an error, and it goes on by itself
#[tokio::test]
async fn a_full_destination_is_waited_for() {
    let (_machine, e) = with_rooms([ROOM, ROOM, 1000]).await;
    let rules = vec![to("ts + 7 days", volume("warm"), 1), to("ts + 14 days", disk("c"), 2)];
    let s = e.create_stream(tiered("s", rules.clone()), false).await.unwrap();
    insert(&e, s, 1, -20).await;
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("w", "LZ4")], "the next rule");
    let blocked = e.explain_lifecycle(s, e.now()).unwrap().remove(1);
    assert_eq!((blocked.state.as_str(), blocked.action.as_str()), ("destination_full", "move"));
    assert!(blocked.reason.contains("disk 'c' has"), "{}", blocked.reason);
    let lone = e.create_stream(tiered("l", vec![to("ts + 7 days", disk("c"), 1)]), false).await.unwrap();
    insert(&e, lone, 1, -20).await;
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, lone), states(&e, lone)), (vec![at("h", "LZ4")], vec![("move".into(), "destination_full".into())]));
    e.create_disk(local("c", ROOM), Existing::Replace).await.unwrap();
    e.advance_clock(Interval::seconds(3000)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), placed(&e, lone)), (vec![at("c", "LZ4")], vec![at("c", "LZ4")]));
}

#[tokio::test]
async fn a_disk_that_goes_away_keeps_its_parts_and_returns() {
    let (machine, e) = ready().await;
    let rules = vec![to("ts + 7 days", volume("warm"), 1), recompress("ts + 10 days", Codec::Zstd(1), 2)];
    let s = e.create_stream(tiered("s", rules), false).await.unwrap();
    insert(&e, s, 1, -8).await;
    e.settle(None).await.unwrap();
    insert(&e, s, 2, 9).await;
    let (store, key) = (machine.store("w"), Key::from("EBB-DISK"));
    let marker = store.get(&key).await.unwrap().bytes().await.unwrap();
    store.delete(&key).await.unwrap();
    advance(&e, 20);
    e.settle(None).await.unwrap();
    // What lies there stays; what was to go there waits; both say why.
    assert_eq!(placed(&e, s), [at("h", "ZSTD(1)"), at("w", "LZ4")]);
    let away: Vec<_> = e.explain_lifecycle(s, e.now()).unwrap().into_iter().filter(|x| x.state == "disk_unavailable").collect();
    assert_eq!(away.len(), 2, "{away:?}");
    assert!(away.iter().all(|x| x.reason.contains("disk 'w'")), "{away:?}");
    for whole in [true, false] {
        let left_out = e.optimize(s, None, whole).await.unwrap().left_out;
        assert!(left_out.iter().any(|why| why.contains("disk 'w'")), "{left_out:?}");
    }
    store.put(&key, marker.into()).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, s), values(&e, s).await), (vec![at("w", "ZSTD(1)"); 2], vec![1, 2]));
}

/// proves T32, F8: what leaves a disk that is short is the smallest set, to the next volume, and does not come back
#[tokio::test]
async fn a_disk_with_too_little_room_is_relieved() {
    let (_machine, e) = ready().await;
    let s = e.create_stream(tiered("s", vec![]), false).await.unwrap();
    for v in 0..4 {
        insert(&e, s, v, v * 40).await;
    }
    let used: u64 = e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).sum();
    e.create_disk(local("h", used + used / 100), Existing::Replace).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s).iter().filter(|p| p.0 == "w").count(), 1, "{:?}", placed(&e, s));
    let commit = e.manifest().no;
    e.settle(None).await.unwrap();
    assert_eq!((e.manifest().no, values(&e, s).await), (commit, vec![0, 1, 2, 3]));
    let why: Vec<_> = e.part_log().await.unwrap().into_iter().filter(|r| r.event == PartEvent::MovePart).map(|r| r.reason).collect();
    assert!(why.len() == 1 && why[0].contains("disk 'h'"), "{why:?}");
}

/// proves T32: of all streams' parts the fewest leave that make room enough.
#[tokio::test]
async fn a_disk_is_relieved_once_for_all_streams() {
    let (_machine, e) = ready().await;
    let small = e.create_stream(tiered("a", vec![]), false).await.unwrap();
    let large = e.create_stream(tiered("b", vec![]), false).await.unwrap();
    for v in 0..4 {
        insert(&e, small, v, v * 40).await;
    }
    let many: Vec<_> =
        (0..40_000i64).map(|v| ("a", day(0) + v * 7919, v.wrapping_mul(v).wrapping_mul(6_364_136_223_846_793_005))).collect();
    e.insert(large, vec![rows(&many)], v1()).await.unwrap();
    e.flush(Some(large)).await.unwrap();
    let bytes = |s| e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).collect::<Vec<_>>();
    let used: u64 = bytes(small).iter().chain(&bytes(large)).sum();
    assert!(bytes(large)[0] > bytes(small).iter().sum::<u64>(), "{:?}", (bytes(small), bytes(large)));
    // Short of more than three of the small parts.
    let short = bytes(small)[..3].iter().sum::<u64>() + 1;
    e.create_disk(local("h", (used - short) * 10 / 9), Existing::Replace).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!((placed(&e, small), placed(&e, large)), (vec![at("h", "LZ4"); 4], vec![at("w", "LZ4")]));
}

#[tokio::test]
async fn merges_are_stopped_on_a_volume() {
    let (_machine, e) = ready().await;
    let s = e
        .create_stream(tiered("s", vec![delete("ts + 7 days", None, 1), recompress("ts + 1 days", Codec::Zstd(1), 2)]), false)
        .await
        .unwrap();
    insert(&e, s, 1, -8).await;
    e.stop_volume("p", "hot").unwrap();
    e.settle(None).await.unwrap();
    let lines = e.explain_lifecycle(s, e.now()).unwrap();
    assert_eq!(lines.iter().map(|x| x.state.as_str()).collect::<Vec<_>>(), ["merges_stopped"; 2]);
    assert_eq!(lines[0].blocked_by.as_deref(), Some("SYSTEM STOP MERGES ON VOLUME p.hot"));
    assert_eq!(e.status().stopped, ["MERGES ON VOLUME p.hot"]);
    assert!(e.stop_volume("p", "host").is_err() && e.stop_volume("q", "hot").is_err());
    e.start_volume("p", "hot").unwrap();
    e.settle(None).await.unwrap();
    assert!(placed(&e, s).is_empty());
}

/// Readers find each row once, whatever moves meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_see_each_row_once_while_parts_move() {
    let machine = CrashDisk::default();
    let e = open_tiered(&machine, START, true).await.unwrap();
    make_tiers(&e, [ROOM; 3]).await.unwrap();
    let s = e.create_stream(tiered("s", vec![recompress("ts + 5 days", Codec::Zstd(1), 1)]), false).await.unwrap();
    for v in 0..3 {
        insert(&e, s, v, v - 6).await;
    }
    let reading = {
        let e = e.clone();
        tokio::spawn(async move {
            let mut n = 0;
            while !e.manifest().databases.contains("done") {
                assert_eq!(values(&e, s).await, [0, 1, 2]);
                n += 1;
            }
            n
        })
    };
    let partition = || e.manifest().stream(s).unwrap().partitions.keys().map(|k| k.to_string()).collect::<Vec<_>>();
    for round in 0..30 {
        for p in partition() {
            e.move_parts(s, Which::Partition(&p), &volume(["warm", "cold", "hot"][round % 3])).await.unwrap();
        }
        if round == 20 {
            e.advance_clock(Interval::days(3)).unwrap();
        }
    }
    e.create_database("done", false).await.unwrap();
    assert!(reading.await.unwrap() > 0);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, [0, 1, 2]);
    let left = stored(&machine, "h").await + stored(&machine, "w").await + stored(&machine, "c").await;
    assert_eq!(left, placed(&e, s).len());
}

const STEPS: usize = 9;

/// Where old parts go.
#[derive(Clone, Copy, PartialEq)]
enum Cold {
    Local,
    Remote,
}

async fn step(e: &Engine, cold: Cold, n: usize) -> Result<()> {
    let s = || e.read().stream_named("default", "s").map(|s| s.def.id).unwrap_or_default();
    let row = |v: i64, days: i64| vec![rows(&[("a", day(days), v)])];
    match n {
        0 if cold == Cold::Local => make_tiers(e, [ROOM; 3]).await,
        0 => make_tiers_of(e, vec![local("h", ROOM), remote("w"), remote("c")]).await,
        1 => e.create_stream(tiered("s", life()), true).await.map(|_| ()),
        2 => e.insert(s(), row(1, 0), v1()).await.map(|_| ()),
        3 => e.insert(s(), row(2, 1), v1()).await.map(|_| ()),
        4 | 6 => {
            e.flush(None).await?;
            e.settle(None).await
        }
        5 | 7 => {
            let days = if n == 5 { 6 } else { 16 };
            e.advance_clock(Interval::days(days)).map(|_| ())
        }
        _ => e.settle(None).await,
    }
}

/// When the power goes the clock of the next opening stands where it stood.
fn clock_after(done: usize) -> Timestamp {
    let days = [(6, 5), (16, 7)].iter().filter(|(_, n)| done > *n).map(|(d, _)| d).sum();
    Timestamp(day(days))
}

async fn power_goes(cold: Cold) {
    let scenario = async |machine: &CrashDisk| match open_tiered(machine, START, false).await {
        Ok(e) => {
            let done = steps(STEPS, async |n| step(&e, cold, n).await).await;
            let s = e.read().stream_named("default", "s").map(|s| s.def.id);
            (done, s.map(|s| placed(&e, s)).unwrap_or_default())
        }
        Err(_) => (0, Vec::new()),
    };
    let open = async |machine: &CrashDisk, (done, _): &(usize, Vec<_>)| open_tiered(machine, clock_after(*done), false).await;
    let look = async |machine: &CrashDisk, e: std::sync::Arc<Engine>, (done, _): (usize, Vec<_>), here: Loss| {
        let Some(s) = e.read().stream_named("default", "s").map(|s| s.def.id) else {
            assert!(done < 2, "{here}");
            return;
        };
        let found = values(&e, s).await;
        let acknowledged = (done.max(2) - 2).min(2);
        assert!(found == [1, 2][..acknowledged] || found == [1, 2][..(acknowledged + 1).min(2)], "{here}: {found:?}");
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, found, "{here}: settling changed what is read");
        whole(machine, &["data", "h", "w", "c"], &e, here).await;
    };
    let (done, placed) = cut_everywhere(scenario, open, look).await;
    assert!(done == STEPS && !placed.is_empty() && placed.iter().all(|p| *p == at("c", "ZSTD(3)")), "{placed:?}");
}

/// proves F9: one live copy whatever happens, nothing left beside
#[tokio::test]
async fn power_goes_at_every_change_while_parts_move_and_are_recompressed() {
    power_goes(Cold::Local).await;
}

/// proves F9
#[tokio::test]
async fn power_goes_at_every_change_while_parts_move_to_a_server() {
    power_goes(Cold::Remote).await;
}

/// proves F9, F14: the server goes away at every change that it is asked for, done or not, and comes back; the database stays open.
#[tokio::test]
async fn a_server_goes_away_at_every_change_and_returns() {
    let opened = async || {
        let (machine, server) = (CrashDisk::default(), CrashDisk::default());
        let e = open_beside(&machine, &server, START, false).await.unwrap();
        (machine, server, e)
    };
    let (_machine, server, e) = opened().await;
    assert_eq!(steps(STEPS, async |n| step(&e, Cold::Remote, n).await).await, STEPS);
    drop(e);
    let calls = server.power.calls();
    assert!(calls > 8, "{calls}");
    for at_call in losses(calls) {
        let (machine, server, e) = opened().await;
        server.power.cut_at(at_call.call, at_call.cut);
        let mut away = 0;
        for n in 0..STEPS {
            if step(&e, Cold::Remote, n).await.is_err() && n < 2 {
                // What was refused is asked for again.
                server.power.turn_on();
                away += 1;
                step(&e, Cold::Remote, n).await.unwrap_or_else(|e| panic!("{at_call}: step {n}: {e}"));
            }
        }
        assert!(server.power.is_off() || away == 1, "{at_call}: it never went away");
        server.power.turn_on();
        // What failed backs off.
        e.advance_clock(Interval::seconds(7200)).unwrap();
        e.settle(None).await.unwrap();
        let s = e.read().stream_named("default", "s").unwrap().def.id;
        assert_eq!(values(&e, s).await, [1, 2], "{at_call}");
        let moved = placed(&e, s);
        assert!(!moved.is_empty() && moved.iter().all(|p| *p == at("c", "ZSTD(3)")), "{at_call}: {moved:?}");
        e.settle(None).await.unwrap();
        let beside = stored(&machine, "data").await + stored(&machine, "h").await;
        let named: usize = e.manifest().streams().map(|s| s.parts.size()).sum();
        assert_eq!(beside + stored(&server, "w").await + stored(&server, "c").await, named, "{at_call}");
        assert_eq!(invariants::violations(&e.manifest()), Vec::<String>::new(), "{at_call}");
    }
}

#[tokio::test]
async fn a_prune_goes_on_where_one_part_cannot_be_read() {
    // proves F15: due rows that go, and those that a tag keeps in their part
    for tagged in [false, true] {
        let (machine, e) = ready().await;
        let s = e
            .create_stream(with(tiered("s", vec![delete("ts + 7 days", Some("host = 'b'"), 1)]), "max_parts_to_merge_at_once", 1), false)
            .await
            .unwrap();
        for v in 0..5 {
            e.insert(s, vec![rows(&[("a", day(0), v), ("b", day(0), 10 + v)])], v1()).await.unwrap();
            e.flush(None).await.unwrap();
        }
        if tagged {
            e.create_ref(s, tag("t")).await.unwrap();
        }
        let broken = e.read().stream(s).unwrap().parts[1].clone();
        let whole = broken.store.get(&broken.key).await.unwrap().bytes().await.unwrap();
        let store = machine.store("h");
        store.delete(&broken.key).await.unwrap();
        store.put(&broken.key, whole[..100].to_vec().into()).await.unwrap();
        advance(&e, 8);
        e.settle(None).await.unwrap();
        let lines = e.explain_lifecycle(s, e.now()).unwrap();
        let failing: Vec<_> = lines.iter().filter(|x| x.state == "backing_off").collect();
        assert_eq!((lines.len(), failing.len()), (5, 1), "{lines:?}");
        assert!(failing[0].reason.contains("damaged"), "{}", failing[0].reason);
        let told = e.part_log().await.unwrap().into_iter().filter(|r| !r.error.is_empty()).count();
        assert_eq!(told, 1, "told once, of the one");
        store.delete(&broken.key).await.unwrap();
        store.put(&broken.key, whole.into()).await.unwrap();
        e.advance_clock(Interval::seconds(10)).unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(values(&e, s).await, [0, 1, 2, 3, 4]);
    }
}

#[tokio::test]
async fn optimize_applies_moves_and_codecs_too() {
    let (_machine, e) = ready().await;
    let rules = vec![recompress("ts + 5 days", Codec::Zstd(1), 1), to("ts + 7 days", volume("cold"), 2)];
    let slow = |name: &str| with(tiered(name, rules.clone()), "merge_with_recompression_ttl_timeout", 14_400);
    let s = e.create_stream(slow("s"), false).await.unwrap();
    insert(&e, s, 1, -6).await;
    e.settle(None).await.unwrap();
    insert(&e, s, 2, -6).await;
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("h", "LZ4"), at("h", "ZSTD(1)")], "the second waits");
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(placed(&e, s), [at("h", "ZSTD(1)")]);
    advance(&e, 2);
    e.stop(Stop::Moves, None);
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(placed(&e, s), [at("h", "ZSTD(1)")]);
    e.start(Stop::Moves, None);
    e.optimize(s, None, true).await.unwrap();
    assert_eq!((placed(&e, s), values(&e, s).await), (vec![at("c", "ZSTD(1)")], vec![1, 2]));
}

#[tokio::test]
async fn a_policy_of_one_more_volume_is_used_at_once() {
    let machine = CrashDisk::default();
    let e = open_on(&machine, START).await.unwrap();
    drop(e);
    let e = open_tiered(&machine, START, false).await.unwrap();
    make_tiers(&e, [ROOM; 3]).await.unwrap();
    let two = vec![Volume::new("hot", vec!["h".into()]), Volume::new("warm", vec!["w".into(), "c".into()])];
    e.set_policy(policy("q", two), Existing::Refuse).await.unwrap();
    let mut def = tiered("s", vec![to("ts + 7 days", volume("warm"), 1)]);
    def.settings.insert("storage_policy".into(), SettingValue::Text("q".into()));
    let s = e.create_stream(with(def, "max_parts_to_merge_at_once", 1), false).await.unwrap();
    for v in 0..4 {
        insert(&e, s, v, -8).await;
    }
    e.settle(None).await.unwrap();
    let on: Vec<String> = placed(&e, s).into_iter().map(|(d, _)| d).collect();
    assert!(on.contains(&"w".to_owned()) && on.contains(&"c".to_owned()), "disks take turns: {on:?}");
    assert_eq!(Clock::simulated(START).now(), START);
}

/// Random-looking texts that no codec makes smaller, or one for all rows.
fn texts(n: i64, distinct: bool) -> Vec<(String, i64)> {
    let one = |i: i64| (0..8).map(|k| format!("{:016x}", ((i * 8 + k) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    (0..n).map(|i| (if distinct { one(i) } else { "x".to_owned() }, i)).collect()
}

async fn flushed(e: &Engine, s: StreamId, of: &[(String, i64)]) -> Result<()> {
    let of: Vec<_> = of.iter().map(|(text, v)| (text.as_str(), day(0), *v)).collect();
    e.insert(s, vec![rows(&of)], v1()).await.unwrap();
    e.flush(Some(s)).await
}

/// proves that a small disk takes what fits: rows are reckoned by their values, then as the newest parts came out.
#[tokio::test]
async fn a_small_disk_takes_what_fits() {
    let (_machine, e) = with_rooms([60_000, 4096, 4096]).await;
    let s = e.create_stream(tiered("s", vec![]), false).await.unwrap();
    let placed = |e: &Engine| e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).sum::<u64>();
    let mut flushes = 0;
    let full = loop {
        match flushed(&e, s, &texts(1000, false)).await {
            Ok(()) => flushes += 1,
            Err(e) => break e,
        }
    };
    assert_eq!(full.kind(), ErrorKind::Full, "{full}");
    let one = placed(&e) / flushes;
    assert!(flushes >= (60_000 - 4096 * 3) / (one + one / 4 + 1) - 1 && placed(&e) <= 60_000, "{flushes} parts of {one} bytes");
    assert!(flushes > 3, "{flushes} parts of {one} bytes");
}

/// Where more comes out than the newest parts told, a declared capacity is not overrun: the next volume takes it, or nobody does.
#[tokio::test]
async fn what_comes_out_larger_than_reckoned_goes_on_to_the_next_volume() {
    for next in [1 << 20, 1000] {
        let (_machine, e) = with_rooms([120_000, next, 1000]).await;
        let s = e.create_stream(tiered("s", vec![]), false).await.unwrap();
        flushed(&e, s, &texts(2000, false)).await.unwrap();
        let first = e.manifest().stream(s).unwrap().parts.values().next().unwrap().placement.bytes;
        let reckoned = first + first / 4 + 4096;
        assert!(reckoned + first < 120_000, "{first}");
        let done = flushed(&e, s, &texts(2000, true)).await;
        let on = |disk: &str| parts_on(&e, s, disk);
        match next {
            1000 => {
                let e = done.unwrap_err();
                assert_eq!(e.kind(), ErrorKind::Full, "{e}");
                assert!(e.message().contains("more than was reckoned"), "{e}");
                assert_eq!((on("h"), on("w")), (1, 0));
            }
            _ => {
                done.unwrap();
                assert_eq!((on("h"), on("w")), (1, 1));
            }
        }
        assert_eq!(values(&e, s).await.len(), 4000);
    }
}

/// What a part grows to on its way is not put where it does not fit: it goes as it is, and its codec waits with a true reason.
#[tokio::test]
async fn a_part_that_would_outgrow_its_place_keeps_its_codec() {
    // By the disk's capacity or the volume's largest part; by itself, and while due rows go.
    for (declared, prunes) in [(true, false), (false, false), (true, true), (false, true)] {
        let (_machine, e) = with_rooms([ROOM; 3]).await;
        let mut rules = vec![to("ts + 3 days", volume("warm"), 1), recompress("ts + 5 days", Codec::None, 2)];
        rules.extend(prunes.then(|| delete("ts + 17 days", None, 3)));
        let mut def = tiered("s", rules);
        def.settings.insert("default_codec".to_owned(), SettingValue::Text("ZSTD(9)".to_owned()));
        let s = e.create_stream(def, false).await.unwrap();
        let texts: Vec<String> = (0..4000u64).map(|i| format!("{:08x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15) as u32).repeat(8)).collect();
        let of: Vec<_> = texts.iter().enumerate().map(|(i, t)| (t.as_str(), day(if i == 0 { -18 } else { -10 }), i as i64)).collect();
        e.stop(Stop::TtlMerges, None);
        e.stop(Stop::Moves, None);
        e.insert(s, vec![rows(&of)], v1()).await.unwrap();
        e.flush(None).await.unwrap();
        let bytes = || e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).sum::<u64>();
        let (before, most) = (bytes(), bytes() + 8192);
        let limited = async |most: u64| match declared {
            true => e.create_disk(local("w", most), Existing::Replace).await.unwrap(),
            false => {
                let mut p = e.manifest().policies.get("p").unwrap().as_ref().clone();
                p.volumes[1].max_data_part_size_bytes = Some(most);
                e.set_policy(p, Existing::Replace).await.unwrap();
            }
        };
        limited(most).await;
        e.start(Stop::TtlMerges, None);
        e.start(Stop::Moves, None);
        e.settle(None).await.unwrap();
        assert_eq!(placed(&e, s), [at("w", "ZSTD(9)")], "{declared} {prunes}");
        assert!(bytes() <= most && values(&e, s).await.len() == 4000 - usize::from(prunes));
        let told = e.explain_lifecycle(s, e.now()).unwrap().remove(1);
        assert_eq!((told.action.as_str(), told.state.as_str()), ("recompress", "destination_full"));
        assert!(told.reason.contains("'w"), "{}", told.reason);
        limited(20 * before).await;
        e.settle(None).await.unwrap();
        assert_eq!(placed(&e, s), [at("w", "NONE")]);
    }
}

/// A volume takes a part that is within its bounds, whatever else is done with it on the way.
#[tokio::test]
async fn a_part_that_fits_moves_and_is_recompressed() {
    let (_machine, e) = with_rooms([ROOM; 3]).await;
    let rules = vec![to("ts + 3 days", volume("warm"), 1), recompress("ts + 5 days", Codec::Zstd(5), 2)];
    let s = e.create_stream(tiered("s", rules), false).await.unwrap();
    insert(&e, s, 1, 0).await;
    let bytes = e.manifest().stream(s).unwrap().parts.values().next().unwrap().placement.bytes;
    let mut p = e.manifest().policies.get("p").unwrap().as_ref().clone();
    p.volumes[1].max_data_part_size_bytes = Some(bytes);
    e.set_policy(p, Existing::Replace).await.unwrap();
    advance(&e, 20);
    e.settle(None).await.unwrap();
    assert_eq!(placed(&e, s), [at("w", "ZSTD(5)")]);
}

/// The newest parts told too little: what comes out larger than the volume takes goes on to the next.
#[tokio::test]
async fn new_rows_that_outgrow_a_volume_go_on_to_the_next() {
    let (_machine, e) = with_rooms([ROOM; 3]).await;
    let s = e.create_stream(tiered("s", vec![]), false).await.unwrap();
    flushed(&e, s, &texts(2000, false)).await.unwrap();
    let first = e.manifest().stream(s).unwrap().parts.values().next().unwrap().placement.bytes;
    let mut p = e.manifest().policies.get("p").unwrap().as_ref().clone();
    p.volumes[0].max_data_part_size_bytes = Some(first + first / 4 + 4096);
    e.set_policy(p, Existing::Replace).await.unwrap();
    flushed(&e, s, &texts(2000, true)).await.unwrap();
    assert_eq!((parts_on(&e, s, "h"), parts_on(&e, s, "w")), (1, 1));
}

fn parts_on(e: &Engine, s: StreamId, disk: &str) -> usize {
    placed(e, s).iter().filter(|(d, _)| d == disk).count()
}

/// What several at once delete makes room once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn room_is_given_back_once() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let e = Engine::open(options(dir.path(), Clock::simulated(START), true)).await.unwrap();
    let path = other.path().to_owned();
    let disk = NewDisk { name: "d".into(), kind: DiskKind::Local { path }, capacity_bytes: Some(ROOM), max_usage_pct: 100 };
    e.create_disk(disk, Existing::Refuse).await.unwrap();
    e.set_policy(policy("p", vec![Volume::new("v", vec!["d".to_owned()])]), Existing::Refuse).await.unwrap();
    let s = e.create_stream(tiered("s", vec![]), false).await.unwrap();
    for i in 0..20 {
        for n in 0..2 {
            e.insert(s, vec![rows(&[("a", START.0 + i, 2 * i + n)])], v1()).await.unwrap();
            e.flush(None).await.unwrap();
        }
        e.optimize(s, None, true).await.unwrap();
        let (a, b) = tokio::join!(e.settle(None), e.settle(None));
        a.and(b).unwrap();
        let used = e.disks().into_iter().find(|d| d.name == "d").map(|d| d.total.unwrap() - d.free.unwrap());
        let parts: u64 = e.manifest().stream(s).unwrap().parts.values().map(|p| p.placement.bytes).sum();
        assert_eq!(used, Some(parts), "round {i}");
    }
}
