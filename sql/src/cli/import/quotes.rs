//! Whether every quote of a csv file is closed: a reader takes the end of the file for the end of the value, and a file that was cut off
//! would come in as if it were whole.

use crate::{Error, Result};
use std::io::BufRead;

#[derive(Clone, Copy, PartialEq)]
enum At {
    FieldStart,
    Plain,
    Quoted,
    /// Behind a quote inside quotes: it ends the value, or stands for one quote.
    QuoteInQuotes,
}

/// # Errors
/// `Invalid`, naming the line on which a value begins whose quote is never closed; what reading says.
pub fn are_closed(mut file: impl BufRead, delimiter: u8) -> Result<()> {
    let (mut at, mut line, mut begun) = (At::FieldStart, 1u64, 1u64);
    loop {
        let piece = file.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        for &byte in piece {
            at = match (at, byte) {
                (At::FieldStart, b'"') => {
                    begun = line;
                    At::Quoted
                }
                (At::Quoted, b'"') => At::QuoteInQuotes,
                (At::Quoted, _) => At::Quoted,
                (At::QuoteInQuotes, b'"') => At::Quoted,
                (_, b'\n' | b'\r') => At::FieldStart,
                (_, b) if b == delimiter => At::FieldStart,
                _ => At::Plain,
            };
            line += u64::from(byte == b'\n');
        }
        let read = piece.len();
        file.consume(read);
    }
    match at {
        At::Quoted => {
            Err(Error::invalid(format!("line {begun}: a quoted value is never closed: is the file whole?")).with_sqlstate("22P04"))
        }
        _ => Ok(()),
    }
}
