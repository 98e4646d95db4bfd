use super::*;

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    let error = find(Scope::Stream, "merge_with_ttl_timout").err().unwrap();
    assert!(error.message().contains("did you mean 'merge_with_ttl_timeout'"), "{error}");
    assert!(find(Scope::Stream, "zzzzzzzz").err().unwrap().message().ends_with("'zzzzzzzz'"));
    assert!(find(Scope::Stream, "background_pool_size").err().unwrap().message().contains("setting of server"));
}

#[test]
fn values_are_kept_in_the_settings_own_type() {
    let check = |name: &str, v: SettingValue| check(Scope::Stream, name, &v);
    assert_eq!(check("ttl_only_drop_parts", SettingValue::Int(1)).unwrap(), SettingValue::Bool(true));
    assert_eq!(check("flush_threshold_ms", SettingValue::Text("50".into())).unwrap(), SettingValue::Int(50));
    assert_eq!(check("default_codec", SettingValue::Text("zstd(3)".into())).unwrap(), SettingValue::Text("ZSTD(3)".into()));
    assert_eq!(check("history_max_ref_age_ms", SettingValue::Text("none".into())).unwrap(), SettingValue::Text("none".into()));
}

#[test]
fn values_out_of_range_name_the_range() {
    let refused = |name: &str, v: SettingValue| check(Scope::Stream, name, &v).err().unwrap().message().to_owned();
    assert!(refused("flush_threshold_count", SettingValue::Int(0)).contains("a whole number from 1, not 0"));
    assert!(refused("ttl_hide_expired", SettingValue::Int(2)).contains("0 or 1"));
    assert!(refused("default_codec", SettingValue::Text("Delta".into())).contains("unknown codec 'Delta'"));
    assert!(refused("default_codec", SettingValue::Text("ZSTD(99)".into())).contains("1 to 22"));
}

#[test]
fn names_stand_once_in_a_scope_and_defaults_fit() {
    for (i, s) in SETTINGS.iter().enumerate() {
        assert!(SETTINGS[..i].iter().all(|o| (o.scope, o.name) != (s.scope, s.name)), "{} twice", s.name);
        if let Some(text) = s.default_text() {
            assert!(s.accept(&SettingValue::Text(text)).is_ok(), "{}", s.name);
        }
    }
}
