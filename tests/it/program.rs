//! The built program as a process of its own: started on a data directory, spoken to by PostgreSQL clients, killed.

use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};
use tokio_postgres::{Client, NoTls};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ebb");

/// `ebb serve`, killed at the latest when it is dropped.
pub struct Serving {
    child: Child,
    address: SocketAddr,
}

impl Serving {
    /// Starts it and waits until it listens. `settings` as after `--set`.
    pub fn start(dir: &Path, settings: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir);
        settings.iter().for_each(|s| _ = command.args(["--set", s]));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it said '{line}'"));
        Self { child, address: address.parse().unwrap() }
    }

    /// A new connection; an error once the program is gone.
    pub async fn connect(&self) -> Result<Client, tokio_postgres::Error> {
        connect(self.address).await
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// SIGKILL, and the end of the process.
    pub fn kill(&mut self) -> ExitStatus {
        self.child.kill().unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub async fn connect(address: SocketAddr) -> Result<Client, tokio_postgres::Error> {
    let config = format!("host=127.0.0.1 port={} user=ebb dbname=default", address.port());
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// The program to its end: whether it succeeded, and what it said.
pub fn run(args: &[&str]) -> (bool, String) {
    let done = Command::new(PROGRAM).args(args).output().unwrap();
    (done.status.success(), String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr))
}

/// `ebb check`: exit code and what it said.
pub fn check(dir: &Path) -> (i32, String) {
    let done = Command::new(PROGRAM).args(["check", "--data-dir"]).arg(dir).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    (done.status.code().unwrap_or(-1), said)
}
