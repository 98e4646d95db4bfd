use super::*;

/// A part on its way from what is reserved to what is placed is in one of the two, whoever looks when.
#[test]
fn a_declared_capacity_is_never_overrun() {
    const CAPACITY: u64 = 100;
    let space = Space::new("d", Source::Declared(CAPACITY), 100);
    let work = |bytes: u64| {
        for _ in 0..20_000 {
            if let Ok(reserved) = space.reserve(bytes) {
                space.add_placed(bytes);
                drop(reserved);
                let placed = space.used.lock().placed;
                assert!(placed <= CAPACITY, "{placed} bytes are placed");
                space.remove_placed(bytes);
            }
        }
    };
    std::thread::scope(|s| {
        for bytes in [30, 40, 60, 70] {
            s.spawn(move || work(bytes));
        }
    });
    assert_eq!((space.available().unwrap(), space.reserved_bytes()), (CAPACITY, 0));
}

#[test]
fn what_is_kept_back_is_reserved_by_nobody() {
    let space = Space::new("d", Source::Declared(1000), 90);
    space.add_placed(100);
    let reserved = space.reserve(700).unwrap();
    assert_eq!((space.available().unwrap(), space.room().unwrap()), (100, Room { total: 900, available: 100, kept_back: 100 }));
    assert_eq!(space.reserve(101).unwrap_err().kind(), crate::ErrorKind::Full);
    drop(reserved);
    assert_eq!(space.available().unwrap(), 800);
    let unlimited = Space::new("d", Source::Unlimited, 50);
    let _much = unlimited.reserve(u64::MAX).unwrap();
}
