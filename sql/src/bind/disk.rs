//! The options of CREATE DISK. A wrong option is named, its value never: it may be a secret.

use crate::{
    Error, Result, nearest, sqlstate,
    statement::{CreateDisk, DiskOption, Literal},
};
use ebb_engine::NewDisk;
use ebb_storage::disk::{DiskKind, Secret, s3::Endpoint, secret::HIDDEN};

const LOCAL: [&str; 4] = ["type", "path", "capacity_bytes", "max_usage_pct"];
const S3: [&str; 8] =
    ["type", "endpoint", "region", "access_key_id", "secret_access_key", "use_environment_credentials", "capacity_bytes", "max_usage_pct"];

/// # Errors
/// `Invalid` for an option that is unknown, missing or of the wrong type.
pub fn bind(create: &CreateDisk) -> Result<NewDisk> {
    let options = Options(&create.options);
    let at = |e: Error| e.at(create.name.position);
    let ty = options.text("type")?.ok_or_else(|| at(Error::invalid("a disk needs type = 'local' or type = 's3'")))?;
    let kind = match ty.to_ascii_lowercase().as_str() {
        "local" => {
            options.only(&LOCAL, "a local disk")?;
            let path = options.text("path")?.ok_or_else(|| at(Error::invalid("a local disk needs path = '/an/absolute/path'")))?;
            DiskKind::Local { path: path.into() }
        }
        "s3" => {
            options.only(&S3, "an s3 disk")?;
            s3(&options).map_err(at)?
        }
        other => {
            let near = nearest::did_you_mean(other, ["local", "s3"]);
            return Err(options.at("type", Error::invalid(format!("a disk is of type 'local' or 's3', not '{other}'{near}"))));
        }
    };
    let max_usage_pct = match options.number("max_usage_pct")? {
        None => 100,
        Some(n) => u8::try_from(n)
            .ok()
            .filter(|n| (1..=100).contains(n))
            .ok_or_else(|| options.at("max_usage_pct", Error::invalid(format!("max_usage_pct is {n}: 1 to 100"))))?,
    };
    let capacity_bytes = options.number("capacity_bytes")?;
    if capacity_bytes == Some(0) {
        return Err(options.at("capacity_bytes", Error::invalid("capacity_bytes is 0: leave it out for no limit")));
    }
    Ok(NewDisk { name: create.name.text.clone(), kind, capacity_bytes, max_usage_pct })
}

fn s3(options: &Options) -> Result<DiskKind> {
    let endpoint = options.text("endpoint")?.ok_or_else(|| Error::invalid("an s3 disk needs endpoint = 'https://host/bucket'"))?;
    Endpoint::parse(&endpoint).map_err(|e| options.at("endpoint", e.into()))?;
    let access_key_id = options.text("access_key_id")?;
    let secret_access_key = options.text("secret_access_key")?;
    if secret_access_key.as_deref() == Some(HIDDEN) {
        let message = format!("secret_access_key = '{HIDDEN}' is what SHOW CREATE prints instead of the key: write the key itself");
        return Err(options.at("secret_access_key", Error::invalid(message)));
    }
    let secret_access_key = secret_access_key.map(Secret::new);
    let use_environment_credentials = options.flag("use_environment_credentials")?.unwrap_or(false);
    match (use_environment_credentials, &access_key_id, &secret_access_key) {
        (true, None, None) | (false, Some(_), Some(_)) => {}
        (true, ..) => {
            return Err(Error::invalid("use_environment_credentials stands instead of access_key_id and secret_access_key: leave one out"));
        }
        (false, ..) => {
            return Err(Error::invalid("an s3 disk needs access_key_id and secret_access_key, or use_environment_credentials = 1"));
        }
    }
    Ok(DiskKind::S3 { endpoint, region: options.text("region")?, access_key_id, secret_access_key, use_environment_credentials })
}

struct Options<'a>(&'a [DiskOption]);

impl Options<'_> {
    fn find(&self, name: &str) -> Option<&DiskOption> {
        self.0.iter().find(|o| o.name.as_str() == name)
    }

    fn at(&self, name: &str, e: Error) -> Error {
        match self.find(name) {
            Some(option) => e.at(option.name.position),
            None => e,
        }
    }

    fn only(&self, known: &[&str], what: &str) -> Result<()> {
        match self.0.iter().find(|o| !known.contains(&o.name.as_str())) {
            None => Ok(()),
            Some(o) => {
                let near = nearest::did_you_mean(o.name.as_str(), known.iter().copied());
                let near = if near.is_empty() { format!(": it has {}", known.join(", ")) } else { near };
                let message = format!("{what} has no option '{}'{near}", o.name.as_str());
                Err(Error::invalid(message).with_sqlstate(sqlstate::UNDEFINED_OBJECT).at(o.name.position))
            }
        }
    }

    /// The option's value as `read` understands it.
    fn value<T>(&self, name: &str, what: &str, read: impl FnOnce(&Literal) -> Option<T>) -> Result<Option<T>> {
        let Some(option) = self.find(name) else { return Ok(None) };
        match read(&option.value) {
            Some(value) => Ok(Some(value)),
            None => Err(Error::invalid(format!("option {name} must be {what}")).at(option.name.position)),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>> {
        self.value(name, "a text in quotes that is not empty", |v| match v {
            Literal::Text(t) if !t.is_empty() => Some(t.clone()),
            _ => None,
        })
    }

    fn number(&self, name: &str) -> Result<Option<u64>> {
        self.value(name, "a whole number", |v| match v {
            Literal::Number(n) | Literal::Text(n) => n.parse().ok(),
            _ => None,
        })
    }

    fn flag(&self, name: &str) -> Result<Option<bool>> {
        self.value(name, "true, false, 1 or 0", |v| match v {
            Literal::Bool(b) => Some(*b),
            Literal::Number(n) | Literal::Text(n) => truth(n),
            Literal::Null => None,
        })
    }
}

pub(super) fn truth(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
