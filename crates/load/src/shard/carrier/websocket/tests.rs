use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// Returns a client's side, and the server's blocking socket.
fn pair() -> (WebSocket, RawStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_nonblocking(true).unwrap();
    let (server, _) = listener.accept().unwrap();
    server.set_nodelay(true).unwrap();
    let dial = WebSocketDial { host: "broker.example:80".into(), path: "/mqtt".into() };
    (WebSocket::new(&dial).unwrap(), RawStream::Plain(client), server)
}

/// Reads until `wanted` bytes are there, or an error.
fn read(websocket: &mut WebSocket, wire: &mut RawStream, wanted: usize) -> io::Result<Vec<u8>> {
    let (mut got, mut buffer) = (Vec::new(), vec![0; 300]);
    while got.len() < wanted {
        match websocket.read(wire, &mut buffer) {
            Ok((0, _)) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => got.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

/// Reads until an error.
fn failure(websocket: &mut WebSocket, wire: &mut RawStream) -> io::Error {
    read(websocket, wire, usize::MAX).unwrap_err()
}

fn request(server: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        server.read_exact(&mut byte).unwrap();
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

fn answer_to(request: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes()));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nConnection: Upgrade\r\n\
         sec-websocket-accept: {accept}\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
    )
}

/// Returns a connection whose handshake the server has answered.
fn open() -> (WebSocket, RawStream, TcpStream) {
    let (mut websocket, mut wire, mut server) = pair();
    websocket.flush(&mut wire).unwrap();
    let answer = answer_to(&request(&mut server));
    server.write_all(answer.as_bytes()).unwrap();
    (websocket, wire, server)
}

/// Returns a server's frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        short @ 0..=125 => out.push(short as u8),
        middle @ 126..=0xffff => {
            out.push(126);
            out.extend((middle as u16).to_be_bytes());
        }
        long => {
            out.push(127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    out.extend(payload);
    out
}

/// Reads a client's frame: opcode and payload.
fn frame_of_client(server: &mut TcpStream) -> (u8, Vec<u8>) {
    let mut start = [0; 2];
    server.read_exact(&mut start).unwrap();
    assert_eq!((start[0] & 0xf0, start[1] & MASKED), (FIN, MASKED), "whole and masked");
    let payload_bytes = match start[1] & !MASKED {
        126 => {
            let mut long = [0; 2];
            server.read_exact(&mut long).unwrap();
            usize::from(u16::from_be_bytes(long))
        }
        127 => {
            let mut long = [0; 8];
            server.read_exact(&mut long).unwrap();
            u64::from_be_bytes(long) as usize
        }
        short => usize::from(short),
    };
    let mut mask = [0; 4];
    server.read_exact(&mut mask).unwrap();
    let mut payload = vec![0; payload_bytes];
    server.read_exact(&mut payload).unwrap();
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, with)| *byte ^= with);
    (start[0] & 0x0f, payload)
}

#[test]
fn the_handshake_is_that_of_the_standard() {
    let (mut websocket, mut wire, mut server) = pair();
    websocket.flush(&mut wire).unwrap();
    let request = request(&mut server);
    assert!(request.starts_with("GET /mqtt HTTP/1.1\r\nHost: broker.example:80\r\n"), "{request}");
    for line in
        ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Protocol: mqtt"]
    {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{line}: {request}");
    }
    // The example of RFC 6455, section 1.3.
    let head = "HTTP/1.1 101 Switching Protocols\r\nSEC-WebSocket-Accept:  s3pPLMBiTxaQ9kYGzzhZRbK+xOo= ";
    check_head(head, "dGhlIHNhbXBsZSBub25jZQ==", "/").unwrap();
    assert!(check_head(head, "dGhlIHNhbXBsZSBub25jZg==", "/").is_err());
}

#[test]
fn what_is_written_before_the_handshake_is_over_waits_for_it() {
    let (mut websocket, mut wire, mut server) = pair();
    assert_eq!(websocket.write(&mut wire, b"first").unwrap(), 5);
    websocket.flush(&mut wire).unwrap();
    let answer = answer_to(&request(&mut server));
    // Byte by byte, and with a frame at its end.
    let mut said = answer.into_bytes();
    said.extend(frame(FIN | BINARY, b"hello"));
    for byte in said {
        server.write_all(&[byte]).unwrap();
    }
    assert_eq!(read(&mut websocket, &mut wire, 5).unwrap(), b"hello");
    assert_eq!(frame_of_client(&mut server), (BINARY, b"first".to_vec()));
}

