//! From rows of one partition to a stored part: sort, encode and store in one stream, measure, describe.
//!
//! Flushes, staged inserts and rewrites all write parts here. Encoding is work for a thread that may be busy; storing is not.

pub use crate::place::Room;
use crate::{
    core::{Abandoned, Core},
    disks::Lease,
    facts::Gathering,
    job::fate::{self, sees_alike},
    limits,
    place::Places,
    stream::Compiled,
};
use arrow::{
    array::{Array, AsArray, RecordBatch, RecordBatchOptions, UInt32Array},
    compute::take,
};
use ebb_storage::{
    Error, ErrorKind, Result, Timestamp,
    ids::{BranchId, ColumnId, Generation, PartId, SchemaVersion, Sn, StreamId},
    lineage::{Seen, SnRange},
    part::{
        Encoded, PartEncoder, PartMeta, WriteOptions,
        meta::{Origin, Placement, RuleFacts},
        store::{PieceWriter, write_part},
    },
    rules::Action,
    vacuum::InFlightGuard,
};
use std::{collections::BTreeMap, sync::Arc};

pub type Encoder = PartEncoder<PieceWriter>;

/// A durable file that is not described yet: vacuum leaves it alone as long as this lives.
pub struct Written {
    id: PartId,
    stream: StreamId,
    placement: Placement,
    pub encoded: Encoded,
    guard: InFlightGuard,
    lease: Option<Lease>,
}

impl Written {
    /// Gives the file up, so that vacuum deletes it.
    pub fn abandon(self, core: &Core) {
        abandon(core, self.stream, self.id, &self.placement);
    }
}

/// A stored part that no truth names yet: vacuum leaves it alone as long as this lives.
pub struct Stored {
    pub meta: PartMeta,
    _guard: InFlightGuard,
    _lease: Option<Lease>,
}

impl Stored {
    /// Gives the part up, so that vacuum deletes its object. Only where no truth can name it.
    pub fn abandon(self, core: &Core) {
        abandon(core, self.meta.stream, self.meta.id, &self.meta.placement);
    }
}

fn abandon(core: &Core, stream: StreamId, part: PartId, place: &Placement) {
    let path = core.disks.key(stream, part, place.generation);
    give_up(core, Abandoned { disk: place.disk, path, bytes: place.bytes });
}

/// Beyond the limit it is left for the sweep of the next opening.
pub fn give_up(core: &Core, object: Abandoned) {
    let mut abandoned = core.abandoned.lock();
    if abandoned.len() < limits::ABANDONED_OBJECTS {
        abandoned.push(object);
    }
}

/// Whether an error says for sure that nothing was committed or logged.
pub fn surely_failed(e: &Error) -> bool {
    use ebb_storage::ErrorKind::{Conflict, Full, Invalid, NotFound};
    matches!(e.kind(), Conflict | Full | Invalid | NotFound)
}

/// What the writer of a part knows beside its rows.
pub struct About {
    pub partition: Arc<str>,
    pub schema_version: SchemaVersion,
    pub filled: Vec<ColumnId>,
    pub carried: Vec<ColumnId>,
    pub facts: Vec<RuleFacts>,
    pub origins: Vec<Origin>,
    pub sn_in_meta: bool,
    pub level: u32,
    pub written_at: Timestamp,
}

/// The rows of one share of a split batch.
pub fn share_of(rows: &RecordBatch, share: Option<&UInt32Array>) -> Result<RecordBatch> {
    let Some(wanted) = share else { return Ok(rows.clone()) };
    let (Some(first), Some(last)) = (wanted.values().first(), wanted.values().last()) else { return Ok(rows.slice(0, 0)) };
    // Rows next to each other need no copy.
    if (last - first) as usize + 1 == wanted.len() {
        return Ok(rows.slice(*first as usize, wanted.len()));
    }
    let columns = rows.columns().iter().map(|c| take(c, wanted, None)).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(wanted.len()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &options)?)
}

/// Writes a new part where there is room for it; where that fails, or more comes out than the volume takes, at the next place. `fill` is
/// asked again then.
///
/// # Errors
/// As [`write_as`]; of several places what the first said.
pub async fn write<P: Clone + Send + 'static, T: Send + 'static>(
    core: &Core,
    stream: StreamId,
    mut places: Places,
    options: WriteOptions,
    rows: P,
    fill: impl FnOnce(P, &mut Encoder) -> Result<T> + Clone + Send + 'static,
) -> Result<(Option<Written>, T)> {
    let mut kept = Some(rows);
    loop {
        let room = places.next(core)?;
        let disk = room.disk.id;
        // Rows are let go of as soon as they are encoded, unless they may be needed again.
        let rows = if places.are_several() { kept.clone() } else { kept.take() };
        let rows = rows.ok_or_else(|| Error::internal("rows of a part that failed at its only place"))?;
        let fill = fill.clone();
        match write_as(core, (stream, core.next_part()?), room, options.clone(), move |encoder| fill(rows, encoder)).await {
            Err(e) if places.are_several() && matches!(e.kind(), ErrorKind::Full | ErrorKind::Unavailable) => places.failed(disk, e),
            Ok((Some(written), _)) if places.are_several() && places.outgrown(disk, written.encoded.bytes) => written.abandon(core),
            done => return done,
        }
    }
}

