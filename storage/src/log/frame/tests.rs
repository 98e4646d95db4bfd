use super::*;
use crate::{
    Timestamp,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    log::record::{RecordHeader, Verb},
};

fn records() -> Vec<Record> {
    let header = |sn, verb, key: Option<&str>| RecordHeader {
        stream: StreamId(300),
        sn: Sn(sn),
        branch: BranchId(0),
        verb,
        schema_version: SchemaVersion(2),
        time: Timestamp(1_772_323_200_000_000),
        key: key.map(str::to_owned),
    };
    vec![
        Record { header: header(7, Verb::Insert, Some("k\u{fc}")), body: Bytes::from_static(b"rows") },
        Record { header: header(8, Verb::Truncate, None), body: Bytes::new() },
    ]
}

fn frame(database: &DatabaseId) -> Vec<u8> {
    let mut out = Vec::new();
    begin(&mut out);
    records().iter().for_each(|r| r.encode(&mut out));
    seal(&mut out, FrameHeader { epoch: Epoch(3), count: 2, first_lsn: Lsn(41) }, Seed::of(database)).unwrap();
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// A log that was written must be readable for ever: these bytes are not to change without a new version.
#[test]
fn the_bytes_of_a_log_file_stay_as_they_are() {
    let database = DatabaseId("0123456789abcdef".into());
    let name = FileName { epoch: Epoch(3), first_lsn: Lsn(41) };
    assert_eq!(hex(&encode_file_header(name, &database)), FILE_HEADER);
    assert_eq!(hex(&frame(&database)), FRAME);
    let bytes: Vec<u8> = (0..FRAME.len() / 2).map(|i| u8::from_str_radix(&FRAME[2 * i..2 * i + 2], 16).unwrap()).collect();
    let (header, end) = parse(&bytes, 0, Seed::of(&database)).unwrap();
    assert_eq!((header, end), (FrameHeader { epoch: Epoch(3), count: 2, first_lsn: Lsn(41) }, bytes.len()));
    assert_eq!(decode_records(Bytes::from(bytes).slice(FRAME_HEADER..), 2).unwrap(), records());
}

/// A frame of another database is none of this one's.
#[test]
fn a_frame_counts_in_its_own_database_only() {
    let bytes = frame(&DatabaseId("a".into()));
    assert!(parse(&bytes, 0, Seed::of(&DatabaseId("b".into()))).is_none());
    assert!(parse(&bytes, 0, Seed::of(&DatabaseId("a".into()))).is_some());
}

const FILE_HEADER: &str = "4542424c4f47000101000000030000002900000000000000100030313233343536373839616263646566d25190c8";
const FRAME: &str = "4562467228000000b3cbe367f84c7bfe030000000200000029000000000000000101ac020700020060c326eb4b0600036bc3bc04726f77730004ac020800020060c326eb4b060000";
