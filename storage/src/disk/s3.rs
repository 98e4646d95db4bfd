//! A bucket, or a folder of one, as a disk.
//!
//! A server that is away is noticed within seconds: connecting, retrying and answering all have bounds. Objects are created on
//! condition that they do not exist, which the server must understand. Nothing here may print the secret key.

use super::{bounded::Bounded, device::DiskKind};
use crate::{Error, Result};
use object_store::{
    BackoffConfig, ClientOptions, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, S3ConditionalPut},
    path::Path,
    prefix::PrefixStore,
};
use std::{sync::Arc, time::Duration};

/// A handshake across the world takes less than half a second; what takes longer is a host that drops packets.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// For one request, its body included: 8 MiB over a line of 300 KB/s, and no more is asked for at once ([`Bounded`]); pieces of an
/// upload are larger only where the object is of more than 70 GiB. A server that says nothing at all is found out earlier, by whoever
/// uses the disk.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const RETRIES_MAX: usize = 3;
/// No retry begins later than this after the first attempt: a server that restarts is back by then, and callers retry in their turn.
const RETRY_TIMEOUT: Duration = Duration::from_secs(8);
const DEFAULT_REGION: &str = "us-east-1";

/// `http(s)://host[:port]/bucket[/prefix]`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// `http://host:port`
    pub server: String,
    pub bucket: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

impl Endpoint {
    /// # Errors
    /// `Invalid`, saying what is missing. User names and passwords do not belong here and are not repeated.
    pub fn parse(text: &str) -> Result<Self> {
        let shape = "an endpoint looks like https://host[:port]/bucket[/prefix]";
        let (scheme, rest) = text.split_once("://").ok_or_else(|| Error::invalid(format!("{shape}: there is no :// in it")))?;
        let scheme = scheme.to_ascii_lowercase();
        if !["http", "https"].contains(&scheme.as_str()) {
            return Err(Error::invalid(format!("{shape}: '{scheme}' is neither http nor https")));
        }
        if rest.contains(['@', '?', '#']) || rest.contains(char::is_whitespace) {
            return Err(Error::invalid(format!("{shape}: without user, password, query or blanks")));
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.is_empty() {
            return Err(Error::invalid(format!("{shape}: the host is missing in '{text}'")));
        }
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        if bucket.is_empty() {
            return Err(Error::invalid(format!("{shape}: the bucket is missing in '{text}'")));
        }
        let prefix = Path::parse(prefix).map_err(|e| Error::invalid(format!("{shape}: the prefix of '{text}': {e}")))?;
        Ok(Self { server: format!("{scheme}://{}", host.to_ascii_lowercase()), bucket: bucket.to_owned(), prefix: prefix.to_string() })
    }

    /// Whether one of the two lies in the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let within = |a: &str, b: &str| b.is_empty() || a == b || a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        let same = self.server == other.server && self.bucket == other.bucket;
        same && (within(&self.prefix, &other.prefix) || within(&other.prefix, &self.prefix))
    }

    /// The address of an object, as people write it.
    pub fn address(&self, key: &str) -> String {
        let parts = [self.bucket.as_str(), &self.prefix, key];
        let parts: Vec<&str> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        format!("s3://{}", parts.join("/"))
    }
}

/// # Errors
/// `Invalid` for an endpoint or keys that cannot be used.
pub fn connect(kind: &DiskKind) -> Result<Arc<dyn ObjectStore>> {
    let DiskKind::S3 { endpoint, region, access_key_id, secret_access_key, use_environment_credentials } = kind else {
        return Err(Error::internal("not a remote disk"));
    };
    let at = Endpoint::parse(endpoint)?;
    let mut builder = match (use_environment_credentials, access_key_id, secret_access_key) {
        (true, ..) => AmazonS3Builder::from_env(),
        (false, Some(id), Some(key)) => AmazonS3Builder::new().with_access_key_id(id).with_secret_access_key(key.reveal()),
        _ => {
            return Err(Error::invalid(
                "an s3 disk needs access_key_id and secret_access_key, or use_environment_credentials = true".to_owned(),
            ));
        }
    };
    if let Some(region) = region {
        builder = builder.with_region(region);
    } else if !use_environment_credentials {
        builder = builder.with_region(DEFAULT_REGION);
    }
    let http = at.server.starts_with("http://");
    let client = ClientOptions::new().with_connect_timeout(CONNECT_TIMEOUT).with_timeout(REQUEST_TIMEOUT).with_allow_http(http);
    let backoff = BackoffConfig { init_backoff: Duration::from_millis(100), max_backoff: Duration::from_secs(1), base: 2.0 };
    let store = builder
        .with_endpoint(&at.server)
        .with_bucket_name(&at.bucket)
        .with_virtual_hosted_style_request(false)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_client_options(client)
        .with_retry(RetryConfig { backoff, max_retries: RETRIES_MAX, retry_timeout: RETRY_TIMEOUT })
        .build()
        .map_err(|e| Error::invalid(e.to_string()))?;
    let store: Arc<dyn ObjectStore> = match at.prefix.is_empty() {
        true => Arc::new(store),
        false => Arc::new(PrefixStore::new(store, Path::from(at.prefix))),
    };
    Ok(Arc::new(Bounded::over(store)))
}

#[cfg(test)]
mod tests;
