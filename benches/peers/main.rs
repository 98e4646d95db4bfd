//! Ebb's work beside its peers': the same rows and the same work as `peers.py`, printed as the same JSON lines.
//!
//! ```text
//! python3 -m venv v && v/bin/pip install chdb duckdb pyarrow numpy
//! v/bin/python benches/peers/peers.py --rows 10000000 --dir DIR
//! cargo bench --bench peers -- --rows 10000000 --dir DIR [--only ingest,small,...]
//! ```
//!
//! Whichever runs first makes `DIR/cpu_ROWS.parquet`; the other reads it. Each query runs four times and the best counts. Two threads work.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a bench stops at the first thing that is wrong")]

mod ageing;
mod copying;
mod history;
mod inserts;
mod manifest;
mod rows;
mod stream;

use clap::Parser;
use ebb_storage::clock::Stopwatch;
use std::path::PathBuf;

/// As the program has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Parser)]
struct Args {
    /// Rows of the stream.
    #[arg(long, default_value_t = 10_000_000)]
    rows: usize,
    /// Where the rows lie and the databases are made.
    #[arg(long)]
    dir: PathBuf,
    /// Some of: stream, copy, inserts, manifest, ageing, history; of ageing alone: many_parts, recompress.
    #[arg(long, value_delimiter = ',', default_value = "stream,copy,inserts,manifest,ageing,history")]
    only: Vec<String>,
    /// Cargo says so.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() {
    ebb::cli::allocator::keep_pages_for_a_while();
    let args = Args::parse();
    std::fs::create_dir_all(&args.dir).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for part in &args.only {
        match part.as_str() {
            "stream" => runtime.block_on(stream::run(&args.dir, args.rows)),
            "copy" => runtime.block_on(copying::run(&args.dir, args.rows)),
            "inserts" => runtime.block_on(inserts::run(&args.dir)),
            "manifest" => runtime.block_on(manifest::run(&args.dir)),
            "ageing" => runtime.block_on(ageing::run(&args.dir, args.rows)),
            "history" => runtime.block_on(history::run(&args.dir, args.rows)),
            // Parts of what "ageing" runs.
            "many_parts" => runtime.block_on(ageing::many_parts(&args.dir)),
            "recompress" => runtime.block_on(ageing::recompressions(&args.dir, args.rows)),
            "prune_memory" => runtime.block_on(ageing::prune_memory(&args.dir)),
            other => panic!("--only {other}: stream, copy, inserts, manifest, ageing, history"),
        }
    }
}

/// A line as the peers print it.
#[derive(Default, serde::Serialize)]
struct Line {
    peer: &'static str,
    work: String,
    seconds: Option<f64>,
    rows: Option<u64>,
    bytes: Option<u64>,
}

fn say(work: &str, watch: Option<&Stopwatch>, rows: Option<u64>, bytes: Option<u64>) {
    say_seconds(work, watch.map(|w| w.elapsed().as_secs_f64()), rows, bytes);
}

fn say_seconds(work: &str, seconds: Option<f64>, rows: Option<u64>, bytes: Option<u64>) {
    let seconds = seconds.map(|s| (s * 1e6).round() / 1e6);
    let line = Line { peer: "ebb", work: work.to_owned(), seconds, rows, bytes };
    println!("{}", serde_json::to_string(&line).unwrap());
}

/// An empty folder of this name.
fn fresh(dir: &std::path::Path, name: &str) -> PathBuf {
    let dir = dir.join(name);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    dir
}
