//! The PostgreSQL wire: any client speaks to a session through here, with the same results as the Rust API.

pub mod encode;
pub mod params;
pub mod types;
