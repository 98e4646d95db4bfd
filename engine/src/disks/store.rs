//! A disk beside the data directory as an object store: every call goes over its link, and every error names the disk.
//!
//! After a failed call the disk is looked at, so that an outage is known at once and its end soon. "Not found" on a disk that is not
//! itself any more (unmounted, emptied) is no answer: it is `Unavailable` then. A server that accepts a request and stays silent is
//! found out by asking it for its marker meanwhile.

use super::link::Link;
use async_trait::async_trait;
use bytes::Bytes;
use ebb_storage::Error;
use ebb_storage::clock::within;
use futures::{
    FutureExt, StreamExt,
    future::{self, Either},
    stream,
    stream::BoxStream,
};
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, path::Path,
};
use std::{fmt, ops::Range, pin::pin, sync::Arc, time::Duration};

/// A remote disk that is silent for so long is asked for its marker. A large piece over a slow line takes longer, and such a disk answers;
/// one that accepts connections and is dead does not, and waiting for the client's own limits would take many times as long.
const SILENCE_AFTER: Duration = Duration::from_secs(2);

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

    /// What a call answers, or that the disk is away as soon as that is known.
    async fn answer<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let mut call = pin!(call);
        while self.0.def.is_remote() {
            if let Some(outcome) = within(SILENCE_AFTER, call.as_mut()).await {
                return self.told(outcome).await;
            }
            // It ends: the client gives every request up at last.
            let look = pin!(self.0.check());
            match future::select(call.as_mut(), look).await {
                Either::Left((outcome, _)) => return self.told(outcome).await,
                Either::Right((Err(away), _)) => return Err(wrapped(away)),
                Either::Right((Ok(_), _)) => {}
            }
        }
        let outcome = call.await;
        self.told(outcome).await
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
        let raw = self.ready(true).await?;
        self.answer(raw.put_opts(location, payload, options)).await
    }

    async fn put_multipart_opts(&self, location: &Path, options: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        let raw = self.ready(true).await?;
        let inner = self.answer(raw.put_multipart_opts(location, options)).await?;
        Ok(Box::new(Upload { inner, link: self.0.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let raw = self.ready(false).await?;
        let mut found = self.answer(raw.get_opts(location, options)).await?;
        if let GetResultPayload::Stream(bytes) = found.payload {
            found.payload = GetResultPayload::Stream(self.clone().each(bytes));
        }
        Ok(found)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let raw = self.ready(false).await?;
        self.answer(raw.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let deleted = async move {
            match this.ready(true).await {
                Ok(raw) => this.each(raw.delete_stream(locations)),
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
        let raw = self.ready(false).await?;
        self.answer(raw.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let raw = self.ready(true).await?;
        self.answer(raw.copy_opts(from, to, options)).await
    }
}

impl Watched {
    /// Waits for each of `items` as for an answer.
    fn each<T: Send + 'static>(self, items: BoxStream<'static, Result<T>>) -> BoxStream<'static, Result<T>> {
        let next = |(mut items, this): (BoxStream<'static, Result<T>>, Self)| async move {
            let item = this.answer(async { items.next().await.transpose() }).await.transpose()?;
            Some((item, (items, this)))
        };
        stream::unfold((items, self), next).boxed()
    }

    /// A list is what a sweep goes by: the disk is looked at before it.
    fn listed(
        &self,
        list: impl FnOnce(&Arc<dyn ObjectStore>) -> BoxStream<'static, Result<ObjectMeta>> + Send + 'static,
        this: Self,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = async move {
            match this.ready(true).await {
                Ok(raw) => this.each(list(&raw)),
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
        let (this, part) = (Watched(self.link.clone()), self.inner.put_part(data));
        async move { this.answer(part).await }.boxed()
    }
    async fn complete(&mut self) -> Result<PutResult> {
        // A server would put it over what is there; and it may have taken long, while another opening began to write.
        if self.link.def.is_remote() {
            self.link.check().await.map_err(wrapped)?;
        }
        Watched(self.link.clone()).answer(self.inner.complete()).await
    }
    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

#[cfg(test)]
mod tests;
