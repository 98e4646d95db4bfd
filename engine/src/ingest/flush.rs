//! Bringing the tail into parts: one flush per stream at a time, one commit that says "records up to sn are in parts".
