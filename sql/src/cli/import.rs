//! `ebb import`: a file into a stream, all of it or nothing, in bounded memory, with a progress bar.
//!
//! Columns are matched by name. Texts are read by the column's own type, so that a value that does not fit is named.

mod ndjson;
mod quotes;

use super::{
    args::{Format, Import, Opening},
    complain, open, say,
};
use crate::{
    Database, Error, Result,
    bind::names,
    execute::append::{Part, append_parts, stream_name},
    functions::type_name,
};
use arrow::{
    array::{ArrayRef, AsArray, RecordBatch, StringArray},
    csv,
    datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit},
};
use ebb_storage::clock::Stopwatch;
use ebb_storage::stream_def::StreamDef;
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressStyle};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::{
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
    sync::Arc,
};

/// Rows of one batch.
const BATCH_ROWS: usize = 65_536;
/// Rows that --create looks at to tell what columns hold.
const SAMPLE_ROWS: usize = 10_000;
/// Batches read ahead of storing.
const AHEAD: usize = 2;

pub async fn run(opening: Opening, import: Import) -> Result<()> {
    let database = open(&opening).await?;
    let watch = Stopwatch::start();
    let done = load(&database, &import).await;
    database.close().await?;
    let rows = done?;
    let seconds = watch.elapsed().as_secs_f64();
    say(&format!("{rows} rows into {} in {seconds:.2} s ({:.0} rows/s)\n", import.stream, rows as f64 / seconds.max(1e-9)));
    Ok(())
}

async fn load(database: &Database, import: &Import) -> Result<u64> {
    let format = format_of(import)?;
    let named = |e: Error| e.context(import.file.display());
    if import.create {
        let columns = columns(import, format).map_err(named)?;
        if columns.is_empty() {
            return Err(named(Error::invalid("there is no row to tell the columns from: create the stream first")));
        }
        let statement = create_statement(import, &columns);
        database.execute(&statement).await?;
        complain(&format!("created {}:\n{statement}", import.stream));
    }
    let name = stream_name(&import.stream)?;
    let def = names::find_on(&database.engine().manifest(), &name, crate::database::DEFAULT_DATABASE)?.0.def.clone();
    let bar = bar(&import.file)?;
    let (sender, receiver) = tokio::sync::mpsc::channel(AHEAD);
    let (reading, counter) = (import.clone(), bar.clone());
    let reader = tokio::task::spawn_blocking(move || {
        let batches = match batches(&reading, format, &def, counter) {
            Ok(batches) => batches,
            Err(e) => return drop(sender.blocking_send(Err(e))),
        };
        for batch in batches {
            // The receiver goes away when storing failed; its error is told.
            if sender.blocking_send(batch).is_err() {
                return;
            }
        }
    });
    let stream = futures::stream::unfold(receiver, |mut r| async move { r.recv().await.map(|b| (b, r)) });
    let appended = append_parts(&database.stream(&import.stream).shared, &import.stream, stream.boxed()).await;
    reader.await.map_err(|e| Error::internal(e.to_string()))?;
    bar.finish_and_clear();
    appended.map_err(named)
}

fn format_of(import: &Import) -> Result<Format> {
    if let Some(format) = import.format {
        return Ok(format);
    }
    match import.file.extension().and_then(|e| e.to_str()).map(str::to_ascii_lowercase).as_deref() {
        Some("csv") => Ok(Format::Csv),
        Some("ndjson" | "jsonl" | "json") => Ok(Format::Ndjson),
        Some("parquet") => Ok(Format::Parquet),
        _ => Err(Error::invalid(format!("{}: say --format csv, ndjson or parquet", import.file.display()))),
    }
}

fn bar(file: &Path) -> Result<ProgressBar> {
    let bytes = std::fs::metadata(file).map_err(|e| Error::from(e).context(file.display()))?.len();
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    Ok(ProgressBar::new(bytes).with_style(style))
}

type Batches = Box<dyn Iterator<Item = Result<Part>>>;

