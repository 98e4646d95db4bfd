//! Bringing sorted inputs together into one sorted run of batches, one batch of each input in memory.
//!
//! Inputs of time series overlap in long runs, so the merge looks for the end of a run by doubling steps instead of comparing row by
//! row. Equal rows keep the order of their inputs.

use crate::{
    Error, Result,
    part::{
        MAX_ROWS,
        row_map::{RowMap, Run},
        sort::ORDER,
    },
};
use arrow::{
    array::{Array, ArrayRef, DynComparator, make_comparator},
    compute::{concat, interleave},
    datatypes::SchemaRef,
    record_batch::RecordBatch,
};
use std::cmp::Ordering;

/// Below this many rows a run on the average, rows are gathered one by one instead of run by run.
const GATHER_BELOW: usize = 12;
/// From this many rows a run on the average, runs are handed on as they are, without a copy.
const PASS_FROM: usize = 128;

/// Sorted rows of an input with their keys and where they stood in the input's file.
pub struct SourceBatch {
    /// Columns as they are best written again: as values, or as numbers of the input's dictionary.
    pub rows: RecordBatch,
    /// The same rows as values, in the merge's schema.
    pub values: RecordBatch,
    pub keys: Vec<ArrayRef>,
    /// Stretches of the file's row numbers, in order, that together are the rows.
    pub origin: Vec<(u32, u32)>,
}

/// An input: sorted batches, one after another.
pub trait MergeSource: Send {
    /// `None` at the end. Never an empty batch.
    fn next(&mut self) -> Result<Option<SourceBatch>>;
}

impl<F: FnMut() -> Result<Option<SourceBatch>> + Send> MergeSource for F {
    fn next(&mut self) -> Result<Option<SourceBatch>> {
        self()
    }
}

struct Input {
    source: Box<dyn MergeSource>,
    batch: SourceBatch,
    at: usize,
    /// Counts batches, to know whether a comparator still fits.
    version: usize,
}

/// Versions of the two batches it was made for, and one comparator per key.
type Comparator = (usize, usize, Vec<DynComparator>);

pub struct Merge {
    schema: SchemaRef,
    inputs: Vec<Option<Input>>,
    /// Inputs that have rows, as a heap by their current row.
    heap: Vec<usize>,
    /// `comparators[a][b]`: batches they were made for, and one per key.
    comparators: Vec<Vec<Option<Comparator>>>,
    batch_rows: usize,
    map: RowMap,
    written: u32,
}

impl Merge {
    /// `schema` is that of the inputs' rows and of the output.
    pub fn new(schema: SchemaRef, sources: Vec<Box<dyn MergeSource>>, batch_rows: usize) -> Result<Self> {
        let mut inputs = Vec::with_capacity(sources.len());
        for mut source in sources {
            let first = source.next()?;
            inputs.push(first.map(|batch| Input { source, batch, at: 0, version: 0 }));
        }
        let n = inputs.len();
        let comparators = (0..n).map(|_| (0..n).map(|_| None).collect()).collect();
        let mut merge =
            Self { schema, inputs, heap: Vec::new(), comparators, batch_rows: batch_rows.max(1), map: RowMap::default(), written: 0 };
        for i in 0..n {
            if merge.inputs[i].is_some() {
                merge.heap.push(i);
            }
        }
        for slot in (0..merge.heap.len() / 2).rev() {
            merge.sift_down(slot)?;
        }
        Ok(merge)
    }

    /// Where every row went, complete after the last batch.
    pub fn into_map(self) -> RowMap {
        self.map
    }

    /// The next rows, in one or more pieces whose columns may be coded differently; `None` at the end.
    pub fn next_batches(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        let mut out = Output::default();
        while out.rows < self.batch_rows {
            let Some(&first) = self.heap.first() else { break };
            let room = self.batch_rows - out.rows;
            let len = self.run_length(first, room)?;
            let input = self.input(first)?;
            let start = input.at;
            out.push(first, input.version, &input.batch, start, len);
            input.at += len;
            let exhausted = input.at == input.batch.rows.num_rows();
            self.note(first, start, len)?;
            if exhausted {
                self.refill(first)?;
            }
            if !self.heap.is_empty() {
                self.sift_down(0)?;
            }
        }
        match out.rows {
            0 => Ok(None),
            _ => out.build(&self.schema).map(Some),
        }
    }

    fn input(&mut self, i: usize) -> Result<&mut Input> {
        self.inputs[i].as_mut().ok_or_else(|| Error::internal("a merge input ended early"))
    }

