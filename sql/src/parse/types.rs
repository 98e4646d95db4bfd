//! Column types of stream definitions. Here `int8` has eight bits; in expressions it is PostgreSQL's bigint.

use super::cursor::{Cursor, Parsed};
use crate::nearest::did_you_mean;
use datafusion::sql::sqlparser::tokenizer::Token;
use ebb_storage::column_type::ColumnType;
use std::{collections::BTreeSet, sync::Arc};

/// Types inside of types.
const MAX_DEPTH: usize = 16;
const MAX_PRECISION: u64 = 38;

const NAMES: [&str; 44] = [
    "int8",
    "int16",
    "int32",
    "int64",
    "int",
    "integer",
    "smallint",
    "tinyint",
    "bigint",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float32",
    "float",
    "float64",
    "double",
    "real",
    "decimal",
    "numeric",
    "bool",
    "boolean",
    "string",
    "text",
    "varchar",
    "fixed_string",
    "bytea",
    "date",
    "date32",
    "datetime",
    "datetime64",
    "timestamp",
    "timestamptz",
    "uuid",
    "json",
    "jsonb",
    "ipv4",
    "ipv6",
    "enum8",
    "enum16",
    "array",
    "map",
    "nullable",
    "low_cardinality",
];

/// A type and whether it was written as one that takes NULL.
pub(super) type Typed = (ColumnType, bool);

