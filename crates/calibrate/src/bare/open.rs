//! Connections of a bare loop.

use super::plan::LoopPlan;
use pubmark_wire::mqtt::server::ConnectPacket;
use pubmark_wire::mqtt::{Packet, Qos, Version, decode, encode, reason};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time that the server has for each answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the connections; a receiver subscribes each to its topic. Also returns the
/// number of bytes written.
pub(super) fn open(plan: &LoopPlan, subscribe: bool) -> Result<(Vec<TcpStream>, u64), String> {
    let mut streams = Vec::with_capacity(plan.connections as usize);
    let mut written = 0;
    for connection in 0..plan.connections {
        let name = format!("{}{}{connection}", plan.run, if subscribe { 's' } else { 'p' });
        let topic = subscribe.then(|| plan.topic(connection));
        let opened = greet(plan.to, &name, topic.as_deref())
            .map_err(|error| format!("connection {connection} to {}: {error}", plan.to))?;
        written += opened.1;
        streams.push(opened.0);
    }
    Ok((streams, written))
}

fn greet(to: SocketAddr, name: &str, topic: Option<&str>) -> io::Result<(TcpStream, u64)> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let connect = ConnectPacket::clean(name);
    let mut said = Vec::new();
    encode::connect(&mut said, Version::V3_1_1, &connect).map_err(io::Error::other)?;
    stream.write_all(&said)?;
    let mut written = said.len() as u64;
    answered(&mut stream, |packet| matches!(packet, Packet::Connack(connack) if connack.code == 0))?;
    if let Some(topic) = topic {
        said.clear();
        encode::subscribe(&mut said, Version::V3_1_1, 1, &[(topic, Qos::AtMostOnce)]).map_err(io::Error::other)?;
        stream.write_all(&said)?;
        written += said.len() as u64;
        answered(&mut stream, |packet| matches!(packet, Packet::Suback { codes, .. } if codes[0] < reason::FAILURE))?;
    }
    stream.set_read_timeout(None)?;
    Ok((stream, written))
}

/// Reads one answer, to the byte.
fn answered(stream: &mut TcpStream, good: impl Fn(&Packet<'_>) -> bool) -> io::Result<()> {
    let mut heard = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        heard.push(byte[0]);
        match decode(&heard, Version::V3_1_1).map_err(io::Error::other)? {
            Some((packet, _)) if good(&packet) => return Ok(()),
            Some((packet, _)) => {
                let why = match packet {
                    Packet::Connack(connack) => reason::connack_words(connack.code),
                    Packet::Suback { .. } => "the subscription is not granted",
                    _ => "it answers out of turn",
                };
                return Err(io::Error::other(format!("the server said no: {why}")));
            }
            None => {}
        }
    }
}
