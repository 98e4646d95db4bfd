//! What Ebb knows and refuses, always with the way out; what could exhaust it.

use super::{says, wrong};
use crate::parse::{NOT_SUPPORTED, TOO_COMPLEX, parse};

#[test]
fn known_but_refused_statements_name_the_way_out() {
    for (sql, way_out) in [
        ("UPDATE s SET a = 1", "DELETE the rows and INSERT"),
        ("MERGE INTO s USING t ON true WHEN MATCHED THEN DELETE", "DELETE the rows and INSERT"),
        ("CREATE TEMPORARY TABLE t (a int)", "CREATE STREAM"),
        ("CREATE TEMP STREAM t (a int)", "CREATE STREAM"),
        ("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'", "COPY s FROM STDIN"),
        ("CREATE VIEW v AS SELECT 1", "CREATE ROLLUP"),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE ROLLUP"),
        ("CREATE MATERIALIZED VIEW v AS SELECT 1", "CREATE ROLLUP"),
        ("CREATE OR REPLACE STREAM s (a int)", "IF NOT EXISTS"),
        ("CREATE INDEX i ON s (a)", "INDEX name e TYPE"),
        ("INSERT INTO s VALUES (1) ON CONFLICT DO NOTHING", "DEDUPLICATE"),
        ("INSERT INTO s SELECT 1 ON CONFLICT (a) DO UPDATE SET a = 1", "DEDUPLICATE"),
        ("INSERT INTO s VALUES (1) RETURNING a", "leave it out"),
        ("INSERT INTO s FORMAT CSV", "COPY s FROM STDIN"),
        ("SELECT * FROM s SAMPLE 0.1", "random()"),
        ("SELECT * FROM s TABLESAMPLE BERNOULLI (10)", "random()"),
        ("SELECT * FROM s SETTINGS max_threads = 1", "SET name = value"),
        ("SELECT * FROM s FORMAT JSON", "COPY (query) TO STDOUT"),
        ("SELECT * FROM s FINAL", "needs AS"),
        ("SELECT * FROM s FOR UPDATE", "leave it out"),
        ("SELECT a INTO t FROM s", "CREATE STREAM s AS SELECT"),
        ("WITH x AS (SELECT 1) INSERT INTO s SELECT * FROM x", "INSERT INTO s WITH"),
        ("CREATE STREAM s (a int) ENGINE = MergeTree", "ENGINE = Stream"),
        ("CREATE STREAM s (a int UNIQUE)", "DEDUPLICATE"),
        ("CREATE STREAM s (a int REFERENCES t)", "constraints"),
        ("CREATE STREAM s (a int, UNIQUE (a))", "DEDUPLICATE"),
        ("CREATE STREAM s (a int, CONSTRAINT c CHECK (a > 0))", "constraints"),
        ("CREATE STREAM s (a int) SAMPLE BY a", "leave it out"),
        ("CREATE STREAM s (a int) WITH (x = 1)", "SETTINGS k = v"),
        ("ALTER STREAM s ADD COLUMN a int FIRST", "at the end"),
        ("ALTER TABLE s ALTER COLUMN a TYPE int", "MODIFY COLUMN"),
        ("ALTER STREAM s MODIFY ORDER BY a", "keys are fixed"),
        ("ALTER STREAM s UPDATE a = 1 WHERE true", "DELETE the rows"),
        ("ALTER SYSTEM SET x = 1", "SET GLOBAL"),
        ("COPY s FROM '/etc/passwd'", "STDIN"),
        ("COPY s TO PROGRAM 'rm'", "STDOUT"),
        ("COPY s FROM STDIN WHERE a > 1", "INSERT ... SELECT"),
        ("COPY s FROM STDIN WITH (ON_ERROR ignore)", "all or nothing"),
        ("COPY s FROM STDIN WITH (ENCODING 'latin1')", "UTF8"),
        ("DECLARE c CURSOR FOR SELECT 1", "portal"),
        ("DELETE FROM s USING t WHERE s.a = t.a", "IN (SELECT"),
        ("DELETE FROM s RETURNING a", "SELECT the rows first"),
        ("COMMIT PREPARED 'x'", "COMMIT"),
        ("SET ROLE x", "leave it out"),
        ("GRANT SELECT ON s TO x", "no roles"),
        ("VACUUM", "OPTIMIZE"),
        ("DROP HOLD h ON s", "RELEASE HOLD"),
        ("LISTEN x", "CREATE READER"),
    ] {
        let e = says(sql, &[way_out]);
        assert_eq!(e.sqlstate, NOT_SUPPORTED, "{sql}: {e}");
        assert!(e.hint.is_some() && e.position.is_some(), "{sql}");
    }
}

