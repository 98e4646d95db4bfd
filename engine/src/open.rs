//! Opening a data directory: lock, manifest, replay of the log, then the writers, the sweep and the background work, in this order.
//!
//! Guards: replay is idempotent (records at or below a stream's applied sn are passed over) and what a crash left beside the two truths
//! is swept only after it (I9, I11). The log must not begin a file before the new epoch is committed (I7).

use crate::{
    Engine,
    append::{Appender, info_of},
    core::Core,
    disks::{Disk, Disks, Opening},
    expr::ExprCompiler,
    ingest::{
        Inserted,
        content::{Content, Deleting, NewLineage, decode_parts},
        keys::Keys,
        tail::Tail,
    },
    job::{
        registry::Jobs,
        vacuum::{self, Vacuum},
    },
    limits,
    live::{Live, LiveCell},
    logs, preview,
    schedule::quiet::Quiet,
    sets,
    stream::CompiledCache,
};
use ebb_storage::{
    Clock, Error, ErrorKind, Result, Timestamp,
    disk::{Connect, DataDir, Disk as AnyDisk, DurableFs, connect::Real, default_disk, open::RESERVE_BYTES},
    ids::{BranchId, DatabaseId, DiskId, Epoch, Lsn, StreamId, unique},
    log::{self, LogDir, RealLogDir, Record, StartLog, Verb},
    manifest::{Committer, Manifest, committer::OnFull},
    stream_def::SettingValue,
    vacuum::{InFlight, sweep},
};
use futures::StreamExt;
use object_store::ObjectStore;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Arc, atomic::AtomicU32},
};

pub(crate) mod whole;

/// How to open.
#[derive(Clone)]
pub struct OpenOptions {
    pub dir: PathBuf,
    pub clock: Clock,
    pub compiler: Arc<dyn ExprCompiler>,
    /// Server settings that hold for this opening only (`serve --set k=v`).
    pub settings: BTreeMap<String, SettingValue>,
    /// Whether merges, prunes and flushes run by themselves. Without, only on request (SETTLE, OPTIMIZE, FLUSH).
    pub background: bool,
}

/// Where a database lies: of a data directory, or in a test anywhere.
pub struct Places {
    pub database: DatabaseId,
    pub meta: Arc<dyn ObjectStore>,
    pub log: Arc<dyn LogDir>,
    /// Those that are there before the manifest is: the data directory.
    pub disks: Vec<Disk>,
    /// How the disks of the manifest are reached.
    pub connect: Arc<dyn Connect>,
    /// The lock, held until the engine is gone.
    pub dir: Option<DataDir>,
}

impl Places {
    /// The data directory `dir`, made if it is missing.
    pub async fn of(dir: &std::path::Path) -> Result<Self> {
        let data = DataDir::open(dir, RESERVE_BYTES)?;
        preview::sweep(data.root());
        let meta = DurableFs::create(&data.meta())?;
        // The manifest keeps the secrets of disks. Where it is not ours to say who reads it, it stays as it is.
        let _ = std::fs::set_permissions(data.meta(), std::fs::Permissions::from_mode(0o700));
        let root = DurableFs::open(data.root())?;
        for (fs, prefix) in [(&meta, object_store::path::Path::default()), (&root, data.database().0.as_str().into())] {
            fs.sweep_staged(&prefix)?;
        }
        let disk = AnyDisk::open(default_disk(data.root()), data.database()).await?;
        Ok(Self {
            database: data.database().clone(),
            meta: Arc::new(meta),
            log: Arc::new(RealLogDir::create(&data.log())?),
            disks: vec![Disk::new(disk.id, &disk.name, disk.store).with_space(disk.space).with_def(disk.def)],
            connect: Arc::new(Real),
            dir: Some(data),
        })
    }
}

impl Engine {
    /// # Errors
    /// `Conflict` where another process has the directory open, `Corrupt` where it is damaged, `Invalid` where a simulated clock
    /// starts before the newest commit.
    pub async fn open(options: OpenOptions) -> Result<Arc<Self>> {
        let places = Places::of(&options.dir).await?;
        Self::open_at(options, places).await
    }

