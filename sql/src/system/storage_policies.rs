//! `system.storage_policies`: the volumes of each policy, in the order that parts age through them.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 9] = [
    ("policy_name", Text),
    ("volume_name", Text),
    ("volume_priority", Int),
    ("disks", Text),
    ("max_data_part_size", Int),
    ("load_balancing", Text),
    ("perform_ttl_move_on_insert", Flag),
    ("prefer_not_to_merge", Flag),
    ("move_factor", Float),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(_: &Shared, _: &Cut) -> Result<RecordBatch> {
    // The one policy there is: one volume, one disk, no limit (0).
    let row = [
        super::parts::DEFAULT.into(),
        super::parts::DEFAULT.into(),
        1_u64.into(),
        super::parts::DEFAULT.into(),
        0_u64.into(),
        "round_robin".into(),
        true.into(),
        false.into(),
        Cell::Float(0.1),
    ];
    sheet::batch(&COLUMNS, &[row])
}
