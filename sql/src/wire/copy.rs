//! COPY FROM STDIN over the wire. An error ends it at once; what the client still sends of it is passed over.

use super::{
    connection::{Connection, Copying, refused, status},
    respond::complete,
    simple::run_all,
};
use crate::Error;
use async_trait::async_trait;
use futures::{Sink, SinkExt};
use pgwire::{
    api::{ClientInfo, copy::CopyHandler},
    error::{PgWireError, PgWireResult},
    messages::{
        PgWireBackendMessage as Message,
        copy::{CopyData, CopyDone, CopyFail, CopyInResponse},
    },
};
use std::{fmt::Debug, sync::Arc};

pub struct Copy {
    pub connection: Arc<Connection>,
}

/// Asks the client for data of so many columns.
pub async fn begin_copy_in<C>(client: &mut C, (format, columns): (i16, usize), extended: bool) -> PgWireResult<()>
where
    C: ClientInfo + Sink<Message> + Unpin + Send,
    C::Error: Debug,
    PgWireError: From<<C as Sink<Message>>::Error>,
{
    client.send(Message::CopyInResponse(CopyInResponse::new(format as i8, columns as i16, vec![format; columns]))).await?;
    client.set_state(pgwire::api::PgWireConnectionState::CopyInProgress(extended));
    Ok(())
}

fn none() -> PgWireError {
    refused(&Error::invalid("no COPY is going on").with_sqlstate("08P01"))
}

#[async_trait]
impl CopyHandler for Copy {
    async fn on_copy_data<C>(&self, client: &mut C, data: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<Message> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let mut slot = self.connection.copy.lock().await;
        let copying = slot.as_mut().ok_or_else(none)?;
        if let Err(e) = copying.copy.data(data.data).await {
            *slot = None;
            client.set_transaction_status(status(&*self.connection.session.lock().await));
            return Err(refused(&e));
        }
        Ok(())
    }

    async fn on_copy_done<C>(&self, client: &mut C, _: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<Message> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let Copying { copy, rest, several } = self.connection.copy.lock().await.take().ok_or_else(none)?;
        let finished = copy.finish().await;
        let mut session = self.connection.session.lock().await;
        let rows = finished.map_err(|e| {
            client.set_transaction_status(status(&session));
            refused(&e)
        })?;
        complete(client, &self.connection, &mut session, format!("COPY {rows}")).await?;
        match run_all(client, &self.connection, &mut session, rest, several).await? {
            // A second COPY in one text would be mistaken for the end of the first by the loop that called.
            true => {
                *self.connection.copy.lock().await = None;
                Err(refused(&Error::unsupported("one text may hold one COPY FROM STDIN: send the next one by itself")))
            }
            false => Ok(()),
        }
    }

    async fn on_copy_fail<C>(&self, client: &mut C, fail: CopyFail) -> PgWireError
    where
        C: ClientInfo + Sink<Message> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<Message>>::Error>,
    {
        let Some(copying) = self.connection.copy.lock().await.take() else { return none() };
        let error = copying.copy.abort(&fail.message);
        client.set_transaction_status(status(&*self.connection.session.lock().await));
        refused(&error)
    }
}
