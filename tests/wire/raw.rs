//! The protocol message by message: texts as PostgreSQL writes them also where values were asked for by the extended protocol, command
//! tags, and what follows an error, none of which drivers show.

use crate::script::{Answer, Failure, Told};
use bytes::BytesMut;
use fallible_iterator::FallibleIterator;
use postgres_protocol::message::{
    backend::{ErrorFields, Message},
    frontend,
};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

pub struct Raw {
    socket: TcpStream,
    inbox: BytesMut,
}

/// How a statement is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Simple,
    Extended,
}

impl Raw {
    /// Says hello and nothing else.
    pub async fn greet(address: SocketAddr, parameters: &[(&str, &str)]) -> Self {
        let mut raw = Self { socket: TcpStream::connect(address).await.unwrap(), inbox: BytesMut::new() };
        raw.send(|out| frontend::startup_message(parameters.iter().copied(), out).unwrap()).await;
        raw
    }

    /// Connected, and ready.
    pub async fn connect(address: SocketAddr) -> Self {
        let mut raw = Self::greet(address, &[("user", "ebb"), ("database", "default")]).await;
        while !matches!(raw.receive().await.unwrap(), Message::ReadyForQuery(_)) {}
        raw
    }

    pub async fn send(&mut self, write: impl FnOnce(&mut BytesMut)) {
        let mut out = BytesMut::new();
        write(&mut out);
        self.socket.write_all(&out).await.unwrap();
    }

    /// `None` where the server has closed the connection.
    pub async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = Message::parse(&mut self.inbox).unwrap() {
                return Some(message);
            }
            if self.socket.read_buf(&mut self.inbox).await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// Sends a text and reads until the server is ready again.
    pub async fn run(&mut self, sql: &str, protocol: Protocol) -> Result<Answer, Failure> {
        match protocol {
            Protocol::Simple => self.send(|out| frontend::query(sql, out).unwrap()).await,
            Protocol::Extended => self.send(|out| extended(sql, out)).await,
        }
        let (mut answer, mut failed, mut complete) = (Answer::default(), None, false);
        loop {
            match self.receive().await.expect("the server closed the connection") {
                Message::ReadyForQuery(_) => return failed.map_or(Ok(answer), Err),
                Message::RowDescription(columns) => {
                    let columns: Vec<String> = columns.fields().map(|f| Ok(f.name().to_owned())).collect().unwrap();
                    answer = Answer { columns, notices: answer.notices, ..Answer::default() };
                    complete = false;
                }
                Message::NoData => {}
                Message::DataRow(row) => {
                    let value = |range: Option<std::ops::Range<usize>>| {
                        Ok(range.map_or_else(|| "NULL".to_owned(), |r| String::from_utf8(row.buffer()[r].to_vec()).unwrap()))
                    };
                    let values: Vec<String> = row.ranges().map(value).collect().unwrap();
                    answer.rows.push(values.join("|"));
                }
                Message::CommandComplete(done) => {
                    // Of several statements only the last counts.
                    if std::mem::replace(&mut complete, true) {
                        answer = Answer { notices: answer.notices, ..Answer::default() };
                    }
                    done.tag().unwrap().clone_into(&mut answer.tag);
                }
                Message::NoticeResponse(body) => {
                    let Failure { sqlstate, message, .. } = failure(body.fields());
                    answer.notices.push(Told { severity: field(body.fields(), b'S').unwrap(), sqlstate, message });
                }
                Message::ErrorResponse(body) => {
                    assert!(failed.replace(failure(body.fields())).is_none(), "two errors for one text: {sql}");
                }
                Message::ParseComplete | Message::BindComplete | Message::EmptyQueryResponse | Message::ParameterStatus(_) => {}
                Message::ParameterDescription(_) => {}
                _ => panic!("an unexpected message for: {sql}"),
            }
        }
    }
}

/// Parse, Bind, Describe, Execute of unnamed things, everything as text; Sync.
fn extended(sql: &str, out: &mut BytesMut) {
    frontend::parse("", sql, [], out).unwrap();
    let bound = frontend::bind("", "", [], [0_u8; 0], |_, _| Ok(postgres_protocol::IsNull::No), [], out);
    assert!(bound.is_ok());
    frontend::describe(b'P', "", out).unwrap();
    frontend::execute("", 0, out).unwrap();
    frontend::sync(out);
}

pub fn field(mut fields: ErrorFields<'_>, wanted: u8) -> Option<String> {
    fields.find(|f| Ok(f.type_() == wanted)).unwrap().map(|f| String::from_utf8(f.value_bytes().to_vec()).unwrap())
}

fn failure(fields: ErrorFields<'_>) -> Failure {
    let mut failure = Failure::default();
    let all: Vec<(u8, String)> = fields.map(|f| Ok((f.type_(), String::from_utf8(f.value_bytes().to_vec()).unwrap()))).collect().unwrap();
    for (kind, value) in all {
        match kind {
            b'C' => failure.sqlstate = value,
            b'M' => failure.message = value,
            b'H' => failure.hint = Some(value),
            b'P' => failure.position = Some(value.parse().unwrap()),
            _ => {}
        }
    }
    failure
}
