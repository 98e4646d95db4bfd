//! now() and its kin: the statement's time, which the session takes once from the server's clock, simulated or not.

use super::scalar::{Call, build};
use arrow::{
    array::{ArrayRef, Date32Array, Time64NanosecondArray, TimestampMicrosecondArray},
    datatypes::{DataType, TimeUnit},
};
use datafusion::{
    common::{
        Result,
        config::{ConfigExtension, ConfigOptions, ExtensionOptions},
        exec_err, internal_datafusion_err,
    },
    logical_expr::{ScalarUDF, Volatility},
};
use ebb_storage::Timestamp;
use std::{any::Any, sync::Arc};

/// The moment at which a statement runs, carried in its session configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementTime(pub Timestamp);

impl ConfigExtension for StatementTime {
    const PREFIX: &'static str = "ebb_statement_time";
}

/// Not a setting: it cannot be set by name and is not listed.
impl ExtensionOptions for StatementTime {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(*self)
    }
    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        exec_err!("'{key}' cannot be set")
    }
    fn entries(&self) -> Vec<datafusion::common::config::ConfigEntry> {
        Vec::new()
    }
}

/// The time of the statement that `config` belongs to.
pub fn statement_time(config: &ConfigOptions) -> Result<Timestamp> {
    let found = config.extensions.get::<StatementTime>();
    found.map(|t| t.0).ok_or_else(|| internal_datafusion_err!("a statement was run without its time"))
}

fn moment() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

type Read = fn(Timestamp, usize) -> ArrayRef;

fn reads(name: &str, aliases: &[&str], returns: DataType, read: Read) -> ScalarUDF {
    let own = name.to_owned();
    build(
        name,
        aliases,
        Volatility::Stable,
        (
            Arc::new(move |types| super::scalar::arity(&own, types, 0..=0).map(|()| Vec::new())),
            Arc::new(move |_| Ok(returns.clone())),
            Arc::new(move |_: &[ArrayRef], call: &Call<'_>| Ok(read(statement_time(call.config)?, call.rows))),
        ),
    )
}

pub fn functions() -> Vec<ScalarUDF> {
    let exact: Read = |t, n| Arc::new(TimestampMicrosecondArray::from_value(t.0, n).with_timezone("UTC"));
    let day: Read = |t, n| Arc::new(Date32Array::from_value(t.days() as i32, n));
    let day_before: Read = |t, n| Arc::new(Date32Array::from_value(t.days() as i32 - 1, n));
    let time_of_day: Read = |t, n| Arc::new(Time64NanosecondArray::from_value(t.0.rem_euclid(86_400_000_000) * 1000, n));
    vec![
        reads("now", &["current_timestamp", "transaction_timestamp", "statement_timestamp", "clock_timestamp"], moment(), exact),
        reads("today", &["current_date"], DataType::Date32, day),
        reads("yesterday", &[], DataType::Date32, day_before),
        reads("current_time", &[], DataType::Time64(TimeUnit::Nanosecond), time_of_day),
    ]
}
