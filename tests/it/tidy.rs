//! Taste as a test: what no compiler checks and every file keeps to.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Lines of a file; tests may be longer.
const LINES_MAX: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file of the project with its text, paths from the root.
fn sources() -> Vec<(String, String)> {
    fn walk(dir: &Path, out: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => walk(&path, out),
                false if path.extension().is_some_and(|e| e == "rs") => out.push(path),
                false => {}
            }
        }
    }
    let mut files = Vec::new();
    for dir in ["storage", "engine", "sql", "tests", "examples", "benches"] {
        if root().join(dir).is_dir() {
            walk(&root().join(dir), &mut files);
        }
    }
    files.sort();
    let name = |p: &PathBuf| p.strip_prefix(root()).unwrap().display().to_string();
    files.iter().map(|p| (name(p), fs::read_to_string(p).unwrap())).collect()
}

fn is_test(path: &str) -> bool {
    path.starts_with("tests/")
        || path.contains("/tests/")
        || path.ends_with("tests.rs")
        || path.contains("/testkit")
        || path.contains("/benches/")
}

/// Paths for which `bad` says what is wrong.
fn offenders(bad: impl Fn(&str, &str) -> Option<String>) -> Vec<String> {
    sources().iter().filter_map(|(path, text)| bad(path, text).map(|why| format!("{path}: {why}"))).collect()
}

#[track_caller]
fn none(found: Vec<String>) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn every_file_says_what_it_is_for() {
    none(offenders(|path, text| {
        (!text.starts_with("//!") && !path.ends_with("tests.rs") && !is_test(path)).then(|| "no //! header".into())
    }));
}

#[test]
fn no_file_is_too_long() {
    none(offenders(|path, text| {
        let lines = text.lines().count();
        (!is_test(path) && lines > LINES_MAX).then(|| format!("{lines} lines, {LINES_MAX} at the most"))
    }));
}

#[test]
fn names_say_what_is_inside() {
    let vague = ["util", "utils", "common", "helpers", "misc", "mod"];
    none(offenders(|path, _| {
        let stem = Path::new(path).file_stem()?.to_str()?.to_owned();
        (vague.contains(&stem.as_str()) && !path.ends_with("support/mod.rs")).then(|| format!("'{stem}' says nothing"))
    }));
}

#[test]
fn layers_look_one_way() {
    none(offenders(|path, text| {
        let upward = |words: &[&str]| words.iter().find(|w| text.contains(**w)).map(|w| format!("names {w}"));
        match path {
            p if p.starts_with("storage/src") => upward(&["datafusion", "ebb_engine", "pgwire"]),
            p if p.starts_with("engine/src") => upward(&["datafusion::", "sqlparser::", "pgwire"]),
            _ => None,
        }
    }));
}

#[test]
fn decisions_are_pure() {
    none(offenders(|path, text| {
        let inside = path.starts_with("engine/src/plan/") && !is_test(path);
        let impure = ["async ", ".await", "Clock", "tokio", "std::fs", "Mutex", "println!"];
        impure.iter().find(|w| inside && text.contains(**w)).map(|w| format!("{w} in a decision"))
    }));
}

#[test]
fn nothing_sleeps_and_nothing_is_passed_over() {
    let banned = [
        concat!("thread::", "sleep"),
        concat!("time::", "sleep"),
        concat!("#[", "ignore"),
        concat!("todo", "!()"),
        concat!("unimplemented", "!()"),
    ];
    none(offenders(|path, text| {
        let exempt = path == "storage/src/clock.rs";
        banned.iter().find(|w| !exempt && text.contains(**w)).map(|w| (*w).to_owned())
    }));
}

#[test]
fn inline_tests_stay_out_of_the_way() {
    none(offenders(|_, text| text.contains(concat!("mod tests", " {")).then(|| "tests live in a file of their own".into())));
}

#[test]
fn the_heart_libraries_are_there_once() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for name in ["arrow", "parquet", "datafusion", "object_store", "sqlparser", "pgwire"] {
        let line = format!("name = \"{name}\"\n");
        assert_eq!(lock.matches(&line).count(), 1, "{name}");
    }
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let statements = fs::read_to_string(root().join("docs/statements.md")).unwrap();
    let all = sources();
    let mut missing = Vec::new();
    let mut named = 0;
    for line in statements.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| id") && !l.starts_with("|--")) {
        let tests = line.rsplit('|').nth(1).unwrap_or_default();
        for test in tests.split('`').skip(1).step_by(2) {
            named += 1;
            let here = |(path, text): &(String, String)| text.contains(&format!("fn {test}(")) || path.contains(test);
            let script = root().join("tests/it/scripts").join(test).is_file();
            if !script && !all.iter().any(here) {
                missing.push(format!("{test}, in: {line}"));
            }
        }
    }
    assert!(named > 20, "statements.md names {named} tests");
    none(missing);
}

#[test]
fn every_script_is_run() {
    let list = fs::read_to_string(root().join("tests/it/script.rs")).unwrap();
    let scripts = fs::read_dir(root().join("tests/it/scripts")).unwrap().flatten().map(|e| e.path());
    let name = |p: PathBuf| p.file_stem().unwrap().to_string_lossy().into_owned();
    none(scripts.map(name).filter(|name| !list.lines().any(|l| l.trim() == format!("{name},"))).collect());
}