fn whole(rows: RecordBatch) -> Part {
    Part { rows, missing: Vec::new() }
}

/// Batches of the file. Values of csv files come as texts, those of ndjson files as values of the stream's columns.
fn batches(import: &Import, format: Format, def: &StreamDef, bar: ProgressBar) -> Result<Batches> {
    let file = File::open(&import.file)?;
    Ok(match format {
        Format::Parquet => {
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(file).map_err(|e| Error::invalid(format!("no readable parquet file: {e}")))?;
            let (total, bytes) = (builder.metadata().file_metadata().num_rows().max(1) as u64, bar.length().unwrap_or(0));
            let reader = builder.with_batch_size(BATCH_ROWS).build().map_err(|e| Error::invalid(e.to_string()))?;
            Box::new(reader.map(move |batch| {
                let batch = batch.map_err(|e| Error::invalid(e.to_string()))?;
                bar.inc(bytes * batch.num_rows() as u64 / total);
                Ok(whole(batch))
            }))
        }
        Format::Csv => {
            quotes::are_closed(BufReader::new(File::open(&import.file)?), delimiter(import)?)?;
            let schema = as_texts(&csv_header(import)?);
            let null = import.null.clone();
            let reader = csv::ReaderBuilder::new(schema)
                .with_header(true)
                .with_delimiter(delimiter(import)?)
                .with_batch_size(BATCH_ROWS)
                .build(bar.wrap_read(file))
                .map_err(|e| Error::invalid(e.to_string()))?;
            Box::new(reader.map(move |batch| nulled(batch.map_err(|e| Error::invalid(e.to_string()))?, null.as_deref()).map(whole)))
        }
        Format::Ndjson => {
            let keys = ndjson::keys(BufReader::new(File::open(&import.file)?))?;
            Box::new(ndjson::Rows::new(BufReader::new(bar.wrap_read(file)), &keys, def, BATCH_ROWS)?)
        }
    })
}

fn delimiter(import: &Import) -> Result<u8> {
    u8::try_from(u32::from(import.delimiter))
        .map_err(|_| Error::invalid(format!("--delimiter '{}' is no single-byte character", import.delimiter)))
}

/// Nothing, or the text that was named, is NULL.
fn nulled(batch: RecordBatch, null: Option<&str>) -> Result<RecordBatch> {
    let column = |c: &ArrayRef| -> ArrayRef {
        let texts = c.as_string::<i32>();
        Arc::new(texts.iter().map(|t| t.filter(|t| !t.is_empty() && Some(*t) != null)).collect::<StringArray>())
    };
    let columns = batch.columns().iter().map(column).collect();
    RecordBatch::try_new(batch.schema(), columns).map_err(|e| Error::internal(e.to_string()))
}

fn csv_header(import: &Import) -> Result<Schema> {
    let format = csv::reader::Format::default().with_header(true).with_delimiter(delimiter(import)?);
    let (schema, _) = format.infer_schema(File::open(&import.file)?, Some(1)).map_err(|e| Error::invalid(e.to_string()))?;
    Ok(schema)
}

fn as_texts(schema: &Schema) -> SchemaRef {
    Arc::new(Schema::new(schema.fields().iter().map(|f| Field::new(f.name(), DataType::Utf8, true)).collect::<Vec<_>>()))
}

