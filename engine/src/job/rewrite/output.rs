//! What a rewrite makes of its sources: one part, or two where main's head does not see more than a tenth of the rows.
//!
//! Rows that it does not see then lie apart, so that nobody who reads the head reads past them. Each of the two is written by a pass of
//! its own over the sources, in which rows of the other are passed over; only rows of the first are folded. Guards I4, pass by pass.

use super::rows::{self, Rewritten};
use crate::{
    core::Core,
    job::{
        fate::{self, Judge},
        fold::{self, Folded},
        registry::Running,
        source::{Counts, Removal, Side, Source},
    },
    place,
    plan::{Target, TierView, tiers::BESIDE_ROWS_BYTES},
    stream::Compiled,
    upgrade::field_id,
    write::{self, About, Encoder, Room, Stored},
};
use ebb_storage::{
    Error, Result,
    clock::Stopwatch,
    ids::{BranchId, ColumnId, Sn},
    lineage::SnRange,
    manifest::StreamState,
    part::{PartMeta, RowMap, WriteOptions, meta::Origin},
    refs::Rounding,
    stream_def::StreamDef,
};
use std::sync::{Arc, atomic::Ordering};

/// Rows that main's head does not see lie in a part of their own when they are more than one in so many.
const APART_ONE_IN: u64 = 10;

/// Sources and what became of them.
pub(super) struct Output {
    pub sources: Vec<Arc<PartMeta>>,
    pub target: Target,
    /// With where the rows went, source by source; none where no row stayed.
    pub stored: Vec<(Stored, RowMap)>,
    pub counts: Counts,
    pub duration_ms: u64,
}

impl Output {
    pub fn abandon(self, core: &Core) {
        self.stored.into_iter().for_each(|(s, _)| s.abandon(core));
    }
}

/// What all rewrites of a job have in common.
pub(super) struct Job<'a> {
    pub core: &'a Arc<Core>,
    pub state: &'a StreamState,
    pub judge: &'a Judge,
    pub running: &'a Arc<Running>,
}

/// What the passes over the same sources have in common.
struct Pass<'a> {
    job: &'a Job<'a>,
    removal: &'a Removal,
    opened: &'a [Source],
    sources: &'a [Arc<PartMeta>],
    target: &'a Target,
    carried: &'a [ColumnId],
    rounding: Arc<Rounding>,
    level: u32,
    /// A rule changes rows of a lone source, or its columns are not those that are written.
    merges: bool,
}

pub(super) async fn rewrite(job: &Job<'_>, removal: &Removal, sources: Vec<Arc<PartMeta>>, target: &Target) -> Result<Output> {
    let started = Stopwatch::start();
    let Job { core, state, judge, running } = *job;
    let carried = judge.carried(state, &sources);
    let compiled = match carried.is_empty() {
        true => removal.compiled.clone(),
        false => Arc::new(Compiled::new(&state.carrying(&state.def, &carried), &core.server(), core.options.compiler.as_ref())?),
    };
    let reckoned = |s: &Arc<PartMeta>| if sources.len() == 1 { core.jobs.bytes_in(s, target.codec) } else { s.placement.bytes };
    let bytes = sources.iter().map(reckoned).fold(BESIDE_ROWS_BYTES, u64::saturating_add);
    let room = room_for(core, &compiled, &sources, target, bytes)?;
    let mut opened = Vec::with_capacity(sources.len());
    for meta in &sources {
        let mut source = Source::open(core, meta.clone(), judge).await?;
        source.fills = fills(&source, &carried, judge);
        opened.push(source);
        running.bytes_read.fetch_add(meta.placement.bytes, Ordering::Relaxed);
    }
    let level = sources.iter().map(|s| s.level).max().unwrap_or(0).saturating_add(u32::from(sources.len() > 1));
    let changes = sources.iter().any(|s| removal.changes(s));
    // What two parts have folded is folded together when they are merged.
    let folds = removal.cutoff.is_some() && (changes || sources.len() > 1);
    let removal = &Removal { compiled, folds, ..removal.clone() };
    // Ends of stretches are records that wrote rows.
    let mains = sources.iter().flat_map(|s| &s.origins).filter(|o| o.branch == BranchId::MAIN);
    let rounding = Arc::new(judge.rounding().among(mains.flat_map(|o| [o.sns.after.next(), o.sns.to])));
    let merges = !matches!(opened.as_slice(), [one] if !changes && rows::same_columns(one, &removal.compiled));
    let pass = Pass { job, removal, opened: &opened, sources: &sources, target, carried: &carried, rounding, level, merges };
    // Without room for a second part there is one.
    let apart = lie_apart(judge, &opened).and_then(|share| room_for(core, &removal.compiled, &sources, target, share(bytes)).ok());
    let passes = match apart {
        None => vec![(None, room)],
        Some(second) => vec![(Some(Side::Seen), room), (Some(Side::Unseen), second)],
    };
    let mut output = Output { sources: Vec::new(), target: *target, stored: Vec::new(), counts: Counts::default(), duration_ms: 0 };
    let (several, mut passed_over) = (passes.len() > 1, 0);
    for (side, room) in passes {
        match pass.write(side, room).await {
            Ok((stored, counts)) => {
                passed_over += counts.elsewhere;
                output.counts.add(counts);
                output.stored.extend(stored);
            }
            Err(e) => {
                output.abandon(core);
                return Err(e);
            }
        }
    }
    let rows_in: u64 = sources.iter().map(|s| s.rows).sum();
    if several && passed_over != rows_in {
        output.abandon(core);
        return Err(Error::internal(format!("I4: two parts of {rows_in} rows left {passed_over} to each other")));
    }
    output.sources = sources;
    output.duration_ms = started.elapsed().as_millis() as u64;
    Ok(output)
}

