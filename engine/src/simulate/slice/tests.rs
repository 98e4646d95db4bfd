//! Slices against counting.

use super::*;
use proptest::prelude::*;

const DAY: i64 = 86_400_000_000;

fn at(day: i64) -> Timestamp {
    Timestamp(day * DAY)
}

/// Ten days of 100 rows a day from day 0 on; each rule comes due so many days after the row.
fn ten_days(after: &[i64]) -> Slice {
    Slice::new(at(0), at(10), 1000.0, after.iter().map(|d| Some((at(*d), at(10 + *d)))))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.01
}

#[test]
fn a_delete_takes_the_oldest_rows_and_the_rest_is_quiet() {
    let effects = [Effect::of(&RuleKind::Delete, 0.5)];
    let mut slice = ten_days(&[30]);
    let mut took = Vec::new();
    slice.apply(at(34), &effects, |rule, rows| took.push((rule, rows.round())));
    assert_eq!(took, [(0, 400.0)]);
    assert!(near(slice.rows(&effects), 600.0));
    let facts = slice.facts(0, &effects);
    let (first, last) = facts.due.unwrap();
    assert!(first > at(34) && first < Timestamp(at(34).0 + 10) && last == at(40), "{facts:?}");
    assert!(near(facts.rows, 600.0));
    // Again at the same moment: nothing.
    slice.apply(at(34), &effects, |_, rows| panic!("{rows} rows were taken twice"));
    slice.apply(at(40), &effects, |_, _| {});
    assert!(slice.is_empty());
}

#[test]
fn a_where_takes_its_share_and_no_row_twice() {
    let effects = [Effect::of(&RuleKind::DeleteWhere, 0.25), Effect::of(&RuleKind::Delete, 0.25)];
    let mut slice = ten_days(&[7, 90]);
    assert!(near(slice.facts(0, &effects).rows, 250.0));
    slice.apply(at(11), &effects, |rule, rows| assert!(rule == 0 && near(rows, 100.0), "{rule} took {rows}"));
    assert!(near(slice.rows(&effects), 900.0));
    assert!(near(slice.facts(0, &effects).rows, 150.0));
    slice.apply(at(100), &effects, |_, _| {});
    assert!(slice.is_empty());
    assert_eq!(slice.facts(0, &effects).due, None);
}

#[test]
fn what_never_comes_due_is_never_taken() {
    let effects = [Effect::of(&RuleKind::Delete, 1.0)];
    let mut slice = Slice::new(at(0), at(1), 10.0, [None]);
    slice.apply(Timestamp::MAX, &effects, |_, _| panic!("a row without a time was taken"));
    let facts = slice.facts(0, &effects);
    assert_eq!((facts.rows, facts.never, facts.due), (0.0, 10.0, None));
}

#[test]
fn a_move_concerns_every_row_that_is_left() {
    let effects = [Effect::of(&RuleKind::Delete, 0.5), None];
    let mut slice = ten_days(&[30, 3]);
    slice.apply(at(35), &effects, |_, _| {});
    let facts = slice.facts(1, &effects);
    assert!(near(facts.rows, 500.0));
    assert_eq!(facts.due.unwrap().1, at(13));
}

#[test]
fn adjoining_slices_become_one_and_steps_stay() {
    let day = |d: i64, due: Due| Slice::new(at(d), at(d + 1), 100.0, [due]);
    let even = (0..50).map(|d| day(d, Some((at(d + 30), at(d + 31))))).rev().collect();
    assert_eq!(together(even).len(), 1);
    let steps = (0..50).map(|d| day(d, Some((at(d + 30), at(d + 30))))).collect();
    assert_eq!(together(steps).len(), 50);
    let gap = vec![day(0, None), day(2, None)];
    assert_eq!(together(gap).len(), 2);
}

proptest! {
    #[test]
    fn joining_and_applying_in_any_order_keep_the_rows(
        days in 1i64..30,
        cuts in prop::collection::vec(0i64..120, 0..6),
        share in 0.05f64..0.95,
        after in prop::collection::vec(0i64..60, 1..4),
    ) {
        let kinds = [RuleKind::DeleteWhere, RuleKind::Fold, RuleKind::Delete];
        let effects: Vec<_> = after.iter().enumerate().map(|(i, _)| Effect::of(&kinds[i], share)).collect();
        let slice = |d: i64| Slice::new(at(d), at(d + 1), 100.0, after.iter().map(|a| Some((at(d + a), at(d + 1 + a)))));
        let apart = || (0..days).map(slice).collect::<Vec<_>>();
        let rows = |all: &[Slice]| all.iter().map(|s| s.rows(&effects)).sum::<f64>();
        let mut cuts = cuts;
        cuts.sort_unstable();
        let (mut one, mut many) = (together(apart()), apart());
        for cut in cuts {
            let mut took = [0.0, 0.0];
            let mut before = rows(&one);
            one.iter_mut().for_each(|s| s.apply(at(cut), &effects, |_, n| took[0] += n));
            many.iter_mut().for_each(|s| s.apply(at(cut), &effects, |_, n| took[1] += n));
            prop_assert!((took[0] - took[1]).abs() < 0.1, "{took:?}");
            prop_assert!((rows(&one) - rows(&many)).abs() < 0.1);
            before -= rows(&one);
            prop_assert!(before >= -1e-6 && before <= took[0] + 1e-3, "{before} rows went, {} were taken", took[0]);
            for (i, _) in effects.iter().enumerate() {
                let due = one.iter().filter_map(|s| s.facts(i, &effects).due).map(|d| d.0).min();
                prop_assert!(due.is_none_or(|d| d > at(cut)), "due again at {due:?}");
            }
            many = together(many);
            prop_assert!((rows(&one) - rows(&many)).abs() < 0.1);
        }
    }
}
