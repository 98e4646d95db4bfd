//! How DataFusion reads parts: footers are parsed once for each part and generation, since neither ever changes.

use bytes::Bytes;
use datafusion::{
    datasource::{
        listing::PartitionedFile,
        object_store::ObjectStoreUrl,
        physical_plan::{FileScanConfig, parquet::ParquetFileReaderFactory},
        source::DataSourceExec,
    },
    error::{DataFusionError, Result},
    execution::SendableRecordBatchStream,
    parquet::{
        arrow::{arrow_reader::ArrowReaderOptions, async_reader::AsyncFileReader},
        errors::ParquetError,
        file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
    },
    physical_plan::{ExecutionPlan, metrics::ExecutionPlanMetricsSet, stream::RecordBatchStreamAdapter},
};
use ebb_engine::{Hold, LivePart};
use ebb_storage::{
    ids::{Generation, PartId},
    part::store,
};
use futures::{FutureExt, StreamExt, future::BoxFuture};
use object_store::{GetOptions, GetResultPayload, ObjectStore, path::Path};
use parking_lot::Mutex;
use std::{collections::HashMap, fs::File, ops::Range, os::unix::fs::FileExt, sync::Arc};

/// Footers kept; beyond it the cache starts anew.
const FOOTERS_MAX: usize = 8192;

/// Read at once from the end of a remote file: footer and page index, for all but the largest.
const REMOTE_FOOTER_BYTES: usize = 128 << 10;

/// A name that DataFusion wants; parts bring their own store.
pub(crate) fn store_url() -> ObjectStoreUrl {
    ObjectStoreUrl::parse("ebb://parts/").expect("a constant that parses")
}

/// Where a part's file is, attached to DataFusion's file.
#[derive(Clone)]
pub(super) struct PartFile {
    id: (PartId, Generation),
    store: Arc<dyn ObjectStore>,
    key: Path,
    bytes: u64,
    checksum: u64,
    /// As people know it.
    name: Arc<str>,
    /// Each read is a request: few and large ones.
    remote: bool,
    /// The plan outlives the view it was made of; the file must be there when its turn comes.
    _hold: Hold,
}

impl PartFile {
    pub fn of(part: &LivePart) -> Self {
        let placement = &part.meta.placement;
        Self {
            id: (part.meta.id, placement.generation),
            store: part.store.clone(),
            key: part.key.clone(),
            bytes: placement.bytes,
            checksum: placement.checksum,
            name: part.meta.name.as_str().into(),
            remote: part.remote,
            _hold: part.hold.clone(),
        }
    }
}

