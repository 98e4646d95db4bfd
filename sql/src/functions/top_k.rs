//! top_k(x, k): the k most frequent values, most frequent first (of equals the smaller first). Exact: it keeps every distinct value.
//! NULLs are not counted, and of no value it is NULL, as array_agg is.

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, ListArray},
    buffer::OffsetBuffer,
    datatypes::{DataType, Field, FieldRef, Int64Type},
};
use datafusion::{
    common::{Result, ScalarValue, exec_err, plan_err},
    logical_expr::{
        Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
        function::{AccumulatorArgs, StateFieldsArgs},
    },
    physical_expr::expressions::Literal,
};
use std::{collections::HashMap, sync::Arc};

pub fn function() -> AggregateUDF {
    AggregateUDF::new_from_impl(TopK { signature: Signature::user_defined(Volatility::Immutable) })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TopK {
    signature: Signature,
}

impl AggregateUDFImpl for TopK {
    fn name(&self) -> &str {
        "top_k"
    }
    fn signature(&self) -> &Signature {
        &self.signature
    }
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, k] if k.is_integer() => Ok(vec![value.clone(), DataType::Int64]),
            _ => plan_err!("top_k takes a value and a whole number, like top_k(x, 3)"),
        }
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(types[0].clone(), true))))
    }
    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let k = args.exprs.get(1).and_then(|e| e.downcast_ref::<Literal>()).map(|l| l.value().clone());
        let Some(ScalarValue::Int64(Some(k))) = k else { return plan_err!("the number of top_k must be a constant") };
        if !(1..=10_000).contains(&k) {
            return plan_err!("the number of top_k is 1 to 10000, not {k}");
        }
        Ok(Box::new(Counts { value: args.expr_fields[0].data_type().clone(), k: k as usize, counts: HashMap::new(), bytes: 0 }))
    }
    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let list = |t: DataType| DataType::List(Arc::new(Field::new_list_field(t, true)));
        let values = list(args.input_fields[0].data_type().clone());
        Ok(vec![Arc::new(Field::new("values", values, true)), Arc::new(Field::new("counts", list(DataType::Int64), true))])
    }
}

#[derive(Debug)]
struct Counts {
    value: DataType,
    k: usize,
    counts: HashMap<ScalarValue, i64>,
    bytes: usize,
}

impl Counts {
    fn add(&mut self, array: &ArrayRef, row: usize, n: i64) -> Result<()> {
        if array.is_null(row) {
            return Ok(());
        }
        let value = ScalarValue::try_from_array(array, row)?;
        let size = value.size();
        let count = self.counts.entry(value).or_insert(0);
        if *count == 0 {
            self.bytes += 2 * size + 16;
        }
        *count += n;
        Ok(())
    }

    fn list(&self, values: Vec<ScalarValue>) -> Result<ScalarValue> {
        Ok(ScalarValue::List(ScalarValue::new_list_nullable(&values, &self.value)))
    }
}

impl Accumulator for Counts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        (0..values[0].len()).try_for_each(|row| self.add(&values[0], row, 1))
    }
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (Some(values), Some(counts)) = (states[0].as_list_opt::<i32>(), states[1].as_list_opt::<i32>()) else {
            return exec_err!("top_k: a partial result is no list");
        };
        for row in 0..values.len() {
            let (v, c) = (values.value(row), counts.value(row));
            let c = c.as_primitive::<Int64Type>();
            (0..v.len()).try_for_each(|i| self.add(&v, i, c.value(i)))?;
        }
        Ok(())
    }
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (values, counts): (Vec<ScalarValue>, Vec<i64>) = self.counts.drain().unzip();
        let len = counts.len();
        let field = Arc::new(Field::new_list_field(DataType::Int64, true));
        let counts = ListArray::new(field, OffsetBuffer::from_lengths([len]), Arc::new(Int64Array::from(counts)), None);
        Ok(vec![self.list(values)?, ScalarValue::List(Arc::new(counts))])
    }
    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.counts.is_empty() {
            let list = DataType::List(Arc::new(Field::new_list_field(self.value.clone(), true)));
            return ScalarValue::try_from(&list);
        }
        let mut all: Vec<(ScalarValue, i64)> = self.counts.drain().collect();
        all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal)));
        all.truncate(self.k);
        self.list(all.into_iter().map(|(v, _)| v).collect())
    }
    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }
}
