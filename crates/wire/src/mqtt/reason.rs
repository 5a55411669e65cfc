//! Texts for a server's refusals: CONNACK return codes (MQTT 3.1.1, 3.2.2.3) and reason codes (MQTT
//! 5, 2.4).

/// Smallest reason code of a failure (MQTT 5, 2.4). In MQTT 3.1.1 it is the only failure code of a
/// SUBACK (3.9.3).
pub const FAILURE: u8 = 0x80;
/// Reason code: the client is not allowed to do this.
pub const NOT_AUTHORISED: u8 = 0x87;
/// Reason code: the packet identifier is not in use.
pub const UNKNOWN_PACKET_ID: u8 = 0x92;

/// Returns the meaning of a reason code (MQTT 5, 2.4).
pub fn words(code: u8) -> &'static str {
    match code {
        0x00 => "success",
        0x01 => "granted QoS 1",
        0x02 => "granted QoS 2",
        0x04 => "disconnected with the will message",
        0x10 => "no matching subscribers",
        0x11 => "no subscription existed",
        0x18 => "continue authentication",
        0x19 => "authenticate again",
        0x80 => "unspecified error",
        0x81 => "malformed packet",
        0x82 => "protocol error",
        0x83 => "an error particular to the server",
        0x84 => "unacceptable protocol version",
        0x85 => "client identifier not valid",
        0x86 => "bad user name or password",
        0x87 => "not authorised",
        0x88 => "server unavailable",
        0x89 => "server busy",
        0x8A => "banned",
        0x8B => "server shutting down",
        0x8C => "bad authentication method",
        0x8D => "keep alive timed out",
        0x8E => "session taken over by another client of the same name",
        0x8F => "topic filter not valid",
        0x90 => "topic name not valid",
        0x91 => "packet identifier in use",
        0x92 => "packet identifier not found",
        0x93 => "receive maximum exceeded",
        0x94 => "topic alias not valid",
        0x95 => "packet too large",
        0x96 => "message rate too high",
        0x97 => "quota exceeded",
        0x98 => "ended by an administrator",
        0x99 => "payload format not valid",
        0x9A => "retain not supported",
        0x9B => "QoS not supported",
        0x9C => "use another server",
        0x9D => "server moved",
        0x9E => "shared subscriptions not supported",
        0x9F => "connection rate exceeded",
        0xA0 => "maximum connect time",
        0xA1 => "subscription identifiers not supported",
        0xA2 => "wildcard subscriptions not supported",
        _ => "a reason that MQTT does not define",
    }
}

/// Returns the meaning of the code of a CONNACK, in either version: servers that support only MQTT
/// 3.1.1 answer a CONNECT of MQTT 5 with a return code of that version.
pub fn connack_words(code: u8) -> &'static str {
    match code {
        1 => words(0x84),
        2 => "client identifier rejected",
        3 => words(0x88),
        4 => words(0x86),
        5 => words(NOT_AUTHORISED),
        _ => words(code),
    }
}

/// True if a later attempt may succeed, for the code of a CONNACK.
pub fn connack_is_temporary(code: u8) -> bool {
    code == 3 || is_temporary(code)
}

/// True if the code means that a limit of the server was reached.
pub fn is_limit(code: u8) -> bool {
    matches!(code, 0x89 | 0x96 | 0x97 | 0x9F)
}

/// True if a later attempt may succeed.
pub fn is_temporary(code: u8) -> bool {
    matches!(code, 0x88 | 0x89 | 0x8B | 0x8D | 0x96 | 0x97 | 0x98 | 0x9F | 0xA0)
}
