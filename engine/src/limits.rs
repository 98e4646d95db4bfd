//! Every limit of the engine by name. None of them is a promise; all of them are bounds.

/// An insert of this many rows writes parts first instead of going through the log.
pub const STAGE_ROWS: usize = 65_536;
/// The same for the bytes that the log would write, before it packs them.
pub const STAGE_BYTES: usize = 8 << 20;
/// A staged insert cuts a part off a partition at this many rows.
pub const STAGED_PART_ROWS: usize = 1 << 20;
/// Rows that one staged insert holds in memory before it cuts off its largest partition.
pub const STAGED_BUFFER_ROWS: usize = 2 << 20;
/// Bytes that one staged insert holds in memory before it cuts off its largest partition.
pub const STAGED_BUFFER_BYTES: usize = 256 << 20;
/// Threads that encode the columns of one part side by side.
pub const ENCODING_THREADS: usize = 4;
/// Parts that one staged insert encodes at the same time.
pub const STAGED_ENCODERS: usize = 2;
/// Parts that one staged insert may write.
pub const STAGED_PARTS: usize = 100_000;
/// An insert waits while its stream's tail holds this many times what makes a flush due.
pub const TAIL_FULL_TIMES: u64 = 8;
/// Statements of one transaction.
pub const TRANSACTION_RECORDS: usize = 100_000;
/// Names of dropped streams that are remembered for messages.
pub const DROPPED_NAMES: usize = 1000;
/// Attempts at a definition that others change at the same time.
pub const ALTER_ATTEMPTS: usize = 64;
/// Rounds of SETTLE before it says that the work does not come to an end.
pub const SETTLE_ROUNDS: usize = 10_000;
/// Objects that nothing names, remembered to be deleted; others wait for the sweep of the next opening.
pub const ABANDONED_OBJECTS: usize = 100_000;
/// Disks that are looked at at the same time.
pub const DISKS_AT_ONCE: usize = 16;
/// Tags and branches of one stream.
pub const REFS_OF_A_STREAM: usize = 10_000;
/// Cuts that sessions hold between their statements.
pub const READ_LEASES: usize = 10_000;
/// How long a session may hold a cut without asking again.
pub const READ_LEASE_LONGEST: std::time::Duration = std::time::Duration::from_secs(86_400);
/// Parts of which it is remembered how large they come out in a codec that did not fit; beyond it all are tried again.
pub const TRIED_CODECS: usize = 10_000;
/// Parts that are moved to another disk at the same time.
pub const MOVES_AT_ONCE: usize = 2;
