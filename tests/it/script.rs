//! Scripts of statements with their answers: their form, and what runs them behind a trait. Each script runs everywhere: in this process
//! and over the wire.
//!
//! A script is a list of blocks, separated by empty lines:
//! `statement ok`, `statement error <SQLSTATE>[@position] [text that the message contains]`,
//! `statement notice <SQLSTATE> <text>`, or `query` with the statement on the next lines; a query's rows follow after `----`, one a
//! line, values separated by `|`, `rowsort` after `query` sorts both. A position is the error's place in the text, counted from 1.
//! `session <name>` goes on in another session, `restart` reopens the database. `$TMP` is a folder of the script's own.

use async_trait::async_trait;
use std::fmt;

/// The scripts, handed to a macro that makes a test of each.
macro_rules! each_script {
    ($run:ident) => {
        $run!(
            ageing,
            aggregates_after_alter,
            alter_columns,
            arithmetic,
            as_of,
            basics,
            bounds,
            branches,
            column_names,
            column_ttl,
            decimals,
            declared_types,
            deduplicate,
            defaults,
            definitions,
            delete,
            disks,
            dropped_columns,
            expiry,
            functions,
            group_by_ttl,
            hidden_columns,
            indexes,
            leases,
            modify_column,
            nans,
            nested,
            nonsense,
            partitions,
            pinned,
            policies,
            preview,
            readers,
            refused,
            savepoints,
            sessions,
            staged,
            summer_time,
            table_functions,
            tags,
            times,
            transactions,
            truncate,
            ttl_errors,
            types,
            zero_values,
        );
    };
}
pub(crate) use each_script;

/// What one text of statements answered with.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Of the last statement.
    pub columns: Vec<String>,
    pub rows: Vec<String>,
    pub tag: String,
    /// Of all statements.
    pub notices: Vec<Told>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub severity: String,
    pub sqlstate: String,
    pub message: String,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub sqlstate: String,
    pub message: String,
    pub hint: Option<String>,
    /// 1-based.
    pub position: Option<usize>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sqlstate, self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))?;
        self.position.map_or(Ok(()), |at| write!(f, " at {at}"))
    }
}

/// What `$TMP` stands for: a folder that a runner has for itself.
pub struct Folder {
    path: String,
    _dir: tempfile::TempDir,
}

impl Folder {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { path: dir.path().canonicalize().unwrap().display().to_string(), _dir: dir }
    }

    pub fn told(&self, sql: &str) -> String {
        sql.replace("$TMP", &self.path)
    }

    pub fn heard(&self, answer: Result<Answer, Failure>) -> Result<Answer, Failure> {
        let plain = |text: String| text.replace(&self.path, "$TMP");
        let notice = |n: Told| Told { message: plain(n.message), ..n };
        match answer {
            Ok(a) => {
                Ok(Answer { rows: a.rows.into_iter().map(plain).collect(), notices: a.notices.into_iter().map(notice).collect(), ..a })
            }
            Err(e) => Err(Failure { message: plain(e.message), hint: e.hint.map(plain), ..e }),
        }
    }
}

/// Runs statements somewhere.
#[async_trait(?Send)]
pub trait Runner {
    async fn run(&mut self, session: &str, sql: &str) -> Result<Answer, Failure>;
    /// Closes and opens the database again; its sessions are new ones.
    async fn restart(&mut self);
}

/// Runs a script; panics name the line.
pub async fn script(name: &str, text: &str, runner: &mut dyn Runner) {
    let mut session = "main".to_owned();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let place = format!("{name}:{}", at + 1);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let mut body = Vec::new();
        while let Some((_, l)) = lines.next_if(|(_, l)| !l.trim().is_empty()) {
            body.push(l);
        }
        let divider = body.iter().position(|l| *l == "----");
        let sql = body[..divider.unwrap_or(body.len())].join("\n");
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["session", name] => (*name).clone_into(&mut session),
            ["restart"] => runner.restart().await,
            ["statement", "ok"] => {
                if let Err(e) = runner.run(&session, &sql).await {
                    panic!("{place}: {e}\n{sql}");
                }
            }
            ["statement", "notice", state, wanted] => match runner.run(&session, &sql).await {
                Ok(a) => assert!(
                    a.notices.iter().any(|n| n.sqlstate == *state && n.message.contains(wanted)),
                    "{place}: no such notice, but {:?}\n{sql}",
                    a.notices
                ),
                Err(e) => panic!("{place}: {e}\n{sql}"),
            },
            ["statement", "error", state, rest @ ..] => match runner.run(&session, &sql).await {
                Ok(a) => panic!("{place}: no error but {a:?}\n{sql}"),
                Err(e) => {
                    let (state, position) = state.split_once('@').map_or((*state, None), |(s, at)| (s, Some(at)));
                    assert_eq!(e.sqlstate, state, "{place}: {e}\n{sql}");
                    if let Some(at) = position {
                        assert_eq!(e.position.map(|p| p.to_string()).as_deref(), Some(at), "{place}: {e}\n{sql}");
                    }
                    for part in rest {
                        assert!(e.to_string().contains(part), "{place}: '{e}' does not say '{part}'\n{sql}");
                    }
                }
            },
            ["query", rest @ ..] => match runner.run(&session, &sql).await {
                Ok(mut a) => {
                    a.rows = a.rows.iter().flat_map(|r| r.split('\n').map(str::to_owned)).collect();
                    let mut wanted: Vec<&str> = divider.map_or(Vec::new(), |d| body[d + 1..].to_vec());
                    if rest.contains(&"rowsort") {
                        a.rows.sort();
                        wanted.sort_unstable();
                    }
                    assert_eq!(a.rows, wanted, "{place}\n{sql}");
                }
                Err(e) => panic!("{place}: {e}\n{sql}"),
            },
            _ => panic!("{place}: what is '{line}'?"),
        }
    }
}
