use super::*;

#[test]
fn errors_are_shown_where_they_are() {
    let e = Error::invalid("x").at(12);
    assert_eq!(place("SELECT 1;\nFRM t", 1, &e, None).unwrap(), "line 2: FRM t\n              ^");
    assert_eq!(place("SELECT 1;\nFRM t", 41, &e, Some(1)).unwrap(), "line 42: FRM t\n               ^");
    assert_eq!(place("SELECT", 1, &Error::invalid("x"), None), None);
    assert_eq!(place("-- a\nSELECT 1/0", 7, &Error::invalid("x"), Some(6)).unwrap(), "line 8: SELECT 1/0");
    assert_eq!(place("", 1, &Error::invalid("x").at(1), None), None);
}

#[test]
fn data_in_a_script_ends_at_its_mark() {
    let mut text = std::io::Cursor::new(b"1\t2\r\n\\.\r\nSELECT 1;".to_vec());
    let mut lines = Lines::new(&mut text);
    assert_eq!(lines.next().unwrap(), "1\t2\r\n");
    assert!(lines.next().unwrap().is_empty());
    assert_eq!(lines.read, 2);
    let mut rest = String::new();
    text.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "SELECT 1;");
}
