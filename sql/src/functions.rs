//! The functions of the language beside DataFusion's own.
//!
//! Many are another spelling of what DataFusion has: `rewrite` turns them into it in the syntax tree, before planning. The rest, mostly
//! about time, are scalar functions: `scalar` is the frame, one file a family fills it. What reads the clock reads the statement's time.

mod aggregates;
pub mod clock;
mod convert;
mod exists;
mod interval;
mod rewrite;
pub(crate) mod scalar;
pub(crate) mod time_arithmetic;
mod time_format;
mod time_parts;
mod time_start;
mod time_zone;
pub(crate) mod times;
mod top_k;

pub use clock::StatementTime;
pub use convert::type_name;
pub use rewrite::{rewrite_expr, rewrite_query, rewritten_names};
pub(crate) use time_zone::{in_zone, read_times};

use datafusion::{execution::FunctionRegistry, logical_expr::ScalarUDF};
use std::sync::Arc;

/// Every scalar function of ours.
fn scalars() -> Vec<ScalarUDF> {
    let mut all = clock::functions();
    all.extend(convert::functions());
    all.extend(time_parts::functions());
    all.extend(time_start::functions());
    all.extend(time_arithmetic::functions());
    all.extend(time_format::functions());
    all.extend(time_zone::functions());
    all
}

/// Adds the language's functions; those of DataFusion with the same name are replaced.
pub fn register(registry: &mut dyn FunctionRegistry) -> datafusion::error::Result<()> {
    for f in scalars() {
        registry.register_udf(Arc::new(f))?;
    }
    registry.register_udf(Arc::new(interval::function()))?;
    registry.register_expr_planner(Arc::new(interval::IntervalPlanner::new()))?;
    registry.register_udaf(Arc::new(top_k::function()))?;
    for f in rewrite::misused() {
        registry.register_udf(Arc::new(f))?;
    }
    for f in aggregates::functions() {
        registry.register_udaf(Arc::new(f))?;
    }
    crate::memory::growth::register(registry)?;
    Ok(())
}

#[cfg(test)]
mod tests;
