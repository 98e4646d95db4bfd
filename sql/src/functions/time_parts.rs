//! Parts of a time as numbers, on the wall clock of its zone.

use super::{
    scalar::{arity, pure},
    times::{DAY, HOUR, MINUTE, SECOND, date_of, local_micros, time_type, utc_micros},
};
use arrow::{
    array::{ArrayRef, Int64Array, PrimitiveArray},
    datatypes::{DataType, Int32Type},
};
use chrono::{Datelike, NaiveDate};
use datafusion::logical_expr::ScalarUDF;
use std::{cell::Cell, sync::Arc};

/// A number of the date, or of the time of day.
fn part(name: &'static str, of: fn(i64) -> Option<i32>) -> ScalarUDF {
    pure(
        name,
        move |types| {
            arity(name, types, 1..=1)?;
            Ok(vec![time_type(name, &types[0])?])
        },
        |_| Ok(DataType::Int32),
        move |args, _| {
            let local = local_micros(&args[0])?;
            // Times come in order, and many rows at a time.
            let last = Cell::new((0, of(0)));
            let out: PrimitiveArray<Int32Type> = local.unary_opt(|time| {
                if last.get().0 != time {
                    last.set((time, of(time)));
                }
                last.get().1
            });
            Ok(Arc::new(out) as ArrayRef)
        },
    )
}

fn long(name: &'static str, of: fn(&ArrayRef) -> datafusion::common::Result<Int64Array>) -> ScalarUDF {
    pure(
        name,
        move |types| {
            arity(name, types, 1..=1)?;
            Ok(vec![time_type(name, &types[0])?])
        },
        |_| Ok(DataType::Int64),
        move |args, _| Ok(Arc::new(of(&args[0])?) as ArrayRef),
    )
}

fn day(f: fn(NaiveDate) -> i32) -> impl Fn(i64) -> Option<i32> {
    move |local| date_of(local).map(f)
}

pub fn functions() -> Vec<ScalarUDF> {
    vec![
        part("to_year", |l| day(|d| d.year())(l)),
        part("to_quarter", |l| day(|d| d.month0() as i32 / 3 + 1)(l)),
        part("to_month", |l| day(|d| d.month() as i32)(l)),
        part("to_day_of_month", |l| day(|d| d.day() as i32)(l)),
        part("to_day_of_week", |l| day(|d| d.weekday().number_from_monday() as i32)(l)),
        part("to_day_of_year", |l| day(|d| d.ordinal() as i32)(l)),
        part("to_iso_week", |l| day(|d| d.iso_week().week() as i32)(l)),
        part("to_hour", |l| Some((l.rem_euclid(DAY) / HOUR) as i32)),
        part("to_minute", |l| Some((l.rem_euclid(HOUR) / MINUTE) as i32)),
        part("to_second", |l| Some((l.rem_euclid(MINUTE) / SECOND) as i32)),
        part("to_yyyymm", |l| day(|d| d.year() * 100 + d.month() as i32)(l)),
        part("to_yyyymmdd", |l| day(|d| (d.year() * 100 + d.month() as i32) * 100 + d.day() as i32)(l)),
        long("to_yyyymmddhhmmss", |array| {
            Ok(local_micros(array)?.unary_opt(|l| {
                let d = date_of(l)?;
                let date = (i64::from(d.year()) * 100 + i64::from(d.month())) * 100 + i64::from(d.day());
                let s = l.rem_euclid(DAY) / SECOND;
                Some(date * 1_000_000 + s / 3600 * 10_000 + s / 60 % 60 * 100 + s % 60)
            }))
        }),
        long("to_unix_timestamp", |array| Ok(utc_micros(array)?.unary(|v| v.div_euclid(SECOND)))),
    ]
}
