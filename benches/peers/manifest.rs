//! What does not grow with the number of parts, and what may only a little: commits, planning, opening.

use crate::{fresh, say, say_seconds};
use ebb::{Config, Database};
use ebb_engine::{
    plan::{
        self, PartView, PartitionView, Pools, RuleView, Stops, StreamView,
        tiers::{DiskView, TierView},
    },
    settings::{ServerSettings, StreamSettings},
};
use ebb_storage::{
    clock::{Clock, Stopwatch, Timestamp},
    disk::DurableFs,
    ids::{DiskId, PartId},
    manifest::{Committer, Edit, Manifest, StreamState},
    part::meta::PartMeta,
};
use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

const FEW: u32 = 100;
const MANY: u32 = 100_000;
const PARTITIONS: u32 = 365;
const COMMITS: u32 = 50;
const DAY: Duration = Duration::from_secs(86_400);
/// 2026-01-01 00:00:00 UTC.
const START: Timestamp = Timestamp(1_767_225_600_000_000);

pub async fn run(dir: &Path) {
    let dir = fresh(dir, "ebb-manifest");
    let clock = Clock::simulated(START);
    let config = || Config::new(&dir).with_clock(clock.clone()).with_background(false);
    let db = Database::open(config()).await.unwrap();
    let rule = "TTL ts + INTERVAL 30 DAY, ts + INTERVAL 7 DAY DELETE WHERE level = 'debug'";
    db.execute(&format!("CREATE STREAM m (ts datetime, level string) PARTITION BY to_YYYYMMDD(ts) ORDER BY ts {rule}")).await.unwrap();
    db.execute("INSERT INTO m VALUES (now(), 'debug'), (now(), 'info')").await.unwrap();
    db.execute("SYSTEM FLUSH").await.unwrap();
    let template = stream(&db.engine().manifest()).parts.values().next().unwrap().as_ref().clone();
    db.close().await.unwrap();
    drop(db);

    {
        let meta = Arc::new(DurableFs::open(&dir.join("meta")).unwrap());
        let committer = Committer::open(meta, clock.clone(), Arc::new(|| false)).await.unwrap().committer;
        let mut made = 0;
        for (total, work) in [(FEW, "commit_100_parts"), (MANY, "commit_100000_parts")] {
            while made < total {
                let to = total.min(made + 1000);
                commit(&committer, (made..to).map(|n| part(&template, &committer, n)).collect()).await;
                made = to;
            }
            let mut waits = Vec::new();
            for n in 0..COMMITS {
                let edits = vec![part(&template, &committer, made + n)];
                let watch = Stopwatch::start();
                commit(&committer, edits).await;
                waits.push(watch.elapsed().as_secs_f64());
            }
            made += COMMITS;
            waits.sort_by(f64::total_cmp);
            say_seconds(work, Some(waits[waits.len() / 2]), Some(u64::from(total)), None);
        }
        planning(&committer.current());
        let watch = Stopwatch::start();
        committer.checkpoint().await.unwrap();
        say("checkpoint_100000_parts", Some(&watch), None, None);
    }

    let watch = Stopwatch::start();
    let db = Database::open(config()).await.unwrap();
    say("open_100000_parts", Some(&watch), Some(stream(&db.engine().manifest()).parts.size() as u64), None);
    db.close().await.unwrap();
}

fn stream(manifest: &Manifest) -> &Arc<StreamState> {
    manifest.stream_named("default", "m").unwrap()
}

/// Each commit names its epoch anew, so that the next opening expects no file of the log from it.
async fn commit(committer: &Committer, mut edits: Vec<Edit>) {
    edits.push(Edit::TakeEpoch(committer.epoch()));
    committer.commit(edits, Vec::new(), |_| {}).await.unwrap();
}

/// The `n`th part: a day of the year, its rows due as its day says.
fn part(template: &PartMeta, committer: &Committer, n: u32) -> Edit {
    let mut part = template.clone();
    let later = DAY * (n % PARTITIONS);
    part.id = PartId::new(committer.epoch(), n + 1);
    part.name = format!("day{}_{n}", n % PARTITIONS);
    part.partition = format!("day{}", n % PARTITIONS).into();
    part.rows = 1_000_000;
    part.placement.bytes = 10_000_000 << (n / PARTITIONS % 6);
    for facts in &mut part.facts {
        facts.earliest = facts.earliest.map(|t| t.saturating_add(later));
        facts.latest = facts.latest.map(|t| t.saturating_add(later));
    }
    Edit::AddPart(Box::new(part))
}

fn planning(manifest: &Manifest) {
    let state = stream(manifest);
    let rules: Vec<RuleView> = state.def.policy.ttl.iter().map(RuleView::of).collect();
    let mut partitions: BTreeMap<Arc<str>, Vec<PartView>> = BTreeMap::new();
    for meta in state.parts.values() {
        partitions.entry(meta.partition.clone()).or_default().push(PartView::of(meta, &rules));
    }
    let view = StreamView {
        id: state.def.id,
        policy_version: state.def.policy_version,
        schema_version: state.def.schema_version,
        settings: StreamSettings::of(&state.def, &ServerSettings::of(manifest)),
        rules,
        stops: Stops::default(),
        tiers: Arc::new(TierView::of_one(DiskView::unlimited(DiskId::DEFAULT, "default"))),
        pools: Pools::default(),
        relief: None,
        partitions: partitions
            .into_iter()
            .map(|(value, parts)| PartitionView { value, pruned_at: None, recompressed_at: None, parts })
            .collect(),
    };
    // Some partitions are due as a whole, some in part, most not at all.
    for (work, now) in [("plan_100000_parts_quiet", START), ("plan_100000_parts_due", START.saturating_add(DAY * 100))] {
        let mut best = f64::MAX;
        for _ in 0..5 {
            let watch = Stopwatch::start();
            let planned = plan::plan(&view, now);
            best = best.min(watch.elapsed().as_secs_f64());
            assert!(planned.wake_at.is_some() || !planned.plans.is_empty());
        }
        say_seconds(work, Some(best), Some(state.parts.size() as u64), None);
    }
}
