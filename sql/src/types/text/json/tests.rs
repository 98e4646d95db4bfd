use super::*;

#[test]
fn elements_keep_their_digits() {
    let all = |t| elements(t).unwrap().into_iter().map(|e| e.unwrap_or("NULL".into())).collect::<Vec<_>>();
    assert_eq!(
        all(r#"[1.23456789012345678901234567890, "a,\"b]", null, [1, "x,"], {"k": [2, 3]}]"#),
        ["1.23456789012345678901234567890", "a,\"b]", "NULL", "[1, \"x,\"]", "{\"k\": [2, 3]}"]
    );
    assert_eq!(all(" [ ] "), Vec::<String>::new());
    for bad in ["[", "[1,]", "{}", "1", "", "[1] [2]"] {
        assert_eq!(elements(bad), None, "{bad}");
    }
}

#[test]
fn members_are_found_by_quoted_keys() {
    let of = |t| members(t).unwrap();
    assert_eq!(
        of(r#"{"a\"b": 12345678901234567890123, "c": null, "": "x"}"#),
        [("a\"b".to_owned(), Some("12345678901234567890123".to_owned())), ("c".to_owned(), None), (String::new(), Some("x".to_owned()))]
    );
    assert_eq!(of("{}"), []);
    assert_eq!(members("[]"), None);
}
