//! The rows: metrics of 1000 hosts, one reading each ten seconds, in order of time, as a Parquet file that the peers read too.

use arrow::{
    array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray},
    datatypes::{DataType, Field, Schema, TimeUnit},
};
use parquet::{
    arrow::{
        ArrowWriter,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
};

pub const HOSTS: usize = 1000;
const REGIONS: [&str; 4] = ["us-east-1", "us-west-2", "eu-west-1", "ap-south-1"];
/// 2026-01-01 00:00:00 UTC.
const START_SECONDS: i64 = 1_767_225_600;
const ROW_GROUP_ROWS: usize = 1 << 20;
/// Rows decoded at a time: few enough to stay in the cache until they are taken.
const BATCH_ROWS: usize = 1 << 15;

pub fn file(dir: &Path, rows: usize) -> PathBuf {
    let path = dir.join(format!("cpu_{rows}.parquet"));
    if !path.exists() {
        make(&path, rows);
    }
    path
}

/// The file's rows, batch by batch; texts as dictionaries, which is how the file has them.
pub fn read(path: &Path) -> impl Iterator<Item = RecordBatch> + Send + use<> {
    let file = File::open(path).unwrap();
    let known = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).unwrap();
    let coded = |f: &Field| match f.data_type() {
        DataType::Utf8 => f.clone().with_data_type(DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
        _ => f.clone(),
    };
    let schema = Schema::new(known.schema().fields().iter().map(|f| coded(f)).collect::<Vec<_>>());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    let reader = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options).unwrap().with_batch_size(BATCH_ROWS).build().unwrap();
    reader.map(Result::unwrap)
}

/// Each host's three gauges are walks between 0 and 100 with two decimals, its counter anything below a million.
fn make(path: &Path, rows: usize) {
    let schema = Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("host", DataType::Utf8, false),
        Field::new("region", DataType::Utf8, false),
        Field::new("cpu", DataType::Float64, false),
        Field::new("mem", DataType::Float64, false),
        Field::new("disk", DataType::Float64, false),
        Field::new("net", DataType::Int64, false),
    ]));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()))
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), schema.clone(), Some(properties)).unwrap();
    let hosts: Vec<String> = (0..HOSTS).map(|i| format!("host_{i}")).collect();
    let mut random = Random(7);
    let mut walks = vec![[50.0f64; 3]; HOSTS];
    let mut from = 0;
    while from < rows {
        let to = (from + 65_536).min(rows);
        let ts = (from..to).map(|i| (START_SECONDS + (i / HOSTS) as i64 * 10) * 1_000_000);
        let mut gauges: [Vec<f64>; 3] = Default::default();
        for i in from..to {
            for (walk, column) in walks[i % HOSTS].iter_mut().zip(&mut gauges) {
                *walk += random.normal();
                column.push((walk.clamp(0.0, 100.0) * 100.0).round() / 100.0);
            }
        }
        let [cpu, mem, disk] = gauges.map(|g| Arc::new(Float64Array::from(g)) as ArrayRef);
        let columns = vec![
            Arc::new(TimestampMicrosecondArray::from_iter_values(ts)) as ArrayRef,
            Arc::new(StringArray::from_iter_values((from..to).map(|i| &hosts[i % HOSTS]))),
            Arc::new(StringArray::from_iter_values((from..to).map(|i| REGIONS[i % HOSTS % 4]))),
            cpu,
            mem,
            disk,
            Arc::new(Int64Array::from_iter_values((from..to).map(|_| (random.next() % 1_000_000) as i64))),
        ];
        writer.write(&RecordBatch::try_new(schema.clone(), columns).unwrap()).unwrap();
        from = to;
    }
    writer.close().unwrap();
}

/// xorshift64 (Marsaglia, Xorshift RNGs, 2003); the same rows each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// The sum of twelve uniform values less six: mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| (self.next() >> 11) as f64 / (1u64 << 53) as f64).sum::<f64>() - 6.0
    }
}
