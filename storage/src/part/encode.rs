//! Writing a part's file: sorted batches in, Parquet bytes out, one row group in memory at a time.
//!
//! Plain Parquet that any tool reads: stable field ids, version 1 pages, page index, declared sort order, bloom filters on text columns
//! of the key. The checksum is of the bytes as they are written.

use crate::{
    Error, Result,
    clock::Timestamp,
    codec::{Codec, ColumnCodec},
    column_type::ColumnType,
    ids::ColumnId,
    part::{
        MAX_ROWS,
        compress::Compressors,
        computed::{self, Computed, ComputedValues},
        dictionary::{self, write::Codebook},
        encoding::{self, Choice},
        stats::{Bound, ColumnStats},
        store::piece_bytes,
        value_set::{self, ColumnSet, Gathered},
    },
    stream_def::{IndexDef, IndexKind, StreamDef, TP_TIME},
};
use arrow::{
    array::{Array, ArrayRef, AsArray},
    datatypes::{DataType, Field, Int32Type, SchemaRef},
    record_batch::RecordBatch,
};
use parquet::{
    arrow::{
        ArrowSchemaConverter, add_encoded_arrow_schema_to_metadata,
        arrow_writer::{ArrowColumnChunk, ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves},
    },
    basic::Encoding,
    file::{
        metadata::RowGroupMetaData,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::types::ColumnDescPtr,
};
use std::{collections::HashMap, io::Write, sync::Arc};

/// Rows of a row group: the unit that queries skip and that a prune copies untouched. Larger groups need fewer dictionaries, smaller
/// ones are skipped more often.
pub const ROW_GROUP_ROWS: usize = 262_144;
/// A row group also ends at about this many bytes in memory, so that wide rows stay bounded.
pub const ROW_GROUP_BYTES: usize = 128 << 20;
/// Rows of a data page at the most: the unit that the page index skips.
const PAGE_ROWS: usize = 16_384;
/// A dictionary may grow to this before Parquet falls back to plain values.
const DICTIONARY_BYTES: usize = 2 << 20;
const BLOOM_FALSE_POSITIVES: f64 = 0.01;
const BLOOM_DISTINCT_MAX: u64 = 100_000;

/// How a part is written.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// The file's schema, `_tp_sn` last.
    pub schema: SchemaRef,
    pub codec: Codec,
    pub column_codecs: HashMap<ColumnId, ColumnCodec>,
    /// Names of plain columns that the rows are sorted by, as far as the order goes over plain columns.
    pub sorted_by: Vec<String>,
    /// Columns that get a bloom filter, with its share of false positives.
    pub bloom: Vec<(String, f64)>,
    /// Columns of which a set of values is kept, with how many at the most; 0: as many as may be.
    pub sets: Vec<(ColumnId, u64)>,
    /// What is kept of expressions.
    pub computed: Vec<Computed>,
    pub row_group_rows: usize,
    /// Bytes that are handed to the store at a time.
    pub piece_bytes: usize,
    /// Threads that encode columns side by side.
    pub threads: usize,
}

impl WriteOptions {
    fn false_positives(&self, column: &str) -> Option<f64> {
        self.bloom.iter().find(|(name, _)| name == column).map(|(_, share)| *share)
    }

    /// As `def` says, with `codec` for columns that have none of their own.
    pub fn of(def: &StreamDef, codec: Codec) -> Self {
        let plain = |e: &String| def.column(e).map(|c| c.name.clone()).or_else(|| (e == TP_TIME).then(|| TP_TIME.to_owned()));
        let sorted_by: Vec<String> = def.order_by.iter().map_while(plain).collect();
        let keys = def.order_by.iter().chain(&def.series_key).filter(|k| sorted_by.first() != Some(k));
        let keys = keys.filter(|k| def.column(k).is_some_and(|c| c.ty.is_text())).map(|k| (k.clone(), BLOOM_FALSE_POSITIVES));
        // What an index asks for comes first.
        let bloom = def.indexes.iter().filter_map(|i| bloom_of(i, def)).chain(keys).collect();
        Self {
            schema: def.part_schema(),
            codec,
            column_codecs: def.stored().filter_map(|c| Some((c.id, c.codec?))).collect(),
            sorted_by,
            bloom,
            sets: def.indexes.iter().filter_map(|i| set_of(i, def)).collect(),
            computed: Vec::new(),
            row_group_rows: ROW_GROUP_ROWS,
            piece_bytes: piece_bytes(true, 0),
            threads: 1,
        }
    }
}

