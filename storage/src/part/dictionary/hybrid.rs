//! The run-length and bit-packing hybrid of Parquet (Encodings.md, "RLE / Bit-Packing Hybrid"): runs of eight and more equal values are
//! stored once, everything else in groups of eight values, each as wide as the widest.

use bytes::Bytes;

/// A run shorter than this is packed with its neighbours.
const RUN_MIN: usize = 8;

/// The bits that `0..=max` need.
pub fn width_of(max: u32) -> u8 {
    (32 - max.leading_zeros()) as u8
}

/// Appends `values`, all below 2^`width`.
pub fn encode(values: &[u32], width: u8, out: &mut Vec<u8>) {
    let (mut at, mut packed_from) = (0, 0);
    while at < values.len() {
        let value = values[at];
        let mut end = at + 1;
        while end < values.len() && values[end] == value {
            end += 1;
        }
        // Packed values come in whole groups: the run gives up what the last group lacks.
        let lacking = (at - packed_from).next_multiple_of(8) - (at - packed_from);
        if end - at >= lacking + RUN_MIN {
            pack(&values[packed_from..at + lacking], width, out);
            run(value, end - at - lacking, width, out);
            packed_from = end;
        }
        at = end;
    }
    pack(&values[packed_from..], width, out);
}

/// Appends one value repeated.
pub fn run(value: u32, times: usize, width: u8, out: &mut Vec<u8>) {
    varint((times as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..usize::from(width).div_ceil(8)]);
}

/// Appends the levels of `rows` rows, 1 for a row with a value, behind their length in bytes.
pub fn levels(present: Option<&[u32]>, rows: usize, out: &mut Vec<u8>) {
    let from = out.len();
    out.extend_from_slice(&[0; 4]);
    match present {
        Some(present) => encode(present, 1, out),
        None => run(1, rows, 1, out),
    }
    let length = (out.len() - from - 4) as u32;
    out[from..from + 4].copy_from_slice(&length.to_le_bytes());
}

fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * usize::from(width);
    out.reserve(groups * usize::from(width));
    let (mut bits, mut held) = (0u64, 0u32);
    for value in values {
        bits |= u64::from(*value) << held;
        held += u32::from(width);
        if held >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    while out.len() < end {
        out.push(bits as u8);
        bits >>= 8;
    }
    // Four bytes at a time may have gone past the last group.
    out.truncate(end);
}

pub fn varint(mut n: u64, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Reads what [`encode`] or any other writer wrote.
pub struct Decoder {
    data: Bytes,
    at: usize,
    width: u8,
    left: usize,
    /// The value of a run; `None` within packed groups.
    repeated: Option<u32>,
    /// Within packed groups: the next value's bit.
    bit: usize,
}

impl Decoder {
    /// `None` for a width that no value has.
    pub fn new(data: Bytes, width: u8) -> Option<Self> {
        (width <= 32).then_some(Self { data, at: 0, width, left: 0, repeated: None, bit: 0 })
    }

    /// Appends the next `n` values; `None` where the data ends before them.
    pub fn read(&mut self, mut n: usize, out: &mut Vec<u32>) -> Option<()> {
        out.reserve(n);
        while n > 0 {
            if self.left == 0 {
                self.next_run()?;
            }
            let take = n.min(self.left);
            match self.repeated {
                Some(value) => out.extend(std::iter::repeat_n(value, take)),
                None => self.unpack(take, out)?,
            }
            self.left -= take;
            n -= take;
        }
        Some(())
    }

    fn next_run(&mut self) -> Option<()> {
        let mut header = 0u64;
        for shift in (0..).step_by(7).take(5) {
            let byte = *self.data.get(self.at)?;
            self.at += 1;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let count = usize::try_from(header >> 1).ok()?;
        if header & 1 == 1 {
            self.left = count.checked_mul(8)?;
            (self.repeated, self.bit) = (None, self.at.checked_mul(8)?);
            self.at = self.at.checked_add(count.checked_mul(usize::from(self.width))?)?.min(self.data.len());
        } else {
            let bytes = usize::from(self.width).div_ceil(8);
            let from = self.data.get(self.at..self.at.checked_add(bytes)?)?;
            let mut value = [0; 4];
            value[..bytes].copy_from_slice(from);
            (self.repeated, self.left) = (Some(u32::from_le_bytes(value)), count);
            self.at += bytes;
        }
        (self.left > 0).then_some(())
    }

    fn unpack(&mut self, n: usize, out: &mut Vec<u32>) -> Option<()> {
        let width = usize::from(self.width);
        let mask = if width == 32 { u32::MAX } else { (1u32 << width) - 1 };
        let data: &[u8] = &self.data;
        let end_bit = self.bit.checked_add(n.checked_mul(width)?)?;
        if end_bit.div_ceil(8) > data.len() {
            return None;
        }
        for _ in 0..n {
            let byte = self.bit / 8;
            let word = match data.get(byte..byte + 8).and_then(|b| b.try_into().ok()) {
                Some(bytes) => u64::from_le_bytes(bytes),
                None => {
                    let rest = data.get(byte..).unwrap_or_default();
                    let mut bytes = [0; 8];
                    bytes[..rest.len()].copy_from_slice(rest);
                    u64::from_le_bytes(bytes)
                }
            };
            out.push((word >> (self.bit % 8)) as u32 & mask);
            self.bit += width;
        }
        Some(())
    }
}
