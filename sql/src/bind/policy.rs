//! The body of CREATE STORAGE POLICY, and back to text. Every key is known or refused with the nearest one.

use super::{
    disk::truth,
    yaml::{self, Node, Value, error, scalar},
};
use crate::{Error, Result, nearest};
use ebb_storage::disk::{LoadBalancing, StoragePolicy, Volume, policy::MOVE_FACTOR};
use std::fmt::Write;

const POLICY_KEYS: [&str; 2] = ["volumes", "move_factor"];
const VOLUME_KEYS: [&str; 7] = [
    "disk",
    "max_data_part_size_bytes",
    "max_data_part_size_ratio",
    "load_balancing",
    "perform_ttl_move_on_insert",
    "prefer_not_to_merge",
    "volume_priority",
];

/// # Errors
/// `Invalid`, naming the policy, the line and the key.
pub fn bind(name: &str, body: &str) -> Result<StoragePolicy> {
    read(name, body).map_err(|e| e.context(format_args!("storage policy '{name}'")))
}

fn read(name: &str, body: &str) -> Result<StoragePolicy> {
    let (mut volumes, mut move_factor) = (None, None);
    for (key, node) in map(&yaml::parse(body)?, "a policy")? {
        match key.as_str() {
            "volumes" => volumes = Some(read_volumes(node)?),
            "move_factor" => move_factor = Some(share(key, node, true)?),
            _ => return Err(unknown(key, node, "a policy", &POLICY_KEYS)),
        }
    }
    let volumes = volumes.ok_or_else(|| Error::invalid("'volumes' is missing: volumes: {hot: {disk: default}}"))?;
    let move_factor = move_factor.unwrap_or(if volumes.len() > 1 { MOVE_FACTOR } else { 0.0 });
    Ok(StoragePolicy { name: name.to_owned(), version: 0, volumes, move_factor })
}

fn read_volumes(node: &Node) -> Result<Vec<Volume>> {
    let mut volumes = Vec::new();
    for (name, node) in map(node, "'volumes'")? {
        if name.is_empty() {
            return Err(error(node.line, "a volume needs a name"));
        }
        volumes.push(read_volume(name, node).map_err(|e| e.context(format_args!("volume '{name}'")))?);
    }
    if volumes.is_empty() {
        return Err(error(node.line, "'volumes' is empty: a policy needs one at least"));
    }
    let stated = volumes.iter().filter(|v| v.volume_priority.is_some()).count();
    if stated > 0 {
        if stated < volumes.len() {
            return Err(error(node.line, "volume_priority stands at every volume or at none"));
        }
        volumes.sort_by_key(|v| v.volume_priority);
        if let Some(pair) = volumes.windows(2).find(|w| w[0].volume_priority == w[1].volume_priority) {
            return Err(error(node.line, format_args!("volumes '{}' and '{}' have one volume_priority", pair[0].name, pair[1].name)));
        }
    }
    Ok(volumes)
}

fn read_volume(name: &str, node: &Node) -> Result<Volume> {
    let mut v = Volume::new(name, Vec::new());
    for (key, node) in map(node, "a volume")? {
        match key.as_str() {
            key if is_disk(key) => {
                for disk in names(key, node)? {
                    if v.disks.contains(&disk) {
                        return Err(error(node.line, format_args!("disk '{disk}' is there twice")));
                    }
                    v.disks.push(disk);
                }
            }
            "max_data_part_size_bytes" => v.max_data_part_size_bytes = Some(number(key, node)?),
            "max_data_part_size_ratio" => v.max_data_part_size_ratio = Some(share(key, node, false)?),
            "load_balancing" => {
                v.load_balancing = match text(key, node)?.to_ascii_lowercase().as_str() {
                    "round_robin" => LoadBalancing::RoundRobin,
                    "least_used" => LoadBalancing::LeastUsed,
                    other => {
                        let near = nearest::did_you_mean(other, ["round_robin", "least_used"]);
                        return Err(error(node.line, format_args!("load_balancing is round_robin or least_used, not '{other}'{near}")));
                    }
                }
            }
            "perform_ttl_move_on_insert" => v.perform_ttl_move_on_insert = flag(key, node)?,
            "prefer_not_to_merge" => v.prefer_not_to_merge = flag(key, node)?,
            "volume_priority" => v.volume_priority = Some(number(key, node)?),
            _ => return Err(unknown(key, node, "a volume", &VOLUME_KEYS)),
        }
    }
    match v.disks.is_empty() {
        true => Err(error(node.line, "it has no disk: disk: default")),
        false => Ok(v),
    }
}