#[test]
fn wrong_statements_say_what_was_expected() {
    for (sql, parts) in [
        ("DROP STREAM", &["a stream", "the end"][..]),
        ("DROP STREAM select", &["double quotes"]),
        ("RENAME STREAM a b", &["TO", "'b'"]),
        ("OPTIMIZE STREAM s DEDUPLICATE FINAL", &["FINAL stands before"]),
        ("OPTIMIZE STREAM s PARTITION", &["constant"]),
        ("PREVIEW DROP STREAM s", &["MODIFY TTL"]),
        ("PREVIEW ALTER STREAM s DROP COLUMN a", &["MODIFY RETENTION"]),
        ("EXPLAIN DROP STREAM s", &["EXPLAIN shows"]),
        ("EXPLAIN FORMAT tee SELECT 1", &["'tree'"]),
        ("CREATE DISK d disk()", &["type = 'local'"]),
        ("CREATE DISK d disk(type = 'local', type = 's3')", &["said twice"]),
        ("CREATE OR REPLACE DISK IF NOT EXISTS d disk(type = 'local')", &["contradict"]),
        ("CREATE STORAGE POLICY p AS volumes", &["YAML"]),
        ("CREATE READER r", &["ON"]),
        ("ALTER STREAM s CREATE TAG t WITH SNAPSHOT RETENTION 5 SNAPSHOTS", &["branches"]),
        ("ALTER STREAM s CREATE BRANCH b WITH SNAPSHOT RETENTION", &["SNAPSHOTS"]),
        ("ALTER STREAM s REPLACE TAG IF NOT EXISTS t", &["contradict"]),
        ("ALTER STREAM s MODIFY COLUMN c", &["changes nothing"]),
        ("ALTER STREAM s MOVE PARTITION 1 TO DISK IF EXISTS 'x'", &["IF EXISTS"]),
        ("CALL fast_forward(a => 1, 2)", &["names follow"]),
        ("CALL fast_forward(a => 1, a => 2)", &["said twice"]),
        ("SYSTEM ADVANCE CLOCK INTERVAL '-1 day'", &["advances"]),
        ("SYSTEM STOP MERGES ON VOLUME cold", &["policy.volume"]),
        ("PREPARE a AS PREPARE b AS SELECT 1", &["prepared statements"]),
        ("BEGIN ISOLATION LEVEL WILD", &["READ COMMITTED"]),
        ("SET x", &["'='"]),
        ("INSERT s VALUES (1)", &["INTO"]),
    ] {
        says(sql, parts);
    }
}

#[test]
fn deep_nesting_is_refused_not_fatal() {
    let n = 10_000;
    let nested = [
        format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}", "(".repeat(n)),
        format!("SELECT * FROM {}s{}", "(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1{}", "f(".repeat(n), ")".repeat(n)),
        format!("SELECT {}1", "NOT ".repeat(n)),
        format!("SELECT {}1", "- ".repeat(n)),
        format!("SELECT {}1 {}", "CASE WHEN a THEN ".repeat(n), "END ".repeat(n)),
        format!("SELECT 1{}", " + 1".repeat(n)),
        format!("SELECT 1{}", "::int".repeat(n)),
        format!("SELECT a{}", "[1]".repeat(n)),
        format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(n)),
        format!("SELECT 1 WHERE a = 1{}", " OR a = 1".repeat(n)),
        format!("{}1{}", "SELECT (".repeat(n), ")".repeat(n)),
        format!("{}SELECT 1", "EXPLAIN ".repeat(n)),
        format!("{}SELECT 1", "PREPARE a AS ".repeat(n)),
        format!("CREATE STREAM s (a {}int{})", "array(".repeat(n), ")".repeat(n)),
        format!("CREATE STREAM s (a int) TTL {}a{}", "(".repeat(n), ")".repeat(n)),
        format!("INSERT INTO s VALUES ({}1{})", "(".repeat(n), ")".repeat(n)),
        format!("DELETE FROM s WHERE {}1{}", "(".repeat(n), ")".repeat(n)),
    ];
    for sql in nested {
        // Some are harmless lists; none may end the process.
        if let Err(e) = parse(&sql) {
            assert!(!e.message.is_empty());
        }
    }
    assert_eq!(wrong(&format!("SELECT {}1{}", "(".repeat(n), ")".repeat(n))).sqlstate, TOO_COMPLEX);
}

