use super::*;

fn import(file: &str) -> Import {
    Import {
        stream: "s".into(),
        file: file.into(),
        format: None,
        create: true,
        time_column: None,
        partition_by: None,
        order_by: None,
        null: Some("NA".into()),
        delimiter: ',',
    }
}

fn file(name: &str, text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    (dir, path)
}

#[test]
fn columns_are_told_from_the_first_rows_and_na_is_null() {
    let (_dir, path) = file("w.csv", "t,n,x,s\n2013-01-01T06:00:00Z,1,NA,a\n2013-01-01T07:00:00Z,2,1.5,NA\n");
    let mut i = import(&path);
    let schema = columns(&i, Format::Csv).unwrap();
    let types: Vec<String> = schema.fields().iter().map(|f| type_name(f.data_type())).collect();
    assert_eq!(types[1..], ["int64", "float64", "string"]);
    assert!(types[0].starts_with("datetime64"), "{types:?}");
    i.time_column = Some("t".into());
    let sql = create_statement(&i, &schema);
    assert!(
        sql.contains("\"x\" nullable(float64)") && sql.contains("PARTITION BY to_YYYYMM(\"t\")") && sql.contains("event_time_column"),
        "{sql}"
    );
    let read: Vec<RecordBatch> = batches(&i, Format::Csv, bar(Path::new(&path)).unwrap()).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!(read[0].num_rows(), 2);
    assert!(read[0].column(2).is_null(0) && read[0].column(3).is_null(1));
}

#[test]
fn what_a_file_holds_is_told_by_its_ending() {
    assert_eq!(format_of(&import("a.NDJSON")).unwrap(), Format::Ndjson);
    assert!(format_of(&import("a.xls")).unwrap_err().message().contains("--format"));
    let (_dir, path) = file("a.ndjson", "{\"a\": 1, \"b\": \"x\"}\n{\"a\": null}\n");
    let read: Vec<RecordBatch> =
        batches(&import(&path), Format::Ndjson, bar(Path::new(&path)).unwrap()).unwrap().collect::<Result<_>>().unwrap();
    assert_eq!((read[0].num_rows(), read[0].num_columns()), (2, 2));
    let (_dir, path) = file("a.parquet", "no parquet");
    assert!(batches(&import(&path), Format::Parquet, bar(Path::new(&path)).unwrap()).err().unwrap().message().contains("parquet"));
}
