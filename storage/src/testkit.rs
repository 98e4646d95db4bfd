//! Doubles for tests: stores that fail, stall and lose power. Only built for tests and under the feature `testkit`.
