//! A disk beside the data directory as an object store: every call goes over its link, and every error names the disk.
//!
//! After a failed call the disk is looked at, so that an outage is known at once and its end soon. "Not found" on a disk that is not
//! itself any more (unmounted, emptied) is no answer: it is `Unavailable` then.

use super::link::Link;
use async_trait::async_trait;
use bytes::Bytes;
use ebb_storage::Error;
use futures::{FutureExt, StreamExt, TryStreamExt, future, stream, stream::BoxStream};
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, path::Path,
};
use std::{fmt, ops::Range, sync::Arc};

#[derive(Debug, Clone)]
pub(super) struct Watched(pub Arc<Link>);

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.def.place())
    }
}

fn wrapped(e: Error) -> object_store::Error {
    object_store::Error::Generic { store: "disk", source: Box::new(e) }
}

impl Watched {
    async fn ready(&self, changing: bool) -> Result<Arc<dyn ObjectStore>> {
        self.0.ready(changing).await.map_err(wrapped)
    }

    /// What to say of a failed call, after a look at the disk.
    async fn told<T>(&self, outcome: Result<T>) -> Result<T> {
        use object_store::Error as E;
        let Err(e) = outcome else { return outcome };
        if matches!(e, E::AlreadyExists { .. } | E::Precondition { .. } | E::NotModified { .. } | E::NotImplemented { .. }) {
            return Err(e);
        }
        match (self.0.check().await, e) {
            (Err(away), _) => Err(wrapped(away)),
            (Ok(_), e @ E::NotFound { .. }) => Err(e),
            (Ok(_), e) => Err(named(&self.0, e)),
        }
    }
}

fn named(link: &Link, e: object_store::Error) -> object_store::Error {
    wrapped(Error::from(e).context(link.def.place()))
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let put = self.ready(true).await?.put_opts(location, payload, options).await;
        self.told(put).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let begun = self.ready(true).await?.put_multipart_opts(location, options).await;
        Ok(Box::new(Upload { inner: self.told(begun).await?, link: self.0.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let found = self.ready(false).await?.get_opts(location, options).await;
        let mut found = self.told(found).await?;
        if let GetResultPayload::Stream(bytes) = found.payload {
            let link = self.0.clone();
            found.payload = GetResultPayload::Stream(bytes.map_err(move |e| named(&link, e)).boxed());
        }
        Ok(found)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let found = self.ready(false).await?.get_ranges(location, ranges).await;
        self.told(found).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let deleted = async move {
            match this.ready(true).await {
                Ok(raw) => {
                    let one = move |outcome| {
                        let this = this.clone();
                        async move { this.told(outcome).await }
                    };
                    raw.delete_stream(locations).then(one).boxed()
                }
                Err(e) => stream::once(future::ready(Err(e))).boxed(),
            }
        };
        deleted.flatten_stream().boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, prefix) = (self.clone(), prefix.cloned());
        self.listed(move |raw| raw.list(prefix.as_ref()), this)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, prefix, offset) = (self.clone(), prefix.cloned(), offset.clone());
        self.listed(move |raw| raw.list_with_offset(prefix.as_ref(), &offset), this)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let found = self.ready(false).await?.list_with_delimiter(prefix).await;
        self.told(found).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let copied = self.ready(true).await?.copy_opts(from, to, options).await;
        self.told(copied).await
    }
}

impl Watched {
    /// A list is what a sweep goes by: the disk is looked at before it.
    fn listed(
        &self,
        list: impl FnOnce(&Arc<dyn ObjectStore>) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
        this: Self,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = async move {
            match this.ready(true).await {
                Ok(raw) => list(&raw)
                    .then(move |outcome| {
                        let this = this.clone();
                        async move { this.told(outcome).await }
                    })
                    .boxed(),
                Err(e) => stream::once(future::ready(Err(e))).boxed(),
            }
        };
        listed.flatten_stream().boxed()
    }
}

/// An upload whose errors name the disk.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    link: Arc<Link>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> object_store::UploadPart {
        let link = self.link.clone();
        self.inner.put_part(data).map(move |done| done.map_err(|e| named(&link, e))).boxed()
    }
    async fn complete(&mut self) -> Result<PutResult> {
        let done = self.inner.complete().await;
        Watched(self.link.clone()).told(done).await
    }
    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}
