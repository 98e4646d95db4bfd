//! A store of a server whose requests each ask for so many bytes at most.
//!
//! A client gives a request up after a time, its body included, however steadily it comes, and whoever reads a body slowly holds the
//! request open: so nothing large is ever asked for at once. Whoever reads sees one object: what is long comes as a stream of ranges,
//! each asked for, and tried again, by itself.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, path::Path,
};
use std::{fmt, ops::Range, sync::Arc};

/// Bytes of one request.
pub const RANGE_BYTES: u64 = 8 << 20;
/// Ranges of one object that are on their way at the same time, and in memory.
const RANGES_AHEAD: usize = 2;

#[derive(Debug, Clone)]
pub struct Bounded(Arc<dyn ObjectStore>);

impl Bounded {
    pub fn over(store: Arc<dyn ObjectStore>) -> Self {
        Self(store)
    }

    /// The ranges of a stretch, in order. Each is fetched by a task of its own: a reader that waits for something else meanwhile holds
    /// no request open.
    fn ranges(&self, location: &Path, stretch: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
        let (store, location) = (self.0.clone(), location.clone());
        let starts = (stretch.start..stretch.end).step_by(RANGE_BYTES as usize);
        let ranges = starts.map(move |start| start..stretch.end.min(start.saturating_add(RANGE_BYTES)));
        let fetched = stream::iter(ranges).map(move |range| {
            let (store, location) = (store.clone(), location.clone());
            let task = tokio::spawn(async move { store.get_range(&location, range).await });
            async move { task.await.map_err(|source| object_store::Error::JoinError { source })? }
        });
        fetched.buffered(RANGES_AHEAD).boxed()
    }
}

/// The first bytes of a body, the rest of which is let go of.
async fn first_of(mut body: BoxStream<'static, Result<Bytes>>, length: u64) -> Result<Bytes> {
    let mut first = BytesMut::new();
    while (first.len() as u64) < length
        && let Some(piece) = body.try_next().await?
    {
        first.extend_from_slice(&piece);
    }
    first.truncate(usize::try_from(length).unwrap_or(usize::MAX));
    Ok(first.freeze())
}

impl fmt::Display for Bounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Bounded {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.0.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        let mut asked_end = u64::MAX;
        if let Some(GetRange::Bounded(range)) = &mut options.range {
            asked_end = range.end;
            range.end = range.end.min(range.start.saturating_add(RANGE_BYTES));
        }
        let mut found = self.0.get_opts(location, options).await?;
        let whole = found.range.start..asked_end.min(found.meta.size);
        if whole.end.saturating_sub(whole.start) <= RANGE_BYTES {
            return Ok(found);
        }
        found.payload = match found.payload {
            // Where all was asked for, how much that is was not known before.
            GetResultPayload::Stream(body) => {
                let first_end = whole.start.saturating_add(RANGE_BYTES);
                let rest = self.ranges(location, first_end..whole.end);
                GetResultPayload::Stream(stream::once(first_of(body, RANGE_BYTES)).chain(rest).boxed())
            }
            file => file,
        };
        found.range = whole;
        Ok(found)
    }

    // `get_ranges` is the trait's own: neighbours are joined, and asked for by `get_opts`.

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.0.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests;