impl Cursor<'_> {
    pub(super) fn column_type(&mut self) -> Parsed<Typed> {
        self.type_at(0)
    }

    fn type_at(&mut self, depth: usize) -> Parsed<Typed> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("types are nested more than {MAX_DEPTH} deep")));
        }
        let mut typed = self.base_type(depth)?;
        // PostgreSQL's arrays, whose elements may be NULL.
        while self.eat_token(&Token::LBracket) {
            self.expect_token(&Token::RBracket)?;
            typed = (ColumnType::Array(Box::new(typed.0), true), false);
        }
        Ok(typed)
    }

    fn base_type(&mut self, depth: usize) -> Parsed<Typed> {
        let at = self.clone();
        let Some(word) = self.word(0) else { return self.expected("a type") };
        let name = word.to_lowercase();
        self.advance(1);
        let ty = match name.as_str() {
            "int8" | "tinyint" => ColumnType::Int8,
            "int16" | "int2" | "smallint" => ColumnType::Int16,
            "int32" | "int4" | "int" | "integer" => ColumnType::Int32,
            "int64" | "bigint" => ColumnType::Int64,
            "uint8" => ColumnType::UInt8,
            "uint16" => ColumnType::UInt16,
            "uint32" => ColumnType::UInt32,
            "uint64" => ColumnType::UInt64,
            "float32" | "float" | "float4" | "real" => ColumnType::Float32,
            "float64" | "float8" => ColumnType::Float64,
            "double" => {
                self.eat("PRECISION");
                ColumnType::Float64
            }
            "decimal" | "numeric" => self.decimal(&at)?,
            "bool" | "boolean" => ColumnType::Bool,
            "string" | "text" | "varchar" => self.string(&at)?,
            "character" if self.eat("VARYING") => self.string(&at)?,
            "char" | "character" | "bpchar" => {
                return Err(at.error("Ebb pads no texts: write text, or fixed_string(n) for at most n bytes"));
            }
            "fixed_string" | "fixedstring" => match self.parenthesized(|c| c.uint("a length in bytes"))? {
                n @ 1..=0xFFFF_FFFF => ColumnType::FixedString(n as u32),
                _ => return Err(at.error("a fixed_string holds 1 to 4294967295 bytes")),
            },
            "bytea" => ColumnType::Bytes,
            "date" | "date32" => ColumnType::Date,
            "datetime" => ColumnType::DateTime(if self.sees_token(&Token::LParen) { Some(self.parenthesized(Self::zone)?) } else { None }),
            "datetime64" => self.datetime64()?,
            "timestamp" => self.timestamp(false)?,
            "timestamptz" => self.timestamp(true)?,
            "uuid" => ColumnType::Uuid,
            "json" | "jsonb" => ColumnType::Json,
            "ipv4" => ColumnType::Ipv4,
            "ipv6" => ColumnType::Ipv6,
            "enum8" => self.enumeration(Some(8))?,
            "enum16" => self.enumeration(Some(16))?,
            "enum" => self.enumeration(None)?,
            "array" => {
                let (inner, null) = self.parenthesized(|c| c.type_at(depth + 1))?;
                ColumnType::Array(Box::new(inner), null)
            }
            "map" => return self.map(&at, depth).map(|ty| (ty, false)),
            "nullable" => {
                return match self.parenthesized(|c| c.type_at(depth + 1))? {
                    (ty, false) => Ok((ty, true)),
                    (_, true) => Err(at.error("nullable(nullable(...)): say it once")),
                };
            }
            "low_cardinality" | "lowcardinality" => {
                let (inner, null) = self.parenthesized(|c| c.type_at(depth + 1))?;
                return Ok((ColumnType::LowCardinality(Box::new(inner)), null));
            }
            _ => return Err(at.error(format!("unknown type '{word}'{}", did_you_mean(&name, NAMES)))),
        };
        Ok((ty, false))
    }

    fn decimal(&mut self, at: &Self) -> Parsed<ColumnType> {
        if !self.sees_token(&Token::LParen) {
            return Err(at.error("decimal needs its digits: decimal(precision, scale), like decimal(18, 4)"));
        }
        let (precision, scale) = self.parenthesized(|c| {
            let precision = c.uint("a precision")?;
            let scale = if c.eat_token(&Token::Comma) { c.uint("a scale")? } else { 0 };
            Ok((precision, scale))
        })?;
        if !(1..=MAX_PRECISION).contains(&precision) || scale > precision {
            return Err(
                at.error(format!("decimal({precision}, {scale}): the precision is 1 to {MAX_PRECISION}, the scale 0 to the precision"))
            );
        }
        Ok(ColumnType::Decimal(precision as u8, scale as i8))
    }

    fn string(&self, at: &Self) -> Parsed<ColumnType> {
        if self.sees_token(&Token::LParen) {
            return Err(at.error("texts have no length in Ebb: write text, or fixed_string(n) for at most n bytes"));
        }
        Ok(ColumnType::String)
    }

    fn zone(&mut self) -> Parsed<Arc<str>> {
        let at = self.clone();
        let zone = self.text("a time zone")?;
        if zone.parse::<chrono_tz::Tz>().is_ok() || is_offset(&zone) {
            return Ok(zone.into());
        }
        let near = did_you_mean(&zone, chrono_tz::TZ_VARIANTS.iter().map(|tz| tz.name()));
        Err(at.error(format!("unknown time zone '{zone}'{near}")))
    }

    fn digits(&mut self) -> Parsed<u8> {
        let at = self.clone();
        match self.uint("a number of fraction digits")? {
            n @ 0..=9 => Ok(n as u8),
            n => Err(at.error(format!("{n} fraction digits: there are 0 to 9"))),
        }
    }

    /// As ClickHouse scripts have it, three digits where none are said.
    fn datetime64(&mut self) -> Parsed<ColumnType> {
        if !self.sees_token(&Token::LParen) {
            return Ok(ColumnType::DateTime64(3, None));
        }
        self.parenthesized(|c| {
            let digits = c.digits()?;
            let zone = if c.eat_token(&Token::Comma) { Some(c.zone()?) } else { None };
            Ok(ColumnType::DateTime64(digits, zone))
        })
    }

    fn timestamp(&mut self, mut zoned: bool) -> Parsed<ColumnType> {
        let digits = if self.sees_token(&Token::LParen) { self.parenthesized(Self::digits)? } else { 6 };
        zoned |= self.eat("WITH TIME ZONE");
        if !zoned {
            self.eat("WITHOUT TIME ZONE");
        }
        Ok(ColumnType::DateTime64(digits, zoned.then(|| "UTC".into())))
    }

    fn map(&mut self, at: &Self, depth: usize) -> Parsed<ColumnType> {
        let ((key, key_null), (value, null)) = self.parenthesized(|c| {
            let key = c.type_at(depth + 1)?;
            c.expect_token(&Token::Comma)?;
            Ok((key, c.type_at(depth + 1)?))
        })?;
        if key_null {
            return Err(at.error("a map's keys cannot be NULL: write the key type without nullable()"));
        }
        Ok(ColumnType::Map(Box::new(key), Box::new(value), null))
    }

    /// `('a' = 1, 'b' = 2)`; a label without a number takes the one after the last.
    fn enumeration(&mut self, bits: Option<u8>) -> Parsed<ColumnType> {
        let mut next = 1_i64;
        let mut numbers = BTreeSet::new();
        let mut names = BTreeSet::new();
        let labels = self.parenthesized(|c| {
            c.list(|c| {
                let at = c.clone();
                let label = c.text("a label")?;
                if c.eat_token(&Token::Eq) {
                    match c.eat_number().and_then(|n| n.parse::<i64>().ok()) {
                        Some(n) => next = n,
                        None => return c.expected("a label's number"),
                    }
                }
                let limit =
                    if bits == Some(8) { i64::from(i8::MIN)..=i64::from(i8::MAX) } else { i64::from(i16::MIN)..=i64::from(i16::MAX) };
                if !limit.contains(&next) {
                    return Err(at.error(format!("'{label}' = {next}: numbers of this enum are {} to {}", limit.start(), limit.end())));
                }
                if !numbers.insert(next) || !names.insert(label.clone()) {
                    return Err(at.error(format!("'{label}' = {next}: a label and a number stand once in an enum")));
                }
                let number = next as i16;
                next += 1;
                Ok((Arc::from(label), number))
            })
        })?;
        let fits = labels.iter().all(|(_, n): &(Arc<str>, i16)| i8::try_from(*n).is_ok());
        Ok(ColumnType::Enum { bits: bits.unwrap_or(if fits { 8 } else { 16 }), labels })
    }
}

/// `+05:30`
fn is_offset(zone: &str) -> bool {
    let bytes = zone.as_bytes();
    let digit = |i: usize| bytes.get(i).is_some_and(u8::is_ascii_digit);
    bytes.len() == 6 && matches!(bytes[0], b'+' | b'-') && digit(1) && digit(2) && bytes[3] == b':' && digit(4) && digit(5)
}
