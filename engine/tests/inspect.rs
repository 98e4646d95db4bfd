//! `check` says what is damaged and where, calls garbage garbage, and changes nothing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use ebb_engine::{ErrorKind, inspect::check};
use std::{
    fs,
    path::{Path, PathBuf},
};
use support::*;

fn find(dir: &Path, want: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(find(&path, want));
        } else if want(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

async fn filled(dir: &Path) {
    let e = open(dir).await;
    let s = e.create_stream(def("s", vec![]), false).await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    let mut staged = e.stage(s, v1()).await.unwrap();
    staged.push(rows(&[("a", START.0, 2)])).await.unwrap();
    staged.finish().await.unwrap();
    e.insert(s, vec![rows(&[("a", START.0, 3)])], v1()).await.unwrap();
}

#[tokio::test]
async fn a_sound_directory_is_clean_and_orphans_are_no_damage() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path()).await;
    let report = check(dir.path()).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!((report.streams, report.parts, report.parts_verified, report.records, report.garbage.len()), (1, 2, 2, 3, 0));
    let part = find(dir.path(), &|p| p.extension().is_some_and(|x| x == "parquet")).remove(0);
    fs::copy(&part, part.with_file_name("00000000000000000099.1.parquet")).unwrap();
    let log = find(&dir.path().join("log"), &|_| true).pop().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend(b"EbFr torn");
    fs::write(&log, &bytes).unwrap();
    let report = check(dir.path()).await.unwrap();
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.garbage.len(), 2, "{report:?}");
    assert_eq!(fs::read(&log).unwrap(), bytes, "nothing was changed");
}

#[tokio::test]
async fn damage_is_named() {
    for folder in ["log", "meta", "parts"] {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path()).await;
        let of_folder = |p: &Path| p.components().any(|c| c.as_os_str() == folder) && p.metadata().is_ok_and(|m| m.len() > 100);
        let file = find(dir.path(), &of_folder).remove(0);
        let mut bytes = fs::read(&file).unwrap();
        let middle = if folder == "log" { 70 } else { bytes.len() / 2 };
        bytes[middle] ^= 0x55;
        fs::write(&file, bytes).unwrap();
        let report = check(dir.path()).await.unwrap();
        assert!(!report.is_clean(), "{folder}: {report:?}");
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        assert!(report.damage.iter().any(|d| d.contains(&name)), "{folder}: {name} is not named in {report:?}");
    }
}

#[tokio::test]
async fn a_folder_that_is_no_database_is_not_found() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(check(dir.path()).await.unwrap_err().kind(), ErrorKind::NotFound);
}

/// The marker and FORMAT, each damaged in every way, and what is no data directory at all.
#[tokio::test]
async fn the_files_that_make_a_data_directory_are_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    filled(dir).await;
    for name in ["EBB-DISK", "FORMAT"] {
        let file = dir.join(name);
        let sound = fs::read(&file).unwrap();
        for damaged in [&[][..], &sound[..sound.len() / 2], &[&sound[..], b"x"].concat()] {
            fs::write(&file, damaged).unwrap();
            let report = check(dir).await.unwrap();
            assert!(report.damage.iter().any(|d| d.contains(name)), "{name} {damaged:?}: {report:?}");
        }
        fs::remove_file(&file).unwrap();
        let report = check(dir).await.unwrap();
        assert!(report.damage.iter().any(|d| d.contains(name)), "{name}: {report:?}");
        if name == "FORMAT" {
            assert!(refused(dir).await.contains(name));
        }
        fs::write(&file, sound).unwrap();
        assert!(check(dir).await.unwrap().is_clean());
    }
    let file = dir.join("LOCK");
    let said = check(&file).await.unwrap_err();
    assert!(said.kind() == ErrorKind::Invalid && said.message().contains("LOCK is a file"), "{said}");
    let opened = ebb_engine::Engine::open(options(&file, ebb_engine::Clock::simulated(START), false)).await.err().unwrap();
    assert!(opened.kind() == ErrorKind::Invalid && opened.message().contains("LOCK is a file"), "{opened}");
    fs::write(dir.join("FORMAT"), r#"{"ebb_format":9,"database":"x"}"#).unwrap();
    assert_eq!(check(dir).await.unwrap_err().kind(), ErrorKind::Invalid, "another version is no damage");
}

