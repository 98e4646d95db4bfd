//! Reports as one JSON object: `{"streams": [...]}`, times as ISO 8601, bytes and rows as numbers.

use ebb_engine::simulate::{Moment, Report};
use serde_json::{Map, Value, json};

pub fn json(reports: &[Report]) -> String {
    let streams: Vec<Value> = reports.iter().map(of_stream).collect();
    format!("{:#}\n", json!({ "streams": streams }))
}

fn of_stream(r: &Report) -> Value {
    let by_volume =
        |values: Vec<Value>| -> Value { Value::Object(r.volumes.iter().map(|v| v.name.clone()).zip(values).collect::<Map<_, _>>()) };
    let moment = |m: &Moment| {
        json!({
            "at": m.at.to_string(),
            "rows": m.rows,
            "parts": m.parts,
            "partitions": m.partitions,
            "bytes": by_volume(m.bytes.iter().map(|b| json!(b)).collect()),
            "written_bytes": m.written_bytes,
            "moved_bytes": m.moved_bytes,
            "oldest_row": m.oldest_row.map(|t| t.to_string()),
        })
    };
    let t = &r.totals;
    let causes = t.causes.iter().map(
        |c| json!({ "cause": c.name, "jobs": c.jobs, "parts": c.parts, "read_bytes": c.read_bytes, "written_bytes": c.written_bytes }),
    );
    json!({
        "stream": r.stream,
        "start": r.start.to_string(),
        "end": r.end.to_string(),
        "storage_policy": r.policy,
        "assumptions": r.assumptions,
        "volumes": r.volumes.iter().map(|v| json!({
            "name": v.name,
            "disks": v.disks,
            "capacity_bytes": v.capacity_bytes,
            "peak_bytes": v.peak_bytes,
            "peak_at": v.peak_at.to_string(),
        })).collect::<Vec<_>>(),
        "moments": r.moments.iter().map(moment).collect::<Vec<_>>(),
        "curve": {
            "at": r.curve.at.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "bytes": by_volume(r.curve.bytes.iter().map(|line| json!(line)).collect()),
        },
        "totals": {
            "inserted_rows": t.inserted_rows,
            "inserted_bytes": t.inserted_bytes,
            "refused_rows": t.refused_rows,
            "removed_rows": t.removed_rows,
            "dropped_parts": t.dropped_parts,
            "dropped_bytes": t.dropped_bytes,
            "written_bytes": t.written_bytes,
            "write_amplification": t.write_amplification(),
            "causes": causes.collect::<Vec<_>>(),
        },
        "rules": r.rules.iter().map(|rule| json!({
            "rule": rule.rule,
            "parts": rule.parts,
            "rows": rule.rows,
            "first_at": rule.first_at.map(|t| t.to_string()),
        })).collect::<Vec<_>>(),
        "warnings": r.warnings.iter().map(|w| json!({ "at": w.at.map(|t| t.to_string()), "text": w.text })).collect::<Vec<_>>(),
    })
}
