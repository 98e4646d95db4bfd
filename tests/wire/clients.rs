//! Python's drivers.

use crate::{
    Running,
    python::{environment, file, run},
};
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn python_drivers() {
    let Some(python) = environment("clients", "requirements.txt", "psycopg, asyncpg, sqlalchemy") else { return };
    let server = Running::start().await;
    let out = run(Command::new(&python).arg(file("clients.py")).arg(server.address.port().to_string())).unwrap();
    let (text, errors) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{text}\n{errors}");
    assert_eq!(text.lines().filter(|l| l.starts_with("ok ")).count(), 18, "{text}");
}
