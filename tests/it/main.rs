//! Tests that link the whole of Ebb, in one binary since linking is the slow part.

mod tidy;
