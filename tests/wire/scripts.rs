//! The scripts of tests/it over the wire, by the simple protocol through tokio-postgres and by the extended one message by message.
//! Every answer, its notices, tags, errors and their places is compared with what a session in this process answers.

use crate::{
    Running,
    raw::{Protocol, Raw},
    script::{Answer, Failure, Folder, Runner, Told, each_script, script},
    support::{InProcess, clock},
};
use async_trait::async_trait;
use parking_lot::Mutex;
use std::{collections::BTreeMap, future::poll_fn, sync::Arc};
use tokio_postgres::{AsyncMessage, Client, NoTls, SimpleQueryMessage, error::DbError, error::ErrorPosition};

/// A client of tokio-postgres, and the notices it was sent.
struct Simple {
    client: Client,
    notices: Arc<Mutex<Vec<Told>>>,
}

impl Simple {
    async fn connect(config: &str) -> Self {
        let (client, mut connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
        let notices: Arc<Mutex<Vec<Told>>> = Arc::default();
        let heard = notices.clone();
        // A notice is heard before the message behind it is passed on.
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(n) = message {
                    heard.lock().push(told(&n));
                }
            }
        });
        Self { client, notices }
    }

    async fn run(&self, sql: &str) -> Result<Answer, Failure> {
        self.notices.lock().clear();
        let messages = self.client.simple_query(sql).await.map_err(|e| failure(e.as_db_error().unwrap()))?;
        let mut answer = Answer::default();
        let mut done = false;
        for message in messages {
            if std::mem::take(&mut done) {
                answer = Answer::default();
            }
            match message {
                SimpleQueryMessage::RowDescription(columns) => answer.columns = columns.iter().map(|c| c.name().to_owned()).collect(),
                SimpleQueryMessage::Row(row) => {
                    let values: Vec<&str> = (0..row.len()).map(|i| row.get(i).unwrap_or("NULL")).collect();
                    answer.rows.push(values.join("|"));
                }
                // The driver keeps only the count.
                SimpleQueryMessage::CommandComplete(count) => (done, answer.tag) = (true, count.to_string()),
                _ => {}
            }
        }
        answer.notices = std::mem::take(&mut *self.notices.lock());
        Ok(answer)
    }
}

fn told(n: &DbError) -> Told {
    Told { severity: n.severity().to_owned(), sqlstate: n.code().code().to_owned(), message: n.message().to_owned() }
}

fn failure(e: &DbError) -> Failure {
    let position = e.position().map(|p| match p {
        ErrorPosition::Original(at) => *at as usize,
        ErrorPosition::Internal { .. } => panic!("a place in a text that the client did not send"),
    });
    Failure { sqlstate: e.code().code().to_owned(), message: e.message().to_owned(), hint: e.hint().map(str::to_owned), position }
}

/// Three databases that are told the same.
struct Everywhere {
    inside: InProcess,
    simple: (Running, BTreeMap<String, Simple>),
    extended: (Running, BTreeMap<String, Raw>),
    folders: [Folder; 2],
}

impl Everywhere {
    async fn new() -> Self {
        let server = async || (Running::with_clock(clock()).await, BTreeMap::new());
        let extended = (Running::with_clock(clock()).await, BTreeMap::new());
        Self { inside: InProcess::new().await, simple: server().await, extended, folders: [Folder::new(), Folder::new()] }
    }
}

/// Without the order of rows, which the script itself checks where there is one.
fn unordered(answer: &Result<Answer, Failure>) -> Result<Answer, &Failure> {
    answer.as_ref().map(|a| {
        let mut rows = a.rows.clone();
        rows.sort();
        let notices =
            a.notices.iter().map(|n| Told { severity: n.severity.clone(), sqlstate: n.sqlstate.clone(), message: n.message.clone() });
        Answer { columns: a.columns.clone(), rows, tag: a.tag.clone(), notices: notices.collect() }
    })
}

#[async_trait(?Send)]
impl Runner for Everywhere {
    async fn run(&mut self, session: &str, sql: &str) -> Result<Answer, Failure> {
        let inside = self.inside.run(session, sql).await;

        let (server, clients) = &mut self.extended;
        if !clients.contains_key(session) {
            clients.insert(session.to_owned(), Raw::connect(server.address).await);
        }
        // What does not parse is sent by the extended protocol too; several statements cannot.
        let protocol = match self.inside.db.session().parse(sql) {
            Ok(statements) if statements.len() != 1 => Protocol::Simple,
            _ => Protocol::Extended,
        };
        let of_extended = &self.folders[0];
        let extended = of_extended.heard(clients.get_mut(session).unwrap().run(&of_extended.told(sql), protocol).await);
        assert_eq!(unordered(&inside), unordered(&extended), "in process and {protocol:?}: {sql}");

        let (server, clients) = &mut self.simple;
        if !clients.contains_key(session) {
            clients.insert(session.to_owned(), Simple::connect(&server.config()).await);
        }
        let of_simple = &self.folders[1];
        let simple = of_simple.heard(clients[session].run(&of_simple.told(sql)).await);
        let counted = inside.map(|a| {
            let count = a.tag.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            Answer { tag: count.to_string(), ..a }
        });
        assert_eq!(unordered(&counted), unordered(&simple), "in process and simple: {sql}");
        extended
    }

    async fn restart(&mut self) {
        self.inside.restart().await;
        self.simple.1.clear();
        self.extended.1.clear();
        self.simple.0.restart().await;
        self.extended.0.restart().await;
    }
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            let mut runner = Everywhere::new().await;
            let text = include_str!(concat!("../it/scripts/", stringify!($name), ".slt"));
            script(concat!(stringify!($name), ".slt"), text, &mut runner).await;
        })*
    };
}

each_script!(scripts);
