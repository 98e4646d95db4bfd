//! The pages of `docs/` that users read: every statement that they show is run, every answer compared, and what the program knows by
//! name stands on them.
//!
//! A page is one database on a clock that stands at 2026-03-01, and one session. A block fenced ```` ```sql ```` is run as
//! `ebb sql -f` runs a script; a ```` ```text ```` block right behind it is what a terminal shows then. In a block fenced
//! ```` ```sql refused ```` each statement is refused, with what its comment `-- error: ...` says. Folders below `/mnt` are the test's.

use crate::support::{clock, open};
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use ebb::cli::script::{Runner, Screen};
use ebb_engine::settings::{SETTINGS, Scope};
use std::{
    collections::BTreeSet,
    io::Cursor,
    sync::{Arc, Mutex},
};

const SQL: &str = "docs/sql.md";
const LIFECYCLE: &str = "docs/lifecycle.md";
const OPERATIONS: &str = "docs/operations.md";

/// A file of the project.
fn read(path: &str) -> String {
    std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Ends a refused statement.
const ERROR: &str = "-- error: ";

/// What a terminal shows.
#[derive(Clone, Default)]
struct Shown(Arc<Mutex<String>>);

impl Shown {
    fn take(&self) -> String {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Screen for Shown {
    fn say(&mut self, bytes: &[u8]) {
        self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
    }
    fn complain(&mut self, text: &str) {
        self.0.lock().unwrap().push_str(&format!("ebb: {text}\n"));
    }
}

struct Block<'a> {
    /// What stands behind the fence.
    kind: &'a str,
    /// Of the block's first line, counted from 1.
    line: usize,
    body: Vec<&'a str>,
    /// Nothing but empty lines is between it and the block before.
    follows: bool,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut all: Vec<Block<'_>> = Vec::new();
    let mut open = false;
    let mut follows = false;
    for (at, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(kind), false) => {
                all.push(Block { kind, line: at + 2, body: Vec::new(), follows });
                open = true;
            }
            (Some(_), true) => (open, follows) = (false, true),
            (None, true) => all.last_mut().unwrap().body.push(line),
            (None, false) => follows &= line.trim().is_empty(),
        }
    }
    assert!(!open, "the last block has no end");
    all
}

struct Page {
    name: &'static str,
    runner: Runner,
    shown: Shown,
    folder: tempfile::TempDir,
}

impl Page {
    /// Runs lines of the page as the script that begins at `line`.
    async fn run(&mut self, line: usize, lines: &[&str]) -> ebb::Result<()> {
        let folder = self.folder.path().display().to_string();
        let text = format!("{}{}\n", "\n".repeat(line - 1), lines.join("\n")).replace("/mnt/", &format!("{folder}/"));
        self.runner.run_lines(&mut Cursor::new(text.into_bytes())).await
    }

    fn shown(&self) -> String {
        let folder = self.folder.path().display().to_string();
        self.shown.take().replace(&folder, "/mnt")
    }

    async fn sql(&mut self, block: &Block<'_>) -> String {
        let done = self.run(block.line, &block.body).await;
        let shown = self.shown();
        match done {
            Ok(()) => shown,
            Err(e) => panic!("{}:{}: {e}\n{shown}", self.name, block.line),
        }
    }

    async fn refused(&mut self, block: &Block<'_>) {
        let mut from = 0;
        for (at, line) in block.body.iter().enumerate() {
            let Some((_, wanted)) = line.split_once(ERROR) else { continue };
            let place = format!("{}:{}", self.name, block.line + at);
            match self.run(block.line + from, &block.body[from..=at]).await {
                Ok(()) => panic!("{place}: it is not refused, but answers\n{}", self.shown()),
                Err(e) => assert!(e.to_string().contains(wanted.trim()), "{place}: {e}"),
            }
            self.shown();
            from = at + 1;
        }
        assert!(from > 0, "{}:{}: a refused block says what the error is", self.name, block.line);
        let rest = block.body[from..].iter().find(|l| !l.trim().is_empty());
        assert_eq!(rest, None, "{}:{}: what is the error of the last statement?", self.name, block.line);
    }
}

