//! From syntax to engine values: names looked up, expressions typed, definitions checked. Nothing here changes anything.

pub mod alter;
pub mod argument;
pub mod copies;
pub mod create_stream;
pub mod disk;
pub mod expression;
pub mod names;
pub mod policy;
pub mod rules;
pub mod settings;
mod yaml;
