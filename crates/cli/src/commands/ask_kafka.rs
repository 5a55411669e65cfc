//! `pubmark ask-kafka`: prints the brokers of a Kafka cluster, or those that lead, one a line. A system file asks so; it
//! is not for users.

use crate::args::AskKafkaArgs;
use crate::failure::{Code, Failure};
use crate::output::print;
use pubmark_wire::kafka::{BrokerMap, KafkaRequest, RequestFrame, ResponseFrame};
use std::io::{Error, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Time limit of the whole conversation.
const PATIENCE: Duration = Duration::from_secs(2);
/// Maximum length of an answer, bytes.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Asks and prints.
pub fn ask(args: &AskKafkaArgs) -> Result<Code, Failure> {
    let failed = |why: String| Failure::run(format!("{}: {why}", args.address));
    let answer = answer(&args.address).map_err(|error| failed(error.to_string()))?;
    let frame = ResponseFrame::decode(&answer).map_err(|why| failed(why.0))?;
    let (frame, _) = frame.ok_or_else(|| failed("the answer is not whole".into()))?;
    let map = BrokerMap::decode(frame.body).map_err(|why| failed(why.0))?;
    let numbers: Vec<i32> = match args.leaders {
        true => map.leaders.into_iter().map(|(_, leader)| leader).collect(),
        false => map.brokers.iter().map(|(id, _, _)| *id).collect(),
    };
    numbers.iter().filter(|number| **number >= 0).for_each(|number| print(&number.to_string()));
    Ok(Code::Done)
}

/// Returns the answer to a request for all topics.
fn answer(address: &str) -> std::io::Result<Vec<u8>> {
    let deadline = Instant::now() + PATIENCE;
    let to = address.to_socket_addrs()?.next().ok_or_else(|| Error::other("it has no address"))?;
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    RequestFrame { correlation: 1, client: b"pubmark", request: KafkaRequest::Metadata { topic: b"" } }
        .put(&mut request);
    stream.write_all(&request)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while answer.len() < 4 || (answer.len() as u64) < ResponseFrame::announced(&answer) {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || answer.len() > ANSWER_BYTES_MAX {
            return Err(Error::other("it does not answer in time"));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => return Err(Error::other("it has closed the connection")),
            count => answer.extend_from_slice(&piece[..count]),
        }
    }
    Ok(answer)
}
