//! Error codes of brokers.

/// Error code of a request that succeeded.
pub const NO_ERROR: i16 = 0;

macro_rules! error_codes {
    ($($constant:ident = $code:literal,)*) => {
        $(
            #[doc = concat!("Error code ", $code, ".")]
            pub const $constant: i16 = $code;
        )*
        const NAMES: &[(i16, &str)] = &[$(($code, stringify!($constant)),)*];
    };
}

error_codes! {
    UNKNOWN_SERVER_ERROR = -1,
    OFFSET_OUT_OF_RANGE = 1,
    CORRUPT_MESSAGE = 2,
    UNKNOWN_TOPIC_OR_PARTITION = 3,
    LEADER_NOT_AVAILABLE = 5,
    NOT_LEADER_OR_FOLLOWER = 6,
    REQUEST_TIMED_OUT = 7,
    BROKER_NOT_AVAILABLE = 8,
    REPLICA_NOT_AVAILABLE = 9,
    MESSAGE_TOO_LARGE = 10,
    NETWORK_EXCEPTION = 13,
    COORDINATOR_LOAD_IN_PROGRESS = 14,
    COORDINATOR_NOT_AVAILABLE = 15,
    NOT_COORDINATOR = 16,
    INVALID_TOPIC_EXCEPTION = 17,
    RECORD_LIST_TOO_LARGE = 18,
    NOT_ENOUGH_REPLICAS = 19,
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20,
    ILLEGAL_GENERATION = 22,
    INCONSISTENT_GROUP_PROTOCOL = 23,
    INVALID_GROUP_ID = 24,
    UNKNOWN_MEMBER_ID = 25,
    INVALID_SESSION_TIMEOUT = 26,
    REBALANCE_IN_PROGRESS = 27,
    TOPIC_AUTHORIZATION_FAILED = 29,
    GROUP_AUTHORIZATION_FAILED = 30,
    CLUSTER_AUTHORIZATION_FAILED = 31,
    UNSUPPORTED_SASL_MECHANISM = 33,
    UNSUPPORTED_VERSION = 35,
    TOPIC_ALREADY_EXISTS = 36,
    INVALID_PARTITIONS = 37,
    INVALID_REPLICATION_FACTOR = 38,
    NOT_CONTROLLER = 41,
    INVALID_REQUEST = 42,
    POLICY_VIOLATION = 44,
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45,
    DUPLICATE_SEQUENCE_NUMBER = 46,
    INVALID_PRODUCER_EPOCH = 47,
    KAFKA_STORAGE_ERROR = 56,
    SASL_AUTHENTICATION_FAILED = 58,
    UNKNOWN_PRODUCER_ID = 59,
    NON_EMPTY_GROUP = 68,
    GROUP_ID_NOT_FOUND = 69,
    TOPIC_DELETION_DISABLED = 73,
    MEMBER_ID_REQUIRED = 79,
    GROUP_MAX_SIZE_REACHED = 81,
    INVALID_RECORD = 87,
    THROTTLING_QUOTA_EXCEEDED = 89,
}

/// Returns the name of an error code in the protocol guide.
pub fn error_name(code: i16) -> &'static str {
    NAMES.iter().find(|(known, _)| *known == code).map_or("an error that pubmark does not know", |(_, name)| name)
}
