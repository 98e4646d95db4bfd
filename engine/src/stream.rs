//! A stream's definition with its expressions compiled, kept until the definition changes.

use crate::{
    expr::{ExprCompiler, Folder, RowExpr},
    indexes::{self, IndexOver},
    limits, logs,
    settings::{ServerSettings, StreamSettings},
};
use arrow::{
    array::{ArrayRef, RecordBatch},
    datatypes::SchemaRef,
};
use ebb_storage::{
    Result,
    ids::{ColumnId, StreamId},
    part::WriteOptions,
    rules::{Action, Rule},
    stream_def::StreamDef,
};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::Arc};

pub struct Compiled {
    pub def: Arc<StreamDef>,
    pub row_schema: SchemaRef,
    pub part_schema: SchemaRef,
    partition: Vec<Arc<dyn RowExpr>>,
    order: Vec<Arc<dyn RowExpr>>,
    /// As [`StreamDef::rules`].
    pub rules: Vec<CompiledRule>,
    pub write: WriteOptions,
    /// Over expressions.
    pub indexes: Vec<IndexOver>,
    pub settings: StreamSettings,
}

pub struct CompiledRule {
    pub rule: Rule,
    pub when: Arc<dyn RowExpr>,
    /// Of DELETE WHERE.
    pub only: Option<Arc<dyn RowExpr>>,
    /// Of GROUP BY.
    pub fold: Option<Arc<dyn Folder>>,
}

impl Compiled {
    pub fn new(def: &Arc<StreamDef>, server: &ServerSettings, compiler: &dyn ExprCompiler) -> Result<Self> {
        let compiler = if def.is_internal() { &logs::streams::Own } else { compiler };
        let all = |texts: &[String]| texts.iter().map(|t| compiler.compile(t, def)).collect::<Result<Vec<_>>>();
        let rule = |rule: &Rule| {
            let only = match &rule.action {
                Action::Delete { only: Some(only) } => Some(compiler.compile(only, def)?),
                _ => None,
            };
            let fold = match &rule.action {
                Action::GroupBy { keys, set } => Some(compiler.folder(keys, set, def)?),
                _ => None,
            };
            Ok(CompiledRule { rule: rule.clone(), when: compiler.compile(&rule.when, def)?, only, fold })
        };
        let settings = StreamSettings::of(def, server);
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(limits::ENCODING_THREADS);
        let (indexes, computed) = indexes::over_expressions(def, compiler)?;
        let write = WriteOptions { threads, computed, ..WriteOptions::of(def, settings.codec) };
        Ok(Self {
            row_schema: def.row_schema(),
            part_schema: def.part_schema(),
            partition: all(&def.partition_by)?,
            order: all(&def.order_by)?,
            rules: def.rules().iter().map(rule).collect::<Result<_>>()?,
            write,
            indexes,
            settings,
            def: def.clone(),
        })
    }

    pub fn partition_values(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.partition.iter().map(|e| e.evaluate(rows)).collect()
    }

    pub fn order_values(&self, rows: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.order.iter().map(|e| e.evaluate(rows)).collect()
    }

    /// The columns that ORDER BY reads.
    pub fn order_columns(&self) -> impl Iterator<Item = ColumnId> {
        self.order.iter().flat_map(|e| e.columns().iter().copied())
    }
}

/// Definitions kept compiled: of each stream the newest few.
const KEPT_PER_STREAM: usize = 4;

struct Kept {
    server: ServerSettings,
    compiled: Arc<Compiled>,
}

impl Kept {
    /// By the definition itself: nothing that is believed to name it stands for it.
    fn is_of(&self, def: &Arc<StreamDef>, server: &ServerSettings) -> bool {
        self.server == *server && (Arc::ptr_eq(&self.compiled.def, def) || self.compiled.def == *def)
    }
}

#[derive(Default)]
pub struct CompiledCache {
    streams: Mutex<HashMap<StreamId, Vec<Kept>>>,
}

impl CompiledCache {
    pub fn get(&self, def: &Arc<StreamDef>, server: &ServerSettings, compiler: &dyn ExprCompiler) -> Result<Arc<Compiled>> {
        if let Some(found) = self.streams.lock().get(&def.id).and_then(|kept| kept.iter().rev().find(|k| k.is_of(def, server))) {
            return Ok(found.compiled.clone());
        }
        let compiled = Arc::new(Compiled::new(def, server, compiler)?);
        let mut streams = self.streams.lock();
        let kept = streams.entry(def.id).or_default();
        kept.push(Kept { server: server.clone(), compiled: compiled.clone() });
        if kept.len() > KEPT_PER_STREAM {
            kept.remove(0);
        }
        Ok(compiled)
    }

    pub fn forget(&self, stream: StreamId) {
        self.streams.lock().remove(&stream);
    }
}
