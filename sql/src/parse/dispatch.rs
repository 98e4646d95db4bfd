//! Which statement a text is, by its first words; what Ebb knows of others and refuses.

use super::{
    cursor::{Cursor, Parsed},
    error::{ParseError, refused, syntax},
    transaction::MAX_STATEMENT_DEPTH,
};
use crate::{
    nearest::did_you_mean,
    statement::{Statement, Verb},
};
use datafusion::sql::sqlparser::tokenizer::Token;

/// A Bind counts its values in sixteen bits.
const PARAMETERS_MAX: usize = 65_535;

const VERBS: [&str; 37] = [
    "SELECT",
    "WITH",
    "VALUES",
    "TABLE",
    "INSERT",
    "DELETE",
    "COPY",
    "CREATE",
    "ALTER",
    "DROP",
    "TRUNCATE",
    "RENAME",
    "DESCRIBE",
    "OPTIMIZE",
    "SHOW",
    "EXPLAIN",
    "PREVIEW",
    "SYSTEM",
    "USE",
    "CALL",
    "RELEASE",
    "SAVEPOINT",
    "BACKUP",
    "RESTORE",
    "BEGIN",
    "START",
    "COMMIT",
    "END",
    "ROLLBACK",
    "ABORT",
    "SET",
    "RESET",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "DISCARD",
    "COMMENT",
];

const CREATABLE: [&str; 7] = ["STREAM", "DATABASE", "DISK", "STORAGE POLICY", "READER", "HOLD", "ROLLUP"];
const DROPPABLE: [&str; 6] = ["STREAM", "DATABASE", "DISK", "STORAGE POLICY", "READER", "ROLLUP"];

/// Statements of other systems, and what to write instead.
const REFUSED: [(&str, &str); 31] = [
    ("UPDATE", "streams are appended to: DELETE the rows and INSERT them anew"),
    ("MERGE", "streams are appended to: DELETE the rows and INSERT them anew"),
    ("REPLACE", "streams are appended to: DELETE the rows and INSERT them anew"),
    ("UPSERT", "streams are appended to: DELETE the rows and INSERT them anew"),
    ("DECLARE", "a portal of the extended protocol reads in steps"),
    ("FETCH", "a portal of the extended protocol reads in steps"),
    ("MOVE", "a portal of the extended protocol reads in steps"),
    ("CLOSE", "a portal of the extended protocol reads in steps"),
    ("LISTEN", "CREATE READER r ON s and SELECT ... FROM read('r')"),
    ("UNLISTEN", "CREATE READER r ON s and SELECT ... FROM read('r')"),
    ("NOTIFY", "INSERT INTO s; readers see it"),
    ("LOCK", "leave it out; a block reads one cut, nothing needs locks"),
    ("VACUUM", "leave it out; OPTIMIZE STREAM s merges, CALL expire_snapshots('s') forgets"),
    ("ANALYZE", "leave it out; parts carry their statistics"),
    ("CLUSTER", "write OPTIMIZE STREAM s FINAL; parts are sorted by ORDER BY"),
    ("REINDEX", "write OPTIMIZE STREAM s FINAL"),
    ("CHECKPOINT", "write SYSTEM FLUSH"),
    ("GRANT", "Ebb has no roles in SQL"),
    ("REVOKE", "Ebb has no roles in SQL"),
    ("ATTACH", "write RESTORE STREAM s FROM ..."),
    ("DETACH", "write DROP STREAM s or BACKUP STREAM s TO ..."),
    ("UNDROP", "write RESTORE STREAM s FROM ..."),
    ("EXCHANGE", "write RENAME STREAM a TO b"),
    ("KILL", "cancel the query from its client"),
    ("CHECK", "run `ebb check`"),
    ("DO", "write the statements"),
    ("LOAD", "write COPY s FROM STDIN"),
    ("IMPORT", "write COPY s FROM STDIN, or run `ebb import`"),
    ("EXPORT", "write COPY (query) TO STDOUT"),
    ("REFRESH", "rollups follow their stream by themselves"),
    ("SECURITY", "leave it out"),
];

