//! How the program's allocator treats pages that were freed.

/// `mi_option_purge_delay`; the bindings have no name for it, and number options as mimalloc.h does.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = libmimalloc_sys::mi_option_use_numa_nodes - 1;
/// Milliseconds. An insert of many rows takes seconds, and the memory of its batches and columns should last for all of it.
const PURGE_AFTER: std::ffi::c_long = 10_000;

/// Batches come and go: pages given back to the system at once are asked for again at once, and the system clears each of them. To be
/// called before threads start.
pub fn keep_pages_for_a_while() {
    // SAFETY: sets a number that the allocator reads; no other thread runs yet.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_AFTER) }
}
