//! When rows come due: the values of a rule's time expression as moments of the database's clock.
//!
//! A date is midnight UTC. Nanoseconds are rounded up: a row is due at the first microsecond that is not before it. NULL, zero and
//! what cannot be represented never come due.

use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{
        DataType, Date32Type, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    },
};
use ebb_storage::{Error, Result, Timestamp};

/// For each row when it is due; `None` is never.
///
/// # Errors
/// `Invalid` for values that are no times.
pub fn due_values(values: &ArrayRef) -> Result<Vec<Option<Timestamp>>> {
    macro_rules! each {
        ($t:ty, $to:expr) => {{
            let a = values.as_primitive::<$t>();
            let to = $to;
            (0..a.len())
                .map(|i| match a.is_valid(i) && a.value(i) != 0 {
                    true => to(a.value(i)).map(Timestamp),
                    false => None,
                })
                .collect()
        }};
    }
    Ok(match values.data_type() {
        DataType::Date32 => each!(Date32Type, |d: i32| i64::from(d).checked_mul(86_400_000_000)),
        DataType::Timestamp(TimeUnit::Second, _) => each!(TimestampSecondType, |s: i64| s.checked_mul(1_000_000)),
        DataType::Timestamp(TimeUnit::Millisecond, _) => each!(TimestampMillisecondType, |ms: i64| ms.checked_mul(1000)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => each!(TimestampMicrosecondType, Some),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            each!(TimestampNanosecondType, |ns: i64| Some(ns.div_euclid(1000) + i64::from(ns.rem_euclid(1000) > 0)))
        }
        DataType::Null => vec![None; values.len()],
        other => return Err(Error::invalid(format!("a rule's time expression must be a date or a time, not {other}"))),
    })
}
