//! Rows that are not in order yet, column by column: values that repeat are kept once, and their rows as numbers.
//!
//! Rows are taken as they come and their batches let go at once, so that the memory of one batch serves the next; a row of numbers is
//! small, cheap to sort and to move, and is what a dictionary page holds.
//!
//! Guards: a column comes out with the values and NULLs that went in, in that order, whatever mix of plain and dictionary arrays
//! brought them.

use crate::{
    Error, Result,
    part::dictionary::{
        Kind,
        codebook::{Table, Values, all_bits, each_bits, each_text},
        read::{array_of, values_by_row},
    },
    part::encode::raw_array_bytes,
};
use arrow::{
    array::{Array, ArrayData, ArrayRef, AsArray, DictionaryArray, Int32Array, NullBufferBuilder, make_array},
    buffer::MutableBuffer,
    compute::{cast, concat},
    datatypes::DataType,
};
use std::sync::Arc;

/// Values are numbered where at most one row in this many brings a new one.
const ROWS_PER_VALUE: usize = 8;
/// So many distinct values are numbered in any case, and never more than the other: what outgrows the cache is better left alone.
const DISTINCT_FREE: usize = 1 << 14;
const DISTINCT_MAX: usize = 1 << 17;
/// Numbered texts lie in one array, whose places are of 31 bits; well below that numbers save nothing any more.
const TEXTS_BYTES_MAX: usize = 1 << 30;
/// Rows numbered before it is asked again whether numbering pays.
const STRETCH_ROWS: usize = 1 << 14;

/// Columns of the same number of rows.
pub struct Staging {
    columns: Vec<Column>,
    rows: usize,
    /// So many rows are expected.
    expected: usize,
}

enum Column {
    /// Nothing came yet.
    Empty {
        numbered: bool,
    },
    Numbered(Numbered),
    Fixed(Fixed),
    /// Anything else.
    Arrays(DataType, Vec<ArrayRef>),
}

struct Numbered {
    t: DataType,
    kind: Kind,
    values: Values,
    keys: Vec<i32>,
    nulls: NullBufferBuilder,
}

/// Values of one width, as they are.
struct Fixed {
    t: DataType,
    width: usize,
    bytes: MutableBuffer,
    nulls: NullBufferBuilder,
}

impl Staging {
    /// For about `expected` rows, or as many as come.
    pub fn new(columns: usize, expected: usize) -> Self {
        Self { columns: (0..columns).map(|_| Column::Empty { numbered: true }).collect(), rows: 0, expected }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Takes the next rows: one array for each column, of the column's type or a dictionary of it.
    ///
    /// # Errors
    /// `Internal` where the arrays are not as many, not as long as each other, or of another type than those before.
    pub fn push(&mut self, arrays: &[ArrayRef]) -> Result<()> {
        let rows = arrays.first().map_or(0, |a| a.len());
        if arrays.len() != self.columns.len() || arrays.iter().any(|a| a.len() != rows) {
            return Err(Error::internal("staged columns are not of one length"));
        }
        for (column, array) in self.columns.iter_mut().zip(arrays) {
            column.push(array, self.rows, self.expected)?;
        }
        self.rows += rows;
        Ok(())
    }

    /// Gives the rows so far away. What was learned of the columns is kept.
    pub fn split_off(&mut self) -> Self {
        let numbered = |c: &Column| matches!(c, Column::Empty { numbered: true } | Column::Numbered(_));
        let columns = self.columns.iter().map(|c| Column::Empty { numbered: numbered(c) }).collect();
        std::mem::replace(self, Self { columns, rows: 0, expected: self.rows })
    }

    /// Each column as one array: a dictionary where values were numbered.
    ///
    /// # Errors
    /// `Internal` without rows.
    pub fn into_arrays(self) -> Result<Vec<ArrayRef>> {
        self.columns.into_iter().map(Column::into_array).collect()
    }
}

/// The type of an array's values.
fn value_type(t: &DataType) -> &DataType {
    match t {
        DataType::Dictionary(_, values) => values,
        t => t,
    }
}

impl Column {
    fn push(&mut self, array: &ArrayRef, rows: usize, expected: usize) -> Result<()> {
        if let Self::Empty { numbered } = self {
            *self = Self::begin(array, *numbered, expected.max(array.len()));
        }
        if let Self::Numbered(column) = self {
            if column.push(array, rows)? {
                return Ok(());
            }
            // It does not pay: what was numbered becomes values again.
            let plain = Self::begin(array, false, expected.max(rows + array.len()));
            let known = std::mem::replace(self, plain).into_array()?;
            self.push(&known, 0, 0)?;
        }
        match self {
            Self::Fixed(column) => column.push(&plain(array, &column.t)?),
            Self::Arrays(t, arrays) => {
                arrays.push(plain(array, t)?);
                Ok(())
            }
            Self::Empty { .. } | Self::Numbered(_) => Err(Error::internal("a staged column that was not begun")),
        }
    }

    fn begin(array: &ArrayRef, numbered: bool, expected: usize) -> Self {
        let t = match value_type(array.data_type()) {
            DataType::Utf8 => DataType::Utf8View,
            t => t.clone(),
        };
        if let Some(kind) = Kind::of(&t).filter(|_| numbered) {
            let (values, keys, nulls) = (Values::new(kind), Vec::with_capacity(expected), NullBufferBuilder::new(expected));
            return Self::Numbered(Numbered { t, kind, values, keys, nulls });
        }
        match t.primitive_width() {
            Some(width) => {
                let bytes = MutableBuffer::with_capacity(expected * width);
                Self::Fixed(Fixed { t, width, bytes, nulls: NullBufferBuilder::new(expected) })
            }
            None => Self::Arrays(t, Vec::new()),
        }
    }

