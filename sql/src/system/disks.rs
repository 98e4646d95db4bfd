//! `system.disks`: where parts can lie, and how much room is there. No column shows how to get in.

use super::sheet::{self, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};

const COLUMNS: [Column; 9] = [
    ("name", Text),
    ("type", Text),
    ("path", Text),
    ("total_space", Int),
    ("free_space", Int),
    ("unreserved_space", Int),
    ("max_usage_pct", Int),
    ("available", Flag),
    ("error", Text),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let disks = shared.engine.disks().into_iter().map(|d| {
        [
            d.name.into(),
            d.kind.into(),
            d.path.into(),
            d.total.into(),
            d.free.into(),
            d.unreserved.into(),
            u64::from(d.max_usage_pct).into(),
            d.unavailable.is_none().into(),
            d.unavailable.into(),
        ]
    });
    sheet::batch(&COLUMNS, &disks.collect::<Vec<_>>())
}
