//! How much a call of a function makes, before it is called. Never too little; too much only where exactness would cost as much as the
//! call itself.

use super::VALUE_BYTES_MAX;
use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type},
};
use datafusion::{common::ScalarValue, logical_expr::ColumnarValue};

/// What a function makes of its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Makes {
    /// The first, as often as the second says.
    Copies,
    /// As many characters as the second says, of the first and the third.
    Padding,
    /// The first with the third for each second.
    Replacements,
    /// The first with the third for each match of the second.
    Matches,
    /// All of them.
    All,
    /// All but the first, with the first between them.
    Separated,
    /// The first, twice as long.
    Twice,
    /// A list of as many of one value as a whole number says.
    Elements,
    /// The elements of the first with the second between them.
    Listed,
    /// A list of the numbers or times between two.
    Series,
}

/// Bytes of the longest value and of all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Made {
    pub longest: usize,
    pub total: usize,
}

/// Where the bound of a replacement is no longer good enough and the matches are counted.
const COUNTED_FROM: usize = 1 << 20;
/// Of an element of a series, at the most.
const SERIES_ELEMENT_BYTES: usize = 16;

impl Makes {
    pub fn of(self, args: &[ColumnarValue], rows: usize) -> Made {
        let constant = args.iter().all(|a| matches!(a, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { rows };
        let args: Vec<Arg> = args.iter().map(Arg::of).collect();
        if self == Self::All {
            // Nearly always short, and often called: the sum of all is enough to know it.
            let total = args.iter().map(|a| a.all(rows)).fold(0, usize::saturating_add);
            if total <= VALUE_BYTES_MAX {
                return Made { longest: total, total };
            }
        }
        (0..rows)
            .map(|row| self.row(&args, row))
            .fold(Made::default(), |made, bytes| Made { longest: made.longest.max(bytes), total: made.total.saturating_add(bytes) })
    }

    fn row(self, args: &[Arg], row: usize) -> usize {
        let bytes = |i: usize| args.get(i).map_or(0, |a| a.bytes(row));
        let number = |i: usize| args.get(i).map_or(0, |a| a.number(row).unwrap_or(0));
        let count = |i: usize| usize::try_from(number(i)).unwrap_or(0);
        match self {
            Self::Copies => bytes(0).saturating_mul(count(1)),
            Self::Padding => {
                // ASCII stays ASCII.
                let wide = [0, 2].iter().any(|i| args.get(*i).and_then(|a| a.text(row)).is_some_and(|t| !t.is_ascii()));
                let filled = count(1).saturating_mul(if wide { 4 } else { 1 });
                filled.min(if args.len() > 2 && bytes(2) == 0 { bytes(0) } else { usize::MAX })
            }
            Self::Replacements => {
                let (len, from, to) = (bytes(0), bytes(1), bytes(2));
                if to <= from || from == 0 {
                    return len;
                }
                let bound = (len / from).saturating_mul(to - from).saturating_add(len);
                match (args[0].text(row), args.get(1).and_then(|a| a.text(row))) {
                    (Some(text), Some(from)) if bound > COUNTED_FROM => {
                        text.matches(from).count().saturating_mul(to - from.len()).saturating_add(len)
                    }
                    _ => bound,
                }
            }
            // A match may be empty, and what it is replaced with may name it.
            Self::Matches => {
                let global = args.get(3).and_then(|a| a.text(row)).is_some_and(|flags| flags.contains('g'));
                let text = args.get(2).and_then(|a| a.text(row)).unwrap_or_default();
                let names = text.matches(['\\', '$']).count();
                let times = if global { bytes(0) + 1 } else { 1 };
                let kept = bytes(0).saturating_mul(names + 1);
                times.saturating_mul(bytes(2)).saturating_add(kept)
            }
            Self::All => args.iter().map(|a| a.bytes(row)).fold(0, usize::saturating_add),
            Self::Separated => {
                let all = args.iter().skip(1).map(|a| a.bytes(row)).fold(0, usize::saturating_add);
                all.saturating_add(bytes(0).saturating_mul(args.len().saturating_sub(2)))
            }
            Self::Twice => bytes(0).saturating_mul(2),
            Self::Elements => {
                // array_repeat(value, n), array_resize(list, n, value)
                let (value, list) = if args.len() > 2 { (bytes(2), bytes(0)) } else { (bytes(0), 0) };
                count(1).saturating_mul(value.max(8)).saturating_add(list)
            }
            Self::Listed => {
                let (text, items) = args.first().map_or((0, 0), |a| a.elements(row));
                // The text of an element that is none may be longer than its bytes.
                text.saturating_mul(4).saturating_add(items.saturating_mul(bytes(1).saturating_add(bytes(2))))
            }
            Self::Series => {
                let (from, to, step) = match args {
                    [_] => (0, number(0), 1),
                    [_, _] => (number(0), number(1), 1),
                    _ => (number(0), number(1), number(2)),
                };
                let step = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX).max(1);
                (usize::try_from(from.abs_diff(to)).unwrap_or(usize::MAX) / step + 1).saturating_mul(SERIES_ELEMENT_BYTES)
            }
        }
    }
}

/// An argument, looked at row by row.
enum Arg<'a> {
    Array(&'a ArrayRef),
    Constant { value: &'a ScalarValue, bytes: usize },
}

impl<'a> Arg<'a> {
    fn of(value: &'a ColumnarValue) -> Self {
        match value {
            ColumnarValue::Array(a) => Self::Array(a),
            ColumnarValue::Scalar(value) => {
                let bytes = match value.try_as_str() {
                    Some(text) => text.map_or(0, str::len),
                    None if value.is_null() => 0,
                    None => value.size(),
                };
                Self::Constant { value, bytes }
            }
        }
    }

    /// Of all rows together.
    fn all(&self, rows: usize) -> usize {
        match self {
            Self::Array(a) => super::super::held::bytes_of(a),
            Self::Constant { bytes, .. } => bytes.saturating_mul(rows),
        }
    }

    fn text(&self, row: usize) -> Option<&str> {
        match self {
            Self::Constant { value, .. } => value.try_as_str().flatten(),
            Self::Array(a) if a.is_null(row) => None,
            Self::Array(a) => match a.data_type() {
                DataType::Utf8 => Some(a.as_string::<i32>().value(row)),
                DataType::LargeUtf8 => Some(a.as_string::<i64>().value(row)),
                DataType::Utf8View => Some(a.as_string_view().value(row)),
                _ => None,
            },
        }
    }

    fn bytes(&self, row: usize) -> usize {
        match self {
            Self::Constant { bytes, .. } => *bytes,
            Self::Array(a) if a.is_null(row) => 0,
            Self::Array(a) => match a.data_type() {
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => self.text(row).map_or(0, str::len),
                DataType::Binary => a.as_binary::<i32>().value(row).len(),
                DataType::LargeBinary => a.as_binary::<i64>().value(row).len(),
                DataType::BinaryView => a.as_binary_view().value(row).len(),
                _ => super::super::held::bytes_of(&a.slice(row, 1)),
            },
        }
    }

    fn number(&self, row: usize) -> Option<i128> {
        match self {
            Self::Constant { value, .. } => match value.cast_to(&DataType::Int64).ok()? {
                ScalarValue::Int64(n) => n.map(i128::from),
                _ => None,
            },
            Self::Array(a) if a.is_null(row) => None,
            Self::Array(a) => Some(match a.data_type() {
                DataType::Int8 => a.as_primitive::<Int8Type>().value(row).into(),
                DataType::Int16 => a.as_primitive::<Int16Type>().value(row).into(),
                DataType::Int32 => a.as_primitive::<Int32Type>().value(row).into(),
                DataType::Int64 => a.as_primitive::<Int64Type>().value(row).into(),
                DataType::UInt8 => a.as_primitive::<UInt8Type>().value(row).into(),
                DataType::UInt16 => a.as_primitive::<UInt16Type>().value(row).into(),
                DataType::UInt32 => a.as_primitive::<UInt32Type>().value(row).into(),
                DataType::UInt64 => a.as_primitive::<UInt64Type>().value(row).into(),
                _ => return None,
            }),
        }
    }

    /// Bytes and number of a list's elements, at any depth.
    fn elements(&self, row: usize) -> (usize, usize) {
        let array = match self {
            Self::Array(a) if a.is_null(row) => return (0, 0),
            Self::Array(a) => a.slice(row, 1),
            Self::Constant { value, .. } => match value.to_array() {
                Ok(array) => array,
                Err(_) => return (0, 0),
            },
        };
        (super::super::held::bytes_of(&array), leaves(&array))
    }
}

fn leaves(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().iter().flatten().map(|v| leaves(&v)).sum(),
        DataType::LargeList(_) => array.as_list::<i64>().iter().flatten().map(|v| leaves(&v)).sum(),
        DataType::FixedSizeList(..) => array.as_fixed_size_list().iter().flatten().map(|v| leaves(&v)).sum(),
        _ => array.len(),
    }
}
