use super::*;

#[test]
fn a_part_is_held_until_its_last_reader_has_gone() {
    let pins = Pins::default();
    let key = (StreamId(1), PartId(2), Generation(1));
    let other = (StreamId(1), PartId(2), Generation(2));
    let first = pins.pin(vec![key]);
    let second = pins.pin(vec![key, other]);
    assert_eq!(pins.count(&key), 2);
    drop(first);
    assert!(pins.is_held(&key) && pins.is_held(&other));
    drop(second);
    assert!(!pins.is_held(&key) && !pins.is_held(&other));
}
