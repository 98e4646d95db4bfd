//! `ebb simulate`: what the definitions of a file come to in years.
//!
//! `definitions` carries the file's statements out on a database that lies nowhere, the engine simulates its streams together, on the disks that they share, `text`
//! (with `plot`), `json` and `svg` show it. Exit code 0 done, 1 failed, 2 for arguments or a file that make no sense. Guards: no disk
//! and no server that the file names is touched; the one file written is the chart.

mod definitions;
mod json;
mod plot;
mod svg;
mod text;

use super::{FAILED, USAGE, args::Simulate, complain, say};
use crate::{Error, ErrorKind};
use ebb_engine::simulate::{Report, SimOptions, together};
use std::process::ExitCode;

pub async fn run(args: Simulate) -> ExitCode {
    match simulated(&args).await {
        Ok(reports) => show(&args, &reports),
        Err(e) => {
            complain(&e.to_string());
            ExitCode::from(if e.kind() == ErrorKind::Internal { FAILED } else { USAGE })
        }
    }
}

async fn simulated(args: &Simulate) -> Result<Vec<Report>, Error> {
    let options = SimOptions {
        start: args.start,
        years: args.years,
        rows_per_day: args.rate,
        parts_per_day: args.parts_per_day,
        row_bytes: args.row_bytes,
        share: args.share,
    };
    options.check()?;
    let worlds = definitions::worlds(&args.file, args.start).await?;
    Ok(together(&worlds, &options)?)
}

fn show(args: &Simulate, reports: &[Report]) -> ExitCode {
    if args.json {
        say(&json::json(reports));
    } else {
        say(&reports.iter().map(text::text).collect::<Vec<_>>().join("\n"));
    }
    if let Some(path) = &args.svg
        && let Err(e) = std::fs::write(path, svg::page(reports))
    {
        complain(&format!("{}: {e}", path.display()));
        return ExitCode::from(FAILED);
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests;
