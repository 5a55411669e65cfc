//! The Kafka protocol: the few requests of a producer and of a consumer of one topic, those of a member of a consumer
//! group, and batches of records in format 2.
//!
//! Source: the protocol guide in the documentation of Kafka and the message definitions in its
//! source. The versions are the newest ones without tagged fields; brokers from 2.3 to 4.2 have all
//! of them. Each request names one topic, and one partition of it where it names any; a fetch may name
//! several.

mod batch;
mod cluster;
mod error;
mod fetch;
mod group;
mod gzip;
mod partitioner;
mod read;
mod request;
mod response;

pub use batch::{
    BATCH_BYTES, KafkaRecord, NO_PRODUCER, ProducerIdentity, RecordBatch, begin_batch, end_batch, put_record,
    put_record_of, record_bytes,
};
pub use cluster::BrokerMap;
pub use error::*;
pub use fetch::{FetchHead, FetchItem, FetchPartition, FetchReader};
pub use group::{
    CommitList, CoordinatorAnswer, IdentifierList, JoinAnswer, JoinRequest, MemberList, Membership, NO_OFFSET,
    PartitionList, ShareList, StoredList, assigned, put_assigned, put_commit, put_identifier, put_member,
    put_partition, put_share, put_stored, put_subscription,
};
pub use gzip::{GzipReader, GzipWriter};
pub use partitioner::partition_of;
pub use read::{MAX_FRAME_BYTES, MAX_TOPIC_BYTES};
pub use request::{
    FetchLimits, FetchPositions, KafkaApi, KafkaRequest, ProduceStart, RequestFrame, begin_produce, end_produce,
    put_fetch,
};
pub use response::{
    CreatedId, KafkaResponse, MetadataAnswer, PartitionAnswer, ResponseFrame, TopicAnswer, begin_fetched, end_fetched,
    put_fetched,
};

/// Offset of the end of a partition, in a request for an offset.
pub const LATEST: i64 = -1;
/// Offset of the first record of a partition, in a request for an offset.
pub const EARLIEST: i64 = -2;

#[cfg(test)]
mod tests;
