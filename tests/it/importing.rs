//! `ebb import`: files of odd rows into streams, by the program itself.

use crate::program;
use arrow::{
    array::{ArrayRef, DictionaryArray, Float64Array, ListArray, RecordBatch, StructArray, TimestampNanosecondArray, UInt64Array},
    datatypes::{Field, Int32Type},
};
use std::{path::Path, sync::Arc};

fn import(dir: &Path, more: &[&str]) -> (bool, String) {
    let data = dir.join("data").display().to_string();
    program::run(&[&["import", "--data-dir", &data], more].concat())
}

fn sql(dir: &Path, sql: &str) -> String {
    let data = dir.join("data").display().to_string();
    let (ok, said) = program::run(&["sql", "--data-dir", &data, "-c", sql]);
    assert!(ok, "{sql}: {said}");
    said
}

fn copied(dir: &Path, query: &str) -> Vec<String> {
    sql(dir, &format!("COPY ({query}) TO STDOUT WITH (FORMAT csv)")).lines().map(str::to_owned).collect()
}

#[test]
fn ndjson_with_missing_keys_nulls_and_nested_values() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.ndjson");
    let text = concat!(
        r#"{"t": "2026-01-01T00:00:00+02:00", "n": 18446744073709551615, "d": 1.5, "j": {"a": [1, 2]}, "l": [1, null]}"#,
        "\n\n",
        r#"{"t": "2026-01-02 00:00:00", "n": 7, "s": "x,\"y\""}"#,
        "\n",
        r#"{"d": null, "t": "2026-01-03T00:00:00Z"}"#,
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (ok, said) = import(dir.path(), &["s", file, "--create", "--time-column", "t"]);
    assert!(ok && said.contains("3 rows"), "{said}");
    let rows = copied(dir.path(), "SELECT t, n, d, j, l, s FROM s ORDER BY t");
    assert_eq!(
        rows,
        [
            r#"2025-12-31 22:00:00+00,18446744073709551615,1.5,"{""a"": [1, 2]}","{1,NULL}","#,
            r#"2026-01-02 00:00:00+00,7,,,,"x,""y""""#,
            "2026-01-03 00:00:00+00,,,,,"
        ]
    );
    // Into a stream that is there: defaults where keys are missing, all or nothing.
    sql(
        dir.path(),
        "CREATE STREAM u (t datetime64(0), n uint64, s string DEFAULT concat('n', n::string), d nullable(decimal(30, 20)), j json, l array(nullable(int8)))",
    );
    let (ok, said) = import(dir.path(), &["u", file]);
    assert!(ok && said.contains("3 rows"), "{said}");
    assert_eq!(
        copied(dir.path(), "SELECT n, s, d, j FROM u ORDER BY t"),
        [r#"18446744073709551615,n18446744073709551615,1.50000000000000000000,"{""a"": [1, 2]}""#, r#"7,"x,""y""",,{}"#, "0,n0,,{}"]
    );
    let broken = dir.path().join("b.ndjson");
    for (line, said) in [
        (r#"{"n": -1}"#, "line 2"),
        (r#"{"n": 1.5}"#, "line 2"),
        (r#"{"n": null}"#, "line 2: column 'n' takes no NULL"),
        (r#"{"l": [300]}"#, "line 2"),
        (r#"{"n": 1"#, "line 2"),
        (r#"{"nn": 1}"#, "'nn' is no column"),
    ] {
        std::fs::write(&broken, format!("{{\"n\": 1}}\n{line}")).unwrap();
        let (ok, told) = import(dir.path(), &["u", broken.to_str().unwrap()]);
        assert!(!ok && told.contains(said), "{line}: {told}");
    }
    std::fs::write(&broken, "").unwrap();
    assert!(import(dir.path(), &["u", broken.to_str().unwrap()]).1.contains("0 rows"));
    assert!(import(dir.path(), &["v", broken.to_str().unwrap(), "--create"]).1.contains("no row to tell"));
    assert_eq!(copied(dir.path(), "SELECT count(*) FROM u"), ["3"]);
}

fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_with_dictionaries_unsigned_numbers_zones_and_nested_values() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.parquet");
    let words: DictionaryArray<Int32Type> = [Some("x"), None, Some("x")].into_iter().collect();
    let times = TimestampNanosecondArray::from(vec![1, 1_000_000_001, 2_000_000_000]).with_timezone("+02:00");
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), None]), None, Some(vec![])]);
    let inner: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2, 3]));
    let structs = StructArray::from(vec![(Arc::new(Field::new("k", inner.data_type().clone(), true)), inner)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)]))),
        ("w", Arc::new(words)),
        ("at", Arc::new(times)),
        ("l", Arc::new(lists)),
        ("j", Arc::new(structs)),
        ("x", Arc::new(Float64Array::from(vec![0.1, f64::NAN, -0.0]))),
    ];
    parquet(&file, columns);
    let file = file.to_str().unwrap();
    let (ok, said) = import(dir.path(), &["s", file, "--create"]);
    assert!(ok && said.contains("3 rows"), "{said}");
    assert_eq!(
        copied(dir.path(), "SELECT n, w, at, l, j, x FROM s ORDER BY at"),
        [
            r#"18446744073709551615,x,1970-01-01 00:00:00.000000001+00,"{1,NULL}","{""k"":1}",0.1"#,
            r#",,1970-01-01 00:00:01.000000001+00,,"{""k"":2}",NaN"#,
            r#"0,x,1970-01-01 00:00:02+00,{},"{""k"":3}",-0"#
        ]
    );
    sql(dir.path(), "CREATE STREAM narrow (n nullable(int8))");
    let (ok, said) = import(dir.path(), &["narrow", file]);
    assert!(!ok && said.contains("does not exist"), "{said}");
    let small = dir.path().join("b.parquet");
    parquet(&small, vec![("n", Arc::new(UInt64Array::from(vec![1, 300])))]);
    let (ok, said) = import(dir.path(), &["narrow", small.to_str().unwrap()]);
    assert!(!ok && said.contains("300 is out of range of int8"), "{said}");
    parquet(&small, vec![("n", Arc::new(UInt64Array::from(Vec::<u64>::new())))]);
    assert!(import(dir.path(), &["narrow", small.to_str().unwrap()]).1.contains("0 rows"));
    assert_eq!(copied(dir.path(), "SELECT count(*) FROM narrow"), ["0"]);
}

#[test]
fn an_error_in_a_script_names_its_line_and_what_came_before_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (data, script) = (dir.path().join("data").display().to_string(), dir.path().join("s.sql"));
    let text = "CREATE STREAM s (a int64);\nCOPY s FROM STDIN;\n1\n2\n\\.\n-- a comment\nINSERT INTO s\n  VALUES (3);\n\nSELECT 1 / a - a FROM s WHERE\n a / (a - 2) > 0;\nINSERT INTO s VALUES (4);\n";
    std::fs::write(&script, text).unwrap();
    let (ok, said) = program::run(&["sql", "--data-dir", &data, "-f", script.to_str().unwrap()]);
    assert!(!ok && said.contains("line 10: SELECT 1") && said.contains("zero"), "{said}");
    assert_eq!(copied(dir.path(), "SELECT a FROM s ORDER BY a"), ["1", "2", "3"]);
}
