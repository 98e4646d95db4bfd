//! The extended protocol: statements prepared once, run with parameters, their rows fetched in pieces.

use super::{
    connection::{Connection, Copying, error_info, refused, status, zone},
    copy::begin_copy_in,
    params,
    portals::{Progress, Rows, end_portals},
    respond::{self, SendingRows, complete, fields},
    types::{arrow_of, pg_type},
};
use crate::{Error, Outcome, Prepared, Session, bind::argument::is_version, sqlstate};
use arrow::datatypes::{DataType, FieldRef};
use async_trait::async_trait;
use datafusion::common::ScalarValue;
use futures::{Sink, SinkExt};
use pgwire::{
    api::{
        ClientInfo, ClientPortalStore, DEFAULT_NAME, PgWireConnectionState as State, Type,
        portal::{Format, Portal},
        query::{ExtendedQueryHandler, send_ready_for_query},
        results::{DescribePortalResponse, FieldFormat, FieldInfo, Response},
        stmt::QueryParser,
        store::{Entry, PortalStore},
    },
    error::{PgWireError, PgWireResult},
    messages::{
        PgWireBackendMessage as Message,
        extendedquery::{Bind, BindComplete, Close, CloseComplete, Execute, PortalSuspended, Sync, TARGET_TYPE_BYTE_STATEMENT},
        response::EmptyQueryResponse,
    },
};
use std::{
    collections::VecDeque,
    fmt::Debug,
    sync::{Arc, atomic::Ordering},
};
use tokio::sync::Mutex as AsyncMutex;

pub struct Extended {
    pub connection: Arc<Connection>,
    parser: Arc<Parser>,
}

pub struct Parser {
    connection: Arc<Connection>,
}

/// A prepared statement of the wire.
pub type Stored = Arc<Prepared>;

impl Extended {
    pub fn new(connection: Arc<Connection>) -> Self {
        Self { parser: Arc::new(Parser { connection: connection.clone() }), connection }
    }
}

#[async_trait]
impl QueryParser for Parser {
    type Statement = Stored;

    async fn parse_sql<C>(&self, client: &C, sql: &str, types: &[Option<Type>]) -> PgWireResult<Option<Stored>>
    where
        C: ClientInfo + Unpin + Send + std::marker::Sync,
    {
        let _ = client;
        let mut session = self.connection.session.lock().await;
        let parse = session.parse(sql).and_then(|mut statements| match statements.len() {
            0 => Ok(None),
            1 => Ok(statements.pop()),
            n => Err(Error::invalid(format!("a prepared statement is one statement, not {n}")).with_sqlstate(sqlstate::SYNTAX_ERROR)),
        });
        let prepared = match parse {
            Ok(None) => return Ok(None),
            Ok(Some(statement)) => {
                let hints: Vec<Option<DataType>> = types.iter().map(|t| t.as_ref().and_then(arrow_of)).collect();
                let prepared = session.prepare_until(statement, &hints, self.connection.running.begin()).await;
                self.connection.running.end();
                prepared
            }
            Err(e) => Err(e),
        };
        prepared.map(|p| Some(Arc::new(p))).map_err(|e| refused(&e))
    }

    fn get_parameter_types(&self, stored: &Stored) -> PgWireResult<Vec<Type>> {
        Ok(stored.parameters.iter().map(|f| pg_type(f)).collect())
    }

    fn get_result_schema(&self, stored: &Stored, format: Option<&Format>) -> PgWireResult<Vec<FieldInfo>> {
        if let Some(why) = &stored.undecided {
            return Err(refused(why));
        }
        stored.result.as_ref().map_or(Ok(Vec::new()), |schema| fields(schema, format))
    }
}

