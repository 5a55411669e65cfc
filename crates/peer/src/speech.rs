//! The server's side of the protocols: bytes in, what is asked for and answers
//! out, without a socket and without a clock.

mod amqp;
mod mqtt;
mod nats;
mod protocol;
mod resp;
mod zmtp;

pub use amqp::Amqp;
pub use mqtt::Mqtt;
pub use nats::Nats;
pub use protocol::{Ask, Done, Hub, Speech};
pub use resp::Resp;
pub use zmtp::Zmtp;
