use super::*;
use proptest::prelude::*;

fn decoded(options: &CopyOptions, columns: usize, pieces: &[&[u8]]) -> Result<Vec<Vec<Option<String>>>> {
    let names = (0..columns).map(|i| format!("c{i}")).collect();
    let mut decoder = Decoder::new(options, names)?;
    for piece in pieces {
        decoder.push(piece)?;
    }
    decoder.finish()?;
    let held = decoder.take();
    let column = |i: usize| Ok(held.texts(i, &format!("c{i}"))?.map(|t| t.map(str::to_owned)).collect());
    let columns = (0..columns).map(column).collect::<Result<Vec<Vec<_>>>>()?;
    Ok((0..held.rows()).map(|r| columns.iter().map(|c| c[r].clone()).collect()).collect())
}

fn csv() -> CopyOptions {
    CopyOptions { format: CopyFormat::Csv, ..CopyOptions::default() }
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|t| Some((*t).to_owned())).collect()
}

#[test]
fn text_sequences() {
    let rows = decoded(&CopyOptions::default(), 2, &[b"a\\x41\\101\\q\tb\\\\\n\\N\t\\\\N\n"]).unwrap();
    assert_eq!(rows, [some(&["aAAq", "b\\"]), vec![None, Some("\\N".to_owned())]]);
}

#[test]
fn csv_quotes_escapes_and_nulls() {
    let rows = decoded(&csv(), 3, &[b"a,\"b,\"\"c\"\"\",\n\"\",x\"y z\"w,\"1\n2\"\n"]).unwrap();
    assert_eq!(rows[0], [Some("a".to_owned()), Some("b,\"c\"".to_owned()), None]);
    assert_eq!(rows[1], some(&["", "xy zw", "1\n2"]));
    let options = CopyOptions { escape: Some('\\'), quote: Some('\''), delimiter: Some(';'), ..csv() };
    assert_eq!(decoded(&options, 2, &[b"'a\\'b;\\\\';c\n"]).unwrap(), [some(&["a'b;\\", "c"])]);
}

#[test]
fn the_end_mark_ends_and_the_last_line_needs_no_end() {
    assert_eq!(decoded(&CopyOptions::default(), 1, &[b"a\n\\.\nb\n"]).unwrap().len(), 1);
    assert_eq!(decoded(&CopyOptions::default(), 1, &[b"a\nb"]).unwrap().len(), 2);
    assert_eq!(decoded(&csv(), 1, &[]).unwrap().len(), 0);
}

#[test]
fn a_header_is_skipped_or_compared() {
    let skip = CopyOptions { header: CopyHeader::On, ..csv() };
    assert_eq!(decoded(&skip, 2, &[b"anything\n1,2\n"]).unwrap().len(), 1);
    let compare = CopyOptions { header: CopyHeader::Match, ..csv() };
    assert_eq!(decoded(&compare, 2, &[b"c0,c1\n1,2\n"]).unwrap(), [some(&["1", "2"])]);
    let e = decoded(&compare, 2, &[b"c0,x\n1,2\n"]).unwrap_err();
    assert!(e.message().contains("line 1") && e.message().contains("'c1'"), "{e}");
}

#[test]
fn lines_inside_quotes_are_counted() {
    let e = decoded(&csv(), 2, &[b"\"a\nb\",c\nd\n"]).unwrap_err();
    assert!(e.message().contains("line 3"), "{e}");
}

proptest! {
    /// However the data is cut into pieces, the rows are the same, and damage is an error or rows, never a panic.
    #[test]
    fn pieces_do_not_matter(data in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b','), Just(b'\n'), Just(b'\\'), Just(b'\t'), Just(b'a'), any::<u8>()], 0..60), piece in 1usize..9, as_csv: bool) {
        let options = if as_csv { csv() } else { CopyOptions::default() };
        let whole = decoded(&options, 2, &[&data]);
        let cut: Vec<&[u8]> = data.chunks(piece).collect();
        prop_assert_eq!(whole, decoded(&options, 2, &cut));
    }
}