/// Whether rows that main's head does not see are to lie apart; what their share of so many bytes is.
fn lie_apart(judge: &Judge, opened: &[Source]) -> Option<impl Fn(u64) -> u64 + use<>> {
    if opened.len() < 2 {
        return None;
    }
    let stays = |s: &Source| {
        let gone = judge.needs().unneeded_rows(&s.meta);
        (s.meta.rows - gone.min(s.meta.rows), s.fate.unseen_rows().saturating_sub(gone))
    };
    let (rows, unseen) = opened.iter().map(stays).fold((0, 0), |(a, b), (x, y)| (a + x, b + y));
    let share =
        move |bytes| u64::try_from(u128::from(bytes) * u128::from(unseen) / u128::from(rows)).unwrap_or(bytes).max(BESIDE_ROWS_BYTES);
    (unseen < rows && unseen.saturating_mul(APART_ONE_IN) > rows).then_some(share)
}

impl Pass<'_> {
    /// The part of one side, or of all rows.
    async fn write(&self, side: Option<Side>, room: Room) -> Result<(Option<(Stored, RowMap)>, Counts)> {
        let Job { core, running, .. } = *self.job;
        let sources = self.sources;
        let folds = self.removal.folds && side != Some(Side::Unseen);
        let removal = &Removal { side, folds, ..self.removal.clone() };
        let id = core.next_part()?;
        let sns = sources.iter().map(|s| s.min_sn()).min().unwrap_or_default();
        let sns = (sns, sources.iter().map(|s| s.max_sn()).max().unwrap_or_default());
        running.writes(write::name(&sources[0].partition, sns, self.level, id));
        let folded = fold::fold(removal, self.opened).await?;
        let to_fold = folded.taken();
        // One stretch from the oldest to the newest record says what the head sees of it, or each record is counted.
        let records = side.is_some() || !one_stretch(sources, self.job.judge);
        let options = WriteOptions { codec: self.target.codec, ..removal.compiled.write.clone() };
        let (written, rewritten) = {
            let (removal, running, rounding) = (removal.clone(), running.clone(), self.rounding.clone());
            let recodes = sources[0].placement.codec != self.target.codec;
            let (opened, merges) = (self.opened.to_vec(), self.merges);
            let fill =
                move |encoder: &mut Encoder| fill(opened, folded, merges, recodes, &removal, (&rounding, records), &running, encoder);
            write::write_as(core, (sources[0].stream, id), room, options, fill).await?
        };
        let counts = rewritten.counts.clone();
        let rows_in: u64 = sources.iter().map(|s| s.rows).sum();
        let rows_out = written.as_ref().map_or(0, |w| w.encoded.rows);
        let expected = rows_in as i64 - (counts.elsewhere + counts.gone + counts.removed_rows()) as i64 + counts.folded_rows();
        let went_in: u64 = counts.folded.values().map(|(taken, _)| taken).sum();
        if counts.read != rows_in || rows_out as i64 != expected || went_in != to_fold {
            if let Some(written) = written {
                written.abandon(core);
            }
            return Err(Error::internal(format!(
                "I4: a rewrite of {rows_in} rows read {}, removed {}, left out {} that nobody needs, left {} to another part, changed their number by folding by {} and wrote {rows_out}",
                counts.read,
                counts.removed_rows(),
                counts.gone,
                counts.elsewhere,
                counts.folded_rows()
            )));
        }
        let stored = written.map(|written| {
            running.rows_written.fetch_add(rows_out, Ordering::Relaxed);
            running.bytes_written.fetch_add(written.encoded.bytes, Ordering::Relaxed);
            let mut stored = write::describe(written, self.about(&rewritten, rows_out));
            stored.meta.move_due_since = self.target.move_due_since;
            (stored, rewritten.map)
        });
        Ok((stored, counts))
    }

    fn about(&self, rewritten: &Rewritten, rows: u64) -> About {
        let (sources, judge) = (self.sources, self.job.judge);
        let ages = self.opened.iter().any(|s| s.fate.ages());
        let hull = || origins_of(sources, rows, rewritten.rounded.then_some(&self.rounding));
        About {
            partition: sources[0].partition.clone(),
            schema_version: self.removal.compiled.def.schema_version,
            filled: rewritten.filled.clone(),
            carried: self.carried.to_vec(),
            facts: if ages { rewritten.facts.clone() } else { Vec::new() },
            origins: rewritten.records.as_ref().map_or_else(hull, |r| fate::origins_of(r, |branch, sns| judge.sees_alike(branch, sns))),
            sn_in_meta: sources.len() == 1 && sources[0].sn_in_meta && rewritten.sns_untouched,
            level: self.level,
            written_at: self.job.core.now(),
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "it is a closure that runs on another thread, given a name")]
fn fill(
    opened: Vec<Source>,
    folded: Folded,
    merges: bool,
    recodes: bool,
    removal: &Removal,
    rounding: (&Arc<Rounding>, bool),
    running: &Arc<Running>,
    encoder: &mut Encoder,
) -> Result<Rewritten> {
    match opened.as_slice() {
        [one] if !merges => rows::prune(one, removal, (recodes, rounding.1), running, encoder),
        _ => rows::merge(opened, folded, removal, rounding, running, encoder),
    }
}