async fn runs(name: &'static str) {
    let (dir, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = open(dir.path(), &clock()).await;
    let shown = Shown::default();
    let runner = Runner::on(db.session(), Box::new(shown.clone()));
    let mut page = Page { name, runner, shown, folder };
    let mut last: Option<String> = None;
    let mut run = 0;
    for block in blocks(&read(name)) {
        match block.kind {
            "sql" => {
                last = Some(page.sql(&block).await);
                run += 1;
                continue;
            }
            "sql refused" => page.refused(&block).await,
            "text" => {
                let wanted = block.body.iter().map(|l| format!("{l}\n")).collect::<String>();
                let shown = last.take().filter(|_| block.follows);
                let shown = shown.unwrap_or_else(|| panic!("{name}:{}: it follows no statement", block.line));
                assert!(shown == wanted, "{name}:{}: it is\n{shown}and not\n{wanted}", block.line);
            }
            _ => {}
        }
        last = None;
    }
    assert!(run > 0, "{name} shows no statement");
    drop(page);
    db.close().await.unwrap();
}

#[tokio::test]
async fn the_page_about_sql_runs() {
    runs(SQL).await;
}

#[tokio::test]
async fn the_page_about_the_lifecycle_runs() {
    runs(LIFECYCLE).await;
}

#[tokio::test]
async fn the_page_about_operations_runs() {
    runs(OPERATIONS).await;
}

/// Those of `names` that do not stand in `text` as code.
fn missing<'a>(text: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let lower = text.to_lowercase();
    let said = |name: &str| lower.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name.to_lowercase());
    names.into_iter().filter(|n| !said(n)).map(str::to_owned).collect()
}

/// What stands between the marks `from` and `to` in lines of a source.
fn between<'a>(source: &'a str, from: &str, to: char) -> Vec<&'a str> {
    source.lines().filter_map(|l| l.split_once(from)?.1.split(to).next()).collect()
}

#[test]
fn settings_states_and_codes_are_on_the_pages() {
    let [sql, lifecycle, operations] = [SQL, LIFECYCLE, OPERATIONS].map(read);
    let of = |scope: Scope| SETTINGS.iter().filter(move |s| s.scope == scope);
    // A row of a table for each, with the default that it has.
    let rows = |page: &str, scope: Scope| -> Vec<String> {
        let cell = |s: &ebb_engine::settings::Setting| match s.default_text().unwrap_or_default() {
            t if t.is_empty() => format!("| `{}` |", s.name),
            t => format!("| `{}` | {t} |", s.name),
        };
        of(scope).map(cell).filter(|c| !page.contains(c)).collect()
    };
    assert_eq!(rows(&sql, Scope::Stream), Vec::<String>::new());
    assert_eq!(rows(&sql, Scope::Session), Vec::<String>::new());
    assert_eq!(rows(&operations, Scope::Server), Vec::<String>::new());
    let source = read("engine/src/plan/state.rs");
    let states = between(&source, "=> \"", '"');
    assert!(states.len() > 25, "{states:?}");
    assert_eq!(missing(&lifecycle, states), Vec::<String>::new());
    let source = read("sql/src/sqlstate.rs");
    let codes = between(&source, "&str = \"", '"');
    assert!(codes.len() > 30, "{codes:?}");
    assert_eq!(missing(&sql, codes), Vec::<String>::new());
    assert_eq!(missing(&sql, ebb_storage::codec::CODEC_NAMES), Vec::<String>::new());
    assert_eq!(missing(&sql, ebb_storage::codec::PREPROCESSOR_NAMES), Vec::<String>::new());
    assert_eq!(missing(&sql, ebb::parse::PROCEDURES), Vec::<String>::new());
}

#[test]
fn functions_are_on_the_page() {
    let names = |state: &SessionState| state.udfs().into_iter().chain(state.udafs()).collect::<BTreeSet<String>>();
    let mut state = SessionStateBuilder::new().with_default_features().build();
    let theirs = names(&state);
    ebb::functions::register(&mut state).unwrap();
    // What an operator stands for is written as that.
    let ours = names(&state).into_iter().filter(|n| !theirs.contains(n) && n != "interval_times");
    let own: Vec<String> = ours.chain(ebb::functions::rewritten_names().map(str::to_owned)).collect();
    assert!(own.len() > 100, "{own:?}");
    assert_eq!(missing(&read(SQL), own.iter().map(String::as_str)), Vec::<String>::new());
}

#[tokio::test]
async fn system_tables_are_on_the_page_with_their_columns() {
    use futures::StreamExt;
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path(), &clock()).await;
    let sql = "SELECT 'system.' || table_name, string_agg(column_name, ', ' ORDER BY ordinal_position) FROM information_schema.columns \
               WHERE table_schema = 'system' GROUP BY 1 ORDER BY 1";
    let mut stream = db.sql(sql).await.unwrap();
    let page = read(SQL);
    let (mut absent, mut tables) = (Vec::new(), 0);
    while let Some(batch) = stream.next().await {
        for row in crate::support::lines(&batch.unwrap()) {
            let (table, columns) = row.split_once('|').unwrap();
            tables += 1;
            let row = format!("| `{table}` | {columns} |");
            if !page.contains(&row) {
                absent.push(row);
            }
        }
    }
    assert!(tables > 10, "{tables}");
    assert_eq!(absent, Vec::<String>::new());
}
