//! An INDEX over an expression: what a part keeps of it covers the part's rows, whatever wrote them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may unwrap")]

mod support;

use ebb_engine::{Clock, Engine};
use ebb_storage::{
    codec::Codec,
    ids::{Fingerprint, StreamId},
    interval::Interval,
    part::stats::Bound,
    rules::{Action, Rule},
    stream_def::{IndexDef, IndexKind, StreamDef},
};
use support::*;

fn indexed(rules: Vec<Rule>, kinds: &[IndexKind]) -> StreamDef {
    let index = |(i, kind): (usize, &IndexKind)| IndexDef {
        name: format!("i{i}"),
        expr: "month(ts)".to_owned(),
        kind: kind.clone(),
        granularity: 1,
    };
    let mut d = with(def("s", rules), "merge_with_ttl_timeout", 0);
    d.partition_by = Vec::new();
    d.indexes = kinds.iter().enumerate().map(index).collect();
    d
}

/// Rows, bounds and values of a part.
type Kept = (u64, Option<(i64, i64)>, Option<Vec<i64>>);

/// Of each part, by its rows: the bounds of its months, and the months.
fn kept(e: &Engine, s: StreamId) -> Vec<Kept> {
    let state = e.manifest().stream(s).unwrap().clone();
    let int = |b: &Bound| if let Bound::Int(i) = b { *i } else { panic!("{b:?}") };
    let mut all: Vec<_> = state
        .parts
        .values()
        .map(|p| {
            assert!(p.computed.len() <= 1, "one for an expression, however many indexes");
            let of = p.computed.first();
            let ends = of.and_then(|c| Some((int(c.min.as_ref()?), int(c.max.as_ref()?))));
            (p.rows, ends, of.and_then(|c| Some(c.values.as_ref()?.iter().map(int).collect())))
        })
        .collect();
    all.sort();
    all
}

const MONTH: i64 = 30 * DAY;

async fn insert(e: &Engine, s: StreamId, months: &[i64]) {
    let hosts = ["a", "b", "c"];
    let of: Vec<_> = months.iter().enumerate().map(|(i, m)| (hosts[i % 3], m * MONTH, i as i64)).collect();
    e.insert(s, vec![rows(&of)], v1()).await.unwrap();
    e.flush(None).await.unwrap();
}

#[tokio::test]
async fn what_is_kept_covers_the_rows_through_every_rewrite() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let now = START.0 / MONTH;
    let rules = vec![
        Rule { when: "ts + 60 days".into(), action: Action::Recompress(Codec::Zstd(3)), fingerprint: Fingerprint(1) },
        delete("ts + 300 days", None, 2),
    ];
    let s = e.create_stream(indexed(rules, &[IndexKind::MinMax, IndexKind::Set(4)]), false).await.unwrap();
    insert(&e, s, &[now, now - 2, now]).await;
    insert(&e, s, &[now - 1; 2]).await;
    assert_eq!(kept(&e, s), [(2, Some((now - 1, now - 1)), Some(vec![now - 1])), (3, Some((now - 2, now)), Some(vec![now - 2, now]))]);
    e.optimize(s, None, true).await.unwrap();
    let all = (5, Some((now - 2, now)), Some(vec![now - 2, now - 1, now]));
    assert_eq!(kept(&e, s), std::slice::from_ref(&all));
    // Deleted rows are still covered, as long as the file holds them.
    e.delete(deleting(&e, s, "v = 1")).await.unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(kept(&e, s), std::slice::from_ref(&all));
    e.advance_clock(Interval::days(130)).unwrap();
    e.settle(None).await.unwrap();
    let codec = e.manifest().stream(s).unwrap().parts.values().next().unwrap().placement.codec;
    assert_eq!((codec, kept(&e, s)), (Codec::Zstd(3), vec![all]), "re-coded pages hold the same values");
    forget_the_past(&e, s).await;
    e.optimize(s, None, true).await.unwrap();
    assert_eq!(kept(&e, s), [(3, Some((now - 1, now)), Some(vec![now - 1, now]))]);
    // More than are kept.
    insert(&e, s, &[now + 1, now + 2, now + 3]).await;
    e.optimize(s, None, true).await.unwrap();
    let [(_, ends, values)] = &kept(&e, s)[..] else { panic!("{:?}", kept(&e, s)) };
    assert_eq!((ends.unwrap().1, values), (now + 3, &None));
    let clock = Clock::simulated(e.now());
    drop(e);
    let e = Engine::open(options(dir.path(), clock, false)).await.unwrap();
    assert_eq!(kept(&e, s)[0].1.unwrap().1, now + 3);
}

#[tokio::test]
async fn bounds_alone_and_as_many_values_as_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let now = START.0 / MONTH;
    let of = async |name: &str, kinds: &[IndexKind]| {
        let s = e.create_stream(StreamDef { name: name.into(), ..indexed(vec![], kinds) }, false).await.unwrap();
        let months: Vec<i64> = (0..20).map(|i| now - i).collect();
        insert(&e, s, &months).await;
        kept(&e, s).remove(0)
    };
    assert_eq!(of("bounds", &[IndexKind::MinMax]).await, (20, Some((now - 19, now)), None));
    assert_eq!(of("few", &[IndexKind::Set(4)]).await.2, None);
    assert_eq!(of("bloom", &[IndexKind::Set(4), IndexKind::BloomFilter(10_000)]).await.2.map(|v| v.len()), Some(20));
}

/// Folded rows and values that a rule put in are looked at anew.
#[tokio::test]
async fn rows_that_rules_make_are_covered() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let now = START.0 / MONTH;
    let s = e.create_stream(indexed(vec![sum_by_host("ts + 10 days", 3)], &[IndexKind::Set(9)]), false).await.unwrap();
    insert(&e, s, &[now - 3, now - 4, now - 5, now - 6, now - 1]).await;
    e.settle(None).await.unwrap();
    // Of each host the newest row's time stays.
    assert_eq!(kept(&e, s), [(3, Some((now - 5, now - 1)), Some(vec![now - 5, now - 3, now - 1]))]);
}
