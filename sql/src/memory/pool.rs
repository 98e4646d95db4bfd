//! The memory that queries use together, shared fairly by what can be written to disk.
//!
//! Guards: reservations never exceed the limit, which may change while queries run. One that can spill leaves a share free for the next
//! one, and a merge of what was spilled, which takes as many files at once as it gets room for, takes no more than a share. Values of functions are counted twice against what can spill, since an operator that keeps them counts them too and must spill
//! before the next values find no room.

use datafusion::{
    common::resources_datafusion_err,
    error::Result,
    execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size},
};
use parking_lot::Mutex;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The consumer under which values of functions are counted.
pub const VALUES: &str = "values of functions";

/// How DataFusion calls merges of what was spilled.
const MERGES: &str = "ExternalSorterMerge";
/// And sorts.
const SORTS: &str = "ExternalSorter[";
/// What neither sorts nor their merges take: what comes after them needs a little.
const LEFT_IN_LIMIT: usize = 16;

/// Clones are one pool.
#[derive(Debug, Clone)]
pub struct Pool {
    limit: Arc<AtomicUsize>,
    used: Arc<Mutex<Used>>,
}

#[derive(Debug, Default)]
struct Used {
    /// How many may spill.
    spillers: usize,
    spillable: usize,
    fixed: usize,
    values: usize,
}

impl Used {
    fn all(&self) -> usize {
        self.spillable.saturating_add(self.fixed).saturating_add(self.values)
    }

    fn of(&mut self, consumer: &MemoryConsumer) -> &mut usize {
        match consumer.can_spill() {
            true => &mut self.spillable,
            false if consumer.name() == VALUES => &mut self.values,
            false => &mut self.fixed,
        }
    }
}

impl Pool {
    /// `limit` 0: six tenths of the machine's memory.
    pub fn new(limit: u64) -> Self {
        let pool = Self { limit: Arc::default(), used: Arc::default() };
        pool.set_limit(limit);
        pool
    }

    pub fn set_limit(&self, limit: u64) {
        let limit = match limit {
            0 => machine_share(),
            limit => usize::try_from(limit).unwrap_or(usize::MAX),
        };
        self.limit.store(limit, Ordering::Relaxed);
    }

    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }
}

/// Six tenths of the machine's memory.
pub fn machine_share() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|l| l.strip_prefix("MemTotal:")).and_then(|l| l.split_whitespace().next()?.parse::<usize>().ok());
    kib.map_or(4 << 30, |kib| kib.saturating_mul(1024) / 10 * 6)
}

impl MemoryPool for Pool {
    fn name(&self) -> &str {
        "memory_limit_bytes"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.used.lock().spillers += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut used = self.used.lock();
            used.spillers = used.spillers.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut used = self.used.lock();
        let of = used.of(reservation.consumer());
        *of = of.saturating_add(additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut used = self.used.lock();
        let of = used.of(reservation.consumer());
        *of = of.saturating_sub(shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let limit = self.limit();
        let mut used = self.used.lock();
        let mut left = limit.saturating_sub(used.all());
        let (name, spillers) = (reservation.consumer().name(), used.spillers);
        // A sort needs as much again for the merge of what it holds.
        let share = match (reservation.consumer().can_spill(), name.starts_with(MERGES), name.starts_with(SORTS)) {
            (true, _, sorts) => {
                let shared = limit.saturating_sub(used.fixed).saturating_sub(used.values.saturating_mul(2));
                Some(shared / if sorts { 2 * spillers + 1 } else { spillers + 1 })
            }
            (false, true, _) => Some(limit / (spillers + 1)),
            _ => None,
        };
        if let Some(share) = share {
            left = left.saturating_sub(limit / LEFT_IN_LIMIT).min(share.saturating_sub(reservation.size()));
        }
        if additional > left {
            return Err(resources_datafusion_err!(
                "{} needs {} more memory, and memory_limit_bytes ({}) leaves it {}",
                reservation.consumer().name(),
                human_readable_size(additional),
                human_readable_size(limit),
                human_readable_size(left)
            ));
        }
        let of = used.of(reservation.consumer());
        *of = of.saturating_add(additional);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.used.lock().all()
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit())
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory_limit_bytes = {}", human_readable_size(self.limit()))
    }
}
