//! COPY ... FROM STDIN: texts or binary values become columns a few thousand rows at a time and go the way of every insert, while the next
//! are cut.

use super::{
    copy_binary::BinaryDecoder,
    copy_decode::{Cut, Decoder},
    ingest::{Ingest, Target},
};
use crate::{
    CopyIn, Error, Outcome, Result, Session,
    copy::CopySink,
    sqlstate,
    statement::{CopyFormat, CopyOptions, Name, StreamName},
    types::parse_text,
};
use arrow::array::ArrayRef;
use async_trait::async_trait;
use bytes::Bytes;
use ebb_storage::column_type::ColumnType;
use std::sync::Arc;
use tokio_util::task::AbortOnDropHandle;

/// What is held before it becomes columns.
const HELD_ROWS: usize = 65_536;
const HELD_BYTES: usize = 8 << 20;
/// A piece is taken in slices of this size, so that one huge piece does not become one huge batch.
const SLICE_BYTES: usize = 1 << 20;

pub(super) async fn run(session: &mut Session, into: &StreamName, columns: Option<&[Name]>, options: &CopyOptions) -> Result<Outcome> {
    let cut = session.cut().await;
    let state = session.context(&cut, false);
    let target = Target::find(session, into, columns)?;
    let names: Arc<[String]> = target.columns.iter().map(|c| c.field.name().clone()).collect();
    let reader = match options.format {
        CopyFormat::Binary => Reader::Binary(BinaryDecoder::new(&target)),
        _ => {
            let moment = ColumnType::DateTime64(3, Some("UTC".into()));
            let types = names.iter().map(|n| target.def.column(n).map_or_else(|| moment.clone(), |c| c.ty.clone())).collect();
            Reader::Text { decoder: Decoder::new(options, names.to_vec())?, types }
        }
    };
    let ingest = Ingest::new(session, &state, target, cut.now)?;
    Ok(Outcome::CopyIn(CopyIn {
        options: options.clone(),
        columns: names.len(),
        sink: Box::new(Sink { reader, taking: Taking::Idle(Box::new(ingest)), names }),
        block: session.block.clone(),
        limit: None,
    }))
}

enum Reader {
    Text { decoder: Decoder, types: Arc<[ColumnType]> },
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
            Self::Text { decoder, .. } => decoder.held().rows(),
            Self::Binary(decoder) => decoder.rows(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Text { decoder, .. } => decoder.held().bytes(),
            Self::Binary(decoder) => decoder.bytes(),
        }
    }

    /// Lets go of the held rows.
    fn take(&mut self) -> Result<Held> {
        match self {
            Self::Text { decoder, types } => Ok(Held::Texts(decoder.take(), types.clone())),
            Self::Binary(decoder) => {
                let (first, rows) = (decoder.number_of(0), decoder.rows());
                Ok(Held::Values { first, rows, columns: decoder.columns()? })
            }
        }
    }
}

/// Rows on their way from the client to the stream.
enum Held {
    Texts(Cut, Arc<[ColumnType]>),
    Values {
        /// The number of the first row, from 1.
        first: u64,
        rows: usize,
        columns: Vec<ArrayRef>,
    },
}

impl Held {
    /// Hands the rows to `ingest`.
    async fn go_into(self, ingest: &mut Ingest, names: &[String]) -> Result<()> {
        let (columns, rows) = match self {
            Self::Texts(cut, types) => (parsed(&cut, &types, names, ingest)?, cut.rows()),
            Self::Values { first, rows, columns } => {
                for (i, array) in columns.iter().enumerate() {
                    if let Some(row) = ingest.refused_null(i, array) {
                        return Err(no_null(format_args!("row {}", first + row as u64), &names[i]));
                    }
                }
                (columns, rows)
            }
        };
        ingest.push(&columns, rows).await
    }
}

fn parsed(cut: &Cut, types: &[ColumnType], names: &[String], ingest: &Ingest) -> Result<Vec<ArrayRef>> {
    let mut columns = Vec::with_capacity(names.len());
    for (i, (name, ty)) in names.iter().zip(types).enumerate() {
        let array = parse_text(cut.texts(i, name)?, ty, name).map_err(|refused| {
            let line = cut.line_of(refused.row);
            Error::from(refused).context(format_args!("COPY, line {line}"))
        })?;
        if let Some(row) = ingest.refused_null(i, &array) {
            return Err(no_null(format_args!("line {}", cut.line_of(row)), name));
        }
        columns.push(match ingest.clocks().differ(array.data_type()) {
            true => ingest.clocks().of_texts(cut.texts(i, name)?, array)?,
            false => array,
        });
    }
    Ok(columns)
}

fn no_null(place: std::fmt::Arguments<'_>, name: &str) -> Error {
    Error::invalid(format!("COPY, {place}: column '{name}' takes no NULL")).with_sqlstate(sqlstate::NOT_NULL_VIOLATION)
}

/// The insert, or the task that hands rows to it while the next are cut.
enum Taking {
    Idle(Box<Ingest>),
    Busy(AbortOnDropHandle<Result<Box<Ingest>>>),
    /// The COPY failed, and takes no more.
    Failed,
}

impl Taking {
    /// The insert, once it has taken what it was given; until it is put back the COPY counts as failed.
    async fn idle(&mut self) -> Result<Box<Ingest>> {
        match std::mem::replace(self, Self::Failed) {
            Self::Idle(ingest) => Ok(ingest),
            Self::Busy(task) => task.await.map_err(|e| Error::internal(format!("taking the rows of a COPY was cut off: {e}")))?,
            Self::Failed => Err(Error::invalid("the COPY has failed")),
        }
    }
}

struct Sink {
    reader: Reader,
    taking: Taking,
    names: Arc<[String]>,
}

impl Sink {
    async fn flush(&mut self) -> Result<()> {
        if self.reader.rows() == 0 {
            return Ok(());
        }
        let mut ingest = self.taking.idle().await?;
        let (held, names) = (self.reader.take()?, self.names.clone());
        let task = tokio::spawn(async move {
            held.go_into(&mut ingest, &names).await?;
            Ok(ingest)
        });
        self.taking = Taking::Busy(AbortOnDropHandle::new(task));
        Ok(())
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
        self.taking.idle().await?.finish().await
    }
}
