//! `ebb check`: what `ebb_engine::inspect` finds, as lines. 0 clean, 1 damage, 2 where there is nothing that can be looked
//! at: no data directory, or one that may not be read.

use super::{FAILED, USAGE, complain, say};
use ebb_engine::inspect;
use std::{path::Path, process::ExitCode};

pub async fn run(dir: &Path) -> ExitCode {
    let report = match inspect::check(dir).await {
        Ok(report) => report,
        Err(e) => {
            complain(&e.to_string());
            return ExitCode::from(USAGE);
        }
    };
    for line in &report.damage {
        say(&format!("damage: {line}\n"));
    }
    for line in &report.garbage {
        say(&format!("swept at the next start: {line}\n"));
    }
    let word = if report.is_clean() { "clean" } else { "damaged" };
    say(&format!(
        "{word}: {} streams, {} of {} parts verified, {} records in the log\n",
        report.streams, report.parts_verified, report.parts, report.records
    ));
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) }
}