/// `disk`, `disk1`, `disk_2`
fn is_disk(key: &str) -> bool {
    key.strip_prefix("disk").is_some_and(|rest| rest.strip_prefix('_').unwrap_or(rest).bytes().all(|b| b.is_ascii_digit()) && rest != "_")
}

fn unknown(key: &str, node: &Node, what: &str, known: &[&str]) -> Error {
    let near = nearest::did_you_mean(key, known.iter().copied());
    let near = if near.is_empty() { format!(": it has {}", known.join(", ")) } else { near };
    error(node.line, format_args!("{what} has no key '{key}'{near}"))
}

fn map<'a>(node: &'a Node, what: &str) -> Result<&'a [(String, Node)]> {
    match &node.value {
        Value::Map(map) => Ok(map),
        _ => Err(error(node.line, format_args!("{what} must be a mapping (key: value)"))),
    }
}

fn text<'a>(key: &str, node: &'a Node) -> Result<&'a str> {
    match &node.value {
        Value::Plain(text) | Value::Quoted(text) if !text.is_empty() => Ok(text),
        _ => Err(error(node.line, format_args!("'{key}' needs a value"))),
    }
}

fn names(key: &str, node: &Node) -> Result<Vec<String>> {
    match &node.value {
        Value::List(list) if !list.is_empty() => list.iter().map(|n| text(key, n).map(str::to_owned)).collect(),
        _ => Ok(vec![text(key, node)?.to_owned()]),
    }
}

fn number(key: &str, node: &Node) -> Result<u64> {
    text(key, node)?.parse().map_err(|_| error(node.line, format_args!("'{key}' must be a whole number")))
}

/// A number up to 1.
fn share(key: &str, node: &Node, zero: bool) -> Result<f64> {
    let number: Option<f64> = text(key, node)?.parse().ok();
    let low = if zero { "0 or more" } else { "above 0" };
    number
        .filter(|n| n.is_finite() && *n <= 1.0 && (*n > 0.0 || zero && *n >= 0.0))
        .ok_or_else(|| error(node.line, format_args!("'{key}' must be a number {low} and 1 at the most")))
}

fn flag(key: &str, node: &Node) -> Result<bool> {
    truth(text(key, node)?).ok_or_else(|| error(node.line, format_args!("'{key}' must be true, false, 1 or 0")))
}

/// The body that makes the policy: what is as it would be anyway is left out.
pub fn body(policy: &StoragePolicy) -> String {
    let mut out = String::from("volumes:\n");
    let mut line = |indent: usize, text: String| _ = writeln!(out, "{:indent$}{text}", "");
    for v in &policy.volumes {
        line(2, format!("{}:", scalar(&v.name)));
        match v.disks.as_slice() {
            [one] => line(4, format!("disk: {}", scalar(one))),
            several => {
                line(4, "disk:".to_owned());
                several.iter().for_each(|d| line(6, format!("- {}", scalar(d))));
            }
        }
        let bytes = v.max_data_part_size_bytes.map(|n| format!("max_data_part_size_bytes: {n}"));
        let ratio = v.max_data_part_size_ratio.map(|n| format!("max_data_part_size_ratio: {n}"));
        let balancing = (v.load_balancing == LoadBalancing::LeastUsed).then(|| "load_balancing: least_used".to_owned());
        let on_insert = (!v.perform_ttl_move_on_insert).then(|| "perform_ttl_move_on_insert: false".to_owned());
        let unmerged = v.prefer_not_to_merge.then(|| "prefer_not_to_merge: true".to_owned());
        let priority = v.volume_priority.map(|n| format!("volume_priority: {n}"));
        [bytes, ratio, balancing, on_insert, unmerged, priority].into_iter().flatten().for_each(|text| line(4, text));
    }
    line(0, format!("move_factor: {}", policy.move_factor));
    out
}

#[cfg(test)]
mod tests;
