//! `min` and `max` over a window of values whose text does not order as they do: enums by their numbers, addresses by their bytes.

use super::declared::{Declared, keys};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    compute::cast,
    datatypes::{DataType, FieldRef},
    row::{OwnedRow, RowConverter, SortField},
};
use datafusion::{
    common::{Result, ScalarValue, internal_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
};
use std::{collections::BTreeMap, sync::Arc};

pub fn function(ty: Declared, max: bool) -> AggregateUDF {
    AggregateUDF::new_from_impl(Extreme { ty, max, signature: Signature::any(1, Volatility::Immutable) })
}

/// Whether `f` is one of these already.
pub fn is(f: &AggregateUDF) -> bool {
    (f.inner().as_ref() as &dyn std::any::Any).is::<Extreme>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    ty: Declared,
    max: bool,
    signature: Signature,
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        if self.max { "max" } else { "min" }
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }
    fn return_field(&self, args: &[FieldRef]) -> Result<FieldRef> {
        Ok(Arc::new(args[0].as_ref().clone().with_nullable(true)))
    }
    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let key = self.ty.key_type();
        let converter = RowConverter::new(vec![SortField::new(key)])?;
        let text = args.return_field.data_type().clone();
        Ok(Box::new(Seen { ty: self.ty.clone(), max: self.max, text, converter, values: BTreeMap::new() }))
    }
    fn state_fields(&self, _: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        internal_err!("{} of {:?} is only of a window", self.name(), self.ty)
    }
}

/// The values that are in the window, by their key, and how often.
#[derive(Debug)]
struct Seen {
    ty: Declared,
    max: bool,
    text: DataType,
    converter: RowConverter,
    values: BTreeMap<OwnedRow, (String, u64)>,
}

impl Seen {
    fn each(&mut self, array: &ArrayRef, mut f: impl FnMut(&mut BTreeMap<OwnedRow, (String, u64)>, OwnedRow, &str)) -> Result<()> {
        let words = cast(array, &DataType::Utf8)?;
        let words = words.as_string::<i32>();
        let keys = keys(&self.ty, words);
        let rows = self.converter.convert_columns(std::slice::from_ref(&keys))?;
        for row in (0..words.len()).filter(|row| words.is_valid(*row) && keys.is_valid(*row)) {
            f(&mut self.values, rows.row(row).owned(), words.value(row));
        }
        Ok(())
    }
}

impl Accumulator for Seen {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.each(&values[0], |seen, key, text| seen.entry(key).or_insert_with(|| (text.to_owned(), 0)).1 += 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.each(&values[0], |seen, key, _| {
            if let Some((_, count)) = seen.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    seen.remove(&key);
                }
            }
        })
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let found = if self.max { self.values.last_key_value() } else { self.values.first_key_value() };
        ScalarValue::Utf8(found.map(|(_, (text, _))| text.clone())).cast_to(&self.text)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.values().map(|(text, _)| 64 + 2 * text.len()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("a window keeps no state")
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("a window keeps no state")
    }
}
