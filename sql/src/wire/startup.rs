//! Greeting a client. Until roles exist anybody is let in without a password, and only from this machine.

use super::{
    cancel::Registry,
    connection::{Connection, REPORTED, refused},
};
use crate::Error;
use async_trait::async_trait;
use futures::{Sink, SinkExt};
use parking_lot::Mutex;
use pgwire::{
    api::{
        ClientInfo, METADATA_DATABASE, PidSecretKeyGenerator, RandomPidSecretKeyGenerator,
        auth::{ServerParameterProvider, StartupHandler, finish_authentication, protocol_negotiation, save_startup_parameters_to_metadata},
    },
    error::{ErrorInfo, PgWireError, PgWireResult},
    messages::{PgWireBackendMessage, PgWireFrontendMessage},
};
use std::{collections::HashMap, fmt::Debug, sync::Arc};

pub struct Startup {
    pub connection: Arc<Connection>,
    pub registry: Arc<Registry>,
    pub keys: Arc<RandomPidSecretKeyGenerator>,
}

/// Settings as they are now.
struct Parameters(Mutex<Option<HashMap<String, String>>>);

impl ServerParameterProvider for Parameters {
    fn server_parameters<C: ClientInfo>(&self, _: &C) -> Option<HashMap<String, String>> {
        self.0.lock().take()
    }
}

/// What a client may say of itself as it connects, beside user and database.
const IGNORED: [&str; 4] = ["user", "database", "replication", "options"];

/// Settings of a command line, `-c name=value` and `--name=value`, as PGOPTIONS has them; a backslash keeps the blank behind it.
fn options(text: &str) -> Result<Vec<(String, String)>, Error> {
    let mut words: Vec<String> = Vec::new();
    let (mut chars, mut within) = (text.chars(), false);
    while let Some(c) = chars.next() {
        let (c, blank) = match c {
            '\\' => (chars.next().unwrap_or('\\'), false),
            c => (c, c.is_whitespace()),
        };
        if !blank {
            if !within {
                words.push(String::new());
            }
            words.last_mut().into_iter().for_each(|w| w.push(c));
        }
        within = !blank;
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let said = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c").filter(|rest| !rest.is_empty())) {
            Some(said) => Some(said.to_owned()),
            None if word == "-c" => words.next(),
            None => None,
        };
        let Some((name, value)) = said.as_deref().and_then(|s| s.split_once('=')) else {
            let message = format!("invalid command-line argument for server process: {word}: write -c name=value");
            return Err(Error::invalid(message).with_sqlstate(crate::sqlstate::SYNTAX_ERROR));
        };
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

impl Startup {
    async fn open(&self, parameters: &HashMap<String, String>) -> Result<HashMap<String, String>, Error> {
        let mut session = self.connection.session.lock().await;
        let user = parameters.get("user").map(String::as_str).unwrap_or_default();
        session.set_user(user);
        let database = parameters.get(METADATA_DATABASE).map_or(user, String::as_str);
        session.connect_to(database).map_err(|_| {
            let message = format!("database \"{database}\" does not exist: connect to \"default\"");
            Error::not_found(message).with_sqlstate("3D000").with_hint("psql -d default")
        })?;
        for (name, value) in parameters.iter().filter(|(n, _)| !IGNORED.contains(&n.as_str()) && !n.starts_with("_pq_.")) {
            // Some drivers quote the value, as SET would have it.
            let value = value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')).unwrap_or(value);
            session.set_variable(name, value)?;
        }
        for (name, value) in options(parameters.get("options").map_or("", String::as_str))? {
            session.set_variable(&name, &value)?;
        }
        let mut told: Vec<(&'static str, String)> = REPORTED.iter().filter_map(|n| Some((*n, session.variable(n)?))).collect();
        self.connection.told.lock().clone_from(&told);
        for name in ["server_version", "server_encoding", "integer_datetimes"] {
            told.extend(session.variable(name).map(|v| (name, v)));
        }
        let mut all: HashMap<String, String> = told.into_iter().map(|(n, v)| (n.to_owned(), v)).collect();
        all.insert("is_superuser".to_owned(), "on".to_owned());
        all.insert("session_authorization".to_owned(), user.to_owned());
        all.insert("in_hot_standby".to_owned(), "off".to_owned());
        Ok(all)
    }
}

impl Startup {
    async fn greet<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let PgWireFrontendMessage::Startup(startup) = message else { return Ok(()) };
        protocol_negotiation(client, &startup).await?;
        save_startup_parameters_to_metadata(client, &startup);
        let (pid, secret) = self.keys.generate(client);
        client.set_pid_and_secret_key(pid, secret.clone());
        let guard = self.registry.register(pid, &secret, self.connection.running.clone());
        *self.connection.registered.lock() = Some(guard);
        let parameters = client.metadata().clone();
        let told = self.open(&parameters).await.map_err(|e| refused(&e))?;
        finish_authentication(client, &Parameters(Mutex::new(Some(told)))).await
    }
}

#[async_trait]
impl StartupHandler for Startup {
    async fn on_startup<C>(&self, client: &mut C, message: PgWireFrontendMessage) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let Err(e) = self.greet(client, message).await else { return Ok(()) };
        // Nothing follows an error here. The loop that called would say that it is ready.
        let mut info = ErrorInfo::from(e);
        info.severity = "FATAL".to_owned();
        // A client that is gone by now needs no answer.
        let _ = client.send(PgWireBackendMessage::ErrorResponse(info.into())).await.is_ok() && client.close().await.is_ok();
        self.connection.closed.cancel();
        Ok(())
    }
}
