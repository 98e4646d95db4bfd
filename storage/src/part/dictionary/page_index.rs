//! What readers skip by: the bounds and places of a column chunk's pages.

use super::Kind;
use crate::Result;
use parquet::{
    basic::BoundaryOrder,
    data_type::ByteArray,
    file::{
        metadata::{ColumnIndexBuilder, OffsetIndexBuilder},
        statistics::{Statistics, ValueStatistics},
    },
};

/// What stands for a NaN among orders. Comparisons put a NaN above all numbers, Parquet's bounds leave it out: a chunk with one has no
/// bounds, so that no reader skips it for what it seems not to hold.
pub(super) const UNORDERED: u64 = u64::MAX;

/// A number that rises with the value; `UNORDERED` for a NaN.
pub(super) fn order(bits: u64, kind: Kind) -> u64 {
    const SIGN: u64 = 1 << 63;
    match kind {
        Kind::Int32 | Kind::Int64 => bits ^ SIGN,
        Kind::Float32 => order(f64::from(f32::from_bits(bits as u32)).to_bits(), Kind::Float64),
        Kind::Float64 if f64::from_bits(bits).is_nan() => UNORDERED,
        // Both zeros.
        Kind::Float64 if bits << 1 == 0 => SIGN,
        Kind::Float64 if bits & SIGN != 0 => !bits,
        Kind::Float64 => bits | SIGN,
        _ => bits,
    }
}

/// A value's order, and its bytes as Parquet writes them.
pub(super) type Bound = (u64, Vec<u8>);

/// The least and the greatest value of a page.
pub(super) enum Bounds {
    /// No row has a value.
    Empty,
    /// There is a NaN.
    Unordered,
    Of(Bound, Bound),
}

/// A bound's bytes. A zero is the lesser one as a minimum and the greater one as a maximum, since both compare equal.
fn bound(bytes: Vec<u8>, kind: Kind, min: bool) -> Vec<u8> {
    match kind {
        Kind::Float64 if f64::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default()) == 0.0 => {
            (if min { -0.0f64 } else { 0.0 }).to_le_bytes().to_vec()
        }
        Kind::Float32 if f32::from_le_bytes(bytes.as_slice().try_into().unwrap_or_default()) == 0.0 => {
            (if min { -0.0f32 } else { 0.0 }).to_le_bytes().to_vec()
        }
        _ => bytes,
    }
}

/// Bounds and places of the pages.
pub(super) struct PageIndex {
    kind: Kind,
    columns: ColumnIndexBuilder,
    offsets: OffsetIndexBuilder,
    /// The least and the greatest value of all pages.
    bounds: Option<(Bound, Bound)>,
    /// There is a NaN.
    unbounded: bool,
    /// Orders of the last page's bounds that had any.
    last: Option<(u64, u64)>,
    ascending: bool,
    descending: bool,
}

impl PageIndex {
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            columns: ColumnIndexBuilder::new(kind.physical()),
            offsets: OffsetIndexBuilder::new(),
            bounds: None,
            unbounded: false,
            last: None,
            ascending: true,
            descending: true,
        }
    }

    /// The next page: where it lies, its rows and how many of these are NULL, the bytes of its texts.
    pub fn page(&mut self, (offset, bytes): (u64, u64), (rows, nulls): (usize, usize), bounds: Bounds, text_bytes: Option<i64>) {
        self.offsets.append_offset_and_size(offset as i64, i32::try_from(bytes).unwrap_or(i32::MAX));
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_unencoded_byte_array_data_bytes(text_bytes);
        let (min, max) = match bounds {
            Bounds::Empty => {
                self.columns.append(true, Vec::new(), Vec::new(), nulls as i64);
                return;
            }
            Bounds::Unordered => {
                self.unbounded = true;
                self.columns.to_invalid();
                return;
            }
            Bounds::Of((min, least), (max, greatest)) => ((min, bound(least, self.kind, true)), (max, bound(greatest, self.kind, false))),
        };
        if self.columns.valid() {
            self.columns.append(false, min.1.clone(), max.1.clone(), nulls as i64);
        }
        if let Some((last_min, last_max)) = self.last {
            self.ascending &= last_min <= min.0 && last_max <= max.0;
            self.descending &= last_min >= min.0 && last_max >= max.0;
        }
        self.last = Some((min.0, max.0));
        self.bounds = Some(match self.bounds.take() {
            None => (min, max),
            Some((least, greatest)) => (if min.0 < least.0 { min } else { least }, if max.0 > greatest.0 { max } else { greatest }),
        });
    }

    /// Of all pages.
    pub fn statistics(&self, nulls: usize) -> Statistics {
        let bounds = self.bounds.clone().filter(|_| !self.unbounded).map(|((_, min), (_, max))| (min, max));
        let nulls = Some(nulls as u64);
        macro_rules! of {
            ($t:ty, $variant:ident) => {{
                let value = |b: &Vec<u8>| <$t>::from_le_bytes(b.as_slice().try_into().unwrap_or_default());
                let (min, max) = (bounds.as_ref().map(|b| value(&b.0)), bounds.as_ref().map(|b| value(&b.1)));
                let stats = ValueStatistics::new(min, max, None, nulls, false);
                // Signed order is what readers of the old fields assume.
                let signed = !matches!(self.kind, Kind::UInt32 | Kind::UInt64);
                Statistics::$variant(stats.with_backwards_compatible_min_max(signed))
            }};
        }
        match self.kind {
            Kind::Int32 | Kind::UInt32 => of!(i32, Int32),
            Kind::Int64 | Kind::UInt64 => of!(i64, Int64),
            Kind::Float32 => of!(f32, Float),
            Kind::Float64 => of!(f64, Double),
            Kind::Text => {
                let (min, max) = bounds.map_or((None, None), |(a, b)| (Some(ByteArray::from(a)), Some(ByteArray::from(b))));
                let exact = min.is_some();
                Statistics::ByteArray(ValueStatistics::new(min, max, None, nulls, false).with_min_is_exact(exact).with_max_is_exact(exact))
            }
        }
    }

    pub fn finish(
        mut self,
    ) -> Result<(
        Option<parquet::file::page_index::column_index::ColumnIndexMetaData>,
        parquet::file::page_index::offset_index::OffsetIndexMetaData,
    )> {
        self.columns.set_boundary_order(match (self.ascending, self.descending) {
            (true, _) => BoundaryOrder::ASCENDING,
            (_, true) => BoundaryOrder::DESCENDING,
            _ => BoundaryOrder::UNORDERED,
        });
        let columns = if self.columns.valid() { Some(self.columns.build()?) } else { None };
        Ok((columns, self.offsets.build()))
    }
}
