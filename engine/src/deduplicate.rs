//! OPTIMIZE DEDUPLICATE: of rows that are the same all but one go, as one record on main.
//!
//! Rows are the same where they read the same in the columns asked for: NULL is NULL, NaN is NaN, and -0 is not 0. Copies are sought
//! within a partition; the one of the lowest record stays, of one record the first in the order of parts and rows. Rows that a rule
//! removes at that moment are neither copies nor what stays, so no row is lost to one that is about to go. Guards: no row goes of which
//! no copy stays; equal hashes prove nothing.

mod search;

use crate::{
    core::{Core, busy},
    delete::{Deleted, Found, Search, each_batch, head_of, remove, same_columns},
    hide::{Hide, Hiding},
    read::LivePart,
    upgrade::{field_id, place_of},
};
use arrow::{
    array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StructArray},
    datatypes::{DataType, Float32Type, Float64Type},
    row::{RowConverter, Rows, SortField},
};
use ebb_storage::{
    Error, Result,
    ids::{ColumnId, SchemaVersion, Sn, StreamId},
    part::{PartMeta, PartReader, RowSet},
    stream_def::StreamDef,
};
use search::{Bounds, Place, Row};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

/// Rows compared at a time.
const BATCH_ROWS: usize = 8_192;

/// What makes rows copies of one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copies {
    /// The columns in which they are the same; `None`: in all, `_tp_time` among them.
    pub by: Option<Vec<ColumnId>>,
    /// The version that `by` was bound for.
    pub schema_version: SchemaVersion,
}

/// The copies in a stream or one partition of it.
pub(crate) struct CopiesOf<'a> {
    pub stream: StreamId,
    pub partition: Option<&'a str>,
    pub copies: &'a Copies,
}

impl CopiesOf<'_> {
    /// Removes them for every later cut of main; earlier cuts keep them. In how many parts they lie, and the bytes of those.
    pub async fn remove(&self, core: &Arc<Core>) -> Result<(Deleted, (u64, u64))> {
        let one = core.change_lock(self.stream).lock_owned().await;
        let (deleted, parts) = remove(core, &Search::Copies(self), one).await?;
        let state = core.stream(self.stream)?;
        let bytes = parts.iter().filter_map(|id| state.parts.get(id)).map(|p| p.placement.bytes).sum();
        Ok((deleted, (parts.len() as u64, bytes)))
    }

    pub async fn found_now(&self, core: &Arc<Core>) -> Result<Found> {
        let state = core.stream(self.stream)?;
        same_columns(&state.def, self.copies.schema_version)?;
        let view = head_of(core, &state, None)?;
        let hiding = Hiding::of(core.compiled(&view.def)?, core.now());
        let mut partitions: BTreeMap<Arc<str>, Vec<(LivePart, bool)>> = BTreeMap::new();
        for part in view.parts.iter().filter(|p| state.parts.contains_key(&p.meta.id)) {
            if self.partition.is_some_and(|only| only != &*part.meta.partition) {
                continue;
            }
            let of_rules = hiding.as_ref().map_or(Hide::None, |h| h.of_part(&part.meta));
            if of_rules != Hide::All {
                partitions.entry(part.meta.partition.clone()).or_default().push((part.clone(), of_rules == Hide::Evaluate));
            }
        }
        let mut found = Found::default();
        for (partition, mut parts) in partitions {
            parts.sort_by_key(|(p, _)| p.meta.id);
            let rows = parts.iter().map(|(p, _)| p.meta.rows - p.hidden.as_ref().map_or(0, |h| h.len()).min(p.meta.rows)).sum();
            if rows < 2 {
                continue;
            }
            let mut sources = Vec::with_capacity(parts.len());
            for (part, ages) in parts {
                let reader = PartReader::open(&part.store, &part.key).await.map_err(|e| of_part(&part, e))?;
                sources.push(Source { part, reader, hiding: hiding.clone().filter(|_| ages) });
            }
            let keys = Keys::new(&view.def, self.copies.by.as_deref())?;
            let (core, def) = (core.clone(), view.def.clone());
            let at = |e: Error| e.context(format_args!("copies of partition {partition}"));
            found.parts.append(&mut busy(move || copies_in(&core, &def, &keys, &sources, rows)).await.map_err(at)?);
        }
        found.parts.sort_by_key(|(meta, _)| meta.id);
        Ok(found)
    }
}

/// A part that is looked through, and what some of its rows may age by.
struct Source {
    part: LivePart,
    reader: PartReader,
    hiding: Option<Hiding>,
}

fn of_part(part: &LivePart, e: Error) -> Error {
    e.context(format_args!("part {}", part.meta.name))
}

