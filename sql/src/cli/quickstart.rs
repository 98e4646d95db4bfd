//! `ebb quickstart`: real weather data stored, aged on a simulated clock, queried and served. Every line it shows comes from a
//! statement that the reader could type.

use super::{complain, say, script::Runner, serve::until_stopped, table::Table};
use crate::{Config, CopyIn, Database, Error, Outcome, Result, wire::Server};
use arrow::{
    array::{Array, AsArray},
    datatypes::Int64Type,
};
use bytes::Bytes;
use ebb_engine::Clock;
use ebb_storage::ids::unique;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

/// Hourly weather at three New York airports in 2013.
static WEATHER: &[u8] = include_bytes!("../../../data/nyc_weather_2013.csv");

const START: &str = "2014-01-01T00:00:00Z";
/// Months that the clock walks.
const MONTHS: u32 = 24;
/// Months between two lines of the table.
const SHOWN_EVERY: u32 = 3;
/// Ports tried from the first on.
const PORTS: std::ops::Range<u16> = 5433..5453;

const CREATE: &str = "\
CREATE STREAM weather (
    origin     low_cardinality(string) COMMENT 'airport',
    time       datetime COMMENT 'start of the hour, UTC',
    temp       nullable(float64) COMMENT 'degrees F',
    humid      nullable(float64) COMMENT 'relative, %',
    wind_speed nullable(float64) COMMENT 'mph',
    precip     nullable(float64) COMMENT 'inches',
    pressure   nullable(float64) COMMENT 'millibars',
    visib      nullable(float64) COMMENT 'miles'
)
PARTITION BY to_YYYYMM(time)
ORDER BY (origin, time)
TTL time + INTERVAL 12 MONTH DELETE WHERE precip = 0,
    time + INTERVAL 30 MONTH DELETE
SETTINGS event_time_column = 'time', merge_with_ttl_timeout = 86400";

const PARTS: &str = "\
SELECT partition, rows, bytes_on_disk AS bytes, next_action, next_action_at, lifecycle_reason AS reason
FROM system.parts WHERE stream = 'weather' AND active ORDER BY partition, name";

const QUERY: &str = "\
SELECT origin, count(*) AS hours, round(avg(temp), 1) AS avg_temp, round(sum(precip), 2) AS rain_inches,
       arg_max(time, precip) AS wettest_hour
FROM weather GROUP BY origin ORDER BY origin";

pub async fn run(data_dir: Option<PathBuf>, no_serve: bool) -> Result<()> {
    let dir = data_dir.unwrap_or_else(|| std::env::temp_dir().join(format!("ebb-quickstart-{}", &unique()[..8])));
    let clock = Clock::simulated(START.parse()?);
    let database = Database::open(Config::new(&dir).with_clock(clock)).await.map_err(|e| e.context(dir.display()))?;
    let mut tour = Tour { runner: Runner::new(database.session()) };
    if let Err(e) = tour.walk().await {
        database.close().await?;
        return Err(e);
    }
    if no_serve {
        say(&format!("\nThe data is in {}.\n", dir.display()));
        return database.close().await;
    }
    let server = free_port().await?;
    let port = server.address().port();
    say(&format!(
        "\nServing {} on a clock that stands at two years after the data, until Ctrl-C. In another terminal:\n\n    psql -h 127.0.0.1 -p {port} -d default\n\n",
        dir.display()
    ));
    until_stopped(server, database).await
}

async fn free_port() -> Result<Server> {
    let mut last = Error::invalid("no port was tried");
    for port in PORTS {
        match Server::bind(&format!("127.0.0.1:{port}")).await {
            Ok(server) => return Ok(server),
            Err(e) => last = e,
        }
    }
    complain(&format!("ports {} to {} are taken", PORTS.start, PORTS.end - 1));
    Err(last)
}

struct Tour {
    runner: Runner,
}

impl Tour {
    async fn walk(&mut self) -> Result<()> {
        self.show(CREATE).await?;
        self.load().await?;
        say("\nWhat lies on disk, and what the rules will do to it:\n\n");
        self.show(PARTS).await?;
        self.show(QUERY).await?;
        say("\nTwo years pass, a month at a time (SYSTEM ADVANCE CLOCK INTERVAL '1 month'; SYSTEM SETTLE):\n\n");
        self.age().await?;
        say("\nWhat is left, and why:\n\n");
        self.show(PARTS).await?;
        self.show(QUERY).await?;
        say("\nWhat the rules did last:\n\n");
        self.show("SELECT event_time, action, part, rows_before, rows_after, reason FROM system.lifecycle_log ORDER BY event_time DESC, part LIMIT 5").await
    }

