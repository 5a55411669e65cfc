//! What a server says over WebSocket, the answer to the handshake included: any
//! bytes, cut anywhere. Nothing panics, and where the bytes are cut makes no
//! difference.
//!
//! The input is a byte that says how it begins, one for the size of the
//! pieces, and then what is said.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use pubmark_load::shard::{WebSocket, WebSocketDial};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

/// What was unframed, how many bytes were answered, and how it ended.
fn play(well: bool, said: &[u8], piece_bytes: usize) -> (Vec<u8>, usize, bool) {
    let dial = WebSocketDial { host: "localhost:1".into(), path: "/mqtt".into() };
    let mut socket = WebSocket::new(&dial).unwrap();
    let request = std::str::from_utf8(socket.waiting()).unwrap();
    let key = request.split("Sec-WebSocket-Key: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
    let accept = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11").as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n",
        STANDARD.encode(accept)
    );
    let head = if well { head.as_bytes() } else { b"" };
    let (mut payload, all) = (Vec::new(), [head, said].concat());
    for piece in all.chunks(piece_bytes) {
        let mut piece = piece.to_vec();
        match socket.input(&mut piece) {
            Ok(count) => payload.extend_from_slice(&piece[..count]),
            Err(_) => return (payload, socket.waiting().len(), false),
        }
    }
    assert!(payload.len() <= said.len());
    (payload, socket.waiting().len(), true)
}

fuzz_target!(|input: &[u8]| {
    let [well, piece_bytes, said @ ..] = input else { return };
    let well = well & 1 == 0;
    let (payload, answered, sound) = play(well, said, usize::from(*piece_bytes).max(1));
    let (at_once, answered_at_once, sound_at_once) = play(well, said, usize::MAX >> 1);
    assert_eq!(sound, sound_at_once);
    // What came before a fault is handed on only where the fault came in another piece.
    if sound {
        assert_eq!((payload, answered), (at_once, answered_at_once));
    }
});
