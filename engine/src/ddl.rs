//! Definitions: databases, streams, settings. Each statement is one conditional commit of the manifest; TRUNCATE is a record.

use crate::{
    Engine,
    append::NewRecord,
    core::Core,
    delete::{rows_seen, whole_partition},
    disks::{checked_destinations, kept_volumes, no_policy},
    ingest::{content::NewLineage, flush},
    limits,
    stream::Compiled,
};
use ebb_storage::{
    Error, ErrorKind, Result,
    ids::{BranchId, SchemaVersion, Sn, StreamId},
    manifest::{Edit, Expect, Manifest},
    stream_def::{SYSTEM_DATABASE, SettingValue, StreamDef},
    verb::Verb,
};
use std::sync::Arc;

impl Core {
    /// Commits, and shows the new manifest to readers in the same step.
    pub async fn commit(&self, edits: Vec<Edit>, expect: Vec<Expect>) -> Result<Arc<Manifest>> {
        self.committer.commit(edits, expect, self.shows()).await
    }

    /// Shows a new manifest to readers.
    pub fn shows(&self) -> impl FnOnce(&Arc<Manifest>) + Send + 'static {
        let live = self.live.clone();
        move |manifest| live.publish(|live| live.manifest = manifest.clone())
    }
}

/// A stream of the name that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    New(StreamId),
    /// It was there before, or another came first. Its rows are its own.
    There(StreamId),
}

