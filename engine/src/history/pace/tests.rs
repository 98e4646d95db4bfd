use super::*;

fn state() -> Arc<StreamState> {
    Arc::new(StreamState::new(crate::settings::tests_def()))
}

#[test]
fn a_stream_is_looked_at_when_something_is_due_and_not_after_every_record() {
    let mut pace = Pace::default();
    let (first, t) = (state(), |s| Timestamp::from_secs(s));
    assert_eq!(pace.due_at((&first, &[]), t(0)), Some(t(0)), "never looked at");
    pace.looked(first.clone(), Vec::new(), t(0), None);
    assert_eq!(pace.due_at((&first, &[]), t(100)), None);
    pace.looked(first.clone(), Vec::new(), t(0), Some(t(50)));
    assert_eq!(pace.due_at((&first, &[]), t(1)), Some(t(50)));
    let written = Arc::new(first.as_ref().clone());
    assert_eq!(pace.due_at((&written, &[]), t(1)), Some(t(10)), "what was written may make something due, a little later");
    pace.looked(first.clone(), Vec::new(), t(0), Some(t(5)));
    assert_eq!(pace.due_at((&written, &[]), t(1)), Some(t(5)));
    let named = Arc::new(StreamState { refs_version: 1, ..first.as_ref().clone() });
    assert_eq!(pace.due_at((&named, &[]), t(1)), Some(t(1)));
    let reader =
        Reader { name: "r".into(), stream: first.def.id, sn: Default::default(), max_lag_ms: None, created_at: t(1), cut_off_at: None };
    assert_eq!(pace.due_at((&first, &[Arc::new(reader)]), t(1)), Some(t(5)), "what a reader held up may be due when it is not");
    pace.retain(|_| false);
    assert_eq!(pace.due_at((&first, &[]), t(1)), Some(t(1)));
}
