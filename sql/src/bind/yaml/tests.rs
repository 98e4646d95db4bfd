use super::*;
use proptest::prelude::*;

fn plain(node: &Node) -> &str {
    match &node.value {
        Value::Plain(text) | Value::Quoted(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn mappings_lists_and_scalars_with_their_lines() {
    let node = parse("a: 1\nb:\n  - x\n  - 'y z'\nc: {d: e}\n").unwrap();
    let Value::Map(map) = node.value else { panic!("{node:?}") };
    assert_eq!(map.iter().map(|(k, n)| (k.as_str(), n.line)).collect::<Vec<_>>(), [("a", 1), ("b", 3), ("c", 5)]);
    let Value::List(list) = &map[1].1.value else { panic!("{map:?}") };
    assert_eq!(list.iter().map(plain).collect::<Vec<_>>(), ["x", "y z"]);
}

#[test]
fn what_is_not_understood_is_refused_with_its_line() {
    let deep = format!("a: {}1{}", "[".repeat(200), "]".repeat(200));
    let cases = [
        ("", "nothing"),
        ("a: 1\na: 2", "line 2: 'a' is there twice"),
        ("a: &x 1", "anchors"),
        ("a: &x [1]\nb: *x", "anchors"),
        ("a: !!str 1", "tags"),
        ("? [a]\n: b", "a key must be a name"),
        ("a: 1\n---\nb: 2", "second document"),
        ("a: [1", "line"),
        ("a: b: c", "line 1"),
        (deep.as_str(), "too deep"),
    ];
    for (text, why) in cases {
        let e = parse(text).unwrap_err();
        assert!(e.message().contains(why), "{text}: {e}");
    }
    assert!(parse(&"x".repeat(BYTES_MAX + 1)).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[ \\n\\t:\\-\\[\\]{}&*!|>'\"a-c0-2,?#%@`$]{0,60}") {
        let _ = parse(&text);
    }

    #[test]
    fn a_name_is_read_back(name in "\\PC{1,12}") {
        prop_assume!(!name.contains(['\u{feff}']));
        let node = parse(&format!("k: {}", scalar(&name))).unwrap();
        let Value::Map(map) = node.value else { panic!("{node:?}") };
        prop_assert_eq!(plain(&map[0].1), name);
    }
}
