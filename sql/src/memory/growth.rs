//! Functions that make much of little: `repeat`, `lpad`, `replace`, `concat`, `||` and their like.
//!
//! Guards: before such a function runs, what it will make is reckoned; a value longer than [`VALUE_BYTES_MAX`] is refused, and the
//! values of a batch are reserved in the pool until the last array that holds them is gone. The estimate is never too low.

mod estimate;

use super::{Pool, pool::VALUES};
use crate::{Error, ErrorKind, sqlstate};
use arrow::{
    array::{Array, ArrayRef, make_array},
    buffer::Buffer,
    datatypes::{DataType, FieldRef},
};
use datafusion::{
    common::{
        Result,
        config::{ConfigExtension, ConfigOptions, ExtensionOptions},
        exec_err,
    },
    execution::{
        FunctionRegistry,
        memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation},
    },
    logical_expr::{ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature},
};
pub use estimate::Makes;
use std::{any::Any, sync::Arc};

/// The longest value that a function makes.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
/// Values of a batch up to this are not worth counting.
const COUNTED_FROM: usize = 1 << 20;

/// DataFusion's functions that are guarded.
const GUARDED: [(&str, Makes); 14] = [
    ("repeat", Makes::Copies),
    ("lpad", Makes::Padding),
    ("rpad", Makes::Padding),
    ("replace", Makes::Replacements),
    ("regexp_replace", Makes::Matches),
    ("concat", Makes::All),
    ("concat_ws", Makes::Separated),
    ("overlay", Makes::All),
    ("encode", Makes::Twice),
    ("array_repeat", Makes::Elements),
    ("array_resize", Makes::Elements),
    ("array_to_string", Makes::Listed),
    ("range", Makes::Series),
    ("generate_series", Makes::Series),
];

/// Puts the guards before DataFusion's functions.
pub fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    for (name, makes) in GUARDED {
        let guarded = guarded(registry.udf(name)?, makes);
        registry.register_udf(Arc::new(guarded))?;
    }
    Ok(())
}

pub fn guarded(inner: Arc<ScalarUDF>, makes: Makes) -> ScalarUDF {
    ScalarUDF::new_from_impl(Guarded { inner, makes })
}

/// Where functions find the pool. Not a setting: it cannot be set by name and is not listed.
#[derive(Debug, Clone)]
pub struct Budget(pub Arc<dyn MemoryPool>);

impl ConfigExtension for Budget {
    const PREFIX: &'static str = "ebb_budget";
}

impl ExtensionOptions for Budget {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }
    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        exec_err!("'{key}' cannot be set")
    }
    fn entries(&self) -> Vec<datafusion::common::config::ConfigEntry> {
        Vec::new()
    }
}

/// A pool of its own for what is computed outside of statements.
pub fn budget_of_its_own() -> Budget {
    Budget(Arc::new(Pool::new(0)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Guarded {
    inner: Arc<ScalarUDF>,
    makes: Makes,
}

fn too_long(name: &str, bytes: usize) -> datafusion::error::DataFusionError {
    let message = format!("{name} would make a value of {bytes} bytes: a value has {VALUE_BYTES_MAX} at the most");
    Error::new(ErrorKind::Full, message).with_sqlstate(sqlstate::OUT_OF_MEMORY).into()
}

impl Guarded {
    fn reserved(&self, config: &ConfigOptions, bytes: usize) -> Result<Option<MemoryReservation>> {
        let Some(budget) = config.extensions.get::<Budget>() else { return Ok(None) };
        let reservation = MemoryConsumer::new(VALUES).register(&budget.0);
        reservation.try_grow(bytes).map_err(|e| e.context(self.inner.name().to_owned()))?;
        Ok(Some(reservation))
    }
}

impl ScalarUDFImpl for Guarded {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }
    fn signature(&self) -> &Signature {
        self.inner.signature()
    }
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }
    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }
    fn is_strict(&self) -> bool {
        self.inner.inner().is_strict()
    }
    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let made = self.makes.of(&args.args, args.number_rows);
        if made.longest > VALUE_BYTES_MAX {
            return Err(too_long(self.name(), made.longest));
        }
        if made.total <= COUNTED_FROM {
            return self.inner.invoke_with_args(args);
        }
        let reservation = self.reserved(&args.config_options, made.total)?;
        match (self.inner.invoke_with_args(args)?, reservation) {
            (ColumnarValue::Array(array), Some(reservation)) => Ok(ColumnarValue::Array(holding(&array, reservation)?)),
            (value, _) => Ok(value),
        }
    }
}

/// A buffer, and the reservation that ends with it.
struct Held {
    buffer: Buffer,
    _reservation: Arc<MemoryReservation>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        self.buffer.as_slice()
    }
}

/// `array` with a reservation of its size that ends with the last who holds its buffers.
fn holding(array: &ArrayRef, reservation: MemoryReservation) -> Result<ArrayRef> {
    // Smaller than what was reckoned, so it does not fail.
    reservation.resize(array.get_buffer_memory_size().min(reservation.size()));
    let reservation = Arc::new(reservation);
    let data = array.to_data();
    let held = |b: &Buffer| {
        let held = Held { buffer: b.clone(), _reservation: reservation.clone() };
        Buffer::from(bytes::Bytes::from_owner(held))
    };
    let buffers = data.buffers().iter().map(held).collect();
    Ok(make_array(data.into_builder().buffers(buffers).build()?))
}
