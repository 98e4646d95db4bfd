//! Rows that are in the log but in no part yet: in memory, visible to everyone.
