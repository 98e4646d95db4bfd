//! Due rows are hidden at read time exactly as they will be removed, and facts from bounds are those from the rows.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{Engine, Hide, Timestamp, expr::ExprCompiler, facts::facts_by_bounds, stream::CompiledRule};
use ebb_storage::{ids::StreamId, interval::Interval, rules::Action, stream_def::SettingValue};
use support::*;

fn at(day: i64) -> i64 {
    START.0 + day * DAY
}

fn moment(day: i64) -> Timestamp {
    Timestamp(at(day))
}

async fn hiding_stream(e: &Engine, rules: Vec<ebb_storage::rules::Rule>) -> StreamId {
    let mut d = def("s", rules);
    d.settings.insert("ttl_hide_expired".to_owned(), SettingValue::Bool(true));
    e.create_stream(d, false).await.unwrap()
}

#[tokio::test]
async fn parts_are_hidden_by_their_facts_and_rows_by_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = hiding_stream(&e, vec![delete("ts + 10 days", None, 1), delete("ts + 1 days", Some("host = b"), 2)]).await;
    e.insert(s, vec![rows(&[("a", at(0), 1), ("b", at(0), 2), ("a", at(2), 3)])], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
    let view = e.read().stream(s).unwrap();
    let part = &view.parts[0].meta;
    let of = |day: i64| e.hiding(&view, moment(day)).unwrap().unwrap().of_part(part);
    assert_eq!([of(0), of(1), of(10), of(11), of(12), of(13)], {
        use Hide::{All, Evaluate, None};
        [None, Evaluate, Evaluate, Evaluate, All, All]
    });
    let batch = rows(&[("a", at(0), 1), ("b", at(0), 2), ("a", at(2), 3)]);
    let kept = |day: i64| e.hiding(&view, moment(day)).unwrap().unwrap().kept(&batch).map(|k| k.values().iter().collect::<Vec<_>>());
    assert_eq!(kept(0), None);
    assert_eq!(kept(1), Some(vec![true, false, true]));
    assert_eq!(kept(10), Some(vec![false, false, true]));
    assert_eq!(kept(12), Some(vec![false, false, false]));
    let columns = e.hiding(&view, moment(0)).unwrap().unwrap().columns();
    assert_eq!(columns.iter().map(|c| c.0).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn what_is_hidden_is_what_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let s = hiding_stream(&e, vec![delete("ts + 1 days", None, 1)]).await;
    let batch = rows(&[("a", at(0), 1), ("b", at(1), 2), ("c", at(2), 3)]);
    e.insert(s, vec![batch.clone()], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
    e.advance_clock(Interval::days(2)).unwrap();
    let hiding = e.hiding(&e.read().stream(s).unwrap(), e.now()).unwrap().unwrap();
    let kept = hiding.kept(&batch).unwrap();
    let left: Vec<i64> = (0..3).filter(|i| kept.value(*i)).map(|i| i as i64 + 1).collect();
    assert_eq!(left, [3]);
    e.settle(None).await.unwrap();
    assert_eq!(values(&e, s).await, left);
}

#[tokio::test]
async fn without_the_setting_or_a_rule_nothing_is_hidden() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let plain = e.create_stream(def("plain", vec![delete("ts + 1 days", None, 1)]), false).await.unwrap();
    let ruleless = hiding_stream(&e, vec![]).await;
    for s in [plain, ruleless] {
        assert!(e.hiding(&e.read().stream(s).unwrap(), moment(99)).unwrap().is_none());
    }
}

#[tokio::test]
async fn facts_by_bounds_are_the_facts_of_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let e = open(dir.path()).await;
    let rules = vec![delete("ts + 3 days", None, 1), delete("ts", None, 2), delete("ts + 1 days", Some("host = b"), 3)];
    let d = def("s", rules.clone());
    let compiled: Vec<CompiledRule> = rules
        .iter()
        .map(|r| CompiledRule {
            when: Words.compile(&r.when, &d).unwrap(),
            only: matches!(r.action, Action::Delete { only: Some(_) }).then(|| Words.compile("host = b", &d).unwrap()),
            fold: None,
            rule: r.clone(),
        })
        .collect();
    let s = e.create_stream(d.clone(), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", at(1), 1), ("b", at(-1), 2), ("a", at(2), 3)])], v1()).await.unwrap();
    e.insert(s, vec![rows(&[("a", 0, 1), ("b", 5 * DAY, 2)])], v1()).await.unwrap();
    e.flush(Some(s)).await.unwrap();
    let mut told = 0;
    for part in &e.read().stream(s).unwrap().parts {
        for (rule, by_rows) in compiled.iter().zip(&part.meta.facts) {
            if let Some(by_bounds) = facts_by_bounds(rule, &part.meta, &d.row_schema()) {
                assert_eq!(&by_bounds, by_rows);
                told += 1;
            }
            // Neither a WHERE nor a part with the zero that never comes due can be told by bounds.
            let unknown = rule.only.is_some() || part.meta.min_time.0 <= 0;
            assert_eq!(facts_by_bounds(rule, &part.meta, &d.row_schema()).is_none(), unknown);
        }
    }
    assert!(told >= 2);
}