    /// How many rows of `first` come before the smallest row of any other input, at most `room`.
    fn run_length(&mut self, first: usize, room: usize) -> Result<usize> {
        let input = self.input(first)?;
        let (start, rest) = (input.at, input.batch.rows.num_rows() - input.at);
        let limit = rest.min(room);
        let second = match self.heap.len() {
            1 => return Ok(limit),
            2 => self.heap[1],
            _ if self.before(self.heap[1], self.heap[2])? => self.heap[1],
            _ => self.heap[2],
        };
        // Equal rows belong to the input that comes first.
        let fits = |merge: &mut Self, row: usize| -> Result<bool> {
            let order = merge.compare_rows(first, row, second)?;
            Ok(order == Ordering::Less || (order == Ordering::Equal && first < second))
        };
        // The current row fits, being the smallest. Find a row that does not by doubling, then the border by halving.
        let (mut inside, mut step) = (0, 1);
        while inside + step < limit && fits(self, start + inside + step)? {
            inside += step;
            step *= 2;
        }
        let mut outside = (inside + step).min(limit);
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            match fits(self, start + middle)? {
                true => inside = middle,
                false => outside = middle,
            }
        }
        Ok(inside + 1)
    }

    /// Whether the current row of `a` comes before that of `b`.
    fn before(&mut self, a: usize, b: usize) -> Result<bool> {
        let row = self.input(a)?.at;
        let order = self.compare_rows(a, row, b)?;
        Ok(order == Ordering::Less || (order == Ordering::Equal && a < b))
    }

    /// Row `row` of `a` against the current row of `b`.
    fn compare_rows(&mut self, a: usize, row: usize, b: usize) -> Result<Ordering> {
        let (Some(left), Some(right)) = (&self.inputs[a], &self.inputs[b]) else {
            return Err(Error::internal("a merge input ended early"));
        };
        let slot = &mut self.comparators[a][b];
        if slot.as_ref().is_none_or(|(va, vb, _)| (*va, *vb) != (left.version, right.version)) {
            let pairs = left.batch.keys.iter().zip(&right.batch.keys);
            let made = pairs.map(|(l, r)| make_comparator(l.as_ref(), r.as_ref(), ORDER)).collect::<Result<Vec<_>, _>>()?;
            *slot = Some((left.version, right.version, made));
        }
        let (_, _, keys) = slot.as_ref().expect("set above");
        Ok(keys.iter().map(|compare| compare(row, right.at)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal))
    }

    fn refill(&mut self, i: usize) -> Result<()> {
        let input = self.input(i)?;
        match input.source.next()? {
            Some(batch) => {
                input.batch = batch;
                input.at = 0;
                input.version += 1;
            }
            None => {
                self.inputs[i] = None;
                self.heap.swap_remove(0);
            }
        }
        Ok(())
    }

    fn sift_down(&mut self, mut slot: usize) -> Result<()> {
        loop {
            let mut least = slot;
            for child in [2 * slot + 1, 2 * slot + 2] {
                if child < self.heap.len() && self.before(self.heap[child], self.heap[least])? {
                    least = child;
                }
            }
            if least == slot {
                return Ok(());
            }
            self.heap.swap(slot, least);
            slot = least;
        }
    }

    /// Records where rows `start..start + len` of an input's batch went.
    fn note(&mut self, i: usize, start: usize, len: usize) -> Result<()> {
        let Some(input) = &self.inputs[i] else { return Ok(()) };
        let (mut skip, mut left) = (start as u32, len as u32);
        for (from, rows) in &input.batch.origin {
            if skip >= *rows {
                skip -= rows;
                continue;
            }
            let take = (rows - skip).min(left);
            self.map.push(Run { source: i as u32, from: from + skip, to: self.written, len: take });
            let numbered = self.written.checked_add(take);
            self.written = numbered.ok_or_else(|| Error::internal(format!("a merge of more than {MAX_ROWS} rows")))?;
            left -= take;
            skip = 0;
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

/// Runs that will become one batch.
#[derive(Default)]
struct Output {
    /// Distinct batches that the runs are of, coded and as values.
    batches: Vec<((usize, usize), RecordBatch, RecordBatch)>,
    runs: Vec<(usize, usize, usize)>,
    rows: usize,
}

impl Output {
    fn push(&mut self, input: usize, version: usize, from: &SourceBatch, start: usize, len: usize) {
        let id = (input, version);
        let batch = match self.batches.iter().rposition(|(b, ..)| *b == id) {
            Some(found) => found,
            None => {
                self.batches.push((id, from.rows.clone(), from.values.clone()));
                self.batches.len() - 1
            }
        };
        self.runs.push((batch, start, len));
        self.rows += len;
    }

    fn build(self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        if self.runs.len() == 1 || self.rows / self.runs.len() >= PASS_FROM {
            return Ok(self.runs.iter().map(|(batch, start, len)| self.batches[*batch].1.slice(*start, *len)).collect());
        }
        let gather = self.rows / self.runs.len() < GATHER_BELOW;
        let indices: Vec<(usize, usize)> = match gather {
            true => self.runs.iter().flat_map(|(b, start, len)| (*start..start + len).map(|row| (*b, row))).collect(),
            false => Vec::new(),
        };
        let columns = (0..schema.fields().len()).map(|c| {
            if gather {
                let arrays: Vec<&dyn Array> = self.batches.iter().map(|(.., values)| values.column(c).as_ref()).collect();
                return interleave(&arrays, &indices);
            }
            let slices: Vec<ArrayRef> = self.runs.iter().map(|(b, start, len)| self.batches[*b].2.column(c).slice(*start, *len)).collect();
            concat(&slices.iter().map(|s| s.as_ref()).collect::<Vec<_>>())
        });
        Ok(vec![RecordBatch::try_new(schema.clone(), columns.collect::<Result<Vec<_>, _>>()?)?])
    }
}

#[cfg(test)]
mod tests;