impl Engine {
    pub async fn create_database(&self, name: &str, if_not_exists: bool) -> Result<()> {
        if name.is_empty() {
            return Err(Error::invalid("a database needs a name"));
        }
        let edits = |m: &Manifest, _| match m.databases.contains(name) {
            true => Err(Error::conflict(format!("database '{name}' exists already"))),
            false => Ok(vec![Edit::CreateDatabase { name: name.to_owned() }]),
        };
        let done = self.core.committer.commit_with(Vec::new(), edits, self.core.shows()).await;
        match done {
            Err(e) if e.kind() == ErrorKind::Conflict && if_not_exists => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// With all its streams.
    pub async fn drop_database(&self, name: &str, if_exists: bool) -> Result<()> {
        if ["default", "system"].contains(&name) {
            return Err(Error::invalid(format!("database '{name}' is part of every Ebb and cannot be dropped")));
        }
        let mut dropped = Vec::new();
        let edits = |m: &Manifest, _| {
            if !m.databases.contains(name) {
                return Err(Error::not_found(format!("database '{name}' does not exist")));
            }
            dropped = m.streams().filter(|s| s.def.database == name).map(|s| s.def.id).collect();
            m.streams().filter(|s| s.def.database == name).for_each(|s| self.core.remember_name(&s.def));
            let mut edits = drops(&self.core, &dropped);
            edits.push(Edit::DropDatabase { name: name.to_owned() });
            Ok(edits)
        };
        let done = self.core.committer.commit_with(Vec::new(), edits, self.core.shows()).await;
        match done {
            Err(e) if e.kind() == ErrorKind::NotFound && if_exists => return Ok(()),
            other => other?,
        };
        for id in dropped {
            self.forget(id);
        }
        self.core.appender.trim(&self.core).await;
        Ok(())
    }

    /// [`Self::create_stream_unless_there`], whose id it is; `Conflict` where one was there, but with `if_not_exists`.
    pub async fn create_stream(&self, def: StreamDef, if_not_exists: bool) -> Result<StreamId> {
        let name = def.full_name();
        match self.create_stream_unless_there(def).await? {
            Created::There(_) if !if_not_exists => Err(Error::conflict(format!("stream {name} exists already"))),
            Created::New(id) | Created::There(id) => Ok(id),
        }
    }

    /// `def` as bound, but for its id, creation time and versions, which are given here.
    ///
    /// # Errors
    /// `NotFound` without the database.
    pub async fn create_stream_unless_there(&self, def: StreamDef) -> Result<Created> {
        not_system(&def.database)?;
        // Expressions that do not compile are refused before anything is written.
        Compiled::new(&Arc::new(def.clone()), &self.core.server(), self.core.options.compiler.as_ref())?;
        let name = def.full_name();
        let mut created = Created::New(StreamId::default());
        let edits = |m: &Manifest, (_, time)| {
            if !m.databases.contains(&def.database) {
                return Err(Error::not_found(format!("database '{}' does not exist: CREATE DATABASE {}", def.database, def.database)));
            }
            if let Some(found) = m.stream_named(&def.database, &def.name) {
                created = Created::There(found.def.id);
                return Err(Error::conflict(format!("stream {name} exists already")));
            }
            let policy = m.policy(Manifest::policy_name(&def)).ok_or_else(|| no_policy(m, Manifest::policy_name(&def)))?;
            checked_destinations(&def, &policy)?;
            let id = m.next_stream;
            created = Created::New(id);
            let first = SchemaVersion(1);
            let mut def = StreamDef { id, created_at: time, schema_version: first, policy_version: 1, ..def };
            for c in &mut def.columns {
                c.since = first;
            }
            Ok(vec![Edit::CreateStream(Box::new(def))])
        };
        let done = self.core.committer.commit_with(Vec::new(), edits, self.core.shows()).await;
        match (done, created) {
            (Err(e), Created::There(_)) if e.kind() == ErrorKind::Conflict => Ok(created),
            (done, created) => done.map(|_| created),
        }
    }

    /// Commits what `change` makes of the definition, with versions raised (see [`StreamDef::following`]); it is asked again where another
    /// ALTER or a RENAME came first.
    ///
    /// # Errors
    /// `NotFound` without the stream; what `change` says; `Invalid` where the new definition does not compile.
    pub async fn alter_stream(
        &self,
        stream: StreamId,
        mut change: impl FnMut(&StreamDef) -> Result<StreamDef> + Send,
    ) -> Result<Arc<StreamDef>> {
        for _ in 0..limits::ALTER_ATTEMPTS {
            let old = self.core.stream(stream)?.def.clone();
            not_system(&old.database)?;
            let new = change(&old)?.following(&old);
            if new == *old {
                return Ok(old);
            }
            let new = Arc::new(new);
            Compiled::new(&new, &self.core.server(), self.core.options.compiler.as_ref())?;
            let mut expect = vec![Expect::Definition { stream, schema: old.schema_version, policy: old.policy_version }];
            if new.policy_version != old.policy_version {
                expect.push(self.check_policy(&old, &new)?);
            }
            match self.core.commit(vec![Edit::AlterStream(Box::new(new.as_ref().clone()))], expect).await {
                Ok(_) => return Ok(new),
                Err(e) if e.kind() == ErrorKind::Conflict && self.core.stream(stream)?.def != old => {}
                Err(e) => return Err(e),
            }
        }
        let name = self.core.stream(stream)?.def.full_name();
        Err(Error::conflict(format!("stream {name} is altered by others all the time: try again")))
    }

    /// That the new definition's storage policy has what its rules name, and the volumes on which the stream has parts.
    fn check_policy(&self, old: &StreamDef, new: &StreamDef) -> Result<Expect> {
        let live = self.core.live.read();
        let m = &live.manifest;
        let name = Manifest::policy_name(new);
        let policy = m.policy(name).ok_or_else(|| no_policy(m, name))?;
        checked_destinations(new, &policy)?;
        if let (true, Some(state)) = (name != Manifest::policy_name(old), m.stream(old.id)) {
            kept_volumes(m, state, &live.tail(old.id), &*m.policy_of(old)?, &policy)?;
        }
        Ok(Expect::StoragePolicy { name: name.to_owned(), version: policy.version })
    }

    pub async fn rename_stream(&self, stream: StreamId, database: &str, name: &str) -> Result<()> {
        not_system(database)?;
        let edits = |m: &Manifest, _| {
            let state = m.stream(stream).ok_or_else(|| self.core.is_gone(stream))?;
            not_system(&state.def.database)?;
            if m.stream_named(database, name).is_some() {
                return Err(Error::conflict(format!("stream {database}.{name} exists already: choose another name or DROP it first")));
            }
            let def = StreamDef { database: database.to_owned(), name: name.to_owned(), ..state.def.as_ref().clone() };
            // A version is raised: an ALTER that has read the old name begins anew.
            Ok(vec![Edit::AlterStream(Box::new(def.following(&state.def)))])
        };
        self.core.committer.commit_with(Vec::new(), edits, self.core.shows()).await?;
        self.core.compiled.forget(stream);
        Ok(())
    }

    pub async fn drop_stream(&self, stream: StreamId) -> Result<()> {
        self.drop_streams(&[stream]).await
    }

    /// All of them, or none.
    ///
    /// # Errors
    /// `NotFound` where one is gone.
    pub async fn drop_streams(&self, streams: &[StreamId]) -> Result<()> {
        let mut streams = streams.to_vec();
        streams.sort_unstable();
        streams.dedup();
        if streams.is_empty() {
            return Ok(());
        }
        for stream in &streams {
            let def = self.core.stream(*stream)?.def.clone();
            not_system(&def.database)?;
            self.core.remember_name(&def);
        }
        let (live, dropped) = (self.core.live.clone(), streams.clone());
        let publish = move |m: &Arc<Manifest>| {
            live.publish(|live| {
                live.manifest = m.clone();
                dropped.iter().for_each(|stream| live.drop_tail(*stream));
            });
        };
        self.core.committer.commit_with(Vec::new(), |_, _| Ok(drops(&self.core, &streams)), publish).await?;
        streams.into_iter().for_each(|stream| self.forget(stream));
        self.core.appender.trim(&self.core).await;
        Ok(())
    }

    fn forget(&self, stream: StreamId) {
        self.core.live.publish(|live| live.drop_tail(stream));
        self.core.compiled.forget(stream);
        self.core.keys.forget(stream);
        for locks in [&self.core.flushing, &self.core.changing, &self.core.layouts] {
            locks.lock().remove(&stream);
        }
    }

    /// Removes every row of main as one record; its sn. Earlier cuts keep them until they are forgotten.
    ///
    /// # Errors
    /// `NotFound` without the stream.
    pub async fn truncate(&self, stream: StreamId) -> Result<Sn> {
        let core = &self.core;
        let one = core.change_lock(stream);
        let _one = one.lock().await;
        let state = core.stream(stream)?;
        not_system(&state.def.database)?;
        let view = self.read().stream(stream).ok_or_else(|| core.is_gone(stream))?;
        let new = NewLineage { rows_deleted: rows_seen(core, &view).await?, ..NewLineage::default() };
        let record = NewRecord::of_lineage(&state, BranchId::MAIN, Verb::Truncate, new)?;
        let sns = core.appender.append(core, vec![record]).await?;
        Ok(sns.first().copied().unwrap_or_default())
    }

    /// Removes every row that main has in a partition, as one record; its sn. Earlier cuts keep them until they are forgotten. Where main
    /// has no row of it any more, there is nothing to record.
    ///
    /// # Errors
    /// `NotFound` without the stream or the partition; `Full` where rows of the tail cannot be flushed.
    pub async fn drop_partition(&self, stream: StreamId, partition: &str) -> Result<Option<Sn>> {
        let core = &self.core;
        not_system(&core.stream(stream)?.def.database)?;
        let one = core.change_lock(stream).lock_owned().await;
        // Rows of the tail are known by their partition once they are in parts.
        flush::flush(core, stream).await?;
        let layout = core.layout_lock(stream).lock_owned().await;
        let view = self.read().stream(stream).ok_or_else(|| core.is_gone(stream))?;
        if !view.state.partitions.contains_key(partition) {
            let name = view.def.full_name();
            return Err(Error::not_found(format!("{name} has no partition '{partition}': system.parts lists them")));
        }
        let Some(what) = whole_partition(core, &view, partition).await? else { return Ok(None) };
        let record = NewRecord::of_deletion(&view.state, BranchId::MAIN, Verb::DropPartition, what)?;
        let sns = core.appender.append_holding(core, vec![record], vec![layout, one]).await?;
        Ok(sns.first().copied())
    }

    /// `None` gives the setting its default back.
    pub async fn set_server_setting(&self, name: &str, value: Option<SettingValue>) -> Result<()> {
        self.core.commit(vec![Edit::ServerSetting { name: name.to_owned(), value }], Vec::new()).await?;
        Ok(())
    }
}

/// # Errors
/// `Invalid` for the database whose streams are Ebb's own.
pub(crate) fn not_system(database: &str) -> Result<()> {
    match database == SYSTEM_DATABASE {
        true => Err(Error::invalid("streams of the database 'system' are Ebb's own: they can be read, not changed")),
        false => Ok(()),
    }
}

/// These streams go, and the log need not keep their records.
fn drops(core: &Core, streams: &[StreamId]) -> Vec<Edit> {
    let settled: Vec<(StreamId, Sn)> = streams.iter().map(|id| (*id, Sn(u64::MAX))).collect();
    let lsn = core.appender.applied_once(core, &settled);
    streams.iter().map(|id| Edit::DropStream(*id)).chain([Edit::LogApplied { lsn }]).collect()
}