impl PartFile {
    /// Why it could not be read. A file that is not there is damage: a disk that is away says so itself.
    fn failed(&self, e: object_store::Error) -> ParquetError {
        let e = ebb_storage::Error::from(e);
        ParquetError::External(Box::new(match e.kind() {
            crate::ErrorKind::NotFound => ebb_storage::Error::corrupt(format!("part {} is damaged: {e}", self.name)),
            _ => e.context(format_args!("part {}", self.name)),
        }))
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct FileCache {
    footers: Arc<Mutex<Footers>>,
}

type Footers = HashMap<(PartId, Generation), Arc<ParquetMetaData>>;

impl ParquetFileReaderFactory for FileCache {
    fn create_reader(
        &self,
        _: usize,
        file: PartitionedFile,
        _: Option<usize>,
        _: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let part = file.extension::<PartFile>().cloned();
        let part = part.ok_or_else(|| datafusion::error::DataFusionError::Internal("a file that is no part".to_owned()))?;
        let source = if part.remote { Source::Remote } else { Source::Unknown };
        Ok(Box::new(Reader { part, cache: self.clone(), source }))
    }
}

struct Reader {
    part: PartFile,
    cache: FileCache,
    source: Source,
}

/// Where bytes come from, known after the first read.
enum Source {
    Unknown,
    Local(Arc<File>),
    Remote,
}

impl Reader {
    /// Bytes of the part. A local file is opened once and read in place: its pages are mostly in memory, and the threads that query may
    /// wait for those that are not.
    async fn read(&mut self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, ParquetError> {
        if matches!(self.source, Source::Unknown) {
            // A file is opened whole; of anything else nothing is fetched but what is asked for.
            let range = self.part.remote.then_some(0..1);
            let options = GetOptions::new().with_range(range);
            let found = self.part.store.get_opts(&self.part.key, options).await.map_err(|e| self.part.failed(e))?;
            self.source = match found.payload {
                GetResultPayload::File(file, _) => Source::Local(Arc::new(file)),
                GetResultPayload::Stream(_) => Source::Remote,
            };
        }
        let Source::Local(file) = &self.source else {
            return self.part.store.get_ranges(&self.part.key, ranges).await.map_err(|e| self.part.failed(e));
        };
        let read = |range: &Range<u64>| {
            let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            if range.end > self.part.bytes {
                return Err(ParquetError::EOF(format!("bytes {}..{} of {}", range.start, range.end, self.part.key)));
            }
            let mut bytes = vec![0; length];
            file.read_exact_at(&mut bytes, range.start).map_err(|e| match e.kind() {
                // Too short a file is damage, not a disk that fails.
                std::io::ErrorKind::UnexpectedEof => ParquetError::EOF(format!("{} is cut short", self.part.key)),
                _ => self.part.failed(io_error(&self.part.key, e)),
            })?;
            Ok(Bytes::from(bytes))
        };
        ranges.iter().map(read).collect()
    }
}

fn io_error(key: &Path, e: std::io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "local", source: format!("{key}: {e}").into() }
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move { self.read(&[range]).await?.pop().ok_or_else(|| ParquetError::General("a read without an answer".to_owned())) }.boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        async move { self.read(&ranges).await }.boxed()
    }

    fn get_metadata<'a>(&'a mut self, _: Option<&'a ArrowReaderOptions>) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        async move {
            if let Some(known) = self.cache.footers.lock().get(&self.part.id) {
                return Ok(known.clone());
            }
            let bytes = self.part.bytes;
            let ahead = self.part.remote.then_some(REMOTE_FOOTER_BYTES);
            let mut reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional).with_prefetch_hint(ahead);
            reader.try_load(&mut *self, bytes).await?;
            let footer = Arc::new(reader.finish()?);
            let mut footers = self.cache.footers.lock();
            if footers.len() >= FOOTERS_MAX {
                footers.clear();
            }
            footers.insert(self.part.id, footer.clone());
            Ok(footer)
        }
        .boxed()
    }
}

/// The rows of `plan`; where reading fails as damaged bytes make it fail, the parts are compared with their checksums and the error
/// names the one that is damaged. What is read well is not compared.
pub(crate) fn naming_damage(plan: &Arc<dyn ExecutionPlan>, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut parts = Vec::new();
    parts_of(plan, &mut parts);
    if parts.is_empty() {
        return rows;
    }
    let (schema, parts) = (rows.schema(), Arc::new(parts));
    let rows = rows.then(move |batch| {
        let parts = parts.clone();
        async move {
            match batch {
                Err(e) => Err(named(&parts, e).await),
                batch => batch,
            }
        }
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}

fn parts_of(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<PartFile>) {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
        && let Some(files) = scan.data_source().downcast_ref::<FileScanConfig>()
    {
        found.extend(files.file_groups.iter().flat_map(|g| g.iter()).filter_map(|f| f.extension::<PartFile>().cloned()));
    }
    for child in plan.children() {
        parts_of(child, found);
    }
}

async fn named(parts: &[PartFile], e: DataFusionError) -> DataFusionError {
    use crate::ErrorKind::{Corrupt, Internal, NotFound};
    let said = crate::Error::from(DataFusionError::Shared(Arc::new(e)));
    let damage = matches!(said.kind(), Corrupt | Internal) && said.sqlstate() != crate::sqlstate::QUERY_CANCELED;
    for part in parts.iter().filter(|_| damage) {
        if let Err(found) = store::verify(&part.store, &part.key, part.bytes, part.checksum).await
            && matches!(found.kind(), Corrupt | NotFound)
        {
            return crate::Error::new(Corrupt, format!("part {} is damaged: {found}", part.name)).into();
        }
    }
    said.into()
}
