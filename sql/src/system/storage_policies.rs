//! `system.storage_policies`: the volumes of each policy, in the order that parts age through them.

use super::sheet::{self, Cell, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_storage::disk::LoadBalancing;

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

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let mut rows = Vec::new();
    for policy in shared.engine.policies() {
        for (i, v) in policy.volumes.iter().enumerate() {
            rows.push([
                policy.name.as_str().into(),
                v.name.as_str().into(),
                (i + 1).into(),
                v.disks.join(", ").into(),
                // 0 is no limit; one by ratio follows the size of the smallest disk.
                shared.engine.max_part_bytes(v).unwrap_or(0).into(),
                match v.load_balancing {
                    LoadBalancing::RoundRobin => "round_robin",
                    LoadBalancing::LeastUsed => "least_used",
                }
                .into(),
                v.perform_ttl_move_on_insert.into(),
                v.prefer_not_to_merge.into(),
                Cell::Float(policy.move_factor),
            ]);
        }
    }
    sheet::batch(&COLUMNS, &rows)
}