/// What --create makes of the file's rows: names and types.
fn columns(import: &Import, format: Format) -> Result<Vec<(String, String)>> {
    let typed = |schema: &Schema| -> Result<Vec<(String, String)>> {
        schema.fields().iter().map(|f| Ok((f.name().clone(), column_type(f)?))).collect()
    };
    match format {
        Format::Parquet => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(&import.file)?)
                .map_err(|e| Error::invalid(format!("no readable parquet file: {e}")))?;
            typed(builder.schema())
        }
        Format::Ndjson => {
            let mut keys = ndjson::keys(BufReader::new(File::open(&import.file)?))?;
            // JSON has no times.
            for (_, ty) in keys.iter_mut().filter(|(key, ty)| import.time_column.as_ref() == Some(key) && ty == "string") {
                *ty = "datetime64(6, 'UTC')".to_owned();
            }
            Ok(keys)
        }
        Format::Csv => {
            // What stands for NULL must not make a number column a text column.
            let mut sample = String::new();
            let mut reader = BufReader::new(File::open(&import.file)?);
            let null = import.null.clone().unwrap_or_default();
            let separator = import.delimiter.to_string();
            for _ in 0..=SAMPLE_ROWS {
                let mut line = String::new();
                if reader.read_line(&mut line).map_err(|e| Error::invalid(format!("not UTF-8 text: {e}")))? == 0 {
                    break;
                }
                let values =
                    line.trim_end_matches(['\n', '\r']).split(&separator).map(|v| if !null.is_empty() && v == null { "" } else { v });
                sample.push_str(&values.collect::<Vec<_>>().join(&separator));
                sample.push('\n');
            }
            let format = csv::reader::Format::default().with_header(true).with_delimiter(delimiter(import)?);
            let (schema, _) = format.infer_schema(sample.as_bytes(), None).map_err(|e| Error::invalid(e.to_string()))?;
            typed(&schema)
        }
    }
}

/// The type of a stream that holds what the file's column does.
fn column_type(field: &Field) -> Result<String> {
    Ok(match field.data_type() {
        DataType::Timestamp(unit, zone) => {
            let digits = if *unit == TimeUnit::Nanosecond { 9 } else { 6 };
            if zone.is_some() { format!("datetime64({digits}, 'UTC')") } else { format!("datetime64({digits})") }
        }
        DataType::Dictionary(_, value) => column_type(&Field::new(field.name(), value.as_ref().clone(), field.is_nullable()))?,
        DataType::Null | DataType::Time32(_) | DataType::Time64(_) | DataType::Duration(_) | DataType::Interval(_) => "string".to_owned(),
        DataType::Float16 => "float32".to_owned(),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) if *s >= 0 => format!("decimal({p}, {s})"),
        DataType::Decimal256(p, s) if *p <= 38 && *s >= 0 => format!("decimal({p}, {s})"),
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let message = format!("column '{}' is a {}: decimals have 38 digits at the most", field.name(), field.data_type());
            return Err(Error::unsupported(message));
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => match item.data_type() {
            DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "json".to_owned(),
            _ if item.is_nullable() && !item.data_type().is_nested() => format!("array(nullable({}))", column_type(item)?),
            _ => format!("array({})", column_type(item)?),
        },
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => "json".to_owned(),
        other => type_name(other),
    })
}

fn create_statement(import: &Import, columns: &[(String, String)]) -> String {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let is_time = |name: &str| import.time_column.as_deref() == Some(name);
    let column = |(name, ty): &(String, String)| match is_time(name) {
        true => format!("    {} {ty}", quoted(name)),
        false => format!("    {} nullable({ty})", quoted(name)),
    };
    let columns: Vec<String> = columns.iter().map(column).collect();
    let mut sql = format!("CREATE STREAM {} (\n{}\n)", import.stream, columns.join(",\n"));
    let default = import.time_column.as_deref().map(|c| (format!("to_YYYYMM({})", quoted(c)), quoted(c)));
    let partition = import.partition_by.clone().or_else(|| default.as_ref().map(|d| d.0.clone()));
    let order = import.order_by.clone().or_else(|| default.map(|d| d.1));
    if let Some(e) = partition {
        sql.push_str(&format!("\nPARTITION BY {e}"));
    }
    if let Some(e) = order {
        sql.push_str(&format!("\nORDER BY ({e})"));
    }
    if let Some(c) = &import.time_column {
        sql.push_str(&format!("\nSETTINGS event_time_column = '{}'", quoted(c).replace('\'', "''")));
    }
    sql
}

#[cfg(test)]
mod tests;
