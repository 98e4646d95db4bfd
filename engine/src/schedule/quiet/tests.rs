use super::*;
use crate::plan::Plan;

fn state() -> Arc<StreamState> {
    Arc::new(StreamState::new(crate::settings::tests_def()))
}

fn ground(changes: u64, leases: u64) -> Ground {
    Ground { changes, leases, server: ServerSettings::of(&ebb_storage::manifest::Manifest::empty()) }
}

fn found(wake_at: Option<i64>) -> Planned {
    Planned { wake_at: wake_at.map(Timestamp::from_secs), ..Planned::default() }
}

#[test]
fn a_stream_is_quiet_until_something_that_its_plan_stood_on_changes() {
    let (quiet, state, now) = (Quiet::default(), state(), Timestamp::from_secs(100));
    assert_eq!(quiet.until(&state, &ground(1, 1), now), None, "never looked at");
    quiet.looked(&state, ground(1, 1), &found(None));
    assert_eq!(quiet.until(&state, &ground(1, 1), now), Some(None));
    assert_eq!(quiet.until(&state, &ground(2, 1), now), None, "a job ended, a reader advanced");
    assert_eq!(quiet.until(&state, &ground(1, 2), now), None, "a lease was given back");
    let server = ServerSettings { pool_size: 9, ..ground(1, 1).server };
    assert_eq!(quiet.until(&state, &Ground { server, ..ground(1, 1) }, now), None, "another setting");
    let written = Arc::new(state.as_ref().clone());
    assert_eq!(quiet.until(&written, &ground(1, 1), now), None, "another state");
    quiet.retain(|_| false);
    assert_eq!(quiet.until(&state, &ground(1, 1), now), None);
}

#[test]
fn a_stream_is_quiet_until_the_next_thing_comes_due() {
    let (quiet, state) = (Quiet::default(), state());
    quiet.looked(&state, ground(1, 1), &found(Some(200)));
    assert_eq!(quiet.until(&state, &ground(1, 1), Timestamp::from_secs(199)), Some(Some(Timestamp::from_secs(200))));
    assert_eq!(quiet.until(&state, &ground(1, 1), Timestamp::from_secs(200)), None);
}

#[test]
fn a_stream_with_work_or_one_that_waits_for_room_is_never_quiet() {
    let (quiet, state, now) = (Quiet::default(), state(), Timestamp::from_secs(100));
    quiet.looked(&state, ground(1, 1), &found(None));
    quiet.looked(&state, ground(1, 1), &Planned { waits_for_room: true, ..found(None) });
    assert_eq!(quiet.until(&state, &ground(1, 1), now), None);
    let work = vec![Plan::Measure { stream: state.def.id, parts: Vec::new() }];
    quiet.looked(&state, ground(1, 1), &Planned { plans: work, ..found(None) });
    assert_eq!(quiet.until(&state, &ground(1, 1), now), None);
}
