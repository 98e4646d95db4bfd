use super::*;
use crate::statement::Name;

fn create(options: &[(&str, Literal)]) -> CreateDisk {
    let options = options.iter().map(|(n, v)| DiskOption { name: Name { text: (*n).into(), position: 7 }, value: v.clone() }).collect();
    CreateDisk { or_replace: false, if_not_exists: false, name: "d".into(), options }
}

fn t(text: &str) -> Literal {
    Literal::Text(text.into())
}

fn n(number: &str) -> Literal {
    Literal::Number(number.into())
}

#[test]
fn options_of_both_kinds() {
    let d = bind(&create(&[("type", t("LOCAL")), ("path", t("/x")), ("capacity_bytes", n("100")), ("max_usage_pct", n("80"))])).unwrap();
    assert_eq!((d.capacity_bytes, d.max_usage_pct, d.kind), (Some(100), 80, DiskKind::Local { path: "/x".into() }));
    let s3 = [("type", t("s3")), ("endpoint", t("http://h/b")), ("use_environment_credentials", n("1"))];
    assert!(matches!(bind(&create(&s3)).unwrap().kind, DiskKind::S3 { use_environment_credentials: true, .. }));
}

/// proves L2: and no value is told, for it may be the secret.
#[test]
fn wrong_options_are_named_and_values_are_not() {
    let s3 = |more: &[(&str, Literal)]| create(&[&[("type", t("s3")), ("endpoint", t("http://h/b"))], more].concat());
    let cases = [
        (create(&[]), "needs type"),
        (create(&[("type", t("tape"))]), "not 'tape'"),
        (create(&[("type", t("local"))]), "needs path"),
        (create(&[("type", t("local")), ("path", n("1"))]), "option path must be a text"),
        (create(&[("type", t("local")), ("path", t("/x")), ("endpoint", t("y"))]), "a local disk has no option 'endpoint'"),
        (create(&[("type", t("local")), ("path", t("/x")), ("max_usage_pct", n("0"))]), "1 to 100"),
        (create(&[("type", t("local")), ("path", t("/x")), ("max_usage_pct", n("300"))]), "1 to 100"),
        (create(&[("type", t("local")), ("path", t("/x")), ("capacity_bytes", n("-1"))]), "a whole number"),
        (create(&[("type", t("s3")), ("endpoint", t("h/b"))]), "an endpoint looks like"),
        (s3(&[("secret_acces_key", t("verysecret"))]), "did you mean 'secret_access_key'"),
        (s3(&[("access_key_id", t("i"))]), "needs access_key_id and secret_access_key"),
        (s3(&[("secret_access_key", n("12345678"))]), "option secret_access_key must be a text"),
        (s3(&[("access_key_id", t("i")), ("secret_access_key", t("verysecret")), ("use_environment_credentials", n("1"))]), "instead of"),
    ];
    for (create, why) in cases {
        let e = bind(&create).unwrap_err();
        assert!(e.message().contains(why), "{create:?}: {e}");
        assert!(!e.message().contains("verysecret") && !e.message().contains("12345678"), "{e}");
    }
}
