//! A part's rows for a rewrite: columns whose pages are all of dictionary numbers come as dictionaries, all others as values.
//!
//! Batches end at row groups, so that the batches of one share a column's dictionary.

use crate::{
    Result,
    part::{
        dictionary::read::{self, Rows},
        reader::{PartReader, PartRows, ReadOptions},
    },
};
use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions},
    datatypes::{DataType, Field, Schema, SchemaRef},
};
use std::{collections::VecDeque, sync::Arc};

pub struct CodedRows {
    reader: PartReader,
    groups: VecDeque<usize>,
    batch_rows: usize,
    current: Option<Group>,
}

/// A row group that is being read.
struct Group {
    rows_left: usize,
    /// By place in the file's schema.
    coded: Vec<Option<Rows>>,
    others: Option<PartRows>,
    schema: SchemaRef,
}

impl CodedRows {
    /// The rows of `groups`, all columns in file order.
    pub fn new(reader: &PartReader, groups: impl IntoIterator<Item = usize>, batch_rows: usize) -> Self {
        Self { reader: reader.clone(), groups: groups.into_iter().collect(), batch_rows: batch_rows.max(1), current: None }
    }

    fn open(&self, group: usize) -> Result<Group> {
        let (reader, rows) = (&self.reader, self.reader.rows_of(group));
        let chunks = reader.metadata().row_group(group);
        let (mut leaf, mut coded, mut others, mut fields) = (0, Vec::new(), Vec::new(), Vec::new());
        for (root, field) in reader.schema().fields().iter().enumerate() {
            let chunk = chunks.columns().get(leaf).filter(|c| read::is_coded(c, field.data_type()));
            match chunk {
                Some(chunk) => {
                    let values = reader.guarded(|| Rows::open(reader.source(), chunk, field.data_type(), rows))?;
                    let t = DataType::Dictionary(Box::new(DataType::Int32), Box::new(field.data_type().clone()));
                    fields.push(Arc::new(Field::clone(field).with_data_type(t)));
                    coded.push(Some(values));
                }
                None => {
                    fields.push(field.clone());
                    coded.push(None);
                    others.push(root);
                }
            }
            leaf += crate::part::encode::leaves(field.data_type());
        }
        let others = match others.as_slice() {
            [] => None,
            roots => {
                let options = ReadOptions { row_groups: Some(vec![group]), batch_rows: self.batch_rows, ..ReadOptions::default() };
                Some(reader.read_roots(roots, &options)?)
            }
        };
        Ok(Group { rows_left: rows, coded, others, schema: Arc::new(Schema::new(fields)) })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(group) = self.current.as_mut().filter(|g| g.rows_left > 0) {
                let others = group.others.as_mut().and_then(Iterator::next).transpose()?;
                let n = match (&others, &group.others) {
                    (Some(batch), _) => batch.num_rows(),
                    (None, None) => self.batch_rows.min(group.rows_left),
                    (None, Some(_)) => return Err(crate::Error::corrupt(format!("{}: a row group ends early", self.reader.key()))),
                };
                group.rows_left = group.rows_left.saturating_sub(n);
                let mut others = others.iter().flat_map(|b| b.columns().iter().cloned());
                let mut columns: Vec<ArrayRef> = Vec::with_capacity(group.coded.len());
                for column in &mut group.coded {
                    columns.extend(match column {
                        Some(rows) => Some(self.reader.guarded(|| rows.read(n))?),
                        None => others.next(),
                    });
                }
                let options = RecordBatchOptions::new().with_row_count(Some(n));
                return Ok(Some(RecordBatch::try_new_with_options(group.schema.clone(), columns, &options)?));
            }
            let Some(group) = self.groups.pop_front() else { return Ok(None) };
            self.current = Some(self.open(group)?);
        }
    }
}

impl Iterator for CodedRows {
    type Item = Result<RecordBatch>;
    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.groups.clear();
            self.current = None;
        }
        next.transpose()
    }
}

/// The same rows with each column's values instead of its numbers, in `schema`.
///
/// # Errors
/// Where `schema` is of other columns.
pub fn values_by_row(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = rows.columns().iter().map(read::values_by_row).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

#[cfg(test)]
mod tests;