/// The parameters of a portal as values.
fn values(portal: &Portal<Stored>, session: &Session) -> PgWireResult<Vec<ScalarValue>> {
    let zone = session.variable("timezone").unwrap_or_else(|| "UTC".to_owned());
    let prepared = &portal.statement.statement;
    if portal.parameters.len() != prepared.parameters.len() {
        let message = format!("the statement takes {} parameters, {} were bound", prepared.parameters.len(), portal.parameters.len());
        return Err(refused(&Error::invalid(message).with_sqlstate("08P01")));
    }
    let decode = |(i, (bytes, target)): (usize, (&Option<bytes::Bytes>, &FieldRef))| {
        let said = portal.statement.parameter_types.get(i).cloned().flatten().filter(|t| *t != Type::UNKNOWN);
        let pg = said.unwrap_or_else(|| pg_type(target));
        let format = portal.parameter_format.format_for(i.min(match &portal.parameter_format {
            Format::Individual(codes) => codes.len().saturating_sub(1),
            _ => i,
        }));
        // Who says no type and sends a text may mean a name where he was told of a number.
        let name = is_version(target) && pg == Type::INT8 && format == FieldFormat::Text;
        let name = bytes.as_deref().filter(|text| name && text.iter().any(|b| !b.is_ascii_digit()));
        let (pg, ty) = if name.is_some() { (Type::TEXT, DataType::Utf8) } else { (pg, target.data_type().clone()) };
        params::decode(i + 1, bytes.as_deref(), format, &pg, Some(&ty), &zone)
            .map_err(|bad| refused(&Error::invalid(bad.message).with_sqlstate(bad.sqlstate)))
    };
    portal.parameters.iter().zip(&prepared.parameters).enumerate().map(decode).collect()
}

#[async_trait]
impl ExtendedQueryHandler for Extended {
    type Statement = Stored;
    type QueryParser = Parser;

    fn query_parser(&self) -> Arc<Parser> {
        self.parser.clone()
    }

    async fn on_execute<C>(&self, client: &mut C, message: Execute) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let portal = match client.portal_store().get_portal(name) {
            Some(Entry::Value(portal)) => portal,
            Some(Entry::Empty) => {
                client.feed(Message::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                return Ok(());
            }
            None => return Err(refused(&Error::not_found(format!("portal \"{name}\" does not exist")).with_sqlstate("34000"))),
        };
        client.set_state(State::QueryInProgress);
        let mut session = self.connection.session.lock().await;
        let done = self.execute(client, &mut session, name, &portal, message.max_rows.max(0) as usize).await;
        if done.is_err() {
            self.connection.portals.note(name, &portal, Progress::Over);
            respond::tell(client, &self.connection, &mut session).await?;
        }
        client.set_transaction_status(status(&session));
        if !matches!(client.state(), State::CopyInProgress(_)) {
            client.set_state(State::ReadyForQuery);
        }
        done
    }

    /// Ends what since the last Sync is one transaction.
    async fn on_sync<C>(&self, client: &mut C, _: Sync) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        client.portal_store().rm_portal(DEFAULT_NAME);
        self.connection.portals.remove(DEFAULT_NAME);
        let mut session = self.connection.session.lock().await;
        if let Err(e) = session.end_implicit().await {
            client.feed(Message::ErrorResponse(error_info(&e).into())).await?;
        }
        end_portals(client, &self.connection, &session);
        respond::tell(client, &self.connection, &mut session).await?;
        client.set_transaction_status(status(&session));
        send_ready_for_query(client, status(&session)).await
    }

    async fn on_bind<C>(&self, client: &mut C, message: Bind) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let store = client.portal_store();
        let name = message.statement_name.as_deref().unwrap_or(DEFAULT_NAME);
        match store.get_statement(name) {
            Some(Entry::Value(statement)) => store.put_portal(Arc::new(Portal::try_new(&message, statement)?)),
            Some(Entry::Empty) if message.parameters.is_empty() => {
                store.put_empty_portal(message.portal_name.as_deref().unwrap_or(DEFAULT_NAME));
            }
            Some(Entry::Empty) => {
                let message = format!("the statement takes 0 parameters, {} were bound", message.parameters.len());
                return Err(refused(&Error::invalid(message).with_sqlstate("08P01")));
            }
            None => return Err(PgWireError::StatementNotFound(name.to_owned())),
        }
        self.connection.portals.sweep();
        client.feed(Message::BindComplete(BindComplete::new())).await?;
        Ok(())
    }

    async fn on_close<C>(&self, client: &mut C, message: Close) -> PgWireResult<()>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let name = message.name.as_deref().unwrap_or(DEFAULT_NAME);
        let store = client.portal_store();
        match message.target_type {
            TARGET_TYPE_BYTE_STATEMENT => {
                store.rm_statement(name);
                self.connection.portals.made_by(name).iter().for_each(|portal| store.rm_portal(portal));
            }
            _ => store.rm_portal(name),
        }
        self.connection.portals.sweep();
        client.feed(Message::CloseComplete(CloseComplete::new())).await?;
        Ok(())
    }

    async fn do_describe_portal<C>(&self, _: &mut C, portal: &Portal<Stored>) -> PgWireResult<DescribePortalResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let (stored, format) = (&portal.statement.statement, Some(&portal.result_column_format));
        if stored.undecided.is_none() {
            return Ok(DescribePortalResponse::new(self.parser.get_result_schema(stored, format)?));
        }
        let mut session = self.connection.session.lock().await;
        let params = values(portal, &session)?;
        let columns = session.columns(stored, &params).await.map_err(|e| refused(&e))?;
        Ok(DescribePortalResponse::new(columns.map_or(Ok(Vec::new()), |schema| fields(&schema, format))?))
    }

    async fn do_query<C>(&self, _: &mut C, _: &Portal<Stored>, _: usize) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::PortalStore: PortalStore<Statement = Stored>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        // `on_execute` answers itself.
        Err(PgWireError::NotReadyForQuery)
    }
}

