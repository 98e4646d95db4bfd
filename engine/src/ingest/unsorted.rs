//! Rows of one partition on their way to a part: taken as they come, put into order when the part is written.
//!
//! Guards: rows leave in the order of ORDER BY, equal keys as they came, a row group in memory at a time beside the staged columns; the
//! rules were asked about every row.

use crate::{facts::Gathering, stream::Compiled, write::Encoder};
use arrow::{
    array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array},
    buffer::ScalarBuffer,
    compute::take,
    datatypes::{Field, Schema, SchemaRef},
};
use ebb_storage::{
    Error, Result,
    part::{Staging, meta::RuleFacts, raw_array_bytes, sort::sort_permutation},
};
use std::sync::Arc;

pub struct Unsorted {
    staging: Staging,
    /// Where the values of each ORDER BY expression are staged: in a column of the rows, or behind these.
    keys: Vec<usize>,
    facts: Vec<Gathering>,
}

impl Unsorted {
    /// For about `expected` rows, or as many as come.
    pub fn new(compiled: &Compiled, expected: usize) -> Self {
        let (keys, columns) = places(compiled);
        Self { staging: Staging::new(columns, expected), keys, facts: compiled.rules.iter().map(|r| Gathering::new(r, None)).collect() }
    }

    pub fn rows(&self) -> usize {
        self.staging.rows()
    }

    /// Takes rows in `row_schema`, or with dictionaries of texts for texts.
    ///
    /// # Errors
    /// What ORDER BY cannot be computed for.
    pub fn push(&mut self, compiled: &Compiled, rows: &RecordBatch) -> Result<()> {
        for (facts, rule) in self.facts.iter_mut().zip(&compiled.rules) {
            facts.add(rule, rows);
        }
        let mut columns = rows.columns().to_vec();
        let computed = compiled.order_values(rows)?.into_iter().zip(&self.keys).filter(|(_, place)| **place >= columns.len());
        let computed: Vec<ArrayRef> = computed.map(|(values, _)| values).collect();
        columns.extend(computed);
        self.staging.push(&columns)
    }

    /// Gives the rows so far away.
    pub fn split_off(&mut self, compiled: &Compiled) -> Self {
        let facts = compiled.rules.iter().map(|r| Gathering::new(r, None)).collect();
        Self { staging: self.staging.split_off(), keys: self.keys.clone(), facts: std::mem::replace(&mut self.facts, facts) }
    }

    /// All rows that there will be.
    ///
    /// # Errors
    /// `Internal` without rows.
    pub fn gathered(self) -> Result<Gathered> {
        let rows = self.staging.rows();
        let facts = self.facts.into_iter().map(Gathering::finish).collect();
        Ok(Gathered { columns: self.staging.into_arrays()?, keys: self.keys, facts, rows })
    }
}

/// Rows that are all there; a copy shares them.
#[derive(Clone)]
pub struct Gathered {
    columns: Vec<ArrayRef>,
    keys: Vec<usize>,
    /// Of all rules.
    pub facts: Vec<RuleFacts>,
    pub rows: usize,
}

impl Gathered {
    /// Of the values of the rows, whatever ORDER BY computes beside them.
    pub fn raw_bytes(&self, compiled: &Compiled) -> u64 {
        self.columns.iter().take(compiled.row_schema.fields().len()).map(|c| raw_array_bytes(c) as u64).sum()
    }

    /// Encodes the rows in order, with their sns. The facts of the rules.
    pub fn encode(self, compiled: &Compiled, sns: &ArrayRef, encoder: &mut Encoder) -> Result<Vec<RuleFacts>> {
        let Self { mut columns, rows, .. } = self;
        let keys: Option<Vec<ArrayRef>> = self.keys.iter().map(|place| columns.get(*place).cloned()).collect();
        let order = sort_permutation(&keys.ok_or_else(|| Error::internal("a key was not staged"))?)?.map(ScalarBuffer::from);
        columns.truncate(compiled.row_schema.fields().len());
        columns.push(sns.clone());
        let fields = compiled.part_schema.fields().iter().zip(&columns);
        let fields: Vec<Field> = fields.map(|(f, c)| f.as_ref().clone().with_data_type(c.data_type().clone())).collect();
        let schema = Arc::new(Schema::new(fields));
        let group_rows = compiled.write.row_group_rows.max(1);
        for from in (0..rows).step_by(group_rows) {
            let n = group_rows.min(rows - from);
            let group = match &order {
                Some(order) => {
                    let wanted = UInt32Array::new(order.slice(from, n), None);
                    columns.iter().map(|c| take(c, &wanted, None)).collect::<Result<Vec<_>, _>>()?
                }
                None => columns.iter().map(|c| c.slice(from, n)).collect(),
            };
            encoder.push(&batch(&schema, group, n)?)?;
        }
        Ok(self.facts)
    }
}

fn batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The place of each ORDER BY expression, and how many columns are staged in all.
fn places(compiled: &Compiled) -> (Vec<usize>, usize) {
    let mut columns = compiled.row_schema.fields().len();
    let mut place = |expression: &String| match compiled.row_schema.index_of(expression) {
        Ok(place) => place,
        Err(_) => {
            columns += 1;
            columns - 1
        }
    };
    let keys = compiled.def.order_by.iter().map(&mut place).collect();
    (keys, columns)
}
