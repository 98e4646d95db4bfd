//! COPY ... FROM STDIN: texts or binary values become columns a few thousand rows at a time and go the way of every insert.

use super::{
    copy_binary::BinaryDecoder,
    copy_decode::Decoder,
    ingest::{Ingest, Target},
};
use crate::{
    CopyIn, Error, Outcome, Result, Session,
    copy::CopySink,
    statement::{CopyFormat, CopyOptions, Name, StreamName},
    types::parse_text,
};
use arrow::array::ArrayRef;
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
    let reader = match options.format {
        CopyFormat::Binary => Reader::Binary(BinaryDecoder::new(&target)),
        _ => {
            let moment = ColumnType::DateTime64(3, Some("UTC".into()));
            let types = names.iter().map(|n| target.def.column(n).map_or_else(|| moment.clone(), |c| c.ty.clone())).collect();
            Reader::Text { decoder: Decoder::new(options, names.clone())?, types }
        }
    };
    let ingest = Ingest::new(session, &state, target, cut.now)?;
    Ok(Outcome::CopyIn(CopyIn {
        options: options.clone(),
        columns: names.len(),
        sink: Box::new(Sink { reader, ingest, names }),
        block: session.block.clone(),
        limit: None,
    }))
}

enum Reader {
    Text { decoder: Decoder, types: Vec<ColumnType> },
    Binary(BinaryDecoder),
}

impl Reader {
    fn push(&mut self, bytes: &[u8]) -> Result<()> {
        match self {
            Self::Text { decoder, .. } => decoder.push(bytes),
            Self::Binary(decoder) => decoder.push(bytes),
        }
    }

    fn finish(&mut self) -> Result<()> {
        match self {
            Self::Text { decoder, .. } => decoder.finish(),
            Self::Binary(decoder) => decoder.finish(),
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Text { decoder, .. } => decoder.rows(),
            Self::Binary(decoder) => decoder.rows(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text { decoder, .. } => decoder.bytes(),
            Self::Binary(decoder) => decoder.bytes(),
        }
    }

    /// The held rows as columns, which are let go of. NULLs that `ingest` does not take are refused.
    fn columns(&mut self, names: &[String], ingest: &Ingest) -> Result<Vec<ArrayRef>> {
        let rows = self.rows();
        match self {
            Self::Text { decoder, types } => {
                let mut columns = Vec::with_capacity(names.len());
                for (i, (name, ty)) in names.iter().zip(types).enumerate() {
                    let texts = decoder.texts(i)?;
                    let array = parse_text(texts.into_iter(), ty, name).map_err(|refused| {
                        let line = decoder.line_of(refused.row);
                        Error::from(refused).context(format_args!("COPY, line {line}"))
                    })?;
                    if let Some(row) = ingest.refused_null(i, &array) {
                        let message = format!("COPY, line {}: column '{name}' takes no NULL", decoder.line_of(row));
                        return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::NOT_NULL_VIOLATION));
                    }
                    columns.push(array);
                }
                decoder.clear();
                Ok(columns)
            }
            Self::Binary(decoder) => {
                let columns = decoder.columns()?;
                for (i, array) in columns.iter().enumerate() {
                    if let Some(row) = ingest.refused_null(i, array) {
                        return Err(decoder.refused_null(row, rows, &names[i]));
                    }
                }
                Ok(columns)
            }
        }
    }
}

struct Sink {
    reader: Reader,
    ingest: Ingest,
    names: Vec<String>,
}

impl Sink {
    async fn flush(&mut self) -> Result<()> {
        let rows = self.reader.rows();
        if rows == 0 {
            return Ok(());
        }
        let columns = self.reader.columns(&self.names, &self.ingest)?;
        self.ingest.push(&columns, rows).await
    }
}

#[async_trait]
impl CopySink for Sink {
    async fn data(&mut self, bytes: Bytes) -> Result<()> {
        for slice in bytes.chunks(SLICE_BYTES) {
            self.reader.push(slice)?;
            if self.reader.rows() >= HELD_ROWS || self.reader.bytes() >= HELD_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn finish(mut self: Box<Self>) -> Result<u64> {
        self.reader.finish()?;
        self.flush().await?;
        self.ingest.finish().await
    }
}
