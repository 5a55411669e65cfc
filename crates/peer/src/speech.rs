//! The server's side of the protocols: bytes in, requests and answers out, without a socket or a clock.

mod amqp;
mod amqp1;
mod coordinator;
mod kafka;
mod members;
mod mqtt;
mod nats;
mod protocol;
mod resp;
mod zenoh;
mod zmtp;

pub use amqp::AmqpServer;
pub use amqp1::Amqp1Server;
pub use coordinator::Coordinator;
pub use kafka::KafkaServer;
pub use members::{Leaving, PeerMembers};
pub use mqtt::MqttServer;
pub use nats::NatsServer;
pub use protocol::{Ask, Handled, Hub, KeptWill, PublisherAnswer, Speech};
pub use resp::RespServer;
pub use zenoh::ZenohServer;
pub use zmtp::ZmtpServer;