/// What an INDEX over a column comes to in a file: every column has bounds for its pages anyway; a set is kept beside the file, for the
/// part, and row groups have the filter that answers the same questions.
fn bloom_of(index: &IndexDef, def: &StreamDef) -> Option<(String, f64)> {
    let false_positives = match index.kind {
        IndexKind::MinMax => return None,
        IndexKind::BloomFilter(ppm) => f64::from(ppm) / 1e6,
        IndexKind::Set(_) => BLOOM_FALSE_POSITIVES,
    };
    let column = def.indexed(index)?;
    // 0 and -0 are equal, and hashed apart.
    let hashes_alike = !matches!(column.ty.plain(), ColumnType::Float32 | ColumnType::Float64);
    hashes_alike.then(|| (column.name.clone(), false_positives))
}

fn set_of(index: &IndexDef, def: &StreamDef) -> Option<(ColumnId, u64)> {
    match index.kind {
        IndexKind::Set(max) => Some((def.indexed(index)?.id, max)),
        _ => None,
    }
}

/// What was written.
#[derive(Debug, Clone)]
pub struct Encoded {
    pub rows: u64,
    pub row_groups: Vec<u64>,
    pub stats: Vec<ColumnStats>,
    pub sets: Vec<ColumnSet>,
    pub computed: Vec<ComputedValues>,
    pub uncompressed_bytes: u64,
    pub bytes: u64,
    /// Of the `_tp_sn` column.
    pub sn_bytes: u64,
    /// xxh3-64 of the file.
    pub checksum: u64,
    pub codec: Codec,
    pub min_time: Timestamp,
    pub max_time: Timestamp,
}

/// Encodes one part into `sink`.
pub struct PartEncoder<W: Write + Send> {
    options: WriteOptions,
    /// Taken when the file begins.
    sink: Option<Hashing<W>>,
    /// Begun with the first row group, whose rows choose the encodings.
    file: Option<(SerializedFileWriter<Hashing<W>>, ArrowRowGroupWriterFactory)>,
    /// How each column is encoded, from when the file begins.
    choices: Vec<Choice>,
    /// Of each column.
    books: Vec<Codebook>,
    buffered: Vec<RecordBatch>,
    buffered_rows: usize,
    buffered_bytes: usize,
    row_groups: Vec<u64>,
    stats: Vec<ColumnStats>,
    /// By place in the schema.
    sets: Vec<(usize, Gathered)>,
    computed: Vec<computed::Gathering>,
    /// What is known of the part that row groups are taken over from.
    foreign: (Vec<ColumnSet>, Vec<ComputedValues>),
    uncompressed_bytes: u64,
    sn_bytes: u64,
    compressors: Compressors,
}

impl<W: Write + Send> PartEncoder<W> {
    pub fn new(sink: W, options: WriteOptions) -> Self {
        let books = options.schema.fields().iter().map(|_| Codebook::default()).collect();
        let place = |id: &ColumnId| options.schema.fields().iter().position(|f| field_id(f) == Some(*id));
        let sets = options.sets.iter().filter_map(|(id, max)| Some((place(id)?, Gathered::new(*id, *max)))).collect();
        let computed = options.computed.iter().cloned().map(computed::Gathering::new).collect();
        Self {
            options,
            computed,
            sink: Some(Hashing::new(sink)),
            file: None,
            choices: Vec::new(),
            books,
            buffered: Vec::new(),
            buffered_rows: 0,
            buffered_bytes: 0,
            row_groups: Vec::new(),
            stats: Vec::new(),
            sets,
            foreign: Default::default(),
            uncompressed_bytes: 0,
            sn_bytes: 0,
            compressors: Compressors::default(),
        }
    }

