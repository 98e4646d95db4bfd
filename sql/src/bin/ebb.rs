//! ebb
fn main() {}
