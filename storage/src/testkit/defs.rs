//! Columns, streams and parts as plain as they can be, for tests to change what they are about.

use crate::{
    Timestamp,
    column_type::ColumnType,
    ids::{BranchId, ColumnId, DiskId, Generation, PartId, SchemaVersion, Sn, StreamId},
    lineage::SnRange,
    part::meta::{Origin, PartMeta, Placement},
    rules::Policy,
    stream_def::{ColumnDef, StreamDef},
};
use std::collections::BTreeMap;

/// Of the first schema version, never NULL.
pub fn column(id: i32, name: &str, ty: ColumnType) -> ColumnDef {
    ColumnDef::plain(id, name, ty)
}

/// `default.<name>` with the id 1, the columns' ids counted from 1, without keys, rules and settings.
pub fn stream(name: &str, columns: Vec<ColumnDef>) -> StreamDef {
    StreamDef {
        id: StreamId(1),
        database: "default".to_owned(),
        name: name.to_owned(),
        next_column: ColumnId(columns.len() as i32 + 1),
        columns,
        schema_version: SchemaVersion(1),
        policy_version: 1,
        partition_by: Vec::new(),
        order_by: Vec::new(),
        primary_key: Vec::new(),
        series_key: Vec::new(),
        indexes: Vec::new(),
        policy: Policy::default(),
        settings: BTreeMap::new(),
        comment: String::new(),
        created_at: Timestamp(0),
    }
}

/// Part `id` of stream 1, in partition `p`: `rows` rows of the record `sn` of main, in one row group, in 1000 bytes on the default disk.
pub fn part(id: PartId, sn: u64, rows: u64) -> PartMeta {
    PartMeta {
        id,
        stream: StreamId(1),
        name: format!("p{id}"),
        partition: "p".into(),
        schema_version: SchemaVersion(1),
        filled: Vec::new(),
        carried: Vec::new(),
        sn_bytes: 0,
        origins: vec![Origin { branch: BranchId::MAIN, sns: SnRange { after: Sn(sn - 1), to: Sn(sn) }, rows }],
        sn_in_meta: false,
        rows,
        level: 0,
        placement: Placement { disk: DiskId::DEFAULT, generation: Generation(1), codec: Default::default(), bytes: 1000, checksum: 1 },
        uncompressed_bytes: 1000,
        row_groups: vec![rows],
        stats: Vec::new(),
        sets: Vec::new(),
        computed: Vec::new(),
        min_time: Timestamp(0),
        max_time: Timestamp(0),
        written_at: Timestamp(0),
        modified_at: Timestamp(0),
        move_due_since: None,
        facts: Vec::new(),
        retention_marker: None,
        deletions: Vec::new(),
        expired: Vec::new(),
    }
}
