use super::*;

fn types(text: &str) -> Vec<(String, String)> {
    keys(text.as_bytes()).unwrap()
}

fn one(values: &[&str]) -> String {
    let lines: Vec<String> = values.iter().map(|v| format!("{{\"k\": {v}}}")).collect();
    types(&lines.join("\n")).remove(0).1
}

#[test]
fn a_key_has_the_type_that_holds_all_its_values() {
    for (values, ty) in [
        (&["1", "null", "-2"][..], "int64"),
        (&["18446744073709551615"], "uint64"),
        (&["18446744073709551615", "-1"], "decimal(38, 0)"),
        (&["123456789012345678901234567890"], "decimal(38, 0)"),
        (&["1", "2.5"], "float64"),
        (&["1e3"], "float64"),
        (&["true", "null"], "bool"),
        (&["true", "1"], "string"),
        (&["1", "\"x\""], "string"),
        (&["null"], "string"),
        (&["{\"a\": 1}"], "json"),
        (&["{\"a\": 1}", "2"], "json"),
        (&["[1, null]", "[]"], "array(nullable(int64))"),
        (&["[1, 2.5]"], "array(nullable(float64))"),
        (&["[\"a\"]", "null"], "array(nullable(string))"),
        (&["[[1], [2]]"], "json"),
        (&["[{\"a\": 1}]"], "json"),
        (&["[1]", "1"], "json"),
        (&["[]"], "array(nullable(string))"),
    ] {
        assert_eq!(one(values), ty, "{values:?}");
    }
    let keys = types("\u{feff}{\"a\": 1, \"b\": \"x, {}\"}\n\n  {\"c\": true, \"a\": null}\r\n");
    let keys: Vec<(&str, &str)> = keys.iter().map(|(k, t)| (k.as_str(), t.as_str())).collect();
    assert_eq!(keys, [("a", "int64"), ("b", "string"), ("c", "bool")]);
    assert_eq!(types(""), []);
}

#[test]
fn a_broken_line_is_named() {
    for (text, line) in [
        ("{\"a\": 1}\n{\"a\": ", "line 2"),
        ("{\"a\": 1}\n\n[1]\n", "line 3"),
        ("{\"a\": 1} {\"a\": 2}", "line 1"),
        ("{'a': 1}", "line 1"),
        ("{\"a\": 01}", "line 1"),
        ("nonsense", "line 1"),
    ] {
        let e = keys(text.as_bytes()).unwrap_err();
        assert!(e.message().starts_with(line) && e.sqlstate() == "22P02", "{text}: {e}");
    }
    assert_eq!(keys(&b"{\"a\": \"\xff\"}"[..]).unwrap_err().sqlstate(), "22021");
}
