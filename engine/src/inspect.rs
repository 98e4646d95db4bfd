//! `ebb check`: looks at a data directory without changing it. Never takes the lock, never writes, never repairs.
//!
//! Judged by the same code that opening uses, over a log folder that ignores changes.

use crate::{
    Engine,
    live::Live,
    open::{self, whole},
    sets,
};
use arrow::{array::AsArray, datatypes::Int64Type};
use ebb_storage::{
    Error, ErrorKind, Result,
    disk::{Connect, Disk as AnyDisk, DiskDef, DurableFs, connect::Real, default_disk, open::read_format},
    ids::{ColumnId, DatabaseId, DiskId, Lsn, Sn},
    log::{
        LogDir, LogFile, RealLogDir,
        frame::FileName,
        reader::{self, Problem},
    },
    manifest::{Manifest, inspect::inspect},
    part::{PartMeta, PartReader, key, reader::ReadOptions},
    vacuum::sweep,
};
use object_store::{ObjectStore, memory::InMemory};
use std::{io, path::Path, sync::Arc};

/// What was found. Damage is what Ebb cannot mend by itself; garbage is what the next start sweeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub streams: usize,
    pub parts: usize,
    pub parts_verified: usize,
    pub records: u64,
    /// Objects that the next start sweeps; a torn log tail that it cuts off.
    pub garbage: Vec<String>,
    /// One line for each thing that is not what was written: which and where.
    pub damage: Vec<String>,
}