/// proves D5: acknowledged records that only the newest file had. Where it ends, a torn tail cannot be told from damage; that it began can.
#[tokio::test]
async fn a_newest_log_file_that_is_emptied_or_gone_is_named_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    filled(dir).await;
    let e = open(dir).await;
    let s = e.read().stream_named("default", "s").unwrap().def.id;
    e.insert(s, vec![rows(&[("a", START.0, 4)])], v1()).await.unwrap();
    // Any commit proves that this opening has begun its file.
    let t = e.create_stream(def("t", vec![]), false).await.unwrap();
    e.insert(t, vec![rows(&[("a", START.0, 5)])], v1()).await.unwrap();
    drop(e);
    let files = log_files(dir);
    assert_eq!(files.len(), 2, "the first is needed");
    let newest = &files[1];
    let (name, sound) = (newest.file_name().unwrap().to_string_lossy().into_owned(), fs::read(newest).unwrap());
    for damaged in [&[][..], &sound[..20]] {
        fs::write(newest, damaged).unwrap();
        let report = check(dir).await.unwrap();
        assert!(report.damage.iter().any(|d| d.contains(&name)) && report.garbage.is_empty(), "{report:?}");
        for _ in 0..2 {
            assert!(refused(dir).await.contains(&name));
            assert_eq!(fs::read(newest).unwrap(), damaged, "what is refused is left as it is");
        }
    }
    fs::remove_file(newest).unwrap();
    assert!(refused(dir).await.contains("files of epoch"));
    assert!(!check(dir).await.unwrap().is_clean());
    fs::remove_file(&files[0]).unwrap();
    assert!(refused(dir).await.contains("the log has no files"));
    fs::write(newest, sound).unwrap();
    assert!(refused(dir).await.contains("missing"), "the first is needed");
}

/// Lost records of the newest file are known as far as parts hold later ones.
#[tokio::test]
async fn a_newest_log_file_that_ends_before_what_is_applied_is_named_and_left() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let e = open(dir).await;
    let a = e.create_stream(def("a", vec![]), false).await.unwrap();
    for i in 0..4 {
        e.insert(a, vec![rows(&[("a", START.0, i)])], v1()).await.unwrap();
    }
    e.flush(None).await.unwrap();
    e.insert(a, vec![rows(&[("a", START.0, 9)])], v1()).await.unwrap();
    drop(e);
    let file = log_files(dir).pop().unwrap();
    let (name, sound) = (file.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&file).unwrap());
    for keep in [0, 10, sound.len() / 2] {
        fs::write(&file, &sound[..keep]).unwrap();
        assert!(check(dir).await.unwrap().damage.iter().any(|d| d.contains(&name)), "{keep}");
        assert!(refused(dir).await.contains(&name), "{keep}");
        assert_eq!(fs::read(&file).unwrap(), &sound[..keep], "what is refused is left as it is");
    }
    fs::write(&file, &sound).unwrap();
    assert_eq!(values(&*open(dir).await, a).await, [0, 1, 2, 3, 9]);
}

fn log_files(dir: &Path) -> Vec<PathBuf> {
    find(&dir.join("log"), &|_| true)
}

async fn refused(dir: &Path) -> String {
    let e = ebb_engine::Engine::open(options(dir, ebb_engine::Clock::simulated(START), false)).await.map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Corrupt, "{e}");
    e.to_string()
}

