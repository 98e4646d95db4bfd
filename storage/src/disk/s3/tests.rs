use super::*;
use crate::{ErrorKind, disk::Secret};

fn kind(endpoint: &str, key: Option<&str>) -> DiskKind {
    DiskKind::S3 {
        endpoint: endpoint.into(),
        region: None,
        access_key_id: Some("id".into()),
        secret_access_key: key.map(Secret::new),
        use_environment_credentials: false,
    }
}

#[test]
fn an_endpoint_is_taken_apart_or_refused() {
    let e = Endpoint::parse("http://LocalHost:5000/bucket/a/b/").unwrap();
    assert_eq!((e.server.as_str(), e.bucket.as_str(), e.prefix.as_str()), ("http://localhost:5000", "bucket", "a/b"));
    assert_eq!(e.address("x/y"), "s3://bucket/a/b/x/y");
    assert_eq!(Endpoint::parse("https://h/b").unwrap().address("k"), "s3://b/k");
    for bad in ["host/bucket", "ftp://h/b", "http://h", "http://h/", "http:///b", "http://h/b?x=1", "http://h/b b", "http://h/b/../c"] {
        let e = Endpoint::parse(bad).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Invalid, "{bad}");
    }
    let e = Endpoint::parse("http://user:hush@h/b").unwrap_err();
    assert!(!e.to_string().contains("hush"), "{e}");
}

#[test]
fn a_folder_within_another_overlaps_it() {
    let at = |t: &str| Endpoint::parse(t).unwrap();
    assert!(at("http://h/b/a").overlaps(&at("http://h/b")));
    assert!(at("http://h/b/a").overlaps(&at("http://h/b/a/c")));
    assert!(!at("http://h/b/a").overlaps(&at("http://h/b/ab")));
    assert!(!at("http://h/b").overlaps(&at("http://h/c")));
}

#[test]
fn the_secret_is_nowhere_to_be_seen() {
    let kind = kind("http://h/b", Some("verysecret"));
    assert!(!format!("{kind:?}").contains("verysecret"));
    let store = connect(&kind).unwrap();
    assert!(!format!("{store} {store:?}").contains("verysecret"), "{store:?}");
}

#[test]
fn keys_or_the_environment() {
    assert_eq!(connect(&kind("http://h/b", None)).unwrap_err().kind(), ErrorKind::Invalid);
}
