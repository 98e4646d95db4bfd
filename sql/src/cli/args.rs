//! Arguments.

use clap::{Parser, Subcommand, ValueEnum};
use ebb_engine::Timestamp;
use std::path::PathBuf;

/// Time-series streams whose rows age by rules, in SQL.
#[derive(Debug, Parser)]
#[command(name = "ebb", version, about)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve PostgreSQL clients
    Serve {
        #[command(flatten)]
        opening: Opening,
        /// Where to listen, on this machine only; port 0 picks one
        #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:5433")]
        listen: String,
    },
    /// Run SQL inside this process: a shell, a command or a file
    Sql {
        #[command(flatten)]
        opening: Opening,
        /// Run these statements and end
        #[arg(short, value_name = "SQL", conflicts_with = "file")]
        command: Option<String>,
        /// Run the statements of a file and end; each is a transaction of its own unless the file says BEGIN, the first error ends it
        #[arg(short, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Load a csv, ndjson or parquet file into a stream
    Import {
        #[command(flatten)]
        opening: Opening,
        #[command(flatten)]
        import: Import,
    },
    /// Look for damage without changing anything: exit code 0 clean, 1 damage, 2 usage
    Check {
        /// The data directory
        #[arg(long, value_name = "DIR", default_value = "./ebb-data")]
        data_dir: PathBuf,
    },
    /// Tell what streams come to in years: bytes by volume, what is rewritten and moved. Exit code 2 for a file that cannot be run
    Simulate(Simulate),
    /// See real weather data stored, aged, queried and served
    Quickstart {
        /// Keep the data here, instead of in a folder made for it
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// End after showing it
        #[arg(long)]
        no_serve: bool,
    },
}

/// How to open a data directory.
#[derive(Debug, Clone, clap::Args)]
pub struct Opening {
    /// The data directory, made if it is missing
    #[arg(long, value_name = "DIR", default_value = "./ebb-data")]
    pub data_dir: PathBuf,
    /// Run on a clock that starts here and stands still until SYSTEM ADVANCE CLOCK
    #[arg(long, value_name = "TIME")]
    pub simulated_clock: Option<String>,
    /// A server setting for this run, like memory_limit_bytes=1000000000
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
}

// Its group would have the name of the command's.
#[derive(Debug, Clone, clap::Args)]
#[group(skip)]
pub struct Import {
    /// The stream, `name` or `database.name`
    pub stream: String,
    pub file: PathBuf,
    /// Of the file; by its ending if not said
    #[arg(long)]
    pub format: Option<Format>,
    /// Create the stream, with columns as the file has them
    #[arg(long)]
    pub create: bool,
    /// With --create: the time that rows are told by
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,
    /// With --create: PARTITION BY
    #[arg(long, value_name = "EXPRESSION")]
    pub partition_by: Option<String>,
    /// With --create: ORDER BY
    #[arg(long, value_name = "EXPRESSIONS")]
    pub order_by: Option<String>,
    /// csv: what stands for NULL beside nothing
    #[arg(long, value_name = "TEXT")]
    pub null: Option<String>,
    /// csv: between two values
    #[arg(long, value_name = "CHAR", default_value = ",")]
    pub delimiter: char,
}

/// What to simulate, and of which rows.
#[derive(Debug, Clone, clap::Args)]
pub struct Simulate {
    /// CREATE DISK, CREATE STORAGE POLICY, CREATE STREAM, ALTER STREAM ... TTL or SETTING; nothing of it is carried out
    #[arg(long, value_name = "SQL FILE")]
    pub file: PathBuf,
    /// Rows a day and stream, like 250000, 3_000_000 or 3e6
    #[arg(long, value_name = "ROWS", default_value = "1000000", value_parser = count)]
    pub rate: u64,
    #[arg(long, default_value_t = 1.0)]
    pub years: f64,
    /// Flushes a day, each a part of every partition that its rows belong to
    #[arg(long, value_name = "N", default_value_t = 8)]
    pub parts_per_day: u32,
    /// Bytes of a row in a part of codec LZ4, instead of a guess by column types
    #[arg(long, value_name = "BYTES")]
    pub row_bytes: Option<f64>,
    /// Of due rows, what a DELETE WHERE matches and a GROUP BY leaves
    #[arg(long, value_name = "0..1", default_value_t = 0.5)]
    pub share: f64,
    /// The first day
    #[arg(long, value_name = "TIME", default_value = "2026-01-01", value_parser = moment)]
    pub start: Timestamp,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Write a chart of bytes by volume
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// `3000000`, `3_000_000`, `3e6`
fn count(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let whole = || digits.parse::<f64>().ok().filter(|f| f.fract() == 0.0 && (0.0..1e18).contains(f)).map(|f| f as u64);
    digits.parse().ok().or_else(whole).ok_or_else(|| "write a whole number, like 250000, 3_000_000 or 3e6".to_owned())
}

fn moment(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|e: ebb_storage::Error| e.message().to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Csv,
    Ndjson,
    Parquet,
}

#[cfg(test)]
mod tests;