    /// [`Self::open`] over stores that the caller brings.
    pub async fn open_at(options: OpenOptions, places: Places) -> Result<Arc<Self>> {
        let Places { database, meta, log, disks, connect, dir } = places;
        let dir = dir.map(Arc::new);
        let reserve = dir.clone();
        let on_full: OnFull = Arc::new(move || reserve.as_ref().is_some_and(|d| d.release_reserve().unwrap_or(false)));
        let left = Committer::read(meta).await?;
        let names = log.clone();
        let newest = crate::core::busy(move || whole::newest_epoch(names.as_ref())).await?;
        let data = disks.iter().find(|d| d.id == DiskId::DEFAULT).ok_or_else(|| Error::internal("a database without a data directory"))?;
        whole::check(&left.manifest, newest, data.store.as_ref(), &database).await?;
        let opened = left.begin(options.clock.clone(), on_full.clone()).await?;
        let (mut live, replayed, last_time) = replay(&opened.manifest, log.clone(), &database).await?;
        ebb_storage::manifest::committer::not_before(&options.clock, last_time, "record")?;
        let keys = keys_of(&mut live);
        let live = Arc::new(LiveCell::new(live));
        let start =
            StartLog { dir: log, database: database.clone(), epoch: opened.committer.epoch(), replayed, limits: log::Limits::default() };
        let appender = match Appender::start(start.clone(), live.clone(), last_time) {
            // Without a file of the log nothing can be read, dropped or truncated to make room.
            Err(e) if e.kind() == ErrorKind::Full && on_full() => Appender::start(start, live.clone(), last_time)?,
            started => started?,
        };
        let opening = Opening { database, epoch: opened.committer.epoch(), nonce: unique().into() };
        let core = Arc::new(Core {
            options,
            disks: Arc::new(Disks::new(opening, connect, disks)),
            committer: opened.committer,
            live,
            inflight: InFlight::default(),
            compiled: CompiledCache::default(),
            appender,
            keys,
            part_counter: AtomicU32::new(1),
            jobs: Jobs::default(),
            stops: Mutex::default(),
            volume_stops: Mutex::default(),
            tail_due: Mutex::default(),
            generation_counter: AtomicU32::new(1),
            abandoned: Mutex::default(),
            last_error: Mutex::default(),
            dropped: Mutex::default(),
            dir,
            moving: tokio::sync::Mutex::default(),
            vacuum: Vacuum::default(),
            flushing: Mutex::default(),
            changing: Mutex::default(),
            layouts: Mutex::default(),
            sets: Arc::default(),
            leases: crate::history::Leases::default(),
            quiet: Quiet::default(),
        });
        attach(&core).await;
        sweep_orphans(&core).await?;
        count_placed(&core);
        sets::load(&core, &core.live.read()).await?;
        logs::streams::ensure(&core).await?;
        core.appender.trim(&core).await;
        Ok(Engine::begin(core))
    }
}

/// The manifest with the tails that the log adds to it.
pub(crate) async fn replay(
    manifest: &Arc<Manifest>,
    dir: Arc<dyn LogDir>,
    database: &DatabaseId,
) -> Result<(Live, log::Replayed, Timestamp)> {
    let (manifest, database) = (manifest.clone(), database.clone());
    crate::core::busy(move || {
        let mut tails: HashMap<StreamId, Tail> = HashMap::new();
        let mut last_time = manifest.streams().map(|s| s.record_time).max().unwrap_or(Timestamp::MIN);
        let applied = manifest.applied_lsn;
        let replayed = log::reader::replay(dir.as_ref(), &database, applied, |lsn, record| {
            last_time = last_time.max(record.header.time);
            fold(&manifest, &mut tails, lsn, record)
        })?;
        lacks_no_file(&manifest, &replayed)?;
        let mut live = Live::new(manifest);
        for (stream, tail) in tails {
            live.set_tail(stream, tail);
        }
        Ok((live, replayed, last_time))
    })
    .await
}

/// Each opening makes a file of the log, header and all, before it commits anything else, and only a later one's may replace it.
///
/// # Errors
/// `Corrupt` where that file is gone or empty: whatever was acknowledged in it is gone as well.
fn lacks_no_file(manifest: &Manifest, replayed: &log::Replayed) -> Result<()> {
    let begun = manifest.log_epoch;
    let needed = begun > Epoch(0) || manifest.streams().next().is_some();
    if !needed || replayed.files.iter().any(|f| f.epoch >= begun) {
        return Ok(());
    }
    Err(Error::corrupt(match &replayed.torn {
        Some(torn) if torn.offset == 0 => {
            format!("log file {}: its header is damaged, but changes were made after it was begun: restore the file", torn.file)
        }
        _ if replayed.files.is_empty() => "the log has no files, but there are streams: restore the log files".to_owned(),
        _ => format!("the log's files of epoch {begun} are missing, but changes were made in it: restore the log files"),
    }))
}

