use super::*;
use crate::settings::{ServerSettings, tests_def};
use ebb_storage::codec::Codec;

#[test]
fn delay_grows_until_inserts_are_refused() {
    let server = ServerSettings { ttl_jobs_max: 2, pool_size: 2, memory_limit_bytes: 0, default_codec: Codec::Lz4 };
    let settings = StreamSettings::of(&tests_def(), &server);
    let ask = |parts| admit(parts, "202601", "default.s", &settings);
    assert_eq!(ask(0), Admission::Accept);
    assert_eq!(ask(999), Admission::Accept);
    let (Admission::Delay(first), Admission::Delay(middle), Admission::Delay(last)) = (ask(1000), ask(2000), ask(2999)) else {
        panic!("no delay")
    };
    assert!(first < middle && middle < last && last <= DELAY_MAX);
    let Admission::Refuse(why) = ask(3000) else { panic!("not refused") };
    assert!(why.contains("default.s") && why.contains("202601") && why.contains("parts_to_throw_insert"));
}
