//! The system, its server and its options that a driver file of OpenMessaging Benchmark names.

use crate::Remark;
use crate::fields::Fields;

/// A driver with its counterpart in pubmark.
pub(super) struct OmbDriver {
    /// Name of the system.
    pub system: &'static str,
    /// URL of the running server; `None` if pubmark starts it.
    pub endpoint: Option<String>,
    pub qos: u8,
    pub durable: bool,
    /// Options of the system besides the endpoint, with their values as in a study.
    pub options: Vec<(&'static str, String)>,
}

/// Adds a remark on what pubmark does in another way.
pub(super) fn differs(remarks: &mut Vec<Remark>, text: &str) {
    remarks.push(Remark::Differs(text.to_owned()));
}

/// Reads the number of copies of each message.
pub(super) fn one_copy(fields: &mut Fields<'_>) {
    if let Some(copies) = fields.count("replicationFactor").filter(|copies| *copies != 1) {
        let message = format!("replicationFactor is {copies}: pubmark measures one server here, which has one copy");
        fields.wrong("replicationFactor", message, "Set replicationFactor: 1.");
    }
}
