//! A column's values as numbers: of the codebook, which lives as long as the part is written, and of the chunk, whose dictionary has only
//! what its rows have.

use super::{
    Kind,
    intern::{Numbers, Texts},
};
use crate::{Error, Result, part::stats::TEXT_BYTES_MAX};
use arrow::{
    array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, PrimitiveArray, StringArray, StringViewArray},
    buffer::ScalarBuffer,
    datatypes::{
        DataType, Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimeUnit, TimestampMicrosecondType,
        TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    },
};
use parquet::bloom_filter::Sbbf;
use std::collections::{HashMap, hash_map::Entry};

/// All values of a column that its chunks have had so far, numbered: what is known of a source's dictionary need not be looked up again
/// for the next chunk.
#[derive(Default)]
pub struct Codebook {
    values: Option<Values>,
    /// What is known of sources' dictionaries, by where their values lie.
    tables: HashMap<usize, Table>,
    chunk: u64,
}

/// A codebook with values of more bytes begins anew.
const CODEBOOK_BYTES: usize = 32 << 20;

pub(in crate::part) enum Values {
    Numbers(Numbers),
    Texts(Texts),
}

impl Values {
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Texts(Texts::new()),
            _ => Self::Numbers(Numbers::new()),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(n) => n.values.len(),
            Self::Texts(t) => t.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Numbers(n) => n.values.len() * 8,
            Self::Texts(t) => t.bytes() + 8 * t.len(),
        }
    }
}

/// A source's dictionary, and what its values are numbered in the codebook: not yet, until a row has them.
pub(in crate::part) struct Table {
    source: Source,
    numbers: Vec<u32>,
    /// What its values are numbered in the chunk that last used it, as far as that is known.
    members: Vec<u32>,
    used: u64,
    /// Keeps the place of the values taken.
    _values: ArrayRef,
}

enum Source {
    Bits(Vec<u64>),
    Views(StringViewArray),
    Strings(StringArray),
}

const UNKNOWN: u32 = u32::MAX;

impl Table {
    pub fn of(values: &ArrayRef, kind: Kind) -> Result<Self> {
        let source = match (values.as_string_view_opt(), values.as_string_opt::<i32>()) {
            (Some(views), _) => Source::Views(views.clone()),
            (_, Some(strings)) => Source::Strings(strings.clone()),
            _ => {
                let mut bits = Vec::with_capacity(values.len());
                each_bits(values, kind, |b| bits.push(b))?;
                Source::Bits(bits)
            }
        };
        Ok(Self { source, numbers: vec![UNKNOWN; values.len()], members: Vec::new(), used: 0, _values: values.clone() })
    }

    /// The codebook's number of each row's value.
    pub fn translate(&mut self, keys: &PrimitiveArray<Int32Type>, to: &mut Values, take: impl FnMut(u32)) -> Result<()> {
        let (source, numbers) = (&self.source, &mut self.numbers);
        each_key(keys, numbers, |key| source.number(key, to), take)
    }

    /// The number in the chunk of each row's value.
    fn translate_into(
        &mut self,
        keys: &PrimitiveArray<Int32Type>,
        (to, members): (&mut Values, &mut Members),
        take: impl FnMut(u32),
    ) -> Result<()> {
        let (source, numbers) = (&self.source, &mut self.numbers);
        let number = |key: usize| {
            if numbers[key] == UNKNOWN {
                numbers[key] = source.number(key, to);
            }
            members.number(numbers[key])
        };
        each_key(keys, &mut self.members, number, take)
    }

    /// Nothing is known of another chunk.
    fn begin(&mut self, chunk: u64) {
        if self.used != chunk {
            self.used = chunk;
            self.members.clear();
            self.members.resize(self.numbers.len(), UNKNOWN);
        }
    }
}

impl Source {
    fn number(&self, key: usize, to: &mut Values) -> u32 {
        match (self, to) {
            (Self::Bits(bits), Values::Numbers(numbers)) => numbers.number(bits[key]),
            (Self::Views(texts), Values::Texts(to)) => to.number(texts.value(key).as_bytes()),
            (Self::Strings(texts), Values::Texts(to)) => to.number(texts.value(key).as_bytes()),
            _ => 0,
        }
    }
}

/// What is `known` of each key that is not NULL; what is not is asked for once.
fn each_key(
    keys: &PrimitiveArray<Int32Type>,
    known: &mut [u32],
    mut ask: impl FnMut(usize) -> u32,
    mut take: impl FnMut(u32),
) -> Result<()> {
    let mut strays = false;
    let mut number = |key: i32| match known.get_mut(key as usize) {
        Some(known) => {
            if *known == UNKNOWN {
                *known = ask(key as usize);
            }
            *known
        }
        None => {
            strays = true;
            0
        }
    };
    match keys.nulls() {
        None => keys.values().iter().for_each(|k| take(number(*k))),
        Some(nulls) => nulls.valid_indices().for_each(|i| take(number(keys.value(i)))),
    }
    match strays {
        false => Ok(()),
        true => Err(Error::corrupt("a dictionary lacks a value that rows have")),
    }
}

