//! Python in an environment of its own below the build directory, with the packages that a test pins.

use crate::{has, must_have};
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

pub fn run(command: &mut Command) -> std::io::Result<Output> {
    tokio::task::block_in_place(|| command.output())
}

/// A file beside this one.
pub fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(name)
}

/// The interpreter of the environment `name` with `requirements`, of which `imports` must work; `None`, and told, where it cannot be
/// had.
pub fn environment(name: &str, requirements: &str, imports: &str) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = home.join("bin/python");
    if !has("python3") {
        must_have("python3");
        return None;
    }
    let ready = |command: &mut Command| run(command).is_ok_and(|o| o.status.success());
    // The environment is made anew where it was made for other versions.
    let wanted = file(requirements);
    let (made_for, versions) = (home.join("made-for.txt"), std::fs::read_to_string(&wanted).unwrap());
    if std::fs::read_to_string(&made_for).ok().as_ref() != Some(&versions) {
        let pip = ["-m", "pip", "install", "-q", "--no-deps", "-r"];
        let made = ready(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
            && ready(Command::new(&python).args(pip).arg(&wanted))
            && ready(Command::new(&python).args(["-c", &format!("import {imports}")]));
        if !made {
            must_have(&format!("pip, or a package of tests/wire/{requirements},"));
            return None;
        }
        std::fs::write(&made_for, &versions).unwrap();
    }
    Some(python)
}
