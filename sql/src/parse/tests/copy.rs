//! COPY's options in both of PostgreSQL's spellings.

use super::{one, says};
use crate::statement::*;

fn options(sql: &str) -> CopyOptions {
    match one(sql).verb {
        Verb::Copy(Copy::From { options, .. } | Copy::To { options, .. } | Copy::QueryTo { options, .. }) => options,
        other => panic!("{other:?}"),
    }
}

#[test]
fn old_and_new_spelling_agree() {
    for (old, new) in [
        ("COPY s FROM STDIN CSV HEADER", "COPY s FROM STDIN WITH (FORMAT csv, HEADER)"),
        ("COPY s FROM STDIN WITH CSV DELIMITER ';' NULL AS 'x'", "COPY s FROM STDIN (FORMAT 'csv', DELIMITER ';', NULL 'x')"),
        ("COPY s FROM STDIN WITH BINARY", "COPY s FROM STDIN (FORMAT BINARY)"),
        ("COPY s FROM STDIN DELIMITER '|'", "COPY s FROM STDIN (DELIMITER '|')"),
        ("COPY s FROM STDIN USING DELIMITERS '|'", "COPY s FROM STDIN (DELIMITER '|')"),
        ("COPY s TO STDOUT CSV QUOTE '''' ESCAPE AS '\\'", "COPY s TO STDOUT (FORMAT csv, QUOTE '''', ESCAPE '\\')"),
        ("COPY s TO STDOUT CSV FORCE QUOTE *", "COPY s TO STDOUT (FORMAT csv, FORCE_QUOTE *)"),
        ("COPY s FROM STDIN CSV FORCE NOT NULL a, b", "COPY s FROM STDIN (FORMAT csv, FORCE_NOT_NULL (a, b))"),
        ("COPY s FROM STDIN", "COPY s FROM STDIN WITH (FORMAT text, HEADER 0)"),
    ] {
        assert_eq!(one(old), one(new), "{old}");
    }
    let csv = options("COPY s FROM STDIN CSV");
    assert_eq!((csv.delimiter(), csv.null(), csv.quote(), csv.escape()), (',', "", '"', '"'));
    let text = options("COPY s FROM STDIN");
    assert_eq!((text.delimiter(), text.null()), ('\t', "\\N"));
}

#[test]
fn options_are_checked_together() {
    says("COPY s FROM STDIN (QUOTE '\"')", &["QUOTE belongs to FORMAT csv"]);
    says("COPY s FROM STDIN (FORMAT binary, HEADER)", &["HEADER does not belong"]);
    says("COPY s TO STDOUT (FORMAT csv, FORCE_NULL (a))", &["COPY FROM"]);
    says("COPY s FROM STDIN (FORMAT csv, FORCE_QUOTE *)", &["COPY TO"]);
    says("COPY s TO STDOUT (HEADER match)", &["COPY FROM"]);
    says("COPY s FROM STDIN (DELIMITER 'ab')", &["one-byte"]);
    says("COPY s FROM STDIN (DELIMITER 'ä')", &["one-byte"]);
    says("COPY s FROM STDIN (DELIMITER 'a')", &["delimiter cannot be"]);
    says("COPY s FROM STDIN (FORMAT csv, DELIMITER '\"')", &["different"]);
    says("COPY s FROM STDIN (FORMAT csv, NULL 'a,b')", &["NULL"]);
    says("COPY s FROM STDIN (FORMAT csv, HEADER, HEADER)", &["said twice"]);
    says("COPY s FROM STDIN (FORMAT parquet)", &["text, csv, binary"]);
    says("COPY s FROM STDIN (HEADER maybe)", &["true or false"]);
    says("COPY s FROM STDOUT", &["STDIN"]);
    says("COPY (SELECT 1) FROM STDIN", &["TO"]);
    says("COPY (DELETE FROM s) TO STDOUT", &["a query"]);
}