    /// Prints a statement and its answer.
    async fn show(&mut self, sql: &str) -> Result<()> {
        say(&format!("{sql};\n\n"));
        self.runner.run(sql, &mut Nothing).await?;
        say("\n");
        Ok(())
    }

    async fn quietly(&mut self, sql: &str) -> Result<Option<Outcome>> {
        let session = &mut self.runner.session;
        let mut last = None;
        for statement in session.parse(sql)? {
            let prepared = session.prepare(statement, &[]).await?;
            last = Some(session.execute(&prepared, Vec::new(), CancellationToken::new()).await?);
        }
        Ok(last)
    }

    async fn load(&mut self) -> Result<()> {
        // The file has more columns than the stream: the others are cut away while it is read.
        const COPY: &str =
            "COPY weather (origin, time, temp, humid, wind_speed, precip, pressure, visib) FROM STDIN WITH (FORMAT csv, NULL 'NA')";
        let Some(Outcome::CopyIn(copy)) = self.quietly(COPY).await? else { return Err(Error::internal("COPY did not wait for data")) };
        let rows = feed(copy).await?;
        self.quietly("SYSTEM FLUSH weather; SYSTEM SETTLE weather").await?;
        say(&format!("{rows} hours of weather loaded with COPY ... FROM STDIN.\n"));
        Ok(())
    }

    async fn age(&mut self) -> Result<()> {
        let mut table = Table::of_texts(&["clock", "parts", "rows", "bytes", "since the last line"]);
        let mut seen = 0;
        for month in 0..=MONTHS {
            if month > 0 {
                self.quietly("SYSTEM ADVANCE CLOCK INTERVAL '1 month'; SYSTEM SETTLE weather").await?;
            }
            if month % SHOWN_EVERY == 0 {
                let now = self.one("SELECT to_string(to_date(now())) ").await?;
                let [parts, rows, bytes] = self.numbers("SELECT count(*), coalesce(sum(rows), 0), coalesce(sum(bytes_on_disk), 0) FROM system.parts WHERE stream = 'weather' AND active").await?;
                let [drops, prunes] = self.numbers("SELECT count(*) FILTER (WHERE action = 'drop'), count(*) FILTER (WHERE action <> 'drop') FROM system.lifecycle_log WHERE stream = 'weather'").await?;
                let happened = match (drops + prunes - seen, drops) {
                    (0, _) => String::new(),
                    (n, _) => format!("{n} changes by rules"),
                };
                seen = drops + prunes;
                table.push(vec![now, parts.to_string(), rows.to_string(), bytes.to_string(), happened]);
            }
        }
        say(&table.render_rows());
        Ok(())
    }

    async fn first_row<T>(&mut self, sql: &str, read: impl FnOnce(&arrow::array::RecordBatch) -> T) -> Result<T> {
        use futures::StreamExt;
        let Some(Outcome::Rows { mut stream, .. }) = self.quietly(sql).await? else { return Err(Error::internal("a query gave no rows")) };
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                return Ok(read(&batch));
            }
        }
        Err(Error::internal("a query gave no rows"))
    }

    async fn numbers<const N: usize>(&mut self, sql: &str) -> Result<[i64; N]> {
        self.first_row(sql, |batch| {
            std::array::from_fn(|i| {
                let cast = arrow::compute::cast(batch.column(i), &arrow::datatypes::DataType::Int64);
                cast.map_or(0, |a| if a.is_null(0) { 0 } else { a.as_primitive::<Int64Type>().value(0) })
            })
        })
        .await
    }

    async fn one(&mut self, sql: &str) -> Result<String> {
        self.first_row(sql, |batch| arrow::util::display::array_value_to_string(batch.column(0), 0).unwrap_or_default()).await
    }
}

/// Statements of the tour bring their own data.
struct Nothing;

impl super::script::CopySource for Nothing {
    fn next(&mut self) -> Result<Bytes> {
        Ok(Bytes::new())
    }
}

/// Places of the stream's columns in the file.
const COLUMNS: [usize; 8] = [0, 14, 5, 7, 9, 11, 12, 13];

async fn feed(mut copy: CopyIn) -> Result<u64> {
    let text = std::str::from_utf8(WEATHER).map_err(|e| Error::internal(e.to_string()))?;
    let mut piece = String::new();
    for line in text.lines().skip(1) {
        let values: Vec<&str> = line.split(',').collect();
        let chosen: Vec<&str> = COLUMNS.iter().filter_map(|i| values.get(*i).copied()).collect();
        piece.push_str(&chosen.join(","));
        piece.push('\n');
        if piece.len() > 1 << 16 {
            copy.data(std::mem::take(&mut piece).into()).await?;
        }
    }
    copy.data(piece.into()).await?;
    copy.finish().await
}