/// Values as numbers of the chunk's dictionary.
pub(super) struct Coded<'a> {
    pub rows: usize,
    /// Of the rows that have a value.
    pub numbers: Vec<u32>,
    /// 1 for a row with a value, 0 for NULL; `None` where no row is NULL.
    pub present: Option<Vec<u32>>,
    pub dictionary: Dictionary<'a>,
}

/// The codebook's values that the chunk has, in the order of their first appearance.
pub(super) struct Dictionary<'a> {
    of: &'a Values,
    members: Vec<u32>,
}

/// Numbers within a chunk for numbers within the codebook.
struct Members {
    known: Vec<u32>,
    members: Vec<u32>,
}

impl Members {
    #[inline]
    fn number(&mut self, of_book: u32) -> u32 {
        let at = of_book as usize;
        if at >= self.known.len() {
            self.known.resize((at + 1).next_power_of_two(), UNKNOWN);
        }
        if self.known[at] == UNKNOWN {
            self.known[at] = self.members.len() as u32;
            self.members.push(of_book);
        }
        self.known[at]
    }
}

impl<'a> Coded<'a> {
    /// `None` where the dictionary grows beyond `limit` bytes.
    pub fn of(arrays: &[ArrayRef], kind: Kind, nulls: bool, limit: usize, book: &'a mut Codebook) -> Result<Option<Self>> {
        let rows = arrays.iter().map(|a| a.len()).sum();
        if book.values.as_ref().is_some_and(|v| v.bytes() > CODEBOOK_BYTES) {
            *book = Codebook::default();
        }
        book.chunk += 1;
        let chunk = book.chunk;
        let (values, tables) = (&mut book.values, &mut book.tables);
        let values = values.get_or_insert_with(|| Values::new(kind));
        let mut members = Members { known: Vec::new(), members: Vec::new() };
        let (mut numbers, mut text_bytes) = (Vec::with_capacity(rows), 0);
        let mut present = nulls.then(|| Vec::with_capacity(rows));
        for array in arrays {
            if let Some(present) = &mut present {
                match array.nulls() {
                    Some(n) => present.extend(n.iter().map(u32::from)),
                    None => present.extend(std::iter::repeat_n(1, array.len())),
                }
            }
            let before = members.members.len();
            match array.as_any_dictionary_opt() {
                Some(dictionary) => {
                    let source = dictionary.values();
                    if source.null_count() > 0 {
                        return Ok(None);
                    }
                    // Slices of one dictionary are translated with one table.
                    let table = match tables.entry(std::sync::Arc::as_ptr(source).cast::<u8>() as usize) {
                        Entry::Occupied(known) => known.into_mut(),
                        Entry::Vacant(new) => new.insert(Table::of(source, kind)?),
                    };
                    table.begin(chunk);
                    table.translate_into(dictionary.keys().as_primitive(), (values, &mut members), |n| numbers.push(n))?;
                }
                None => match &mut *values {
                    Values::Texts(texts) => each_text(array, texts, |n| numbers.push(members.number(n)))?,
                    Values::Numbers(known) => each_bits(array, kind, |bits| numbers.push(members.number(known.number(bits))))?,
                },
            }
            if let Values::Texts(texts) = &*values {
                text_bytes += members.members[before..].iter().map(|m| texts.get(*m as usize).len() + 4).sum::<usize>();
            }
            let bytes = if kind == Kind::Text { text_bytes } else { members.members.len() * kind.width() };
            if bytes > limit {
                return Ok(None);
            }
        }
        tables.retain(|_, t| t.used == chunk);
        Ok(Some(Self { rows, numbers, present, dictionary: Dictionary { of: values, members: members.members } }))
    }
}

/// The number of each text that is not NULL.
pub(in crate::part) fn each_text(array: &ArrayRef, texts: &mut Texts, mut take: impl FnMut(u32)) -> Result<()> {
    if let Some(array) = array.as_string_view_opt() {
        // Equal views of one array are equal texts: a run is looked up once.
        let mut last: Option<(u128, u32)> = None;
        for (i, view) in array.views().iter().enumerate() {
            if array.is_null(i) {
                continue;
            }
            let number = match last {
                Some((seen, number)) if seen == *view => number,
                // Short texts lie in the view itself, behind their length.
                _ => match view.to_le_bytes().get(4..(*view as u32 as usize).saturating_add(4)) {
                    Some(text) => texts.number(text),
                    None => texts.number(array.value(i).as_bytes()),
                },
            };
            last = Some((*view, number));
            take(number);
        }
        return Ok(());
    }
    let array = array.as_string_opt::<i32>().ok_or_else(|| Error::internal("a text column of another type"))?;
    (0..array.len()).filter(|i| array.is_valid(*i)).for_each(|i| take(texts.number(array.value(i).as_bytes())));
    Ok(())
}

