//! SHOW and DESCRIBE.

use super::{place, rows};
use crate::{
    Error, Outcome, Result, RowTag, Session,
    bind::names,
    format,
    statement::{Show, StreamName},
};
use arrow::datatypes::SchemaRef;
use ebb_engine::settings::{Default, SETTINGS, Scope};
use ebb_storage::stream_def::{DefaultKind, SettingValue};

const DESCRIBED: [&str; 7] = ["name", "type", "default_kind", "default_expression", "codec", "ttl", "comment"];

fn names(show: &Show) -> Vec<&str> {
    match show {
        Show::Streams { .. } | Show::Databases { .. } => vec!["name"],
        Show::CreateStream(_) | Show::CreateDisk(_) | Show::CreateStoragePolicy(_) => vec!["statement"],
        Show::Disks => vec!["name", "type", "path"],
        Show::StoragePolicies => vec!["policy_name", "volume_name", "disks"],
        Show::Settings { .. } => vec!["name", "value", "default", "scope", "description"],
        Show::All => vec!["name", "setting", "description"],
        Show::Variable(name) => vec![name],
    }
}

pub(super) fn schema(show: &Show) -> SchemaRef {
    rows::texts_schema(&names(show))
}

pub(super) fn describe_schema() -> SchemaRef {
    rows::texts_schema(&DESCRIBED)
}

pub(super) async fn run(session: &mut Session, show: &Show) -> Result<Outcome> {
    let one = |t: String| vec![Some(t)];
    let manifest = session.shared.engine.manifest();
    let lines: Vec<Vec<Option<String>>> = match show {
        Show::Streams { database, like } => {
            let database = database.as_ref().map_or(session.database(), |d| d.as_str());
            session.shared.check_database(database)?;
            let mut all: Vec<String> = manifest.user_streams().filter(|s| s.def.database == database).map(|s| s.def.name.clone()).collect();
            all.retain(|n| matches(n, like.as_deref()));
            all.sort();
            all.into_iter().map(one).collect()
        }
        Show::Databases { like } => manifest.databases.iter().filter(|n| matches(n, like.as_deref())).cloned().map(one).collect(),
        Show::CreateStream(name) => vec![one(format::create_stream(&names::find(&manifest, name, session.database())?.def))],
        Show::CreateDisk(name) => {
            let def = session.shared.engine.disk_def(name.as_str()).map_err(|e| Error::from(e).at(name.position))?;
            vec![one(place::show_disk(&def)?)]
        }
        Show::CreateStoragePolicy(name) => {
            let policy = session.shared.engine.policy(name.as_str()).map_err(|e| Error::from(e).at(name.position))?;
            vec![one(place::show_policy(&policy))]
        }
        Show::Disks => {
            session.shared.engine.check_disks().await;
            session.shared.engine.disks().into_iter().map(|d| vec![Some(d.name), Some(d.kind.into()), Some(d.path)]).collect()
        }
        Show::StoragePolicies => policies(session),
        Show::Settings { like } => settings(session, like.as_deref()),
        Show::All => session.variables.all().into_iter().map(|(n, v, d)| vec![Some(n.into()), Some(v), Some(d.into())]).collect(),
        Show::Variable(name) => vec![one(variable(session, name)?)],
    };
    rows::texts(&names(show), &lines, RowTag::Fixed("SHOW"))
}

fn policies(session: &Session) -> Vec<Vec<Option<String>>> {
    let all = session.shared.engine.policies();
    let volumes = all.iter().flat_map(|p| p.volumes.iter().map(move |v| (p, v)));
    volumes.map(|(p, v)| vec![Some(p.name.clone()), Some(v.name.clone()), Some(v.disks.join(", "))]).collect()
}

fn variable(session: &Session, name: &str) -> Result<String> {
    if let Some(value) = session.variables.get(name) {
        return Ok(value);
    }
    let unknown = |e| Error::from(e).with_sqlstate(crate::sqlstate::UNDEFINED_OBJECT);
    if let Ok(setting) = ebb_engine::settings::find(Scope::Server, name) {
        return Ok(server_value(session, setting.name));
    }
    ebb_engine::settings::find(Scope::Session, name).map(|_| String::new()).map_err(unknown)
}

fn server_value(session: &Session, name: &str) -> String {
    let default =
        || SETTINGS.iter().find(|s| s.scope == Scope::Server && s.name == name).and_then(|s| s.default_text()).unwrap_or_default();
    session.shared.engine.server_setting(name).as_ref().map_or_else(default, text)
}

fn text(value: &SettingValue) -> String {
    match value {
        SettingValue::Bool(b) => i32::from(*b).to_string(),
        SettingValue::Int(i) => i.to_string(),
        SettingValue::Text(t) => t.clone(),
    }
}

fn settings(session: &Session, like: Option<&str>) -> Vec<Vec<Option<String>>> {
    let line = |s: &ebb_engine::settings::Setting| {
        let value = match s.scope {
            Scope::Session => session.variables.get(s.name).unwrap_or_default(),
            Scope::Server => server_value(session, s.name),
            Scope::Stream => s.default_text().unwrap_or_default(),
        };
        let default = (s.default != Default::None).then(|| s.default_text()).flatten();
        vec![Some(s.name.to_owned()), Some(value), default, Some(s.scope.to_string()), Some(s.description.to_owned())]
    };
    SETTINGS.iter().filter(|s| matches(s.name, like)).map(line).collect()
}

/// SQL's LIKE.
fn matches(name: &str, like: Option<&str>) -> bool {
    let Some(pattern) = like else { return true };
    let (name, pattern) =
        (arrow::array::StringArray::from(vec![name]), arrow::array::Scalar::new(arrow::array::StringArray::from(vec![pattern])));
    arrow::compute::like(&name, &pattern).is_ok_and(|m| m.value(0))
}

pub(super) fn describe(session: &mut Session, name: &StreamName) -> Result<Outcome> {
    let manifest = session.shared.engine.manifest();
    let def = names::find(&manifest, name, session.database())?.def.clone();
    let line = |c: &ebb_storage::stream_def::ColumnDef| {
        let ty = if c.nullable { format!("nullable({})", c.ty) } else { c.ty.to_string() };
        let kind = c.default.as_ref().map(|d| match d.kind {
            DefaultKind::Default => "DEFAULT",
            DefaultKind::Materialized => "MATERIALIZED",
            DefaultKind::Alias => "ALIAS",
        });
        vec![
            Some(c.name.clone()),
            Some(ty),
            Some(kind.unwrap_or("").to_owned()),
            Some(c.default.as_ref().map(|d| d.expr.clone()).unwrap_or_default()),
            Some(c.codec.map(|c| c.to_string()).unwrap_or_default()),
            Some(c.ttl.as_ref().map(|t| t.when.clone()).unwrap_or_default()),
            Some(c.comment.clone()),
        ]
    };
    let lines: Vec<_> = def.columns.iter().map(line).collect();
    rows::texts(&DESCRIBED, &lines, RowTag::Fixed("DESCRIBE"))
}
