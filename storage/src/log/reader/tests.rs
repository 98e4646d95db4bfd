use super::*;
use crate::testkit::CrashDisk;

#[test]
fn an_empty_folder_is_a_log_and_strange_names_are_told() {
    let disk = CrashDisk::default();
    disk.edit_file("notes.txt", |b| b.extend(b"x"));
    let db = DatabaseId("d".into());
    assert_eq!(replay(&disk, &db, Lsn(0), |_, _| Ok(())).unwrap().next_lsn, Lsn(1));
    let report = inspect(&disk, &db, Lsn(0)).unwrap();
    assert_eq!(report.findings[0].problem, Problem::UnknownName);
    assert!(report.is_sound());
}

#[test]
fn a_log_that_went_further_than_its_files_is_refused() {
    let disk = CrashDisk::default();
    let db = DatabaseId("d".into());
    let refused = replay(&disk, &db, Lsn(7), |_, _| Ok(())).unwrap_err();
    assert!(refused.message().contains("up to 7"), "{refused}");
    assert!(!inspect(&disk, &db, Lsn(7)).unwrap().is_sound());
    let name = FileName { epoch: crate::ids::Epoch(1), first_lsn: Lsn(5) };
    disk.edit_file(&name.to_string(), |b| b.extend(frame::encode_file_header(name, &db)));
    for (applied, sound) in [(Lsn(3), false), (Lsn(4), true), (Lsn(5), false)] {
        let replayed = replay(&disk, &db, applied, |_, _| Ok(()));
        assert_eq!(replayed.is_ok(), sound, "{applied}");
        let report = inspect(&disk, &db, applied).unwrap();
        assert_eq!(report.is_sound(), sound, "{applied}");
        match replayed {
            Ok(r) => assert_eq!(r.next_lsn, Lsn(5)),
            Err(e) => assert!(e.message().contains(&name.to_string()) && report.findings[0].message.contains(&name.to_string()), "{e}"),
        }
    }
}
