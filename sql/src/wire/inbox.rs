//! What a client sends, message by message, looked at before it is decoded.
//!
//! Guards: the decoder is given whole messages of the form that the protocol says, whose texts are UTF-8, and nothing else: it neither
//! panics, nor reads into the next message, nor puts other characters in the place of broken ones.

use crate::{Error, sqlstate};
use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The longest message that carries a statement or data; the decoder takes no longer one.
const LARGE_MAX: usize = 0x3fff_ffff - 1;
/// The longest of any other.
const SMALL_MAX: usize = 10_000;

/// Why a message is not taken.
#[derive(Debug)]
pub enum Refused {
    /// What it says is wrong: answered as an error, and the connection goes on.
    Message(Error),
    /// Where the next one begins is not known.
    Connection(Error),
    /// The client is gone.
    Gone,
}

/// Bytes that came, up to the end of the last message or beyond it.
#[derive(Debug, Default)]
pub struct Inbox {
    bytes: BytesMut,
}

fn violation(message: impl Into<String>) -> Error {
    Error::invalid(message).with_sqlstate(sqlstate::PROTOCOL_VIOLATION)
}

impl Inbox {
    /// The next message, whole, with its type and length in front. Before the session has begun there are no types.
    pub async fn next(&mut self, socket: &mut (impl AsyncRead + Unpin), begun: bool) -> Result<BytesMut, Refused> {
        let head = usize::from(begun);
        loop {
            if let Some(mut length) = self.bytes.get(head..head + 4) {
                let length = length.get_u32() as usize;
                let most = match self.bytes[0] {
                    b'Q' | b'P' | b'B' | b'd' if begun => LARGE_MAX,
                    _ => SMALL_MAX,
                };
                if !(4..=most).contains(&length) {
                    return Err(Refused::Connection(violation(format!("a message cannot have a length of {length} bytes"))));
                }
                if self.bytes.len() >= head + length {
                    return Ok(self.bytes.split_to(head + length));
                }
            }
            match socket.read_buf(&mut self.bytes).await {
                Ok(0) | Err(_) => return Err(Refused::Gone),
                Ok(_) => {}
            }
        }
    }

    /// Whether a Sync is known to follow.
    pub fn sync_follows(&self) -> bool {
        self.bytes.starts_with(&[b'S', 0, 0, 0, 4])
    }
}

/// Whether a message of a session has the form that the protocol says.
pub fn check(message: &[u8]) -> Result<(), Refused> {
    let (kind, body) = (message[0], message.get(5..).unwrap_or_default());
    let mut fields = Fields { kind, rest: body };
    let checked = match kind {
        b'Q' => fields.text("the statement"),
        b'P' => fields.parse(),
        b'B' => fields.bind(),
        b'D' | b'C' => fields.skip(1).and_then(|()| fields.text("the name")),
        b'E' => fields.text("the portal's name").and_then(|()| fields.skip(4)),
        b'f' => fields.text("the reason"),
        b'S' | b'H' | b'X' | b'c' => Ok(()),
        // Data is looked at by COPY, in pieces that may end in the middle of a character.
        b'd' => return Ok(()),
        other => return Err(Refused::Connection(violation(format!("there is no message of type {:?}", char::from(other))))),
    };
    checked.and_then(|()| fields.end()).map_err(Refused::Message)
}

/// Whether the first message of a connection can be decoded.
pub fn check_startup(message: &[u8]) -> Result<(), Refused> {
    let refuse = |m: &str| Err(Refused::Connection(violation(m)));
    match message.get(4..8).map(|code| (u16::from_be_bytes([code[0], code[1]]), u16::from_be_bytes([code[2], code[3]]))) {
        None => refuse("the first message has no protocol version"),
        // A request to cancel, with the number and the secret of a connection.
        Some((1234, 5678)) if message.len() >= 16 => Ok(()),
        Some((3, _)) if message.len() > 8 && message.ends_with(&[0]) && std::str::from_utf8(&message[8..]).is_ok() => Ok(()),
        Some((3, _)) => refuse("the startup message is malformed"),
        Some((major, minor)) => refuse(&format!("protocol {major}.{minor} is not spoken here: 3.0 and 3.2 are")),
    }
}

/// What is left of a message.
struct Fields<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl Fields<'_> {
    fn malformed(&self, what: &str) -> Error {
        let name = match self.kind {
            b'Q' => "Query",
            b'P' => "Parse",
            b'B' => "Bind",
            b'D' => "Describe",
            b'C' => "Close",
            b'E' => "Execute",
            _ => "such",
        };
        violation(format!("a {name} message is malformed: {what}"))
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Error> {
        self.rest = self.rest.get(bytes..).ok_or_else(|| self.malformed("it ends early"))?;
        Ok(())
    }

    /// A text with a zero behind it.
    fn text(&mut self, what: &str) -> Result<(), Error> {
        let end = self.rest.iter().position(|b| *b == 0).ok_or_else(|| self.malformed("a text has no end"))?;
        if let Err(e) = std::str::from_utf8(&self.rest[..end]) {
            let broken = &self.rest[e.valid_up_to()..end];
            let bytes: Vec<String> = broken[..e.error_len().unwrap_or(broken.len())].iter().map(|b| format!("0x{b:02x}")).collect();
            let message = format!("invalid byte sequence for encoding \"UTF8\" in {what}: {}", bytes.join(" "));
            return Err(Error::invalid(message).with_sqlstate(sqlstate::CHARACTER_NOT_IN_REPERTOIRE));
        }
        self.skip(end + 1)
    }

    fn count(&mut self) -> Result<usize, Error> {
        let bytes = self.rest.get(..2).ok_or_else(|| self.malformed("it ends early"))?;
        let count = u16::from_be_bytes([bytes[0], bytes[1]]);
        self.skip(2)?;
        Ok(usize::from(count))
    }

    fn parse(&mut self) -> Result<(), Error> {
        self.text("the statement's name")?;
        self.text("the statement")?;
        let types = self.count()?;
        self.skip(4 * types)
    }

    fn bind(&mut self) -> Result<(), Error> {
        self.text("the portal's name")?;
        self.text("the statement's name")?;
        let formats = self.count()?;
        self.formats(formats)?;
        let values = self.count()?;
        if formats > 1 && formats != values {
            return Err(self.malformed(&format!("it has {formats} formats for {values} parameters")));
        }
        for _ in 0..values {
            let bytes = self.rest.get(..4).ok_or_else(|| self.malformed("it ends early"))?;
            let length = i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            self.skip(4)?;
            match (usize::try_from(length), length) {
                (Ok(length), _) => self.skip(length)?,
                (_, -1) => {}
                _ => return Err(self.malformed(&format!("a parameter has a length of {length} bytes"))),
            }
        }
        let results = self.count()?;
        self.formats(results)
    }

    /// 0 for text, 1 for binary.
    fn formats(&mut self, count: usize) -> Result<(), Error> {
        for _ in 0..count {
            let format = self.count()?;
            if format > 1 {
                return Err(self.malformed(&format!("there is no format {format}")));
            }
        }
        Ok(())
    }

    fn end(&self) -> Result<(), Error> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.malformed("bytes are left over")) }
    }
}

#[cfg(test)]
mod tests;