/// What the rules that move parts say of rows that are about to be written; empty where there are none.
pub fn facts_of_moves<'a>(compiled: &Compiled, rows: impl IntoIterator<Item = &'a RecordBatch>) -> Vec<RuleFacts> {
    let moves = || compiled.rules.iter().filter(|r| matches!(r.rule.action, Action::Move(_)));
    let mut facts: Vec<Gathering> = moves().map(|r| Gathering::new(r, None)).collect();
    if facts.is_empty() {
        return Vec::new();
    }
    for batch in rows {
        moves().zip(&mut facts).for_each(|(rule, facts)| facts.add(rule, batch));
    }
    facts.into_iter().map(Gathering::finish).collect()
}

/// Writes a new part where there is room for it: `fill` pushes its rows, in order, on a thread that may be busy. `None` without rows.
///
/// # Errors
/// What `fill` says; `Full` where the disk is, naming it.
pub async fn write_as<T: Send + 'static>(
    core: &Core,
    (stream, id): (StreamId, PartId),
    mut room: Room,
    options: WriteOptions,
    fill: impl FnOnce(&mut Encoder) -> Result<T> + Send + 'static,
) -> Result<(Option<Written>, T)> {
    let disk = room.disk.clone();
    let guard = core.inflight.register(stream, id);
    let generation = Generation::FIRST;
    let key = core.disks.key(stream, id, generation);
    let options = WriteOptions { piece_bytes: room.piece_bytes(), ..options };
    let written = write_part(&disk.store, &key, options, fill).await;
    if written.is_err() {
        // It may have landed all the same.
        give_up(core, Abandoned { disk: disk.id, path: key.clone(), bytes: 0 });
    }
    let (encoded, told) = written.map_err(|e| e.context(format_args!("writing a part to disk '{}'", disk.name)))?;
    let Some(encoded) = encoded else { return Ok((None, told)) };
    if let Err(e) = room.covers(core, encoded.bytes) {
        give_up(core, Abandoned { disk: disk.id, path: key, bytes: 0 });
        return Err(e.context(format_args!("a part came out at {} bytes, more than was reckoned with", encoded.bytes)));
    }
    core.disks.placed(disk.id, encoded.bytes);
    let placement = Placement { disk: disk.id, generation, codec: encoded.codec, bytes: encoded.bytes, checksum: encoded.checksum };
    Ok((Some(Written { id, stream, placement, encoded, guard, lease: room.lease }), told))
}

/// What the manifest is told of a written part.
pub fn describe(written: Written, about: About) -> Stored {
    let e = written.encoded;
    let mut meta = PartMeta {
        id: written.id,
        stream: written.stream,
        name: String::new(),
        partition: about.partition,
        schema_version: about.schema_version,
        filled: about.filled,
        carried: about.carried,
        sn_bytes: e.sn_bytes,
        origins: about.origins,
        sn_in_meta: about.sn_in_meta,
        rows: e.rows,
        level: about.level,
        placement: written.placement,
        uncompressed_bytes: e.uncompressed_bytes,
        row_groups: e.row_groups,
        stats: e.stats,
        sets: e.sets,
        computed: e.computed,
        min_time: e.min_time,
        max_time: e.max_time,
        written_at: about.written_at,
        modified_at: about.written_at,
        move_due_since: None,
        facts: about.facts,
        retention_marker: None,
        deletions: Vec::new(),
        expired: Vec::new(),
    };
    meta.name = name_of(&meta);
    Stored { meta, _guard: written.guard, _lease: written.lease }
}

/// A staged part once its record has its sn.
pub fn stamped(meta: &PartMeta, sn: Sn, branch: BranchId) -> PartMeta {
    let origin = Origin { branch, sns: SnRange { after: Sn(sn.0.saturating_sub(1)), to: sn }, rows: meta.rows };
    let mut meta = PartMeta { origins: vec![origin], sn_in_meta: true, ..meta.clone() };
    meta.name = name_of(&meta);
    meta
}

/// `<partition>_<min_sn>_<max_sn>_<level>_<id in base 36>`
fn name_of(meta: &PartMeta) -> String {
    name(&meta.partition, (meta.min_sn(), meta.max_sn()), meta.level, meta.id)
}

/// The name of a part of these.
pub fn name(partition: &str, (min_sn, max_sn): (Sn, Sn), level: u32, id: PartId) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let (mut n, mut digits) = (id.0, Vec::new());
    while n > 0 || digits.is_empty() {
        digits.push(char::from(DIGITS[(n % 36) as usize]));
        n /= 36;
    }
    let id: String = digits.into_iter().rev().collect();
    format!("{partition}_{min_sn}_{max_sn}_{level}_{id}")
}

/// The stretches of records of a branch that rows with these sns are of; one where a cut sees all or nothing between the first and the
/// last, for what lies between and has no rows is not told apart otherwise.
pub fn origins_of(branch: BranchId, sns: &dyn Array, seen: &Seen) -> Result<Vec<Origin>> {
    let sns = sns.as_primitive_opt::<arrow::datatypes::Int64Type>().ok_or_else(|| Error::internal("sns that are no int64"))?;
    let bounds = arrow::compute::min(sns).zip(arrow::compute::max(sns));
    let Some((min, max)) = bounds.map(|(a, b)| (a as u64, b as u64)) else { return Ok(Vec::new()) };
    let whole = SnRange { after: Sn(min.saturating_sub(1)), to: Sn(max) };
    if sees_alike(seen, branch, whole) {
        return Ok(vec![Origin { branch, sns: whole, rows: sns.len() as u64 }]);
    }
    let mut counts: BTreeMap<Sn, (BranchId, u64)> = BTreeMap::new();
    for stretch in sns.values().chunk_by(|a, b| a == b) {
        counts.entry(Sn(stretch[0] as u64)).or_insert((branch, 0)).1 += stretch.len() as u64;
    }
    Ok(fate::origins_of(&counts, |branch, sns| sees_alike(seen, branch, sns)))
}
