//! PostgreSQL's dialect with what Ebb adds: table versions, back-ticks, EXCLUDE. SETTINGS and FORMAT are read so that they can be
//! refused instead of being taken for aliases.
//!
//! It must answer PostgreSQL's type id: the parser asks for it wherever the dialects differ without a method of their own.

use datafusion::sql::sqlparser::{
    dialect::{Dialect, PostgreSqlDialect, Precedence},
    keywords::Keyword,
    parser::{Parser, ParserError},
};
use std::any::TypeId;

#[derive(Debug, Default, Clone, Copy)]
pub struct StreamDialect;

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

/// Methods that answer what PostgreSQL's dialect answers.
macro_rules! as_postgres {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            POSTGRES.$method()
        })*
    };
}

/// Methods by which this dialect differs from PostgreSQL's.
macro_rules! yes {
    ($($method:ident),* $(,)?) => {
        $(fn $method(&self) -> bool {
            true
        })*
    };
}

impl Dialect for StreamDialect {
    as_postgres!(
        supports_unicode_string_literal,
        supports_filter_during_aggregation,
        supports_group_by_expr,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_explain_with_utility_options,
        supports_factorial_operator,
        supports_bitwise_shift_operators,
        supports_named_fn_args_with_colon_operator,
        supports_empty_projections,
        supports_nested_comments,
        supports_string_escape_constant,
        supports_numeric_literal_underscores,
        supports_array_typedef_with_brackets,
        supports_notnull_operator,
        supports_interval_options,
        supports_select_wildcard_with_alias,
        supports_comma_separated_trim,
        supports_geometric_types,
    );

    yes!(
        supports_table_versioning,
        supports_settings,
        supports_select_format,
        supports_select_wildcard_exclude,
        supports_select_wildcard_except,
        supports_order_by_all,
    );

    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRES.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        POSTGRES.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        ch != '`' && POSTGRES.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        POSTGRES.get_next_precedence(parser)
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        POSTGRES.prec_value(prec)
    }
}