    /// Rows in the part's order. Columns as in the options' schema; texts may be views, plain or dictionaries.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut rest = batch.clone();
        while rest.num_rows() > 0 {
            let take = rest.num_rows().min(self.options.row_group_rows - self.buffered_rows);
            let head = rest.slice(0, take);
            rest = rest.slice(take, rest.num_rows() - take);
            let bytes = raw_bytes(&head);
            self.uncompressed_bytes += bytes as u64;
            self.buffered_bytes += bytes;
            self.buffered_rows += take;
            self.buffered.push(head);
            if self.buffered_rows >= self.options.row_group_rows || self.buffered_bytes >= ROW_GROUP_BYTES {
                self.end_row_group()?;
            }
        }
        Ok(())
    }

    fn end_row_group(&mut self) -> Result<()> {
        if self.buffered_rows == 0 {
            return Ok(());
        }
        let batches = std::mem::take(&mut self.buffered);
        let rows = std::mem::take(&mut self.buffered_rows);
        self.buffered_bytes = 0;
        for (at, set) in &mut self.sets {
            batches.iter().try_for_each(|b| set.push(b.column(*at)))?;
        }
        self.computed.iter_mut().for_each(|c| batches.iter().for_each(|b| c.push(b)));
        if self.file.is_none() {
            let codecs = &self.options.column_codecs;
            let choose = |(i, f): (usize, &Arc<Field>)| {
                let columns: Vec<&ArrayRef> = batches.iter().map(|b| b.column(i)).collect();
                let own = field_id(f).and_then(|id| codecs.get(&id));
                encoding::choose(&columns, own, own.map_or(self.options.codec, |c| c.codec) != Codec::None)
            };
            let choices = self.options.schema.fields().iter().enumerate().map(choose).collect::<Vec<_>>();
            self.begin(choices)?;
        }
        let (file, factory) = self.file.as_mut().expect("begun above");
        let writers = factory.create_column_writers(self.row_groups.len())?;
        let columns = file.schema_descr().columns().to_vec();
        let unbounded = with_nans(self.options.schema.fields().len(), &batches);
        let writers = match unbounded.contains(&true) {
            true => without_bounds(&self.options, &self.choices, &unbounded, self.row_groups.len(), writers)?,
            false => writers,
        };
        let chunks = encode_columns((&self.options, &self.compressors), &self.choices, &columns, (writers, &mut self.books), &batches)?;
        drop(batches);
        let mut codecs = std::iter::once(self.options.codec).chain(self.options.column_codecs.values().map(|c| c.codec));
        if codecs.any(|c| matches!(c, Codec::Lz4hc(_))) && chunks.iter().any(|c| matches!(c, ColumnChunk::Library(_))) {
            return self.end_row_group_in_lz4hc(chunks);
        }
        let mut group = file.next_row_group()?;
        for chunk in chunks {
            chunk.append_to(&mut group)?;
        }
        let metadata = group.close()?;
        self.closed(&metadata, rows as u64)
    }

    /// Takes note of a row group that was written.
    fn closed(&mut self, metadata: &RowGroupMetaData, rows: u64) -> Result<()> {
        // Where row numbers begin again a deletion would name other rows.
        if self.row_groups.iter().sum::<u64>().saturating_add(rows) > MAX_ROWS {
            return Err(Error::internal(format!("a part of more than {MAX_ROWS} rows")));
        }
        crate::part::stats::fold(&mut self.stats, &self.options.schema, metadata);
        let last = metadata.columns().last().map_or(0, |c| c.compressed_size());
        self.sn_bytes = self.sn_bytes.saturating_add(u64::try_from(last).unwrap_or(0));
        self.row_groups.push(rows);
        Ok(())
    }

    /// Opens the file, whose encodings hold for all of it.
    fn begin(&mut self, choices: Vec<Choice>) -> Result<()> {
        let mut props = properties(&self.options, &choices, &[])?;
        add_encoded_arrow_schema_to_metadata(&self.options.schema, &mut props);
        let parquet_schema = ArrowSchemaConverter::new().convert(&self.options.schema)?;
        let sink = self.sink.take().ok_or_else(|| Error::internal("a part's file was begun twice"))?;
        let file = SerializedFileWriter::new(sink, parquet_schema.root_schema_ptr(), Arc::new(props))?;
        let factory = ArrowRowGroupWriterFactory::new(&file, self.options.schema.clone());
        (self.file, self.choices) = (Some((file, factory)), choices);
        Ok(())
    }

    /// Rows taken so far.
    pub fn rows(&self) -> u64 {
        self.row_groups.iter().sum::<u64>() + self.buffered_rows as u64
    }

    /// Writes the footer. `None` without rows: there is no such part, and nothing was written.
    pub fn finish(mut self) -> Result<Option<Encoded>> {
        self.end_row_group()?;
        let Some((file, _)) = self.file.take() else { return Ok(None) };
        let (bytes, checksum) = file.into_inner()?.finish()?;
        let times = self.stats.iter().find(|s| s.column == ColumnId::TP_TIME);
        let (min_time, max_time) = match times.map(|s| (&s.min, &s.max)) {
            Some((Some(Bound::Int(min)), Some(Bound::Int(max)))) => (Timestamp(*min), Timestamp(*max)),
            _ => return Err(Error::internal("a part without bounds of _tp_time")),
        };
        Ok(Some(Encoded {
            rows: self.row_groups.iter().sum(),
            row_groups: self.row_groups,
            uncompressed_bytes: self.uncompressed_bytes,
            sn_bytes: self.sn_bytes,
            bytes,
            checksum,
            codec: self.options.codec,
            min_time,
            max_time,
            stats: self.stats,
            sets: self.sets.into_iter().filter_map(|(_, set)| set.finish()).collect(),
            computed: self.computed.into_iter().filter_map(computed::Gathering::finish).collect(),
        }))
    }
}