#[test]
fn frames_of_every_length_come_and_go_whole() {
    for payload_bytes in [0, 1, 125, 126, 127, 299, 300, 301, 65_535, 65_536, 70_001] {
        let (mut websocket, mut wire, mut server) = open();
        let payload: Vec<u8> = (0..payload_bytes).map(|index| (index * 7) as u8).collect();
        let sent = payload.clone();
        let peer = std::thread::spawn(move || {
            server.write_all(&frame(FIN | BINARY, &sent)).unwrap();
            server.write_all(&frame(FIN | BINARY, b".")).unwrap();
            let mut back = Vec::new();
            while back.len() < sent.len() {
                back.extend(frame_of_client(&mut server).1);
            }
            assert_eq!(back, sent);
        });
        let mut got = read(&mut websocket, &mut wire, payload_bytes + 1).unwrap();
        assert_eq!(got.pop(), Some(b'.'));
        assert_eq!(got, payload);
        let mut rest = &payload[..];
        while !rest.is_empty() {
            match websocket.write(&mut wire, rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        while websocket.is_behind() {
            websocket.flush(&mut wire).unwrap();
        }
        peer.join().unwrap();
    }
}

#[test]
fn a_message_in_parts_is_joined_and_pings_between_are_answered() {
    let (mut websocket, mut wire, mut server) = open();
    for part in [
        frame(BINARY, b"one "),
        frame(FIN | PING, b"there?"),
        frame(CONTINUATION, b"two "),
        frame(FIN | PONG, b"unasked"),
        frame(CONTINUATION, b""),
        frame(FIN | CONTINUATION, b"three"),
    ] {
        server.write_all(&part).unwrap();
    }
    assert_eq!(read(&mut websocket, &mut wire, 13).unwrap(), b"one two three");
    assert_eq!(frame_of_client(&mut server), (PONG, b"there?".to_vec()));
}

#[test]
fn a_close_is_answered_and_told_after_what_came_before() {
    let (mut websocket, mut wire, mut server) = open();
    let mut said = frame(FIN | BINARY, b"last");
    said.extend(frame(FIN | CLOSE, b"\x03\xe9going away"));
    server.write_all(&said).unwrap();
    assert_eq!(read(&mut websocket, &mut wire, 4).unwrap(), b"last");
    let error = failure(&mut websocket, &mut wire);
    assert_eq!(error.to_string(), "the server closed the WebSocket: code 1001, going away");
    assert_eq!(frame_of_client(&mut server), (CLOSE, b"\x03\xe9".to_vec()));
    let (mut websocket, mut wire, mut server) = open();
    server.write_all(&frame(FIN | BINARY, b"x")).unwrap();
    read(&mut websocket, &mut wire, 1).unwrap();
    websocket.finish(&mut wire).unwrap();
    assert_eq!(frame_of_client(&mut server), (CLOSE, b"\x03\xe8".to_vec()));
}

#[test]
fn what_is_no_websocket_is_said_in_words() {
    let wrong_accept = "HTTP/1.1 101 x\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    for (answer, kind, says) in [
        (
            "HTTP/1.1 404 Not Found\r\n\r\n",
            ErrorKind::PermissionDenied,
            "for /mqtt with `HTTP/1.1 404 Not Found`: check the path",
        ),
        ("HTTP/1.1 503 Busy\r\n\r\n", ErrorKind::ConnectionRefused, "`HTTP/1.1 503 Busy`"),
        ("\x15\x03\x03\x00", ErrorKind::InvalidData, "does not speak WebSocket on this port"),
        (wrong_accept, ErrorKind::InvalidData, "does not fit"),
        ("", ErrorKind::ConnectionAborted, "during the WebSocket handshake"),
    ] {
        let (mut websocket, mut wire, mut server) = pair();
        websocket.flush(&mut wire).unwrap();
        request(&mut server);
        server.write_all(answer.as_bytes()).unwrap();
        drop(server);
        let error = failure(&mut websocket, &mut wire);
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let masked = [FIN | BINARY, MASKED | 1, 0, 0, 0, 0, 0];
    for (frame, says) in [
        (frame(FIN | 0x40 | BINARY, b"x"), "extension"),
        (masked.to_vec(), "masked"),
        (frame(PING, b"x"), "control frame"),
        (frame(FIN | PING, &[0; 126]), "control frame"),
        (frame(FIN | TEXT, b"x"), "text"),
        (frame(FIN | 3, b"x"), "unknown kind 3"),
    ] {
        let (mut websocket, mut wire, mut server) = open();
        server.write_all(&frame).unwrap();
        let error = failure(&mut websocket, &mut wire);
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}
