//! A store that is read through to another and never writes to it.

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, path::Path,
};
use std::{fmt, ops::Range, sync::Arc};

#[derive(Debug, Clone)]
pub struct Overlay {
    pub below: Arc<dyn ObjectStore>,
    pub above: Arc<dyn ObjectStore>,
}

impl fmt::Display for Overlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.above, self.below)
    }
}

#[async_trait]
impl ObjectStore for Overlay {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.above.put_opts(location, payload, options).await
    }
    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        self.above.put_multipart_opts(location, options).await
    }
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        match self.above.get_opts(location, options.clone()).await {
            Err(Error::NotFound { .. }) => self.below.get_opts(location, options).await,
            found => found,
        }
    }
    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        match self.above.get_ranges(location, ranges).await {
            Err(Error::NotFound { .. }) => self.below.get_ranges(location, ranges).await,
            found => found,
        }
    }
    /// What lies below stays.
    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let above = self.above.clone();
        let delete = move |location: Result<Path>| {
            let above = above.clone();
            async move {
                let location = location?;
                match above.delete(&location).await {
                    Ok(()) | Err(Error::NotFound { .. }) => Ok(location),
                    Err(e) => Err(e),
                }
            }
        };
        locations.then(delete).boxed()
    }
    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.above.list(prefix)
    }
    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.above.list_with_delimiter(prefix).await
    }
    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.above.copy_opts(from, to, options).await
    }
}
