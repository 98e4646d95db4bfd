//! `system.disks`: where parts can lie, and how much room is there.

use super::sheet::{self, Column, Type::*};
use crate::{Result, database::Shared, provider::Cut};
use arrow::{array::RecordBatch, datatypes::SchemaRef};
use ebb_storage::disk::{Space, space::Source};

const COLUMNS: [Column; 7] = [
    ("name", Text),
    ("type", Text),
    ("path", Text),
    ("total_space", Int),
    ("free_space", Int),
    ("unreserved_space", Int),
    ("max_usage_pct", Int),
];

pub(super) fn schema() -> SchemaRef {
    sheet::schema(&COLUMNS)
}

pub(super) fn rows(shared: &Shared, _: &Cut) -> Result<RecordBatch> {
    let directory = super::parts::directory(shared);
    let space = Space::new(super::parts::DEFAULT, Source::FileSystem(directory.clone()), 100);
    let (total, free) = space.total_and_free()?;
    let row = [
        super::parts::DEFAULT.into(),
        "local".into(),
        directory.display().to_string().into(),
        total.into(),
        free.into(),
        free.into(),
        100_u64.into(),
    ];
    sheet::batch(&COLUMNS, &[row])
}
