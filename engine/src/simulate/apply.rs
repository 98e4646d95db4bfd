//! What jobs do to parts, done to descriptions of parts. Every job ends at the moment it is planned for.
//!
//! Guards: as the jobs do, a prune, a fold and a recompression of its own arm their partition's timer, a merge or move arms none; what is
//! written counts for its cause.

use super::{
    slice::{Slice, together},
    state::{About, Part, State},
};
use crate::plan::{MoveWhy, Plan, Target};
use ebb_storage::{
    Error, Result, Timestamp,
    ids::{Fingerprint, Generation, PartId},
};
use std::sync::Arc;

impl State<'_> {
    pub fn apply(&mut self, plan: &Plan, now: Timestamp) -> Result<()> {
        match plan {
            Plan::Drop { parts, cutoff, .. } => parts.iter().try_for_each(|id| self.drop_part(*id, *cutoff)),
            Plan::Prune { partition, parts, targets, cutoff, .. } => {
                for (id, target) in parts.iter().zip(targets) {
                    self.rewrite(&[*id], target, Some(*cutoff), "prune", now)?;
                }
                self.timers(partition, |slot| slot.view.pruned_at = Some(now));
                Ok(())
            }
            Plan::Fold { partition, parts, target, cutoff, .. } => {
                self.rewrite(parts, target, Some(*cutoff), "merge", now)?;
                self.timers(partition, |slot| slot.view.pruned_at = Some(now));
                Ok(())
            }
            Plan::Merge { parts, target, cutoff, delete_due, .. } => {
                self.rewrite(parts, target, delete_due.then_some(*cutoff), "merge", now)
            }
            Plan::Recompress { partition, parts, targets, .. } => {
                for (id, target) in parts.iter().zip(targets) {
                    self.replace(*id, target, "recompress", now)?;
                }
                self.timers(partition, |slot| slot.view.recompressed_at = Some(now));
                Ok(())
            }
            Plan::Move { part, target, why, .. } => {
                let cause = if *why == MoveWhy::Pressure { "move_factor" } else { "move" };
                self.replace(*part, target, cause, now)
            }
            // The facts of every part are known, and there are no refs.
            Plan::Measure { .. } | Plan::Expire { .. } | Plan::Release { .. } | Plan::Forget { .. } => {
                Err(Error::internal("a plan that no simulated part asks for"))
            }
        }
    }

    fn timers(&mut self, partition: &Arc<str>, arm: impl FnOnce(&mut super::state::Slot)) {
        if let Some(slot) = self.slots.get_mut(partition) {
            arm(slot);
        }
    }

    fn drop_part(&mut self, id: PartId, cutoff: Timestamp) -> Result<()> {
        let part = self.remove(id)?;
        let whole = |f: &&ebb_storage::part::meta::RuleFacts| f.rows == part.meta.rows && f.latest.is_some_and(|l| l <= cutoff);
        let deletes = self.header.rules.iter().filter(|r| r.deletes());
        let by = deletes.filter_map(|r| part.meta.facts_of(r.fingerprint)).find(whole).map(|f| f.rule);
        self.watch.dropped(part.meta.rows, part.meta.placement.bytes);
        self.did(by, 1, part.meta.rows, cutoff);
        Ok(())
    }

    fn did(&mut self, rule: Option<Fingerprint>, parts: u64, rows: u64, at: Timestamp) {
        if let Some(i) = self.header.rules.iter().position(|r| Some(r.fingerprint) == rule) {
            self.watch.acted(i, parts, rows, at);
        }
    }

    /// Parts become one, or none, without the rows that are due at `cutoff`.
    fn rewrite(&mut self, ids: &[PartId], target: &Target, cutoff: Option<Timestamp>, cause: &'static str, now: Timestamp) -> Result<()> {
        let sources = ids.iter().map(|id| self.remove(*id)).collect::<Result<Vec<Part>>>()?;
        let Some(first) = sources.first() else { return Ok(()) };
        let (read, rows) = (sources.iter().map(|s| s.meta.placement.bytes).sum(), sources.iter().map(|s| s.meta.rows).sum::<u64>());
        let level = sources.iter().map(|s| s.meta.level).max().unwrap_or(0) + u32::from(sources.len() > 1);
        let about = About {
            partition: first.meta.partition.clone(),
            codec: target.codec,
            disk: target.disk,
            level,
            now,
            move_due_since: target.move_due_since,
        };
        let codec_before = first.meta.placement.codec;
        let elsewhere = sources.iter().filter(|s| s.meta.placement.disk != target.disk).map(|s| s.meta.rows).sum::<u64>();
        let mut slices = together(sources.into_iter().flat_map(|s| s.slices).collect::<Vec<Slice>>());
        let mut taken = vec![0.0; self.effects.len()];
        if let Some(cutoff) = cutoff {
            slices.iter_mut().for_each(|s| s.apply(cutoff, &self.effects, |rule, n| taken[rule] += n));
            slices.retain(|s| !s.is_empty());
        }
        let stays = self.rows_of(&slices);
        let written = if stays == 0 { 0 } else { self.bytes_of(stays, target.codec) };
        self.watch.wrote(cause, ids.len() as u64, read, written, now);
        self.watch.removed(rows.saturating_sub(stays));
        for (rule, n) in taken.iter().enumerate().filter(|(_, n)| **n >= 0.5) {
            self.watch.acted(rule, ids.len() as u64, n.round() as u64, now);
        }
        self.did(target.moved_by, ids.len() as u64, stays, now);
        if codec_before != target.codec {
            self.did(target.recompressed_by, ids.len() as u64, stays, now);
        }
        // A merge of parts of two volumes lies on the colder one, whatever asked for it.
        self.watch.moved((u128::from(written) * u128::from(elsewhere) / u128::from(rows.max(1))) as u64);
        if stays > 0 {
            let part = self.describe(slices, about)?;
            self.add(part);
        }
        Ok(())
    }

    /// The same rows on another disk or in another codec.
    fn replace(&mut self, id: PartId, target: &Target, cause: &'static str, now: Timestamp) -> Result<()> {
        let mut part = self.remove(id)?;
        let (read, rows) = (part.meta.placement.bytes, part.meta.rows);
        let placement = &mut part.meta.placement;
        let moves = placement.disk != target.disk;
        (placement.disk, placement.codec) = (target.disk, target.codec);
        placement.generation = Generation(placement.generation.0 + 1);
        placement.bytes = self.bytes_of(rows, target.codec);
        part.meta.modified_at = now;
        let written = part.meta.placement.bytes;
        self.watch.wrote(cause, 1, read, written, now);
        if moves {
            self.watch.moved(written);
        }
        self.did(target.moved_by, 1, rows, now);
        self.did(target.recompressed_by, 1, rows, now);
        self.add(part);
        Ok(())
    }
}
