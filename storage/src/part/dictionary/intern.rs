//! Numbers for distinct values, in the order of their first appearance. Open addressing: one probe in the common case, no pointer.

const EMPTY: u32 = u32::MAX;
const SLOTS_FIRST: usize = 1024;
/// 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4: multiplicative hashing).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Every bit of the value has a say: floats of few digits differ only in their upper bits, whole numbers only in their lower.
#[inline]
fn spread(bits: u64) -> usize {
    let product = u128::from(bits) * u128::from(SPREAD);
    (product as u64 ^ (product >> 64) as u64) as usize
}

/// Values of up to 64 bits, by their bits.
pub struct Numbers {
    /// Only numbers: the smaller the table, the more of it is near.
    slots: Vec<u32>,
    pub values: Vec<u64>,
}

impl Numbers {
    pub fn new() -> Self {
        Self { slots: vec![EMPTY; SLOTS_FIRST], values: Vec::new() }
    }

    #[inline]
    pub fn number(&mut self, bits: u64) -> u32 {
        let mask = self.slots.len() - 1;
        let mut slot = spread(bits) & mask;
        loop {
            let number = self.slots[slot];
            if number == EMPTY {
                break;
            }
            if self.values[number as usize] == bits {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        let number = self.values.len() as u32;
        self.slots[slot] = number;
        self.values.push(bits);
        if self.values.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    /// Appends the number of each value. Neighbours are often equal.
    pub fn number_all(&mut self, bits: &[u64], out: &mut Vec<i32>) {
        let Some(first) = bits.first() else { return };
        let mut last = (*first, self.number(*first));
        out.extend(bits.iter().map(|bits| {
            if *bits != last.0 {
                last = (*bits, self.number(*bits));
            }
            last.1 as i32
        }));
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 4 - 1;
        self.slots = vec![EMPTY; mask + 1];
        for (number, bits) in self.values.iter().enumerate() {
            let mut slot = spread(*bits) & mask;
            while self.slots[slot] != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = number as u32;
        }
    }
}

/// Texts, by their bytes.
pub struct Texts {
    /// The upper half of the hash, and the number.
    slots: Vec<(u32, u32)>,
    hashes: Vec<u64>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    pub fn new() -> Self {
        Self { slots: vec![(0, EMPTY); SLOTS_FIRST], hashes: Vec::new(), bytes: Vec::new(), ends: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Of all distinct texts together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn get(&self, number: usize) -> &[u8] {
        let from = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[from..self.ends[number]]
    }

    pub fn number(&mut self, text: &[u8]) -> u32 {
        let hash = xxhash_rust::xxh3::xxh3_64(text);
        let (mask, mark) = (self.slots.len() - 1, (hash >> 32) as u32);
        let mut slot = hash as usize & mask;
        loop {
            let (found, number) = self.slots[slot];
            if number == EMPTY {
                break;
            }
            if found == mark && self.get(number as usize) == text {
                return number;
            }
            slot = (slot + 1) & mask;
        }
        let number = self.ends.len() as u32;
        self.slots[slot] = (mark, number);
        self.hashes.push(hash);
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
        if self.ends.len() * 2 > self.slots.len() {
            self.grow();
        }
        number
    }

    fn grow(&mut self) {
        let mask = self.slots.len() * 2 - 1;
        self.slots = vec![(0, EMPTY); mask + 1];
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut slot = *hash as usize & mask;
            while self.slots[slot].1 != EMPTY {
                slot = (slot + 1) & mask;
            }
            self.slots[slot] = ((hash >> 32) as u32, number as u32);
        }
    }
}