/// Whether the rows are of one branch, and main's head sees all or nothing between the oldest and the newest record.
fn one_stretch(sources: &[Arc<PartMeta>], judge: &Judge) -> bool {
    let mut all = sources.iter().flat_map(|s| &s.origins);
    let Some(first) = all.next() else { return true };
    let mut whole = first.sns;
    for o in all {
        if o.branch != first.branch {
            return false;
        }
        (whole.after, whole.to) = (whole.after.min(o.sns.after), whole.to.max(o.sns.to));
    }
    judge.sees_alike(first.branch, whole)
}

/// The carried columns that a source's file lacks, where a tag reads them of its rows.
fn fills(source: &Source, carried: &[ColumnId], judge: &Judge) -> Vec<(ColumnId, Arc<StreamDef>)> {
    let has = |id: &ColumnId| source.reader.schema().fields().iter().any(|f| field_id(f).is_ok_and(|i| i == *id));
    let lacking = carried.iter().filter(|id| !has(id));
    lacking.filter_map(|id| Some((*id, judge.dropped().reader_of(&source.meta, *id)?.clone()))).collect()
}

/// The sources stay until what is written is committed. Where the disk that was planned for has no room
/// any more it goes to the next one that has, never to a hotter volume.
///
/// # Errors
/// `Full` where no disk has that much left, after what other jobs reserved.
fn room_for(core: &Core, compiled: &Compiled, sources: &[Arc<PartMeta>], target: &Target, bytes: u64) -> Result<Room> {
    let tiers = TierView::of(&core.live.read().manifest, &compiled.def, &core.disks, |_, _| false);
    let room_on = |disk| {
        let room = place::room_on(core, disk, bytes)?;
        Ok::<_, Error>(match sources {
            [one] => room.recoding(one, target.codec, &tiers),
            _ => room,
        })
    };
    let full = match room_on(target.disk) {
        Ok(room) => return Ok(room),
        Err(e) => e.context(format_args!("destination_full: rewriting {} parts", sources.len())),
    };
    let sent = tiers.volume_of(target.disk);
    let from = sources.iter().filter_map(|s| tiers.volume_of(s.placement.disk)).chain(sent.filter(|_| target.moved_by.is_none())).max();
    let turn = sources.first().map_or(0, |s| s.id.0);
    match tiers.from_on(from.or(sent).unwrap_or(0), bytes, turn) {
        Ok(disk) if disk != target.disk => room_on(disk).map_err(|_| full),
        _ => Err(full),
    }
}

/// Of rows of one branch.
fn origins_of(sources: &[Arc<PartMeta>], rows: u64, rounding: Option<&Arc<Rounding>>) -> Vec<Origin> {
    let mut all = sources.iter().flat_map(|s| s.origins.iter().cloned());
    let Some(first) = all.next() else { return Vec::new() };
    let mut whole = Origin { rows, ..first };
    for o in all {
        whole.sns.after = whole.sns.after.min(o.sns.after);
        whole.sns.to = whole.sns.to.max(o.sns.to);
    }
    if let Some(rounding) = rounding.filter(|_| whole.branch == BranchId::MAIN) {
        let (first, last) = (rounding.of_row(whole.sns.after.next()), rounding.of_row(whole.sns.to));
        whole.sns = SnRange { after: Sn(first.0.saturating_sub(1)), to: last };
    }
    vec![whole]
}
