//! Arguments.

use clap::{Parser, Subcommand, ValueEnum};
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Csv,
    Ndjson,
    Parquet,
}

#[cfg(test)]
mod tests;
