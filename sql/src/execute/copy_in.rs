//! COPY ... FROM STDIN: texts become columns a few thousand rows at a time and go the way of every insert.

use super::{
    copy_decode::Decoder,
    ingest::{Ingest, Target},
};
use crate::{
    CopyIn, Error, Outcome, Result, Session,
    copy::CopySink,
    statement::{CopyOptions, Name, StreamName},
    types::parse_text,
};
use async_trait::async_trait;
use bytes::Bytes;
use ebb_storage::column_type::ColumnType;

/// What is held before it becomes columns.
const HELD_ROWS: usize = 65_536;
const HELD_BYTES: usize = 8 << 20;
/// A piece is taken in slices of this size, so that one huge piece does not become one huge batch.
const SLICE_BYTES: usize = 1 << 20;

pub(super) async fn run(session: &mut Session, into: &StreamName, columns: Option<&[Name]>, options: &CopyOptions) -> Result<Outcome> {
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let target = Target::find(session, into, columns)?;
    let names: Vec<String> = target.columns.iter().map(|c| c.field.name().clone()).collect();
    let moment = ColumnType::DateTime64(3, Some("UTC".into()));
    let types = names.iter().map(|n| target.def.column(n).map_or_else(|| moment.clone(), |c| c.ty.clone())).collect();
    let decoder = Decoder::new(options, names.clone())?;
    let ingest = Ingest::new(session, &state, target, cut.now)?;
    Ok(Outcome::CopyIn(CopyIn {
        options: options.clone(),
        columns: names.len(),
        sink: Box::new(Sink { decoder, ingest, names, types }),
        block: session.block.clone(),
    }))
}

struct Sink {
    decoder: Decoder,
    ingest: Ingest,
    names: Vec<String>,
    types: Vec<ColumnType>,
}

impl Sink {
    async fn flush(&mut self) -> Result<()> {
        let rows = self.decoder.rows();
        if rows == 0 {
            return Ok(());
        }
        let mut columns = Vec::with_capacity(self.names.len());
        for (i, (name, ty)) in self.names.iter().zip(&self.types).enumerate() {
            let texts = self.decoder.texts(i)?;
            let array = parse_text(texts.into_iter(), ty, name).map_err(|refused| {
                let line = self.decoder.line_of(refused.row);
                Error::from(refused).context(format_args!("COPY, line {line}"))
            })?;
            if let Some(row) = self.ingest.refused_null(i, &array) {
                let message = format!("COPY, line {}: column '{name}' takes no NULL", self.decoder.line_of(row));
                return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::NOT_NULL_VIOLATION));
            }
            columns.push(array);
        }
        self.decoder.clear();
        self.ingest.push(&columns, rows).await
    }
}

#[async_trait]
impl CopySink for Sink {
    async fn data(&mut self, bytes: Bytes) -> Result<()> {
        for slice in bytes.chunks(SLICE_BYTES) {
            self.decoder.push(slice)?;
            if self.decoder.rows() >= HELD_ROWS || self.decoder.bytes() >= HELD_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64> {
        self.decoder.finish()?;
        self.flush().await?;
        self.ingest.finish().await
    }
}
