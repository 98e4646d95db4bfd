//! The commands of the `ebb` program: arguments in, exit code out.
//!
//! `run` opens and answers, `serve` listens, `shell` reads lines, `script` runs statements and prints, `import` loads files, `simulate`
//! tells what definitions come to in years, `quickstart` shows it all on real data. Answers go to standard output, everything else to standard error.

pub mod allocator;
mod args;
mod check;
mod import;
mod quickstart;
pub mod script;
mod serve;
mod shell;
mod simulate;
pub mod table;

pub use args::Args;

use crate::{Config, Database, Result};
use args::{Command, Opening};
use clap::Parser;
use ebb_engine::{Clock, Timestamp, settings};
use ebb_storage::stream_def::SettingValue;
use std::{io::Write, process::ExitCode};

/// Something was asked for that cannot be done.
const FAILED: u8 = 1;
/// The arguments make no sense; clap uses the same.
const USAGE: u8 = 2;
/// Of a thread that plans statements: what may nest deeply is looked at by functions that call themselves.
const STACK_BYTES: usize = 16 << 20;

/// Runs the program.
pub fn main() -> ExitCode {
    allocator::keep_pages_for_a_while();
    let args = Args::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK_BYTES).enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => {
            complain(&format!("the runtime does not start: {e}"));
            return ExitCode::from(FAILED);
        }
    };
    let code = runtime.block_on(dispatch(args));
    // What still runs in the background is cut off, which is as safe as a crash.
    runtime.shutdown_background();
    code
}

async fn dispatch(args: Args) -> ExitCode {
    let outcome = match args.command {
        Command::Check { data_dir } => return check::run(&data_dir).await,
        Command::Simulate(simulate) => return simulate::run(simulate).await,
        Command::Serve { opening, listen } => serve::run(opening, &listen).await,
        Command::Sql { opening, command, file } => script::run(opening, command, file).await,
        Command::Import { opening, import } => import::run(opening, import).await,
        Command::Quickstart { data_dir, no_serve } => quickstart::run(data_dir, no_serve).await,
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            complain(&e.to_string());
            ExitCode::from(FAILED)
        }
    }
}

/// Opens the data directory as the arguments say.
async fn open(opening: &Opening) -> Result<Database> {
    let mut config = Config::new(&opening.data_dir);
    if let Some(start) = &opening.simulated_clock {
        config = config.with_clock(Clock::simulated(start.parse::<Timestamp>()?));
    }
    for pair in &opening.set {
        let (name, value) = pair.split_once('=').ok_or_else(|| crate::Error::invalid(format!("--set {pair}: write --set name=value")))?;
        let value = settings::check(settings::Scope::Server, name.trim(), &SettingValue::Text(value.trim().to_owned()))?;
        config = config.with_setting(name.trim(), value);
    }
    Database::open(config).await
}

/// To standard output. A reader that went away (`ebb ... | head`) is no error of ours.
fn say(text: &str) {
    put(text.as_bytes());
}

/// As [`say`], bytes that may be no text.
fn put(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "ebb: {text}");
}