/// proves D5: each opening begins a log file. Another stream's rows are in the second, so that no gap in sns tells of the first.
#[tokio::test]
async fn a_log_file_that_is_needed_and_missing_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let e = open(dir).await;
    let a = e.create_stream(def("a", vec![]), false).await.unwrap();
    let b = e.create_stream(def("b", vec![]), false).await.unwrap();
    e.insert(b, vec![rows(&[("a", START.0, 1)])], v1()).await.unwrap();
    e.flush(None).await.unwrap();
    e.insert(a, vec![rows(&[("a", START.0, 2)])], v1()).await.unwrap();
    drop(e);
    let e = open(dir).await;
    e.insert(b, vec![rows(&[("a", START.0, 3)])], v1()).await.unwrap();
    e.flush(Some(b)).await.unwrap();
    drop(e);
    let files = log_files(dir);
    assert_eq!(files.len(), 2, "what is needed was not trimmed");
    let aside = dir.join("aside");
    fs::rename(&files[0], &aside).unwrap();
    let second = files[1].file_name().unwrap().to_string_lossy().into_owned();
    let said = refused(dir).await;
    assert!(said.contains(&second) && said.contains("records 2 to 2 are missing"), "{said}");
    let report = check(dir).await.unwrap();
    assert!(report.damage.iter().any(|d| d.contains(&second) && d.contains("records 2 to 2 are missing")), "{report:?}");
    fs::rename(&aside, &files[0]).unwrap();
    assert!(check(dir).await.unwrap().is_clean());
    let e = open(dir).await;
    assert_eq!((values(&e, a).await, values(&e, b).await), (vec![2], vec![1, 3]));
    // A stream that is dropped needs no log either.
    e.insert(b, vec![rows(&[("a", START.0, 4)])], v1()).await.unwrap();
    e.drop_stream(b).await.unwrap();
    e.flush(None).await.unwrap();
    assert_eq!(log_files(dir).len(), 1);
    drop(e);
    assert!(check(dir).await.unwrap().is_clean());
    let e = open(dir).await;
    assert_eq!(values(&e, a).await, [2]);
    drop(e);
    log_files(dir).into_iter().for_each(|f| fs::remove_file(f).unwrap());
    let said = refused(dir).await;
    assert!(said.contains("the log has no files"), "{said}");
    assert!(!check(dir).await.unwrap().is_clean());
}

fn copy_folder(from: &Path, to: &Path) {
    for file in find(from, &|_| true) {
        let copy = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(&file, &copy).unwrap();
    }
}

/// A manifest that is gone, or of an earlier time than what lies beside it, names nothing of that: nothing may be swept by it, however
/// often the database is opened.
#[tokio::test]
async fn a_directory_with_no_manifest_or_an_old_one_is_refused_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (meta, old, whole) = (dir.join("meta"), dir.join("old"), dir.join("whole"));
    drop(open(dir).await);
    copy_folder(&meta, &old);
    filled(dir).await;
    let s = open(dir).await.read().streams().next().unwrap().def.id;
    let parts = || find(dir, &|p| p.extension().is_some_and(|x| x == "parquet"));
    let all = parts();
    assert_eq!(all.len(), 2);
    fs::rename(&meta, &whole).unwrap();
    let logs = dir.join("log");
    for (state, says) in [("none", "the log has files"), ("none, and no log", "there are parts"), ("old", "of one time")] {
        if state == "old" {
            copy_folder(&old, &meta);
        }
        if state.ends_with("log") {
            fs::rename(&logs, dir.join("log aside")).unwrap();
        }
        for _ in 0..3 {
            let said = refused(dir).await;
            assert!(said.contains(says) && said.contains("restore meta/"), "{state}: {said}");
            let report = check(dir).await.unwrap();
            assert!(report.damage.iter().any(|d| d.contains(says)) && report.garbage.is_empty(), "{state}: {report:?}");
        }
        assert_eq!(parts(), all, "{state}");
        fs::remove_dir_all(&meta).unwrap();
        if state.ends_with("log") {
            let _ = fs::remove_dir_all(&logs);
            fs::rename(dir.join("log aside"), &logs).unwrap();
        }
    }
    assert!(!check(dir).await.unwrap().is_clean(), "without the folder");
    fs::rename(&whole, &meta).unwrap();
    assert_eq!(values(&*open(dir).await, s).await, [1, 2, 3]);
}
