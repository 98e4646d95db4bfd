//! Sending what a statement answered, as it comes.

use super::{
    connection::{Connection, REPORTED, notice, refused, status},
    encode::{RowEncoder, Zone},
    types::pg_type,
};
use crate::{
    CopyOut, Error, RowTag, Session,
    copy::CopyWriter,
    statement::{CopyFormat, CopyOptions},
};
use arrow::{datatypes::SchemaRef, record_batch::RecordBatch};
use datafusion::execution::SendableRecordBatchStream;
use futures::{Sink, SinkExt, StreamExt};
use pgwire::{
    api::{
        ClientInfo, Type,
        portal::Format,
        results::{FieldFormat, FieldInfo},
    },
    error::{PgWireError, PgWireResult},
    messages::{
        PgWireBackendMessage as Message,
        copy::{CopyData, CopyDone, CopyOutResponse},
        data::DataRow,
        response::CommandComplete,
        startup::ParameterStatus,
    },
};
use std::{fmt::Debug, sync::Arc};

/// Bytes of rows that are encoded ahead, about: a batch may hold much more.
const ENCODED_BYTES: usize = 8 << 20;

/// Columns as a client is told them.
pub fn fields(schema: &SchemaRef, formats: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
    let formats = formats_of(schema.fields().len(), formats)?;
    let field = |(f, format): (&Arc<arrow::datatypes::Field>, FieldFormat)| {
        let t = pg_type(f);
        let size = size(&t);
        FieldInfo::new(f.name().clone(), None, None, t, format).with_type_size(size)
    };
    Ok(schema.fields().iter().zip(formats).map(field).collect())
}

/// One format for each column.
fn formats_of(columns: usize, formats: Option<&Format>) -> PgWireResult<Vec<FieldFormat>> {
    match formats {
        Some(Format::Individual(codes)) if codes.len() != columns => {
            let message = format!("{} result formats were given for {columns} columns", codes.len());
            Err(refused(&Error::invalid(message).with_sqlstate("08P01")))
        }
        Some(f) => Ok((0..columns).map(|i| f.format_for(i)).collect()),
        None => Ok(vec![FieldFormat::Text; columns]),
    }
}

/// pg_type.typlen
fn size(t: &Type) -> i16 {
    match *t {
        Type::BOOL => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::TIME => 8,
        Type::INTERVAL | Type::UUID => 16,
        _ => -1,
    }
}

/// Rows that are being sent: encoded a batch ahead, kept between two Executes of a portal.
pub struct SendingRows {
    stream: SendableRecordBatchStream,
    /// What is left of a batch.
    batch: Option<RecordBatch>,
    encoder: RowEncoder,
    ready: std::vec::IntoIter<DataRow>,
    tag: RowTag,
    sent: u64,
}

impl SendingRows {
    pub fn new(
        schema: &SchemaRef,
        stream: SendableRecordBatchStream,
        tag: RowTag,
        formats: Option<&Format>,
        zone: Zone,
    ) -> PgWireResult<Self> {
        let encoder = RowEncoder::new(formats_of(schema.fields().len(), formats)?, zone);
        Ok(Self { stream, batch: None, encoder, ready: Vec::new().into_iter(), tag, sent: 0 })
    }

    async fn next(&mut self) -> PgWireResult<Option<DataRow>> {
        loop {
            if let Some(row) = self.ready.next() {
                self.sent += 1;
                return Ok(Some(row));
            }
            let batch = match self.batch.take() {
                Some(batch) => batch,
                None => match self.stream.next().await {
                    Some(batch) => batch.map_err(|e| refused(&Error::from(e)))?,
                    None => return Ok(None),
                },
            };
            let (first, rest) = first_rows(batch);
            self.batch = rest;
            let rows = self.encoder.rows(&first).map_err(|e| refused(&Error::from(e)))?;
            self.ready = rows.into_iter();
        }
    }

