//! Times as functions work on them: local microseconds beside the zone they are local in.

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, PrimitiveArray},
    datatypes::{DataType, Date32Type, Int64Type, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType},
};
use chrono::{NaiveDate, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use datafusion::common::{Result, exec_datafusion_err, plan_datafusion_err};
use std::sync::Arc;

pub const SECOND: i64 = 1_000_000;
pub const MINUTE: i64 = 60 * SECOND;
pub const HOUR: i64 = 60 * MINUTE;
pub const DAY: i64 = 24 * HOUR;

/// A zone that values are shown in; `None` for UTC and for times without a zone.
pub type Zone = Option<Tz>;

/// What a time argument is taken as: a date stays one, texts become timestamps, seconds and milliseconds microseconds.
pub fn time_type(name: &str, t: &DataType) -> Result<DataType> {
    match t {
        DataType::Date32 => Ok(DataType::Date32),
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone())),
        DataType::Timestamp(_, zone) => Ok(DataType::Timestamp(TimeUnit::Microsecond, zone.clone())),
        DataType::Date64 | DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
            Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
        }
        other => Err(plan_datafusion_err!("{name} takes a date or time, not {other}")),
    }
}

pub fn zone_of(t: &DataType) -> Result<Zone> {
    match t {
        DataType::Timestamp(_, Some(zone)) => named_zone(zone),
        _ => Ok(None),
    }
}

/// # Errors
/// For a name that is not in the IANA database.
pub fn named_zone(name: &str) -> Result<Zone> {
    if ["utc", "etc/utc", "gmt", "+00:00", "z"].contains(&name.to_ascii_lowercase().as_str()) {
        return Ok(None);
    }
    let found = chrono_tz::TZ_VARIANTS.iter().find(|tz| tz.name().eq_ignore_ascii_case(name));
    found.copied().map(Some).ok_or_else(|| exec_datafusion_err!("unknown time zone '{name}': zones are named like Europe/Berlin"))
}

/// Microseconds since 1970 on the wall clock of the value's zone.
pub fn local_micros(array: &ArrayRef) -> Result<Int64Array> {
    let micros = utc_micros(array)?;
    Ok(match zone_of(array.data_type())? {
        None => micros,
        Some(tz) => micros.unary_opt(|v| to_local(v, tz)),
    })
}

/// Microseconds since 1970 in UTC; nanoseconds are cut.
pub fn utc_micros(array: &ArrayRef) -> Result<Int64Array> {
    Ok(match array.data_type() {
        DataType::Date32 => array.as_primitive::<Date32Type>().unary(|d| i64::from(d) * DAY),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => array.as_primitive::<TimestampNanosecondType>().unary(|v| v.div_euclid(1000)),
        DataType::Timestamp(TimeUnit::Microsecond, _) => array.as_primitive::<TimestampMicrosecondType>().reinterpret_cast::<Int64Type>(),
        other => return Err(exec_datafusion_err!("{other} is no time")),
    })
}

/// What the zone's wall clock shows at a moment.
pub fn to_local(micros: i64, tz: Tz) -> Option<i64> {
    let utc = chrono::DateTime::from_timestamp_micros(micros)?;
    let offset = tz.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc();
    micros.checked_add(i64::from(offset) * SECOND)
}

/// The moment at which a zone's wall clock shows `micros`; in a gap the moment after it, of two the earlier.
pub fn from_local(micros: i64, zone: Zone) -> Option<i64> {
    let Some(tz) = zone else { return Some(micros) };
    let local = chrono::DateTime::from_timestamp_micros(micros)?.naive_utc();
    match tz.from_local_datetime(&local) {
        chrono::LocalResult::Single(t) | chrono::LocalResult::Ambiguous(t, _) => Some(t.timestamp_micros()),
        // A gap is at most a few hours: the clock jumps forward over it.
        chrono::LocalResult::None => {
            let before = tz.from_local_datetime(&(local - chrono::Duration::hours(3))).earliest()?;
            Some(before.timestamp_micros() + 3 * HOUR)
        }
    }
}

pub fn date_of(local: i64) -> Option<NaiveDate> {
    NaiveDate::from_epoch_days(i32::try_from(local.div_euclid(DAY)).ok()?)
}

pub fn datetime_of(local: i64) -> Option<NaiveDateTime> {
    chrono::DateTime::from_timestamp_micros(local).map(|t| t.naive_utc())
}

/// Days since 1970.
pub fn days_of(date: NaiveDate) -> i32 {
    date.to_epoch_days()
}

/// Moments in UTC microseconds as timestamps like `t` (unit and zone).
pub fn timestamps(values: Int64Array, t: &DataType) -> Result<ArrayRef> {
    match t {
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let nanos: PrimitiveArray<TimestampNanosecondType> = values.unary_opt(|v| v.checked_mul(1000));
            Ok(Arc::new(nanos.with_timezone_opt(zone.clone())))
        }
        DataType::Timestamp(_, zone) => {
            let micros = values.reinterpret_cast::<TimestampMicrosecondType>();
            Ok(Arc::new(micros.with_timezone_opt(zone.clone())))
        }
        other => Err(exec_datafusion_err!("{other} is no timestamp")),
    }
}
