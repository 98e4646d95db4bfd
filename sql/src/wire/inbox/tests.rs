use super::*;
use proptest::prelude::*;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn state(kind: u8, body: &[u8]) -> &'static str {
    match check(&message(kind, body)) {
        Ok(()) => "ok",
        Err(Refused::Message(e)) => e.sqlstate(),
        Err(_) => "closed",
    }
}

#[test]
fn messages_have_their_form_and_texts_are_utf8() {
    let cases: [(u8, &[u8], &str); 20] = [
        (b'Q', b"SELECT 1\0", "ok"),
        (b'Q', "SELECT 'ä'\0".as_bytes(), "ok"),
        (b'Q', b"SELECT 'a\xffb'\0", "22021"),
        (b'Q', b"SELECT '\xc3\0", "22021"),
        (b'Q', b"SELECT 1", "08P01"),
        (b'Q', b"SELECT 1\0 \0", "08P01"),
        (b'P', b"\0SELECT $1\0\0\x01\0\0\0\x17", "ok"),
        (b'P', b"\0SELECT $1\0\0\x02\0\0\0\x17", "08P01"),
        (b'P', b"\xff\0SELECT 1\0\0\0", "22021"),
        (b'P', b"\0SELECT '\xff'\0\0\0", "22021"),
        (b'B', b"\0\0\0\0\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\x01", "ok"),
        (b'B', b"\0\0\xff\xff", "08P01"),
        (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0", "08P01"),
        (b'B', b"\0\0\0\x01\0\x07\0\0\0\0", "08P01"),
        (b'B', b"\0\0\0\x02\0\x01\0\x01\0\x01\0\0\0\0\0\0", "08P01"),
        (b'D', b"S\0", "ok"),
        (b'E', b"\0\0\0\0", "08P01"),
        (b'S', b"", "ok"),
        (b'S', b"x", "08P01"),
        (b'~', b"", "closed"),
    ];
    for (kind, body, expected) in cases {
        assert_eq!(state(kind, body), expected, "{} {body:?}", char::from(kind));
    }
}

#[tokio::test]
async fn messages_arrive_in_pieces_and_lengths_are_sane() {
    let two = [message(b'Q', b"x\0"), message(b'S', b"")].concat();
    let mut inbox = Inbox::default();
    let mut pieces = two.as_slice();
    assert_eq!(inbox.next(&mut pieces, true).await.unwrap(), message(b'Q', b"x\0"));
    assert!(inbox.sync_follows());
    assert_eq!(inbox.next(&mut pieces, true).await.unwrap(), message(b'S', b""));
    assert!(matches!(inbox.next(&mut pieces, true).await, Err(Refused::Gone)));
    for length in [[0, 0, 0, 3], [0xff, 0xff, 0xff, 0xff], [0x7f, 0, 0, 0]] {
        let bytes = [&b"Q"[..], &length, b"some more bytes"].concat();
        assert!(matches!(Inbox::default().next(&mut bytes.as_slice(), true).await, Err(Refused::Connection(_))), "{length:?}");
        assert!(matches!(Inbox::default().next(&mut &bytes[1..], false).await, Err(Refused::Connection(_))), "{length:?}");
    }
}

#[test]
fn connections_begin_with_a_protocol_that_is_spoken() {
    let begins = |code: u32, rest: &[u8]| check_startup(&[&[0; 4][..], &code.to_be_bytes(), rest].concat()).is_ok();
    assert!(begins(196_608, b"user\0x\0\0") && begins(80_877_102, &[0; 8]));
    assert!(!begins(131_072, b"user\0x\0\0") && !begins(196_608, b"") && !begins(196_608, b"user\0\xff\0\0") && !begins(80_877_102, b"x"));
    assert!(check_startup(&[0, 0, 0, 4]).is_err());
}

proptest! {
    /// What passes is decoded without a panic, whatever it is.
    #[test]
    fn nothing_that_passes_makes_the_decoder_panic(kind in prop::sample::select(b"QPBDCEfSHXcd".to_vec()), body in prop::collection::vec(0u8..4, 0..40)) {
        let bytes = message(kind, &body);
        if check(&bytes).is_ok() {
            let mut context = pgwire::messages::DecodeContext::new(pgwire::messages::ProtocolVersion::PROTOCOL3_0);
            (context.awaiting_frontend_ssl, context.awaiting_frontend_startup) = (false, false);
            let _ = pgwire::messages::PgWireFrontendMessage::decode(&mut BytesMut::from(&bytes[..]), &context);
        }
    }
}