#[test]
fn chains_below_the_limit_live() {
    for (head, link, links) in [
        ("SELECT 1 WHERE a = 1", " OR a = 1", 2_990),
        ("SELECT 1 WHERE a = 1", " AND a = 1 OR b = 2", 1_490),
        ("DELETE FROM s WHERE a = 1", " OR a = 1 AND b = 2", 1_490),
        ("SELECT 1", " + 1", 199),
        ("SELECT 'a'", " || 'b'", 199),
        ("SELECT 1 WHERE a BETWEEN 1 AND 2", " BETWEEN 1 AND 2", 199),
        ("SELECT 1", " UNION ALL SELECT 1", 99),
        ("SELECT CASE x WHEN 0 THEN 0", " WHEN 1 + 1 THEN 2 * 3", 1_000),
        ("SELECT CASE WHEN a THEN 1 END", " + CASE WHEN a THEN 1 END", 199),
        ("INSERT INTO s VALUES (1 + 1)", ", (1 + 1)", 1_000),
    ] {
        let end = if head.contains("CASE x") { " END" } else { "" };
        let sql = format!("{head}{}{end}", link.repeat(links));
        let all = parse(&sql).unwrap_or_else(|e| panic!("{head}: {e}"));
        assert_eq!(all, all.clone());
        assert_eq!(parse(&all[0].to_string()).unwrap(), all);
        // A mistake at the very end drops what was built so far.
        assert!(parse(&format!("{sql} nonsense nonsense")).is_err());
    }
    for chain in [" + CASE WHEN a THEN 1 END", " BETWEEN 1 AND 2", " + 1", " IS NULL", " IS DISTINCT FROM 1", "::int"] {
        assert_eq!(wrong(&format!("SELECT a{}", chain.repeat(300))).sqlstate, TOO_COMPLEX, "{chain}");
    }
}

#[test]
fn forms_that_are_read_twice_nest_only_so_deep() {
    for form in ["CAST(", "POSITION(", "NOT (", "EXTRACT(", "CAST((SELECT "] {
        assert_eq!(wrong(&format!("SELECT {}1", form.repeat(9))).sqlstate, TOO_COMPLEX, "{form}");
    }
    assert!(parse(&format!("SELECT {}a{}", "CAST(".repeat(8), " AS int)".repeat(8))).is_ok());
    // Brackets behind FROM that begin with brackets are read as a query, then as a join.
    let nested = |open: &str, inner: &str, close: &str, n: usize| format!("SELECT * FROM {}{inner}{}", open.repeat(n), close.repeat(n));
    let joined = |n| nested("((SELECT * FROM ", "s", ") a JOIN b ON true)", n);
    assert!(parse(&joined(8)).is_ok());
    assert_eq!(wrong(&joined(9)).sqlstate, TOO_COMPLEX);
    for (open, close) in [
        ("((SELECT * FROM ", ") a JOIN b ON true)"),
        ("(((SELECT * FROM ", ") a JOIN b ON true) JOIN c ON true)"),
        ("a, ((SELECT * FROM ", ") a CROSS JOIN b)"),
        ("a JOIN ((SELECT * FROM ", ") a CROSS JOIN b) ON true"),
        ("(VALUES (1, (SELECT x FROM ", ")))"),
        ("(VALUES (CAST((SELECT x FROM ", ") AS int)))"),
    ] {
        for n in [30, 60] {
            for text in [nested(open, "s", close, n), nested(open, "s", "", n), nested(open, "", "", n)] {
                assert_eq!(wrong(&text).sqlstate, TOO_COMPLEX, "{text}");
            }
        }
    }
    // These are read once or a few times, however wrong they are.
    for open in ["(SELECT * FROM ", "(", "(s JOIN ", "s JOIN (SELECT * FROM s, ", "(SELECT * FROM s WHERE a IN ", "f(", "f((SELECT * FROM "]
    {
        assert!(parse(&nested(open, "", "", 30)).is_err(), "{open}");
        assert!(parse(&nested(open, "s", "", 30)).is_err(), "{open}");
    }
    assert!(parse(&nested("(", "s", " JOIN t ON true)", 60)).is_ok());
    assert!(parse(&nested("(", "(SELECT 1) a", " JOIN t ON true)", 60)).is_ok());
    // Calls nest as deep as brackets do, in no time.
    assert!(parse(&format!("SELECT {}1{}", "f(".repeat(60), ")".repeat(60))).is_ok());
    assert!(parse(&format!("SELECT * FROM {}s{}", "(SELECT * FROM ".repeat(20), ") t".repeat(20))).is_ok());
}
