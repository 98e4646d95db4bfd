//! PREVIEW says exactly what is done afterwards, and changes nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, ErrorKind, Previewed, Trial};
use ebb_storage::{
    codec::Codec,
    ids::{Fingerprint, StreamId},
    interval::Interval,
    manifest::edit::PartEvent,
    rules::{Action, Rule},
    stream_def::StreamDef,
    testkit::crash_store::CrashDisk,
};
use support::*;

fn at(day: i64) -> i64 {
    START.0 + day * DAY
}

/// A stream of three partitions in several parts, some rows in the tail.
async fn filled(e: &Engine, rules: Vec<Rule>) -> StreamId {
    let s = e.create_stream(with(def("s", rules), "merge_with_ttl_timeout", 0), false).await.unwrap();
    for day in [-70i64, -40, -35, -5] {
        let hosts = ["a", "b", "c"];
        let batch: Vec<(&str, i64, i64)> = (0..600).map(|i| (hosts[i % 3], at(day) + i as i64 * 60_000_000, i as i64)).collect();
        e.insert(s, vec![rows(&batch)], v1()).await.unwrap();
        if day != -5 {
            e.flush(Some(s)).await.unwrap();
        }
    }
    s
}

fn recompress(when: &str, codec: Codec, fingerprint: u64) -> Rule {
    Rule { when: when.to_owned(), action: Action::Recompress(codec), fingerprint: Fingerprint(fingerprint) }
}

fn ruled(e: &Engine, s: StreamId, rules: Vec<Rule>) -> StreamDef {
    let mut d = e.manifest().stream(s).unwrap().def.as_ref().clone();
    d.policy.ttl = rules;
    d
}

/// Of each action parts, rows and bytes after, as the logs tell of what was really done; sorted.
async fn done(e: &Engine) -> Vec<(String, u64, u64, u64)> {
    let mut lines: std::collections::BTreeMap<String, (u64, u64, u64)> = Default::default();
    for row in e.lifecycle_log().await.unwrap() {
        let line = lines.entry(row.action.clone()).or_default();
        line.0 += row.part.split(',').count() as u64;
        line.1 += match row.action.as_str() {
            "drop" | "delete" => row.rows_before - row.rows_after,
            "recompress" | "move" => row.rows_after,
            _ => row.rows_before,
        };
        line.2 += row.bytes_after;
    }
    for row in e.part_log().await.unwrap().iter().filter(|r| r.event == PartEvent::MergeParts) {
        let line = lines.entry("merge".to_owned()).or_default();
        *line = (line.0 + row.source_parts.len() as u64, line.1 + row.rows_read, line.2 + row.bytes);
    }
    lines.into_iter().map(|(action, (parts, rows, bytes))| (action, parts, rows, bytes)).collect()
}

fn told(lines: &[Previewed]) -> Vec<(String, u64, u64, u64)> {
    let mut all: Vec<_> = lines.iter().map(|l| (l.action.clone(), l.parts, l.rows, l.bytes_after)).collect();
    all.sort();
    all
}

#[tokio::test]
async fn what_is_previewed_is_what_is_done() {
    let sets: Vec<Vec<Rule>> = vec![
        vec![delete("ts + 38 days", None, 1)],
        vec![delete("ts + 1 days", Some("host = 'b'"), 2)],
        vec![delete("ts + 50 days", None, 1), delete("ts + 1 days", Some("host = 'c'"), 3)],
        vec![sum_by_host("ts + 20 days", 4)],
        vec![recompress("ts + 20 days", Codec::Zstd(9), 5), delete("ts + 1 days", Some("host = 'c'"), 3)],
    ];
    for rules in sets {
        let dir = tempfile::tempdir().unwrap();
        let e = open(dir.path()).await;
        let s = filled(&e, vec![]).await;
        let (before, commit, stored) = (read(&e, s).await, e.manifest().no, files(dir.path()));
        let lines = e.preview(s, Trial::Rules(Box::new(ruled(&e, s, rules.clone()))), e.now()).await.unwrap();
        assert!(!lines.is_empty(), "{rules:?}");
        assert_eq!((read(&e, s).await, e.manifest().no, files(dir.path())), (before, commit, stored), "nothing is changed");
        e.alter_stream(s, |d| Ok(StreamDef { policy: ebb_storage::rules::Policy { ttl: rules.clone(), retention: vec![] }, ..d.clone() }))
            .await
            .unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(told(&lines), done(&e).await, "{rules:?}");
    }
}

#[tokio::test]
async fn a_later_moment_is_previewed_as_it_will_be() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 100 days", None, 1)];
    let s = filled(&e, vec![]).await;
    let trial = || Trial::Rules(Box::new(ruled(&e, s, rules.clone())));
    assert_eq!(e.preview(s, trial(), e.now()).await.unwrap(), []);
    let later = Interval::days(63).after(e.now()).unwrap();
    let lines = e.preview(s, trial(), later).await.unwrap();
    e.alter_stream(s, |d| Ok(StreamDef { policy: ebb_storage::rules::Policy { ttl: rules.clone(), retention: vec![] }, ..d.clone() }))
        .await
        .unwrap();
    e.advance_clock(Interval::days(63)).unwrap();
    e.settle(None).await.unwrap();
    assert_eq!(told(&lines), done(&e).await);
    assert_eq!(e.preview(s, trial(), START).await.unwrap(), e.preview(s, trial(), e.now()).await.unwrap(), "what has passed is now");
}