pub(super) fn leaves(t: &DataType) -> usize {
    match t {
        DataType::Struct(fields) => fields.iter().map(|f| leaves(f.data_type())).sum(),
        DataType::List(f) | DataType::Map(f, _) => leaves(f.data_type()),
        _ => 1,
    }
}

pub(super) fn field_id(field: &Field) -> Option<ColumnId> {
    field.metadata().get(parquet::arrow::PARQUET_FIELD_ID_META_KEY)?.parse().ok().map(ColumnId)
}

/// A column's place, its first leaf's, the library's writers of its leaves, its codebook.
type Job<'a> = (usize, usize, Vec<ArrowColumnWriter>, &'a mut Codebook);

/// A column chunk in memory.
enum ColumnChunk {
    Library(ArrowColumnChunk),
    Coded(dictionary::write::Chunk),
}

impl ColumnChunk {
    fn append_to<W: Write + Send>(self, group: &mut SerializedRowGroupWriter<'_, W>) -> Result<()> {
        match self {
            Self::Library(chunk) => chunk.append_to_row_group(group)?,
            Self::Coded(chunk) => group.append_column(&chunk.bytes, chunk.close)?,
        }
        Ok(())
    }
}

/// Does `jobs` on so many threads; their answers in no order.
fn side_by_side<J: Send, A: Send>(threads: usize, jobs: Vec<J>, work: impl Fn(J) -> Result<A> + Sync) -> Result<Vec<A>> {
    let threads = threads.clamp(1, jobs.len().max(1));
    if threads == 1 {
        return jobs.into_iter().map(work).collect();
    }
    let queue = parking_lot::Mutex::new(jobs.into_iter());
    let one = || -> Result<Vec<A>> {
        let mut mine = Vec::new();
        loop {
            let job = queue.lock().next();
            match job {
                Some(job) => mine.push(work(job)?),
                None => return Ok(mine),
            }
        }
    };
    // This thread is one of them: each one that ends leaves the allocator pages that nobody else can use at once.
    let results = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(one)).collect();
        let mine = one();
        let panicked = |_| Err(Error::internal("a thread of an encoder panicked"));
        others.into_iter().map(|h| h.join().unwrap_or_else(panicked)).chain([mine]).collect::<Vec<_>>()
    });
    Ok(results.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// All columns of one row group, on as many threads as the options say.
fn encode_columns(
    (options, compressors): (&WriteOptions, &Compressors),
    choices: &[Choice],
    leaf_columns: &[ColumnDescPtr],
    (writers, books): (Vec<ArrowColumnWriter>, &mut [Codebook]),
    batches: &[RecordBatch],
) -> Result<Vec<ColumnChunk>> {
    // A nested column has several writers; they stay together.
    let mut writers = writers.into_iter();
    let mut jobs: Vec<Job<'_>> = Vec::with_capacity(options.schema.fields().len());
    let mut leaf = 0;
    for ((i, field), book) in options.schema.fields().iter().enumerate().zip(books) {
        let n = leaves(field.data_type());
        jobs.push((i, leaf, writers.by_ref().take(n).collect(), book));
        leaf += n;
    }
    let encode = |(i, leaf, mut writers, book): Job<'_>| -> Result<(usize, Vec<ColumnChunk>)> {
        let field = options.schema.field(i);
        if let (Some(Choice::Dictionary), Some(column)) = (choices.get(i), leaf_columns.get(leaf)) {
            let arrays: Vec<ArrayRef> = batches.iter().map(|b| b.column(i).clone()).collect();
            let options = coded_options(options, field, column);
            if let Some(chunk) = compressors.lend(options.codec, |c| dictionary::write::encode(&options, &arrays, book, c))? {
                return Ok((i, vec![ColumnChunk::Coded(chunk)]));
            }
        }
        if let (Some(Choice::Plain(Encoding::DELTA_BINARY_PACKED)), Some(column)) = (choices.get(i), leaf_columns.get(leaf)) {
            let arrays: Vec<ArrayRef> = batches.iter().map(|b| b.column(i).clone()).collect();
            let options = coded_options(options, field, column);
            if let Some(chunk) = compressors.lend(options.codec, |c| dictionary::delta::encode(&options, &arrays, c))? {
                return Ok((i, vec![ColumnChunk::Coded(chunk)]));
            }
        }
        for batch in batches {
            // The library's dictionaries are not ours: it takes values.
            let array = match batch.column(i).as_any_dictionary_opt() {
                Some(_) => dictionary::read::values_by_row(batch.column(i))?,
                None => batch.column(i).clone(),
            };
            let field = Field::new(field.name(), array.data_type().clone(), field.is_nullable());
            for (writer, leaf) in writers.iter_mut().zip(compute_leaves(&field, &array)?) {
                writer.write(&leaf)?;
            }
        }
        let chunks = writers.into_iter().map(|w| Ok(ColumnChunk::Library(w.close()?)));
        Ok((i, chunks.collect::<Result<_>>()?))
    };
    let mut done = side_by_side(options.threads, jobs, encode)?;
    done.sort_by_key(|(i, _)| *i);
    Ok(done.into_iter().flat_map(|(_, chunks)| chunks).collect())
}

