//! Sets of row numbers inside one part (0-based, file order).

use roaring::RoaringBitmap;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// Rows that a part may have at most: they are numbered in 32 bits.
pub const MAX_ROWS: u64 = u32::MAX as u64;
/// A row set above this many bytes lies beside the part, not in the manifest.
pub const INLINE_BYTES: usize = 4096;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowSet(pub RoaringBitmap);

impl RowSet {
    pub fn len(&self) -> u64 {
        self.0.len()
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.0.serialized_size());
        self.0.serialize_into(&mut out).expect("writing to memory cannot fail");
        out
    }
    /// # Errors
    /// `Corrupt` where the bytes are not a row set.
    pub fn from_bytes(bytes: &[u8]) -> crate::Result<Self> {
        RoaringBitmap::deserialize_from(bytes).map(Self).map_err(|e| crate::Error::corrupt(format!("row set: {e}")))
    }
}

/// As hexadecimal text of the portable Roaring format: manifests are JSON.
impl Serialize for RowSet {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let hex: String = self.to_bytes().iter().map(|b| format!("{b:02x}")).collect();
        s.serialize_str(&hex)
    }
}

impl<'de> Deserialize<'de> for RowSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(d)?;
        let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
        let bytes: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(|pair| Some(digit(pair[0])? << 4 | digit(*pair.get(1)?)?)).collect();
        let bytes = bytes.ok_or_else(|| D::Error::custom("row set is not hexadecimal"))?;
        Self::from_bytes(&bytes).map_err(D::Error::custom)
    }
}