impl Report {
    pub fn is_clean(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Looks at the data directory `dir`.
///
/// # Errors
/// `NotFound` where there is none, `Invalid` where it is of another version or no folder, `Unavailable` where it cannot be read. Damage
/// is no error: it is in the report.
pub async fn check(dir: &Path) -> Result<Report> {
    let shown = dir.display();
    let missing = || Error::not_found(format!("{shown} is not a data directory of Ebb"));
    match std::fs::metadata(dir) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(Error::invalid(format!("{shown} is a file: a data directory is a folder"))),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(missing()),
        Err(e) => return Err(Error::from(e).context(shown)),
    }
    let mut report = Report::default();
    let database = match read_format(dir) {
        Ok(Some(database)) => database,
        Ok(None) if dir.join("meta").exists() => {
            let damage =
                vec![format!("{}: the file is missing, without it nothing can be opened: restore it", dir.join("FORMAT").display())];
            return Ok(Report { damage, ..report });
        }
        Ok(None) => return Err(missing()),
        Err(e) if e.kind() == ErrorKind::Corrupt => return Ok(Report { damage: vec![e.to_string()], ..report }),
        Err(e) => return Err(e),
    };
    let log: Arc<dyn LogDir> = Arc::new(LookOnly(RealLogDir::existing(&dir.join("log"))));
    // Before the manifest, which must not be older.
    let newest = whole::newest_epoch(log.as_ref())?;
    let meta: Arc<dyn ObjectStore> = match DurableFs::open(&dir.join("meta")) {
        Ok(meta) => Arc::new(meta),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Arc::new(InMemory::new()),
        Err(e) => return Err(e.into()),
    };
    let inspected = inspect(meta).await?;
    report.damage.extend(inspected.damage);
    // Without a manifest nobody can tell what the log must hold: it is judged by itself.
    let applied = inspected.manifest.as_ref().map_or(first_of(log.as_ref())?, |m| m.applied_lsn);
    look_at_log(&mut report, log.as_ref(), &database, applied)?;
    let Some(manifest) = inspected.manifest else { return Ok(report) };
    report.streams = manifest.user_streams().count();
    if let Err(e) = AnyDisk::open(default_disk(dir), &database).await {
        report.damage.push(e.to_string());
    }
    let disk: Arc<dyn ObjectStore> = Arc::new(DurableFs::open(dir)?);
    let replayed = match whole::check(&manifest, newest, disk.as_ref(), &database).await {
        Ok(()) => open::replay(&manifest, log, &database).await,
        Err(e) => Err(e),
    };
    let refused = replayed.is_err();
    let live = match replayed {
        Ok((live, _, _)) => live,
        Err(e) => {
            note(&mut report.damage, e.to_string());
            Live::new(manifest.clone())
        }
    };
    look_at_disk(&mut report, &live, (&default_disk(dir), &disk), &database).await?;
    for (_, _, path) in sets::named(&database, &live) {
        if let Err(e) = sets::read(&disk, &path).await {
            report.damage.push(e.to_string());
        }
    }
    for def in manifest.disks.values() {
        let looked = match AnyDisk::open(def.as_ref().clone(), &database).await {
            Ok(disk) => look_at_disk(&mut report, &live, (def, &disk.store), &database).await,
            Err(e) => Err(e),
        };
        if let Err(e) = looked {
            let unseen = parts_of(&live, def.id).count();
            report.parts += unseen;
            report.damage.push(format!("{e}: the {unseen} parts on it could not be looked at"));
        }
    }
    removed(&mut report, &manifest, &database);
    if refused {
        // Nothing is swept where the start is refused, and the log may name what the manifest does not.
        report.garbage.clear();
    }
    Ok(report)
}

fn note(damage: &mut Vec<String>, line: String) {
    if !damage.contains(&line) {
        damage.push(line);
    }
}

/// The last lsn before the oldest log file.
fn first_of(log: &dyn LogDir) -> Result<Lsn> {
    let oldest = log.list()?.iter().filter_map(|n| FileName::parse(n)).map(|f| f.first_lsn).min();
    Ok(Lsn(oldest.map_or(0, |l| l.0.saturating_sub(1))))
}

fn look_at_log(report: &mut Report, log: &dyn LogDir, database: &DatabaseId, applied: Lsn) -> Result<()> {
    let found = reader::inspect(log, database, applied)?;
    report.records = found.files.iter().map(|f| f.records).sum();
    for finding in found.findings {
        let line = format!("log file {}, offset {}: {}", finding.file, finding.offset, finding.message);
        match finding.problem {
            Problem::Corrupt => note(&mut report.damage, line),
            _ => report.garbage.push(line),
        }
    }
    Ok(())
}

/// # Errors
/// What the disk says when it is listed; nothing of it was counted then.
async fn look_at_disk(
    report: &mut Report,
    live: &Live,
    (def, disk): (&DiskDef, &Arc<dyn ObjectStore>),
    database: &DatabaseId,
) -> Result<()> {
    for left in Real.left_over(def, &key::parts_prefix(database))? {
        report.garbage.push(format!("{}: a write that was cut off left it", left.file.display()));
    }
    for orphan in sweep::orphans(database, &live.manifest, def.id, disk, |s, p| live.stages(s, p)).await? {
        report.garbage.push(format!("{} ({} bytes): no part has it", orphan.path, orphan.bytes));
    }
    verify_parts(report, live, (def.id, disk), database).await;
    Ok(())
}

/// Parts on a disk that the manifest or the log names.
fn parts_of(live: &Live, disk: DiskId) -> impl Iterator<Item = Arc<PartMeta>> {
    let listed = live.manifest.streams().flat_map(|s| s.parts.values().cloned());
    let staged = live.tails().flat_map(|(_, t)| t.staged().iter().flat_map(|(.., parts)| parts.iter().cloned()));
    listed.chain(staged).filter(move |p| p.placement.disk == disk)
}

/// Checksum, footer and records of every part on a disk.
async fn verify_parts(report: &mut Report, live: &Live, (id, disk): (DiskId, &Arc<dyn ObjectStore>), database: &DatabaseId) {
    let all: Vec<Arc<PartMeta>> = parts_of(live, id).collect();
    report.parts += all.len();
    for part in all {
        let key = key::part(database, part.stream, part.id, part.placement.generation);
        match PartReader::open_verified(disk, &key, &part).await {
            Ok(reader) if reader.metadata().file_metadata().num_rows() != part.rows as i64 => {
                report.damage.push(format!("part {} ({key}) does not have {} rows", part.name, part.rows));
            }
            Ok(reader) => match look_at_sns(live, &part, &reader) {
                Ok(None) => report.parts_verified += 1,
                Ok(Some(line)) => report.damage.push(format!("part {} ({key}): {line}", part.name)),
                Err(e) => report.damage.push(e.to_string()),
            },
            Err(e) => report.damage.push(e.to_string()),
        }
    }
}

/// What is wrong with the records that a part's rows are of: each is of one of the part's origins, and of the branch that wrote it.
fn look_at_sns(live: &Live, part: &PartMeta, reader: &PartReader) -> Result<Option<String>> {
    let state = live.manifest.stream(part.stream);
    // One that a record of the log names has none yet: all its rows are of that record.
    let told: u64 = part.origins.iter().map(|o| o.rows).sum();
    if told != part.rows && !part.origins.is_empty() {
        return Ok(Some(format!("its origins tell of {told} rows, and it has {}", part.rows)));
    }
    if part.sn_in_meta {
        return Ok(None);
    }
    let options = ReadOptions { columns: Some(vec![ColumnId::TP_SN]), ..ReadOptions::default() };
    let mut last = None;
    for batch in reader.read(&options)? {
        let batch = batch?;
        let sns = batch.columns().last().and_then(|c| c.as_primitive_opt::<Int64Type>());
        let Some(sns) = sns else { return Ok(Some("it has no column _tp_sn".to_owned())) };
        for sn in sns.values().iter().copied() {
            // Neighbours are often of one record.
            if last.replace(sn) == Some(sn) {
                continue;
            }
            let sn = Sn(u64::try_from(sn).unwrap_or(0));
            let of: Vec<_> = part.origins.iter().filter(|o| o.sns.contains(sn)).map(|o| o.branch).collect();
            if of.is_empty() {
                return Ok(Some(format!("a row is of record {sn}, and none of its origins tells of that")));
            }
            let wrote = state.and_then(|s| s.line_of(sn)).map(|line| line.branch);
            if let Some(wrote) = wrote.filter(|b| !of.contains(b)) {
                return Ok(Some(format!("rows of record {sn} count as branch {of:?}'s, and branch {wrote:?} wrote it")));
            }
        }
    }
    Ok(None)
}

impl Engine {
    /// What [`check`] says of the records that the rows of parts are of, told of a database that is open. One line for each part with a
    /// fault.
    ///
    /// # Errors
    /// A part that cannot be read.
    pub async fn faults_of_records(&self) -> Result<Vec<String>> {
        let live = self.core.live.read();
        let mut faults = Vec::new();
        for part in live.manifest.streams().flat_map(|s| s.parts.values().cloned()) {
            let disk = self.core.disks.disk(part.placement.disk)?;
            let key = self.core.disks.key(part.stream, part.id, part.placement.generation);
            let reader = PartReader::open_verified(&disk.store, &key, &part).await?;
            faults.extend(look_at_sns(&live, &part, &reader)?.map(|fault| format!("part {}: {fault}", part.name)));
        }
        Ok(faults)
    }
}

fn removed(report: &mut Report, manifest: &Manifest, database: &DatabaseId) {
    for grave in manifest.graveyard.values() {
        let key = key::part(database, grave.part.stream, grave.part.id, grave.part.placement.generation);
        report.garbage.push(format!("{key}: part {} was removed", grave.part.name));
    }
}

/// A log folder that is only looked at: what replay would change is left as it is.
#[derive(Debug)]
struct LookOnly(RealLogDir);

#[derive(Debug)]
struct LookOnlyFile(Box<dyn LogFile>);

impl LogDir for LookOnly {
    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{name}: a check creates nothing")))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        Ok(Box::new(LookOnlyFile(self.0.open(name)?)))
    }
    fn list(&self) -> io::Result<Vec<String>> {
        match self.0.list() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            other => other,
        }
    }
    fn remove(&self, _: &str) -> io::Result<()> {
        Ok(())
    }
}

impl LogFile for LookOnlyFile {
    fn read_all(&self) -> io::Result<Vec<u8>> {
        self.0.read_all()
    }
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "a check writes nothing"))
    }
    fn truncate(&self, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