fn coded_options(options: &WriteOptions, field: &Field, column: &ColumnDescPtr) -> dictionary::write::Options {
    let own = field_id(field).and_then(|id| options.column_codecs.get(&id));
    dictionary::write::Options {
        column: column.clone(),
        codec: own.map_or(options.codec, |c| c.codec),
        bloom: options.false_positives(field.name()),
        page_rows: PAGE_ROWS,
        dictionary_bytes: DICTIONARY_BYTES,
    }
}

/// Bytes of a batch's values, whatever their encoding in memory.
pub fn raw_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(raw_array_bytes).sum()
}

/// Bytes of the values of one column.
pub fn raw_array_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        t if t.primitive_width().is_some() => t.primitive_width().unwrap_or(0) * array.len(),
        DataType::Boolean => array.len().div_ceil(8),
        DataType::Utf8View => array.as_string_view().views().iter().map(|v| *v as u32 as usize).sum(),
        DataType::BinaryView => array.as_binary_view().views().iter().map(|v| *v as u32 as usize).sum(),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            if let Some(width) = values.data_type().primitive_width() {
                return width * array.len();
            }
            let lengths: Vec<usize> = match (values.as_string_view_opt(), values.as_string_opt::<i32>()) {
                (Some(v), _) => v.views().iter().map(|v| *v as u32 as usize).collect(),
                (_, Some(v)) => v.offsets().windows(2).map(|w| (w[1] - w[0]) as usize).collect(),
                _ => return values.get_array_memory_size() / values.len().max(1) * array.len(),
            };
            let length = |key: usize| lengths.get(key).copied().unwrap_or(0);
            match dictionary.keys().as_primitive_opt::<Int32Type>() {
                Some(keys) => keys.values().iter().map(|k| length(*k as usize)).sum(),
                None => value_set::numbers(dictionary).into_iter().map(length).sum(),
            }
        }
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    }
}

/// Counts and hashes what passes through.
pub struct Hashing<W> {
    inner: W,
    hash: xxhash_rust::xxh3::Xxh3,
    bytes: u64,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, hash: xxhash_rust::xxh3::Xxh3::new(), bytes: 0 }
    }
    fn finish(mut self) -> Result<(u64, u64)> {
        self.inner.flush()?;
        Ok((self.bytes, self.hash.digest()))
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        let n = self.inner.write(buf)?;
        self.hash.update(&buf[..n]);
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

mod properties;
mod takeover;

use properties::{properties, with_nans, without_bounds};

#[cfg(test)]
mod tests;
