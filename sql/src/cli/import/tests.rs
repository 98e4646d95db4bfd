use super::*;
use arrow::array::Array;
use ebb_storage::{column_type::ColumnType, stream_def::ColumnDef};

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

fn def(columns: &[(&str, ColumnType)]) -> StreamDef {
    let columns = columns.iter().zip(1..).map(|((name, ty), id)| ColumnDef { nullable: true, ..ColumnDef::plain(id, name, ty.clone()) });
    ebb_storage::testkit::defs::stream("s", columns.collect())
}

fn read(path: &str, format: Format, def: &StreamDef) -> Result<Vec<Part>> {
    batches(&import(path), format, def, bar(Path::new(path)).unwrap())?.collect()
}

#[test]
fn columns_are_told_from_the_first_rows_and_na_is_null() {
    let (_dir, path) = file("w.csv", "t,n,x,s\n2013-01-01T06:00:00Z,1,NA,a\n2013-01-01T07:00:00Z,2,1.5,NA\n");
    let mut i = import(&path);
    let told = columns(&i, Format::Csv).unwrap();
    let types: Vec<&str> = told.iter().map(|(_, ty)| ty.as_str()).collect();
    assert_eq!(types[1..], ["int64", "float64", "string"]);
    assert!(types[0].starts_with("datetime64"), "{types:?}");
    i.time_column = Some("t".into());
    let sql = create_statement(&i, &told);
    assert!(
        sql.contains("\"x\" nullable(float64)") && sql.contains("PARTITION BY to_YYYYMM(\"t\")") && sql.contains("event_time_column"),
        "{sql}"
    );
    let read = read(&path, Format::Csv, &def(&[])).unwrap();
    assert_eq!(read[0].rows.num_rows(), 2);
    assert!(read[0].rows.column(2).is_null(0) && read[0].rows.column(3).is_null(1));
}

#[test]
fn what_a_file_holds_is_told_by_its_ending() {
    assert_eq!(format_of(&import("a.NDJSON")).unwrap(), Format::Ndjson);
    assert!(format_of(&import("a.xls")).unwrap_err().message().contains("--format"));
    let (_dir, path) = file("a.parquet", "no parquet");
    assert!(read(&path, Format::Parquet, &def(&[])).err().unwrap().message().contains("parquet"));
}

#[test]
fn ndjson_becomes_the_columns_of_the_stream_with_their_digits() {
    let (_dir, path) =
        file("a.ndjson", "{\"a\": 1, \"d\": 0.10000000000000000001}\n{\"a\": null}\n{\"d\": \"2\", \"j\": {\"k\": [1.50]}}\n");
    let of = def(&[("a", ColumnType::UInt64), ("d", ColumnType::Decimal(38, 20)), ("j", ColumnType::Json)]);
    let parts = read(&path, Format::Ndjson, &of).unwrap();
    let texts = arrow::util::pretty::pretty_format_batches(&[parts[0].rows.clone()]).unwrap().to_string();
    assert!(
        texts.contains("0.10000000000000000001") && texts.contains("2.00000000000000000000") && texts.contains("{\"k\": [1.50]}"),
        "{texts}"
    );
    let lacks: Vec<Vec<bool>> = parts[0].missing.iter().map(|m| m.as_ref().map_or(Vec::new(), |m| m.iter().flatten().collect())).collect();
    assert_eq!(lacks, [vec![false, false, true], vec![false, true, false], vec![true, true, false]]);

    let refused = |text: &str, said: &str| {
        let (_dir, path) = file("b.ndjson", text);
        let e = read(&path, Format::Ndjson, &of).err().unwrap_or_else(|| panic!("{text} was taken"));
        assert!(e.message().contains(said), "{e} does not say {said}");
    };
    refused("{\"a\": 1}\n{\"a\": -1}\n", "line 2: column 'a'");
    refused("{\"a\": 1}\n\n{\"a\": \"x\"}\n", "line 3: column 'a'");
    refused("{\"a\": 1, \"e\": 2}", "did you mean");
    refused("{\"a\": 1}\n{\"a\": 2", "line 2");
}

#[test]
fn columns_of_parquet_files_have_types_of_streams() {
    let ty = |t: DataType| column_type(&Field::new("c", t, true));
    let list = |t: DataType| DataType::List(Arc::new(Field::new_list_field(t, true)));
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    for (arrow, wanted) in [
        (DataType::UInt64, "uint64"),
        (DataType::Int8, "int8"),
        (DataType::Float16, "float32"),
        (DataType::Timestamp(TimeUnit::Nanosecond, Some("+02:00".into())), "datetime64(9, 'UTC')"),
        (DataType::Timestamp(TimeUnit::Millisecond, None), "datetime64(6)"),
        (DataType::Date64, "date"),
        (DataType::Time64(TimeUnit::Microsecond), "string"),
        (dictionary.clone(), "string"),
        (list(dictionary), "array(nullable(string))"),
        (list(list(DataType::Int32)), "array(array(nullable(int32)))"),
        (DataType::Decimal128(20, 4), "decimal(20, 4)"),
        (DataType::FixedSizeBinary(16), "bytea"),
        (DataType::Null, "string"),
        (DataType::Struct(vec![Field::new("x", DataType::Int8, true)].into()), "json"),
    ] {
        assert_eq!(ty(arrow.clone()).unwrap(), wanted, "{arrow}");
    }
    assert_eq!(ty(DataType::Decimal256(50, 4)).unwrap_err().sqlstate(), "0A000");
}

#[test]
fn a_csv_file_that_ends_inside_a_value_is_refused() {
    for (text, line) in [
        ("a,b\n1,\"x\ny\n", Some(2)),
        ("a,b\n1,x\n2,\"", Some(3)),
        ("a,b\n1,\"x \"\"y\"\" z\"\n", None),
        ("a,b\n1,5\" pipe\n", None),
        ("a,b\n1,\"\"\n", None),
        ("a,b\n1,\"multi\nline\"\n2,x", None),
    ] {
        let (_dir, path) = file("q.csv", text);
        let read = read(&path, Format::Csv, &def(&[]));
        match line {
            Some(line) => assert!(read.err().unwrap().message().contains(&format!("line {line}:")), "{text}"),
            None => assert!(read.is_ok(), "{text}"),
        }
    }
}