impl Cursor<'_> {
    /// One statement to the end of the cursor.
    pub(super) fn statement(&mut self) -> Parsed<Statement> {
        if self.depth >= MAX_STATEMENT_DEPTH {
            return Err(self.error("statements are nested too deeply"));
        }
        self.depth += 1;
        let from = self.at;
        let parameters = self.parameters()?;
        let verb = self.verb()?;
        self.expect_end()?;
        self.depth -= 1;
        // Those of a statement that PREPARE names are given to its EXECUTE.
        let parameters = if matches!(verb, Verb::Prepare(_)) { 0 } else { parameters };
        Ok(Statement { verb, source: self.source_from(from), parameters })
    }

    /// The highest `$n`.
    fn parameters(&self) -> Parsed<usize> {
        let mut highest = 0;
        for token in self.rest() {
            let Token::Placeholder(name) = &token.token else { continue };
            let Some(digits) = name.strip_prefix('$').filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())) else { continue };
            match digits.parse::<usize>() {
                Ok(n) if (1..=PARAMETERS_MAX).contains(&n) => highest = highest.max(n),
                _ => {
                    let message = format!("there is no parameter {name}: they are numbered from $1 to ${PARAMETERS_MAX}");
                    return Err(ParseError { sqlstate: "42P02", ..syntax(message, self.text.position(token.span.start)) });
                }
            }
        }
        Ok(highest)
    }

    fn verb(&mut self) -> Parsed<Verb> {
        if self.sees_token(&Token::LParen) {
            return self.query().map(Verb::Query);
        }
        let at = self.clone();
        let Some(word) = self.word(0) else { return self.expected("a statement") };
        let upper = word.to_ascii_uppercase();
        if matches!(upper.as_str(), "SELECT" | "WITH" | "VALUES" | "TABLE") {
            return self.query().map(Verb::Query);
        }
        self.advance(1);
        match upper.as_str() {
            "INSERT" => self.insert(),
            "DELETE" => self.delete(),
            "COPY" => self.copy(),
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "TRUNCATE" => self.truncate(),
            "RENAME" => self.rename(),
            "DESCRIBE" | "DESC" => self.describe(),
            "OPTIMIZE" => self.optimize().map(Verb::Optimize),
            "SHOW" => self.show(),
            "EXPLAIN" => self.explain(),
            "PREVIEW" => self.preview(),
            "SYSTEM" => self.system(),
            "USE" => {
                self.eat("DATABASE");
                self.database_name().map(Verb::UseDatabase)
            }
            "CALL" => self.call(),
            "RELEASE" => self.release(),
            "SAVEPOINT" => self.savepoint(),
            "BACKUP" => self.backup(),
            "RESTORE" => self.restore(),
            "BEGIN" => self.begin(),
            "START" => {
                if !self.sees("TRANSACTION") {
                    return self.expected("TRANSACTION");
                }
                self.begin()
            }
            "COMMIT" | "END" => self.end_transaction(Verb::Commit),
            "ROLLBACK" | "ABORT" => self.end_transaction(Verb::Rollback),
            "SET" => self.set(),
            "RESET" => self.reset(),
            "PREPARE" => self.prepare(),
            "EXECUTE" => self.execute(),
            "DEALLOCATE" => self.deallocate(),
            "DISCARD" => self.discard(),
            "COMMENT" => self.comment_on(),
            _ => match REFUSED.iter().find(|(name, _)| *name == upper) {
                Some((name, way_out)) => Err(refused(format!("{name} is not supported"), *way_out, at.position())),
                None => Err(at.error(format!("unknown statement '{word}'{}", did_you_mean(word, VERBS)))),
            },
        }
    }

    /// After CREATE.
    fn create(&mut self) -> Parsed<Verb> {
        let at = self.clone();
        let or_replace = self.eat("OR REPLACE");
        if self.eat("DISK") {
            return self.create_disk(or_replace);
        }
        if self.eat("STORAGE POLICY") {
            return self.create_storage_policy(or_replace);
        }
        self.refuse_create()?;
        if or_replace && self.sees_one_of(&["STREAM", "TABLE", "DATABASE", "SCHEMA", "READER", "HOLD", "ROLLUP"]) {
            return at.refuse("OR REPLACE belongs to disks, storage policies, tags and branches", "DROP it first, or write IF NOT EXISTS");
        }
        if self.eat_stream_word() {
            return self.create_stream();
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            return self.create_database();
        }
        if self.eat("READER") {
            return self.create_reader();
        }
        if self.eat("HOLD") {
            return self.create_hold();
        }
        if self.eat("ROLLUP") {
            return self.create_rollup();
        }
        self.unknown_object("CREATE", &CREATABLE)
    }

    fn refuse_create(&self) -> Parsed<()> {
        let permanent = "write CREATE STREAM; a stream is permanent, DROP STREAM removes it";
        let refusals = [
            ("TEMPORARY", permanent),
            ("TEMP", permanent),
            ("GLOBAL TEMPORARY", permanent),
            ("LOCAL TEMPORARY", permanent),
            ("UNLOGGED", permanent),
            ("EXTERNAL", "write CREATE STREAM, then COPY s FROM STDIN or run `ebb import`"),
            ("FOREIGN", "write CREATE STREAM, then COPY s FROM STDIN or run `ebb import`"),
            ("UNBOUNDED", "write CREATE STREAM"),
            ("VIEW", "write the query, or CREATE ROLLUP r ON s AS SELECT ... GROUP BY ..."),
            ("RECURSIVE VIEW", "write WITH RECURSIVE in the query"),
            ("MATERIALIZED VIEW", "write CREATE ROLLUP r ON s AS SELECT ... GROUP BY ..."),
            ("INDEX", "name indexes at CREATE STREAM: INDEX name e TYPE bloom_filter"),
            ("UNIQUE INDEX", "Ebb keeps equal rows; OPTIMIZE STREAM ... DEDUPLICATE removes them"),
            ("FUNCTION", "Ebb has built-in functions only"),
            ("TAG", "write ALTER STREAM s CREATE TAG t"),
            ("BRANCH", "write ALTER STREAM s CREATE BRANCH b"),
            ("USER", "Ebb has no roles in SQL"),
            ("ROLE", "Ebb has no roles in SQL"),
            ("DICTIONARY", "write CREATE STREAM and join it"),
            ("SEQUENCE", "every row carries its record's number in _tp_sn"),
            ("TYPE", "write an enum8(...) or enum16(...) column"),
            ("TRIGGER", "read changes with CREATE READER r ON s"),
            ("EXTENSION", "Ebb has no extensions"),
        ];
        match refusals.into_iter().find(|(words, _)| self.sees(words)) {
            Some((words, way_out)) => self.refuse(format!("CREATE {words} is not supported"), way_out),
            None => Ok(()),
        }
    }

    /// After ALTER.
    fn alter(&mut self) -> Parsed<Verb> {
        if self.eat_stream_word() {
            return self.alter_stream();
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            return self.alter_database();
        }
        if self.sees("DISK") {
            return self.refuse("ALTER DISK is not supported", "write CREATE OR REPLACE DISK d disk(...)");
        }
        if self.sees("STORAGE POLICY") {
            return self.refuse("ALTER STORAGE POLICY is not supported", "write CREATE OR REPLACE STORAGE POLICY p AS $$ ... $$");
        }
        if self.sees("SYSTEM") {
            return self.refuse("ALTER SYSTEM is not supported", "write SET GLOBAL name = value");
        }
        self.unknown_object("ALTER", &["STREAM", "DATABASE"])
    }

    /// After DROP.
    fn drop(&mut self) -> Parsed<Verb> {
        if self.eat_stream_word() {
            return self.drop_stream();
        }
        if self.eat("DATABASE") || self.eat("SCHEMA") {
            return self.drop_database();
        }
        if self.eat("DISK") {
            return self.drop_disk();
        }
        if self.eat("STORAGE POLICY") {
            return self.drop_storage_policy();
        }
        if self.eat("READER") {
            return self.drop_reader();
        }
        if self.eat("ROLLUP") {
            return self.drop_rollup();
        }
        for (word, way_out) in [
            ("HOLD", "write RELEASE HOLD h ON s"),
            ("TAG", "write ALTER STREAM s DROP TAG t"),
            ("BRANCH", "write ALTER STREAM s DROP BRANCH b"),
            ("INDEX", "indexes are named at CREATE STREAM"),
            ("VIEW", "Ebb has no views; write DROP ROLLUP r ON s"),
            ("MATERIALIZED VIEW", "write DROP ROLLUP r ON s"),
        ] {
            if self.sees(word) {
                return self.refuse(format!("DROP {word} is not supported"), way_out);
            }
        }
        self.unknown_object("DROP", &DROPPABLE)
    }

    fn unknown_object<T>(&self, verb: &str, known: &[&str]) -> Parsed<T> {
        let words: Vec<&str> = (0..2).map_while(|n| self.word(n)).collect();
        let Some(first) = words.first() else { return self.expected(&format!("one of {} after {verb}", known.join(", "))) };
        let near = known
            .iter()
            .copied()
            .find(|k| k.contains(' ') && words.len() == 2 && crate::nearest::nearest(&words.join(" "), [*k]).is_some());
        let near = near.map_or_else(|| did_you_mean(first, known.iter().copied()), |k| format!("; did you mean '{k}'?"));
        Err(syntax(format!("unknown statement '{verb} {first}': {verb} takes {}{near}", known.join(", ")), self.position()))
    }
}