    fn into_array(self) -> Result<ArrayRef> {
        match self {
            Self::Empty { .. } => Err(Error::internal("a staged column without rows")),
            Self::Numbered(column) => column.into_array(),
            Self::Fixed(column) => column.into_array(),
            Self::Arrays(_, arrays) => Ok(concat(&arrays.iter().map(|a| a.as_ref()).collect::<Vec<_>>())?),
        }
    }
}

/// The values themselves, as type `t`.
fn plain(array: &ArrayRef, t: &DataType) -> Result<ArrayRef> {
    let array = values_by_row(array)?;
    Ok(if array.data_type() == t { array } else { cast(&array, t)? })
}

impl Numbered {
    /// False where numbering does not pay; then nothing of the array was taken.
    fn push(&mut self, array: &ArrayRef, rows: usize) -> Result<bool> {
        let (kind, from) = (self.kind, self.keys.len());
        if Kind::of(array.data_type()) != Some(kind) {
            return Err(Error::internal(format!("a staged column of {} got {}", self.t, array.data_type())));
        }
        if !self.has_room(array, TEXTS_BYTES_MAX) {
            return Ok(false);
        }
        match array.as_any_dictionary_opt() {
            Some(dictionary) if dictionary.values().null_count() > 0 => return self.push(&values_by_row(array)?, rows),
            Some(dictionary) => {
                let keys = &mut self.keys;
                Table::of(dictionary.values(), kind)?
                    .translate(dictionary.keys().as_primitive(), &mut self.values, |n| keys.push(n as i32))?;
                spread(keys, from, array);
                if !self.pays(rows + array.len()) {
                    self.keys.truncate(from);
                    return Ok(false);
                }
            }
            None => {
                for at in (0..array.len()).step_by(STRETCH_ROWS) {
                    let stretch = array.slice(at, STRETCH_ROWS.min(array.len() - at));
                    let (keys, from_stretch) = (&mut self.keys, from + at);
                    match &mut self.values {
                        Values::Texts(texts) => each_text(&stretch, texts, |n| keys.push(n as i32))?,
                        Values::Numbers(numbers) => match all_bits(&stretch, kind) {
                            Some(bits) => numbers.number_all(&bits, keys),
                            None => each_bits(&stretch, kind, |bits| keys.push(numbers.number(bits) as i32))?,
                        },
                    }
                    spread(keys, from_stretch, &stretch);
                    if !self.pays(rows + at + stretch.len()) {
                        self.keys.truncate(from);
                        return Ok(false);
                    }
                }
            }
        }
        match array.nulls() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(array.len()),
        }
        Ok(true)
    }

    /// Whether the texts stay within `max` bytes together, were all of them new.
    fn has_room(&self, array: &ArrayRef, max: usize) -> bool {
        let Values::Texts(texts) = &self.values else { return true };
        let new = array.as_any_dictionary_opt().map_or_else(|| raw_array_bytes(array), |d| raw_array_bytes(d.values()));
        texts.bytes().saturating_add(new) <= max
    }

    fn pays(&self, rows: usize) -> bool {
        let distinct = self.values.len();
        distinct <= DISTINCT_FREE || (distinct <= rows / ROWS_PER_VALUE && distinct <= DISTINCT_MAX)
    }

    fn into_array(mut self) -> Result<ArrayRef> {
        let keys = Int32Array::try_new(self.keys.into(), self.nulls.finish())?;
        Ok(Arc::new(DictionaryArray::try_new(keys, array_of(&self.values, self.kind, &self.t)?)?))
    }
}

/// The keys from `from` on are of the rows that have a value: each goes to its row's place.
fn spread(keys: &mut Vec<i32>, from: usize, array: &ArrayRef) {
    let Some(nulls) = array.nulls().filter(|n| n.null_count() > 0) else { return };
    let mut next = keys.len();
    keys.resize(from + array.len(), 0);
    for row in (0..array.len()).rev() {
        keys[from + row] = match nulls.is_valid(row) && next > from {
            true => {
                next -= 1;
                keys[next]
            }
            false => 0,
        };
    }
}

impl Fixed {
    fn push(&mut self, array: &ArrayRef) -> Result<()> {
        let data = array.to_data();
        let (from, to) = (data.offset() * self.width, (data.offset() + data.len()) * self.width);
        let values = data.buffers().first().and_then(|b| b.as_slice().get(from..to));
        self.bytes.extend_from_slice(values.ok_or_else(|| Error::internal("a staged column of another layout"))?);
        match array.nulls() {
            Some(nulls) => self.nulls.append_buffer(nulls),
            None => self.nulls.append_n_non_nulls(array.len()),
        }
        Ok(())
    }

    fn into_array(mut self) -> Result<ArrayRef> {
        let rows = self.bytes.len() / self.width;
        let data = ArrayData::builder(self.t).len(rows).add_buffer(self.bytes.into()).nulls(self.nulls.finish());
        Ok(make_array(data.build()?))
    }
}

#[cfg(test)]
mod tests;