fn copies_in(core: &Core, def: &StreamDef, keys: &Keys, sources: &[Source], rows: u64) -> Result<Vec<(Arc<PartMeta>, RowSet)>> {
    let mut scan = |see: &mut dyn FnMut(Row<'_>)| -> Result<()> {
        for (nth, Source { part, reader, hiding }) in sources.iter().enumerate() {
            let mut asked: BTreeSet<ColumnId> = keys.columns.iter().map(|(id, _)| *id).collect();
            asked.extend(hiding.iter().flat_map(Hiding::columns));
            let each = each_batch(core, def, (part, reader), asked, BATCH_ROWS, &mut |first, rows, sns| {
                let keys = keys.of(rows)?;
                let stays = hiding.as_ref().and_then(|h| h.kept(rows));
                for (i, sn) in sns.values().iter().enumerate() {
                    let (row, sn) = (first + i as u32, Sn(*sn as u64));
                    if part.sees(row, sn) && stays.as_ref().is_none_or(|s| s.value(i)) {
                        see(Row { at: Place { sn, part: nth, row }, key: keys.row(i).data() });
                    }
                }
                Ok(())
            });
            each.map_err(|e| of_part(part, e))?;
        }
        Ok(())
    };
    let copies = search::copies(rows, sources.len(), &Bounds::default(), xxhash_rust::xxh3::xxh3_64, &mut scan)?;
    let of = sources.iter().map(|s| s.part.meta.clone());
    Ok(of.zip(copies).filter(|(_, rows)| !rows.is_empty()).collect())
}

/// Values of a row's columns as bytes that are equal where the values are.
struct Keys {
    columns: Vec<(ColumnId, DataType)>,
    rows: RowConverter,
}

impl Keys {
    fn new(def: &StreamDef, by: Option<&[ColumnId]>) -> Result<Self> {
        let mut columns = Vec::new();
        for field in def.row_schema().fields() {
            let id = field_id(field)?;
            if by.is_none_or(|by| by.contains(&id)) {
                columns.push((id, field.data_type().clone()));
            }
        }
        if columns.len() < by.map_or(1, <[_]>::len) {
            return Err(Error::invalid(format!("{} does not store each of the columns that make rows the same", def.full_name())));
        }
        let rows = RowConverter::new(columns.iter().map(|(_, ty)| SortField::new(ty.clone())).collect())?;
        Ok(Self { columns, rows })
    }

    fn of(&self, rows: &RecordBatch) -> Result<Rows> {
        let mut columns = Vec::with_capacity(self.columns.len());
        for (id, ty) in &self.columns {
            let at = place_of(rows.schema_ref(), *id).ok_or_else(|| Error::corrupt(format!("rows lack column {id}")))?;
            let column = rows.column(at);
            // A part of this version may carry its values otherwise, as a dictionary for one.
            let column = if column.data_type() == ty { column.clone() } else { arrow::compute::cast(column, ty)? };
            columns.push(one_nan(&column)?);
        }
        Ok(self.rows.convert_columns(&columns)?)
    }
}

fn has_floats(ty: &DataType) -> bool {
    match ty {
        DataType::Float32 | DataType::Float64 => true,
        DataType::List(inner) | DataType::Map(inner, _) => has_floats(inner.data_type()),
        DataType::Struct(fields) => fields.iter().any(|f| has_floats(f.data_type())),
        _ => false,
    }
}

/// With every NaN the same NaN.
fn one_nan(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match values.data_type() {
        ty if !has_floats(ty) => values.clone(),
        DataType::Float64 => {
            Arc::new(values.as_primitive::<Float64Type>().unary::<_, Float64Type>(|v| if v.is_nan() { f64::NAN } else { v }))
        }
        DataType::Float32 => {
            Arc::new(values.as_primitive::<Float32Type>().unary::<_, Float32Type>(|v| if v.is_nan() { f32::NAN } else { v }))
        }
        DataType::List(field) => {
            let list = values.as_list::<i32>();
            let inner = one_nan(list.values())?;
            Arc::new(ListArray::try_new(field.clone(), list.offsets().clone(), inner, list.nulls().cloned())?)
        }
        DataType::Map(field, sorted) => {
            let map = values.as_map();
            let inner = one_nan(&(Arc::new(map.entries().clone()) as ArrayRef))?;
            let entries = inner.as_struct().clone();
            Arc::new(MapArray::try_new(field.clone(), map.offsets().clone(), entries, map.nulls().cloned(), *sorted)?)
        }
        DataType::Struct(fields) => {
            let of = values.as_struct();
            let columns = of.columns().iter().map(one_nan).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, of.nulls().cloned())?)
        }
        _ => values.clone(),
    })
}