    /// Sends up to `max` rows (0: all); true where rows may be left.
    pub async fn send<C>(&mut self, client: &mut C, max: usize) -> PgWireResult<bool>
    where
        C: Sink<Message> + Unpin + Send,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let mut now = 0;
        while max == 0 || now < max {
            // Rows that are encoded go out before waiting for more.
            if self.ready.len() == 0 && now > 0 {
                client.flush().await?;
            }
            match self.next().await? {
                Some(row) => client.feed(Message::DataRow(row)).await?,
                None => return Ok(false),
            }
            now += 1;
        }
        Ok(true)
    }

    pub fn kind(&self) -> RowTag {
        self.tag
    }

    pub fn tag(&self) -> String {
        self.tag.text(self.sent)
    }
}

/// The first rows of a batch, about [`ENCODED_BYTES`] of them, and the others.
fn first_rows(batch: RecordBatch) -> (RecordBatch, Option<RecordBatch>) {
    let rows = batch.num_rows();
    let of_row = batch.get_array_memory_size() / rows.max(1);
    let first = (ENCODED_BYTES / of_row.max(1)).max(1);
    match rows > first {
        true => (batch.slice(0, first), Some(batch.slice(first, rows - first))),
        false => (batch, None),
    }
}

/// All rows of a COPY TO.
pub async fn copy_out<C>(client: &mut C, copy: CopyOut, zone: Zone) -> PgWireResult<u64>
where
    C: Sink<Message> + Unpin + Send,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    let columns = copy.schema.fields().len();
    let format = copy_format(&copy.options);
    let mut writer = CopyWriter::new(copy.options, &copy.schema, zone);
    client.feed(Message::CopyOutResponse(CopyOutResponse::new(format as i8, columns as i16, vec![format; columns]))).await?;
    if let Some(header) = writer.header() {
        client.feed(Message::CopyData(CopyData::new(header))).await?;
    }
    let (mut stream, mut rows) = (copy.stream, 0);
    while let Some(batch) = stream.next().await {
        let mut left = Some(batch.map_err(|e| refused(&Error::from(e)))?);
        while let Some(batch) = left.take() {
            let (first, rest) = first_rows(batch);
            left = rest;
            rows += first.num_rows() as u64;
            for row in writer.rows(&first).map_err(|e| refused(&e))? {
                client.feed(Message::CopyData(CopyData::new(row))).await?;
            }
        }
    }
    if let Some(footer) = writer.footer() {
        client.feed(Message::CopyData(CopyData::new(footer))).await?;
    }
    client.feed(Message::CopyDone(CopyDone::new())).await?;
    Ok(rows)
}

/// As the protocol says it: 1 is binary.
pub fn copy_format(options: &CopyOptions) -> i16 {
    i16::from(options.format == CopyFormat::Binary)
}

/// What the statement had to say beside its answer, settings that it changed, and its tag.
pub async fn complete<C>(client: &mut C, connection: &Connection, session: &mut Session, tag: String) -> PgWireResult<()>
where
    C: ClientInfo + Sink<Message> + Unpin + Send,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    tell(client, connection, session).await?;
    client.feed(Message::CommandComplete(CommandComplete::new(tag))).await?;
    client.set_transaction_status(status(session));
    Ok(())
}

/// Notices and changed settings.
pub async fn tell<C>(client: &mut C, connection: &Connection, session: &mut Session) -> PgWireResult<()>
where
    C: Sink<Message> + Unpin + Send,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    for n in session.take_notices() {
        client.feed(Message::NoticeResponse(notice(&n))).await?;
    }
    let changed: Vec<(&'static str, String)> = {
        let mut told = connection.told.lock();
        let now = REPORTED.iter().filter_map(|name| Some((*name, session.variable(name)?)));
        let changed: Vec<_> = now.filter(|v| !told.contains(v)).collect();
        for (name, value) in &changed {
            told.retain(|(n, _)| n != name);
            told.push((*name, value.clone()));
        }
        changed
    };
    for (name, value) in changed {
        client.feed(Message::ParameterStatus(ParameterStatus::new(name.to_owned(), value))).await?;
    }
    Ok(())
}
