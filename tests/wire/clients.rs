//! Python's drivers, in an environment of their own below the build directory.

use crate::{Running, has, must_have};
use std::path::Path;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn python_drivers() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let python = home.join("bin/python");
    if !has("python3") {
        must_have("python3");
        return;
    }
    let run = |command: &mut Command| tokio::task::block_in_place(|| command.output());
    let ready = |command: &mut Command| run(command).is_ok_and(|o| o.status.success());
    // The environment is made anew where it was made for other versions.
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/requirements.txt");
    let (made_for, versions) = (home.join("made-for.txt"), std::fs::read_to_string(&wanted).unwrap());
    if std::fs::read_to_string(&made_for).ok().as_ref() != Some(&versions) {
        let pip = ["-m", "pip", "install", "-q", "--no-deps", "-r"];
        let made = ready(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))
            && ready(Command::new(&python).args(pip).arg(&wanted))
            && ready(Command::new(&python).args(["-c", "import psycopg, asyncpg, sqlalchemy"]));
        if !made {
            must_have("pip, or a package of tests/wire/requirements.txt,");
            return;
        }
        std::fs::write(&made_for, &versions).unwrap();
    }
    let server = Running::start().await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire/clients.py");
    let out = run(Command::new(&python).arg(script).arg(server.address.port().to_string())).unwrap();
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{errors}");
    assert_eq!(text.lines().filter(|l| l.starts_with("ok ")).count(), 13, "{text}");
}