fn fold(manifest: &Manifest, tails: &mut HashMap<StreamId, Tail>, lsn: Lsn, record: Record) -> Result<()> {
    let h = &record.header;
    // Dropped with its rows.
    let Some(state) = manifest.stream(h.stream) else { return Ok(()) };
    let tail = tails.entry(h.stream).or_insert_with(|| Tail::new(state.applied_sn));
    if h.sn <= tail.head() {
        return Ok(());
    }
    let name = state.def.full_name();
    if h.sn != tail.head().next() {
        return Err(Error::corrupt(format!("the log: record {lsn} of {name} has sn {}, {} was expected (I3)", h.sn, tail.head().next())));
    }
    let at = |e: Error| e.context(format_args!("the log: record {lsn} of {name}"));
    let (content, rows) = match h.verb {
        Verb::Insert => {
            let rows = log::rows::decode(&record.body, state.schema(h.schema_version).row_schema()).map_err(at)?;
            let n = rows.num_rows() as u64;
            (Content::Rows(rows), n)
        }
        Verb::InsertStaged => {
            let parts = decode_parts(&record.body).map_err(at)?;
            let n = parts.iter().map(|p| p.rows).sum();
            (Content::Parts(parts.into()), n)
        }
        Verb::Truncate | Verb::Rollback | Verb::FastForward | Verb::CherryPick => {
            (Content::Lineage(Arc::new(NewLineage::decode(&record.body).map_err(at)?)), 0)
        }
        Verb::Delete | Verb::DropPartition | Verb::Deduplicate => {
            (Content::Delete(Arc::new(Deleting::decode(&record.body).map_err(at)?)), 0)
        }
        other => return Err(at(Error::invalid(format!("this program does not know what '{other}' does: open it with a newer Ebb")))),
    };
    let before = tail.head_of(h.branch).unwrap_or_else(|| state.head_of(h.branch));
    // Rows of a branch that was dropped are nowhere.
    let gone = h.branch != BranchId::MAIN && state.branch(h.branch).is_none();
    let info = info_of(h, before, &content, rows);
    let content = match gone && matches!(content, Content::Rows(_)) {
        true => Content::Parts(Vec::new().into()),
        false => content,
    };
    tail.push(info, lsn, content);
    Ok(())
}

/// Keys of inserts that the record lists and the tails remember.
fn keys_of(live: &mut Live) -> Keys {
    let keys = Keys::default();
    for state in live.manifest.streams() {
        let tail = live.tail(state.def.id);
        for r in state.records.values().map(Arc::as_ref).chain(tail.records()) {
            if let Some(key) = &r.key {
                keys.remember(state.def.id, key, Inserted { sn: r.sn, rows: r.rows_added });
            }
        }
    }
    keys
}

/// The disks of the manifest; one that is away keeps nothing from going on.
async fn attach(core: &Core) {
    let manifest = core.live.read().manifest.clone();
    let disks: Vec<Disk> = manifest.disks.values().map(|def| core.disks.attach(def.clone())).collect();
    let mut looks = futures::stream::iter(disks).map(|disk| async move { disk.check().await }).buffer_unordered(limits::DISKS_AT_ONCE);
    while let Some(found) = looks.next().await {
        found.err().iter().for_each(|e| core.note(e));
    }
}

/// Tells each disk how much lies on it.
fn count_placed(core: &Core) {
    let live = core.live.read();
    let listed = live.manifest.streams().flat_map(|s| s.parts.values()).map(|p| &p.placement);
    let removed = live.manifest.graveyard.values().map(|g| &g.part.placement);
    let staged = live.tails().flat_map(|(_, t)| t.staged().iter().flat_map(|(.., parts)| parts.iter().map(|p| &p.placement)));
    for placement in listed.chain(removed).chain(staged) {
        core.disks.placed(placement.disk, placement.bytes);
    }
}

/// Deletes what a crash left beside the two truths. Nobody writes yet. A disk that is away is swept when it is back.
async fn sweep_orphans(core: &Core) -> Result<()> {
    let live = core.live.read();
    let database = &core.disks.database;
    for disk in core.disks.all().iter().filter(|d| d.away().is_none()) {
        let swept = async {
            for orphan in sweep::orphans(database, &live.manifest, disk.id, &disk.store, |s, p| live.stages(s, p)).await? {
                sweep::delete(&disk.store, &orphan.path).await?;
            }
            vacuum::sweep_left_over(core, disk).await?;
            disk.tidy(&core.disks.opening).await
        };
        match swept.await {
            Ok(()) => disk.set_swept(),
            Err(e) if disk.id == DiskId::DEFAULT => return Err(e),
            Err(e) => core.note(&e),
        }
    }
    Ok(())
}