#[tokio::test]
async fn optimize_is_previewed() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = filled(&e, vec![delete("ts + 1 days", Some("host = 'b'"), 2)]).await;
    let held = values(&e, s).await;
    let lines = e.preview(s, Trial::Optimize { partition: None, final_: true, copies: None }, e.now()).await.unwrap();
    assert_eq!(values(&e, s).await, held);
    e.optimize(s, None, true).await.unwrap();
    let merged: Vec<_> = e.part_log().await.unwrap().into_iter().filter(|r| r.event == PartEvent::MergeParts).collect();
    let merge = lines.iter().find(|l| l.action == "merge").unwrap();
    assert_eq!(merge.parts, merged.iter().map(|r| r.source_parts.len() as u64).sum::<u64>());
    assert_eq!(merge.bytes_after, merged.iter().map(|r| r.bytes).sum::<u64>());
    let deleted = lines.iter().find(|l| l.action == "delete").unwrap();
    assert_eq!(deleted.rows, 800);
    let missing = e.preview(s, Trial::Optimize { partition: Some("x".into()), final_: true, copies: None }, e.now()).await.unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

/// An unreadable part is told of instead of being left out of the numbers; what a killed preview left is gone after opening.
#[tokio::test]
async fn a_preview_that_cannot_be_made_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = filled(&e, vec![]).await;
    e.flush(None).await.unwrap();
    let place = e.place_of(e.manifest().stream(s).unwrap().parts.values().next().unwrap());
    let path = dir.path().join(place.key.as_ref());
    std::fs::write(&path, b"no part").unwrap();
    let trial = Trial::Rules(Box::new(ruled(&e, s, vec![delete("ts + 1 days", Some("host = 'b'"), 2)])));
    let error = e.preview(s, trial, e.now()).await.unwrap_err();
    assert!(error.to_string().contains("PREVIEW"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path().join("preview")).map_or(0, Iterator::count), 0, "its folder is gone");
    drop(e);
    std::fs::create_dir_all(dir.path().join("preview/left/1")).unwrap();
    let _e = open(dir.path()).await;
    assert!(!dir.path().join("preview").exists());
}

/// Right after MODIFY TTL no part is measured: OPTIMIZE finds out first what is due, and does it in one rewrite.
#[tokio::test]
async fn optimize_knows_new_rules_before_it_rewrites() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = filled(&e, vec![]).await;
    let rules = vec![recompress("ts + 20 days", Codec::Zstd(9), 5), delete("ts + 1 days", Some("host = 'c'"), 3)];
    e.alter_stream(s, |d| Ok(StreamDef { policy: ebb_storage::rules::Policy { ttl: rules.clone(), retention: vec![] }, ..d.clone() }))
        .await
        .unwrap();
    let lines = e.preview(s, Trial::Optimize { partition: None, final_: true, copies: None }, e.now()).await.unwrap();
    e.optimize(s, None, true).await.unwrap();
    let real: Vec<_> = done(&e).await;
    assert_eq!(told(&lines), real);
    assert!(real.iter().any(|l| l.0 == "recompress") && real.iter().any(|l| l.0 == "delete" && l.2 == 800), "{real:?}");
    e.settle(None).await.unwrap();
    assert_eq!(done(&e).await, real, "nothing is left to do");
}

/// Parts that wait for a partner are merged before they move; what only the number of parts asks for is merged too.
#[tokio::test]
async fn merges_before_a_move_are_previewed() {
    for (parts, grace) in [(1, 300), (3, 300), (3, 0), (9, 300)] {
        let machine = CrashDisk::default();
        let e = tiered::open_tiered(&machine, START, false).await.unwrap();
        tiered::make_tiers(&e, [tiered::ROOM; 3]).await.unwrap();
        let s = e.create_stream(with(tiered::tiered("s", vec![]), "ttl_move_grace_seconds", grace), false).await.unwrap();
        for i in 0..parts {
            let batch: Vec<(&str, i64, i64)> = (0..2000).map(|v| (if v % 7 == 0 { "a" } else { "b" }, at(0), i * 2000 + v)).collect();
            e.insert(s, vec![rows(&batch)], v1()).await.unwrap();
            e.flush(Some(s)).await.unwrap();
        }
        // Parts that are written as they come due: all of them wait.
        let rules = vec![tiered::to("ts + 0 days", tiered::volume("cold"), 1)];
        let (before, commit) = (read(&e, s).await, e.manifest().no);
        let lines = e.preview(s, Trial::Rules(Box::new(ruled(&e, s, rules.clone()))), e.now()).await.unwrap();
        assert_eq!((read(&e, s).await, e.manifest().no), (before, commit), "nothing is changed");
        e.alter_stream(s, |d| Ok(StreamDef { policy: ebb_storage::rules::Policy { ttl: rules.clone(), retention: vec![] }, ..d.clone() }))
            .await
            .unwrap();
        e.settle(None).await.unwrap();
        e.advance_clock(Interval::seconds(301)).unwrap();
        e.settle(None).await.unwrap();
        assert_eq!(told(&lines), done(&e).await, "{parts} parts, {grace} s");
        let moved = lines.iter().find(|l| l.action == "move").unwrap();
        assert_eq!((moved.rows, lines.iter().any(|l| l.action == "merge")), (parts as u64 * 2000, parts > 1));
    }
}
