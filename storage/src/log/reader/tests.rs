use super::*;
use crate::testkit::CrashDisk;

#[test]
fn an_empty_folder_is_a_log_and_strange_names_are_told() {
    let disk = CrashDisk::default();
    disk.edit_file("notes.txt", |b| b.extend(b"x"));
    let db = DatabaseId("d".into());
    assert_eq!(replay(&disk, &db, Lsn(7), |_, _| Ok(())).unwrap().next_lsn, Lsn(8));
    let report = inspect(&disk, &db, Lsn(7)).unwrap();
    assert_eq!(report.findings[0].problem, Problem::UnknownName);
    assert!(report.is_sound());
}