impl Extended {
    async fn execute<C>(
        &self,
        client: &mut C,
        session: &mut Session,
        name: &str,
        portal: &Arc<Portal<Stored>>,
        max: usize,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<Message> + Unpin + Send + std::marker::Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let portals = &self.connection.portals;
        let rows = match portals.of(name, &Arc::downgrade(portal)) {
            Some(Progress::Rows(rows)) => {
                // Each Execute has a time of its own, and what the client does between two of them takes none of it.
                let request = self.connection.running.begin();
                rows.watch.iter().for_each(|watch| watch.look(request.clone()));
                rows
            }
            Some(Progress::Fetched(tag)) => return complete(client, &self.connection, session, tag.text(0)).await,
            Some(Progress::Over) => {
                let e = Error::conflict(format!("portal \"{name}\" cannot be run again: bind its statement anew"));
                return Err(refused(&e.with_sqlstate("55000")));
            }
            None => {
                portals.note(name, portal, Progress::Over);
                let token = self.connection.running.begin();
                let params = values(portal, session)?;
                let prepared = &portal.statement.statement;
                // What stands alone before its Sync needs no transaction around it.
                if session.in_implicit() || !self.connection.sync_follows.load(Ordering::Acquire) {
                    session.join(&prepared.statement.verb).await.map_err(|e| refused(&e))?;
                }
                match session.execute(prepared, params, token).await.map_err(|e| refused(&e))? {
                    Outcome::Rows { schema, stream, tag } => {
                        let rows = SendingRows::new(&schema, stream, tag, Some(&portal.result_column_format), zone(session))?;
                        Rows { sending: Arc::new(AsyncMutex::new(rows)), watch: session.take_watch() }
                    }
                    Outcome::Empty => {
                        client.feed(Message::EmptyQueryResponse(EmptyQueryResponse::new())).await?;
                        return Ok(());
                    }
                    Outcome::Command { tag } => return complete(client, &self.connection, session, tag).await,
                    Outcome::CopyOut(copy) => {
                        let rows = respond::copy_out(client, copy, zone(session)).await?;
                        return complete(client, &self.connection, session, format!("COPY {rows}")).await;
                    }
                    Outcome::CopyIn(copy) => {
                        respond::tell(client, &self.connection, session).await?;
                        begin_copy_in(client, (respond::copy_format(copy.options()), copy.columns()), true).await?;
                        *self.connection.copy.lock().await = Some(Copying { copy, rest: VecDeque::new(), several: false });
                        return Ok(());
                    }
                }
            }
        };
        let mut sending = rows.sending.lock().await;
        if sending.send(client, max).await? {
            rows.watch.iter().for_each(|watch| watch.rest());
            self.connection.running.end();
            portals.note(name, portal, Progress::Rows(rows.clone()));
            client.feed(Message::PortalSuspended(PortalSuspended::new())).await?;
            return Ok(());
        }
        portals.note(name, portal, Progress::Fetched(sending.kind()));
        self.connection.running.end();
        let tag = sending.tag();
        complete(client, &self.connection, session, tag).await
    }
}
