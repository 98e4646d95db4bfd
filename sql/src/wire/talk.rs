//! One connection from its first byte to its last: messages in, each to the handler it belongs to, errors out.
//!
//! Guards: whatever a client sends ends in an answer or in a closed connection, never in a panic; after an error nothing of what was to
//! be one transaction is kept.

use super::{
    connection::{refused, status},
    extended::Stored,
    inbox::{self, Inbox, Refused},
    portals::end_portals,
    server::Handlers,
};
use futures::SinkExt;
use pgwire::{
    api::{ClientInfo, DefaultClient, PgWireConnectionState as State},
    error::{ErrorInfo, PgWireError},
    messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage as Message},
    tokio::server::{PgWireMessageServerCodec, process_error, process_message},
};
use std::{io, sync::atomic::Ordering, time::Duration};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use tokio_util::codec::Framed;

/// How long a client may take to say who it is.
const STARTUP_MAX: Duration = Duration::from_secs(60);
/// Codes in the place of a version: may the connection be encrypted?
const ASKS_FOR_SSL: [u8; 4] = 80_877_103_u32.to_be_bytes();
const ASKS_FOR_GSS: [u8; 4] = 80_877_104_u32.to_be_bytes();

type Socket = Framed<TcpStream, PgWireMessageServerCodec<Stored>>;

pub async fn talk(socket: TcpStream, handlers: &Handlers) -> io::Result<()> {
    let address = socket.peer_addr()?;
    socket.set_nodelay(true)?;
    let mut socket: Socket = Framed::new(socket, PgWireMessageServerCodec::new(DefaultClient::new(address, false)));
    socket.set_state(State::AwaitingStartup);
    let mut inbox = Inbox::default();
    let Some(begun) = ebb_storage::clock::within(STARTUP_MAX, begin(&mut socket, &mut inbox, handlers)).await else { return Ok(()) };
    if !begun? {
        return Ok(());
    }
    loop {
        let mut bytes = match inbox.next(socket.get_mut(), true).await {
            Ok(bytes) => bytes,
            Err(Refused::Connection(e)) => return end(&mut socket, refused(&e)).await,
            Err(_) => return Ok(()),
        };
        // Until the Sync after an error nothing is looked at.
        let skipped = matches!(socket.state(), State::AwaitingSync) && !matches!(bytes[0], b'S' | b'X');
        let extended = match socket.state() {
            State::CopyInProgress(extended) => extended,
            _ => matches!(bytes[0], b'P' | b'B' | b'D' | b'E' | b'C' | b'H' | b'S'),
        };
        if skipped {
            continue;
        }
        let done = match inbox::check(&bytes) {
            Ok(()) => match Message::decode(&mut bytes, &context(&socket, false)) {
                Ok(Some(Message::Terminate(_))) => return Ok(()),
                Ok(Some(message)) => {
                    handlers.connection.sync_follows.store(inbox.sync_follows(), Ordering::Release);
                    process(&mut socket, message, handlers).await
                }
                Ok(None) => Err(PgWireError::InvalidStartupMessage),
                Err(e) => return end(&mut socket, e).await,
            },
            Err(Refused::Message(e)) => Err(refused(&e)),
            Err(Refused::Connection(e)) => return end(&mut socket, refused(&e)).await,
            Err(Refused::Gone) => return Ok(()),
        };
        if let Err(e) = done {
            let mut session = handlers.connection.session.lock().await;
            session.give_up();
            // Whatever went wrong, a COPY that was going on is over.
            drop(handlers.connection.copy.lock().await.take());
            end_portals(&socket, &handlers.connection, &session);
            socket.set_transaction_status(status(&session));
            drop(session);
            process_error(&mut socket, e, extended).await?;
        }
    }
}

fn context(socket: &Socket, startup: bool) -> DecodeContext {
    let mut context = DecodeContext::new(socket.protocol_version());
    (context.awaiting_frontend_ssl, context.awaiting_frontend_startup) = (false, startup);
    context
}

/// Up to the greeting; false where the connection is over.
async fn begin(socket: &mut Socket, inbox: &mut Inbox, handlers: &Handlers) -> io::Result<bool> {
    while matches!(socket.state(), State::AwaitingStartup) {
        let mut bytes = match inbox.next(socket.get_mut(), false).await {
            Ok(bytes) => bytes,
            Err(Refused::Connection(e)) => return end(socket, refused(&e)).await.map(|()| false),
            Err(_) => return Ok(false),
        };
        if bytes.len() == 8 && (bytes.ends_with(&ASKS_FOR_SSL) || bytes.ends_with(&ASKS_FOR_GSS)) {
            socket.get_mut().write_all(b"N").await?;
            continue;
        }
        let context = context(socket, true);
        let message = match inbox::check_startup(&bytes) {
            Ok(()) => Message::decode(&mut bytes, &context),
            Err(Refused::Connection(e) | Refused::Message(e)) => Err(refused(&e)),
            Err(Refused::Gone) => return Ok(false),
        };
        let cancels = matches!(message, Ok(Some(Message::CancelRequest(_))));
        let done = match message {
            Ok(Some(message)) => process(socket, message, handlers).await,
            Ok(None) => Err(PgWireError::InvalidStartupMessage),
            Err(e) => Err(e),
        };
        if let Err(e) = done {
            return end(socket, e).await.map(|()| false);
        }
        if cancels {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn process(socket: &mut Socket, message: Message, h: &Handlers) -> Result<(), PgWireError> {
    let (startup, simple, extended) = (h.startup.clone(), h.simple.clone(), h.extended.clone());
    process_message(message, socket, startup, simple, extended, h.copy.clone(), h.registry.clone()).await
}

/// Says why and closes.
async fn end(socket: &mut Socket, e: PgWireError) -> io::Result<()> {
    let mut info: ErrorInfo = e.into();
    info.severity = "FATAL".to_owned();
    socket.send(PgWireBackendMessage::ErrorResponse(info.into())).await?;
    socket.close().await
}