/// The bits of all values, where they lie as they are and none is NULL.
pub(in crate::part) fn all_bits(array: &ArrayRef, kind: Kind) -> Option<ScalarBuffer<u64>> {
    if array.null_count() > 0 || array.data_type().primitive_width() != Some(8) || kind.width() != 8 {
        return None;
    }
    let data = array.to_data();
    Some(ScalarBuffer::new(data.buffers().first()?.clone(), data.offset(), data.len()))
}

/// The bits of each value that is not NULL.
pub(in crate::part) fn each_bits(array: &ArrayRef, kind: Kind, mut take: impl FnMut(u64)) -> Result<()> {
    macro_rules! each {
        ($t:ty, $bits:expr) => {
            each_of::<$t>(array, $bits, &mut take)
        };
    }
    match array.data_type() {
        DataType::Int8 => each!(Int8Type, |v| i64::from(v) as u64),
        DataType::Int16 => each!(Int16Type, |v| i64::from(v) as u64),
        DataType::Int32 => each!(Int32Type, |v| i64::from(v) as u64),
        DataType::Date32 => each!(Date32Type, |v| i64::from(v) as u64),
        DataType::Int64 => each!(Int64Type, |v| v as u64),
        DataType::Timestamp(TimeUnit::Microsecond, _) => each!(TimestampMicrosecondType, |v| v as u64),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => each!(TimestampNanosecondType, |v| v as u64),
        DataType::UInt8 => each!(UInt8Type, u64::from),
        DataType::UInt16 => each!(UInt16Type, u64::from),
        DataType::UInt32 => each!(UInt32Type, u64::from),
        DataType::UInt64 => each!(UInt64Type, |v| v),
        DataType::Float32 => each!(Float32Type, |v: f32| u64::from(v.to_bits())),
        DataType::Float64 => each!(Float64Type, f64::to_bits),
        other => return Err(Error::internal(format!("{other} is not {kind:?}"))),
    }
    Ok(())
}

fn each_of<T: ArrowPrimitiveType>(array: &ArrayRef, bits: impl Fn(T::Native) -> u64, take: &mut impl FnMut(u64)) {
    let array = array.as_primitive::<T>();
    match array.nulls() {
        None => array.values().iter().for_each(|v| take(bits(*v))),
        Some(nulls) => nulls.valid_indices().for_each(|i| take(bits(array.value(i)))),
    }
}

impl Dictionary<'_> {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The dictionary page's values. `None` with a text too long for exact bounds.
    pub fn plain(&self, kind: Kind) -> Option<Vec<u8>> {
        let (mut out, members) = (Vec::new(), self.members.iter().map(|m| *m as usize));
        match self.of {
            Values::Numbers(n) => members.for_each(|m| out.extend_from_slice(&n.values[m].to_le_bytes()[..kind.width()])),
            Values::Texts(t) => {
                for text in members.map(|m| t.get(m)) {
                    if text.len() > TEXT_BYTES_MAX {
                        return None;
                    }
                    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
                    out.extend_from_slice(text);
                }
            }
        }
        Some(out)
    }

    pub fn orders(&self, kind: Kind) -> Vec<u64> {
        match self.of {
            Values::Numbers(n) => self.members.iter().map(|m| super::page_index::order(n.values[*m as usize], kind)).collect(),
            Values::Texts(t) => {
                let mut sorted: Vec<usize> = (0..self.len()).collect();
                sorted.sort_unstable_by_key(|i| t.get(self.members[*i] as usize));
                let mut orders = vec![0; self.len()];
                for (rank, i) in sorted.into_iter().enumerate() {
                    orders[i] = rank as u64;
                }
                orders
            }
        }
    }

    /// A value as Parquet writes it, a text without its length.
    pub fn bytes(&self, number: u32, kind: Kind) -> Vec<u8> {
        let member = self.members[number as usize] as usize;
        match self.of {
            Values::Numbers(n) => n.values[member].to_le_bytes()[..kind.width()].to_vec(),
            Values::Texts(t) => t.get(member).to_vec(),
        }
    }

    /// The bytes of each text, by its number; `None` for what is no text.
    pub fn text_lengths(&self) -> Option<Vec<i64>> {
        match self.of {
            Values::Numbers(_) => None,
            Values::Texts(t) => Some(self.members.iter().map(|m| t.get(*m as usize).len() as i64).collect()),
        }
    }

    /// A filter over all values, with that share of false positives.
    pub fn bloom(&self, fpp: f64, kind: Kind) -> Result<Sbbf> {
        let mut filter = Sbbf::new_with_ndv_fpp(self.len().max(1) as u64, fpp)?;
        match self.of {
            Values::Texts(t) => self.members.iter().for_each(|m| filter.insert(t.get(*m as usize))),
            // As they are written: so is what is asked for hashed.
            Values::Numbers(n) => self.members.iter().for_each(|m| filter.insert(&n.values[*m as usize].to_le_bytes()[..kind.width()])),
        }
        Ok(filter)
    }
}
