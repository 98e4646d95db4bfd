//! The simple protocol: a text of statements, each answered before the next begins; the first error ends the text.

use super::{
    connection::{Connection, Copying, refused, status, zone},
    copy::begin_copy_in,
    portals::end_portals,
    respond::{self, SendingRows, complete, fields},
};
use crate::{Outcome, Session, statement::Statement};
use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::{
    api::{
        ClientInfo, ClientPortalStore, PgWireConnectionState as State,
        query::{SimpleQueryHandler, send_ready_for_query},
        results::Response,
        store::PortalStore,
    },
    error::{PgWireError, PgWireResult},
    messages::{
        PgWireBackendMessage as Message,
        data::{FieldDescription, RowDescription},
        response::EmptyQueryResponse,
        simplequery::Query,
    },
};
use std::{collections::VecDeque, fmt::Debug, sync::Arc};

pub struct Simple {
    pub connection: Arc<Connection>,
}

/// Runs statements until one waits for COPY data; true where it does. `several` are one transaction, up to where they say otherwise.
pub async fn run_all<C>(
    client: &mut C,
    connection: &Connection,
    session: &mut Session,
    mut statements: VecDeque<Statement>,
    several: bool,
) -> PgWireResult<bool>
where
    C: ClientInfo + Sink<Message> + Unpin + Send + Sync,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    while let Some(statement) = statements.pop_front() {
        let token = connection.running.begin();
        let joined = if several { session.join(&statement.verb).await } else { Ok(()) };
        let outcome = match joined {
            Ok(()) => match session.prepare_until(statement, &[], token.clone()).await {
                Ok(prepared) => session.execute(&prepared, Vec::new(), token).await,
                Err(e) => Err(e),
            },
            Err(e) => Err(e),
        };
        let sent = match outcome {
            Ok(Outcome::CopyIn(copy)) => {
                respond::tell(client, connection, session).await?;
                begin_copy_in(client, (respond::copy_format(copy.options()), copy.columns()), false).await?;
                *connection.copy.lock().await = Some(Copying { copy, rest: statements, several });
                return Ok(true);
            }
            Ok(outcome) => send(client, connection, session, outcome).await,
            Err(e) => Err(refused(&e)),
        };
        if sent.is_err() {
            respond::tell(client, connection, session).await?;
            client.set_transaction_status(status(session));
        }
        sent?;
        connection.running.end();
    }
    session.end_implicit().await.map_err(|e| refused(&e))?;
    Ok(false)
}

async fn send<C>(client: &mut C, connection: &Connection, session: &mut Session, outcome: Outcome) -> PgWireResult<()>
where
    C: ClientInfo + Sink<Message> + Unpin + Send + Sync,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    let tag = match outcome {
        Outcome::Empty => {
            client.feed(Message::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
            return Ok(());
        }
        Outcome::Command { tag } => tag,
        Outcome::Rows { schema, stream, tag } => {
            let described: Vec<FieldDescription> = fields(&schema, None)?.iter().map(Into::into).collect();
            client.feed(Message::RowDescription(RowDescription::new(described))).await?;
            let mut rows = SendingRows::new(&schema, stream, tag, None, zone(session))?;
            rows.send(client, 0).await?;
            rows.tag()
        }
        Outcome::CopyOut(copy) => {
            let rows = respond::copy_out(client, copy, zone(session)).await?;
            format!("COPY {rows}")
        }
        Outcome::CopyIn(_) => return Ok(()),
    };
    complete(client, connection, session, tag).await
}

#[async_trait]
impl SimpleQueryHandler for Simple {
    async fn on_query<C>(&self, client: &mut C, query: Query) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        if !matches!(client.state(), State::ReadyForQuery) {
            return Err(PgWireError::NotReadyForQuery);
        }
        client.set_state(State::QueryInProgress);
        let mut session = self.connection.session.lock().await;
        let statements = match session.parse(&query.query) {
            Ok(statements) => VecDeque::from(statements),
            Err(e) => {
                client.set_transaction_status(status(&session));
                return Err(refused(&e));
            }
        };
        if statements.is_empty() {
            client.feed(Message::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
        }
        let several = statements.len() > 1;
        if run_all(client, &self.connection, &mut session, statements, several).await? {
            client.set_state(State::CopyInProgress(false));
            return Ok(());
        }
        end_portals(client, &self.connection, &session);
        client.set_state(State::ReadyForQuery);
        client.set_transaction_status(status(&session));
        send_ready_for_query(client, status(&session)).await
    }

    async fn do_query<C>(&self, _: &mut C, _: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        // `on_query` answers itself.
        Err(PgWireError::NotReadyForQuery)
    }
}
