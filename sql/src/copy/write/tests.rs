use super::*;
use arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray};
use std::sync::Arc;

fn batch() -> RecordBatch {
    let n: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let t: ArrayRef = Arc::new(StringArray::from(vec![Some("a,\"b\"\tc\\"), Some("")]));
    let b: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None]));
    RecordBatch::try_from_iter([("n", n), ("t t", t), ("b", b)]).unwrap()
}

fn written(options: CopyOptions) -> String {
    let batch = batch();
    let mut writer = CopyWriter::new(options, &batch.schema(), Zone::Utc);
    let mut out = writer.header().map(|h| h.to_vec()).unwrap_or_default();
    out.extend(writer.rows(&batch).unwrap().concat());
    String::from_utf8(out).unwrap()
}

#[test]
fn text_escapes_and_csv_quotes() {
    assert_eq!(written(CopyOptions::default()), "1\ta,\"b\"\\tc\\\\\tt\n\\N\t\t\\N\n");
    let csv = CopyOptions { format: CopyFormat::Csv, header: CopyHeader::On, ..CopyOptions::default() };
    // An empty text is quoted, since nothing stands for NULL.
    assert_eq!(written(csv.clone()), "n,t t,b\n1,\"a,\"\"b\"\"\tc\\\",t\n,\"\",\n");
    let forced =
        CopyOptions { force_quote: Some(ForceColumns::All), delimiter: Some(';'), null: Some("NA".into()), header: CopyHeader::Off, ..csv };
    assert_eq!(written(forced), "\"1\";\"a,\"\"b\"\"\tc\\\";\"t\"\nNA;\"\";NA\n");
}

#[test]
fn binary_has_its_signature_lengths_and_end() {
    let batch = batch();
    let options = CopyOptions { format: CopyFormat::Binary, ..CopyOptions::default() };
    let mut writer = CopyWriter::new(options, &batch.schema(), Zone::Utc);
    assert_eq!(writer.header(), None);
    let signature = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".as_slice();
    let first = b"\0\x03\0\0\0\x08\0\0\0\0\0\0\0\x01\0\0\0\x08a,\"b\"\tc\\\0\0\0\x01\x01".as_slice();
    let second = b"\0\x03\xff\xff\xff\xff\0\0\0\0\xff\xff\xff\xff".as_slice();
    // The signature is in the message of the first row.
    assert_eq!(writer.rows(&batch).unwrap(), [[signature, first].concat(), second.to_vec()]);
    assert_eq!(writer.footer().unwrap(), [0xff, 0xff].as_slice());
    let none = CopyOptions { format: CopyFormat::Binary, ..CopyOptions::default() };
    let mut writer = CopyWriter::new(none, &batch.schema(), Zone::Utc);
    assert_eq!(writer.footer().unwrap(), [signature, &[0xff, 0xff]].concat());
}
