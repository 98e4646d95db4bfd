use super::*;
use crate::disks::Opening;
use ebb_storage::{
    ErrorKind,
    disk::{Connect, DiskDef, DiskKind, device, epoch},
    ids::{DatabaseId, DiskId, Epoch},
};
use object_store::{ObjectStoreExt, memory::InMemory};

struct Same(Arc<InMemory>);

impl Connect for Same {
    fn connect(&self, _: &DiskDef, _: bool) -> ebb_storage::Result<Arc<dyn ObjectStore>> {
        Ok(self.0.clone())
    }
}

/// A server puts an upload over whatever is there: one that took long must not end once another opening writes.
#[tokio::test]
async fn an_upload_is_not_completed_once_another_opening_writes_there() {
    let kind = DiskKind::S3 {
        endpoint: "http://h/b".to_owned(),
        region: None,
        access_key_id: None,
        secret_access_key: None,
        use_environment_credentials: true,
    };
    let def = Arc::new(DiskDef { id: DiskId(1), name: "far".to_owned(), kind, capacity_bytes: None, max_usage_pct: 100 });
    let (server, database) = (Arc::new(InMemory::new()), DatabaseId("d".to_owned()));
    let store: Arc<dyn ObjectStore> = server.clone();
    device::mark(&def, &store, &database, |_| false).await.unwrap();
    let opening = Opening { database: database.clone(), epoch: Epoch(1), nonce: "one".into() };
    let disk = Watched(Arc::new(Link::new(def, Arc::new(Same(server)), opening)));
    let key = Path::from("a");
    let mut uploads = Vec::new();
    for _ in 0..2 {
        let mut upload = disk.put_multipart(&key).await.unwrap();
        upload.put_part("x".into()).await.unwrap();
        uploads.push(upload);
    }
    uploads.pop().unwrap().complete().await.unwrap();
    store.put(&key, "theirs".into()).await.unwrap();
    epoch::begin(&store, &database, Epoch(2), "two").await.unwrap();
    let said = Error::from(uploads.pop().unwrap().complete().await.unwrap_err());
    assert_eq!(said.kind(), ErrorKind::Fenced, "{said}");
    assert_eq!(store.get(&key).await.unwrap().bytes().await.unwrap(), "theirs");
}
