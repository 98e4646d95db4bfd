//! As much of YAML as a storage policy needs: mappings, lists and scalars, a few levels deep.
//!
//! Guards: a key stands once, what is not understood is refused with its line, and no text makes this panic, recurse without bound or
//! grow beyond itself (aliases, which could, are refused).

use crate::{Error, Result};
use saphyr_parser::{Event, Parser, ScalarStyle, Span};

const BYTES_MAX: usize = 64 << 10;
const DEPTH_MAX: usize = 8;

/// A value and the line it begins on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub line: usize,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A plain scalar, as written; empty where there is none.
    Plain(String),
    /// A quoted scalar or a block.
    Quoted(String),
    List(Vec<Node>),
    /// In the order written.
    Map(Vec<(String, Node)>),
}

pub fn error(line: usize, why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("line {line}: {why}"))
}

/// # Errors
/// `Invalid`, naming the line.
pub fn parse(text: &str) -> Result<Node> {
    if text.len() > BYTES_MAX {
        return Err(Error::invalid(format!("the text has {} bytes: {BYTES_MAX} at the most", text.len())));
    }
    let mut reader = Reader { parser: Parser::new_from_str(text) };
    loop {
        match reader.next()? {
            (Event::StreamStart | Event::DocumentStart(_) | Event::Nothing, _) => {}
            (Event::StreamEnd | Event::DocumentEnd, line) => return Err(error(line, "there is nothing in it")),
            (event, line) => {
                let node = reader.node(event, line, 0)?;
                reader.end()?;
                return Ok(node);
            }
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, saphyr_parser::StrInput<'a>>,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<(Event<'a>, usize)> {
        match self.parser.next_event() {
            Some(Ok((event, Span { start, .. }))) => Ok((event, start.line())),
            Some(Err(e)) => Err(error(e.marker().line(), e.info())),
            None => Err(Error::invalid("the text ends early")),
        }
    }

    fn end(&mut self) -> Result<()> {
        loop {
            match self.next()? {
                (Event::StreamEnd, _) => return Ok(()),
                (Event::DocumentEnd | Event::Nothing, _) => {}
                (_, line) => return Err(error(line, "a second document begins: there must be one")),
            }
        }
    }

    fn node(&mut self, event: Event<'a>, line: usize, depth: usize) -> Result<Node> {
        if depth > DEPTH_MAX {
            return Err(error(line, "too deep"));
        }
        let value = match event {
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) if anchor > 0 => {
                return Err(error(line, "anchors are not understood: write the value out"));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(error(line, "tags are not understood: leave it out"));
            }
            Event::Alias(_) => return Err(error(line, "aliases are not understood: write the value out")),
            Event::Scalar(text, ScalarStyle::Plain, ..) => Value::Plain(text.into_owned()),
            Event::Scalar(text, ..) => Value::Quoted(text.into_owned()),
            Event::SequenceStart(..) => {
                let mut list = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break Value::List(list),
                        (event, line) => list.push(self.node(event, line, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(..) => {
                let mut map: Vec<(String, Node)> = Vec::new();
                loop {
                    let (key, line) = match self.next()? {
                        (Event::MappingEnd, _) => break Value::Map(map),
                        (event, line) => (self.node(event, line, depth + 1)?, line),
                    };
                    let (Value::Plain(key) | Value::Quoted(key)) = key.value else { return Err(error(line, "a key must be a name")) };
                    if map.iter().any(|(known, _)| *known == key) {
                        return Err(error(line, format_args!("'{key}' is there twice")));
                    }
                    let (event, line) = self.next()?;
                    map.push((key, self.node(event, line, depth + 1)?));
                }
            }
            _ => return Err(error(line, "a value was expected")),
        };
        Ok(Node { line, value })
    }
}

/// A name as a scalar: in quotes where it could be read as something else.
pub fn scalar(name: &str) -> String {
    let plain = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&name.to_ascii_lowercase().as_str());
    if plain { name.to_owned() } else { format!("'{}'", name.replace('\'', "''")) }
}

#[cfg(test)]
mod tests;
