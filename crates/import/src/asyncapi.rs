//! AsyncAPI documents, versions 2 and 3: a skeleton of a study with a flow for each channel.
//!
//! A document says who sends what to which channel, but no rate and no number of clients. The skeleton has values to
//! start from, and says so.

mod size;

use crate::flow_name::flow_name;
use crate::toml_text::{comment, quoted};
use crate::yaml::{YamlEntry, YamlNode, YamlValue};
use crate::{ImportedStudy, Remark, SourceText, yaml};
use pubmark_model::diagnostic::{Diagnostic, Diagnostics};
use pubmark_model::flow::MOST_FLOWS;
use pubmark_model::header::MIN_LEN;
use pubmark_model::system::Systems;
use size::Estimate;
use std::fmt::Write;

/// System of a document whose servers speak no protocol with one.
const USUAL_SYSTEM: &str = "mosquitto";

/// Systems, by the protocol of a server.
const SYSTEMS: [(&str, &str); 10] = [
    ("mqtt", "mosquitto"),
    ("mqtt5", "mosquitto"),
    ("mqtts", "mosquitto"),
    ("secure-mqtt", "mosquitto"),
    ("amqp", "rabbitmq-amqp"),
    ("amqps", "rabbitmq-amqp"),
    ("amqp1", "artemis-amqp"),
    ("nats", "nats"),
    ("redis", "redis"),
    ("rediss", "redis"),
];

/// Longest chain of references that is followed.
const REFERENCES_MAX: usize = 32;

/// Largest message, bytes: 1 GiB.
const BYTES_MAX: u64 = 1 << 30;

/// Returns the skeleton of a study.
///
/// # Errors
/// The text is not an AsyncAPI document of version 2 or 3, or has no channel.
pub fn study(source: SourceText<'_>, systems: Systems<'_>) -> Result<ImportedStudy, Diagnostics> {
    let wrong = |error| Diagnostics { file: source.file.to_owned(), text: source.text.to_owned(), errors: vec![error] };
    let root = yaml::parse(source.text).map_err(wrong)?;
    let document = Document::of(&root).map_err(wrong)?;
    let channels = document.channels().map_err(wrong)?;
    let mut remarks = Vec::new();
    let (system, protocols) = document.system();
    if protocols.iter().all(|protocol| !SYSTEMS.iter().any(|(known, _)| known == protocol)) {
        let named = if protocols.is_empty() { "no protocol".into() } else { protocols.join(", ") };
        remarks.push(Remark::Chosen(format!(
            "the servers name {named}, which no system here has: the study has {system}"
        )));
    }
    let qos_max = systems(system).and_then(|system| system.qos.iter().copied().max()).unwrap_or_default();
    let title = root.get("info").and_then(|info| text(info.get("title")?)).unwrap_or(source.file);
    let mut out = format!(
        "# From {} (AsyncAPI {}). A document has no rates and no numbers of clients: set both.\ntitle = {}\n\
         question = \"\"\n\n[workload]\nrate = 10\nduration = \"10s\"\n",
        comment(source.file),
        comment(&document.version),
        quoted(title)
    );
    let mut names = Vec::new();
    for channel in channels.iter().take(MOST_FLOWS) {
        let name = flow_name(&channel.key, "channel", &names);
        out += &document.flow(channel, &name, qos_max, &mut remarks);
        names.push(name);
    }
    if let Some(left) = channels.len().checked_sub(MOST_FLOWS).filter(|left| *left > 0) {
        remarks.push(Remark::Chosen(format!("{left} more channels: a study has at most {MOST_FLOWS} flows")));
    }
    let _ = write!(out, "\n[axes]\nsystem = [\"{system}\"]\n");
    Ok(ImportedStudy { text: out, remarks })
}

/// A document.
struct Document<'a> {
    root: &'a YamlNode,
    version: String,
    /// 2 or 3.
    major: u8,
}

/// Who uses a channel, and how.
#[derive(Default)]
struct Usage<'a> {
    sends: bool,
    receives: bool,
    qos: Option<u8>,
    messages: Vec<&'a YamlNode>,
}

impl<'a> Document<'a> {
    fn of(root: &'a YamlNode) -> Result<Document<'a>, Diagnostic> {
        let help = "Name a document that begins with asyncapi: 2.x or 3.x.";
        let Some(node) = root.get("asyncapi") else {
            return Err(Diagnostic::whole("not an AsyncAPI document: it has no key `asyncapi`").help(help));
        };
        let version = match &node.value {
            YamlValue::Text(text) => text.clone(),
            YamlValue::Float(number) => number.to_string(),
            YamlValue::Integer(number) => number.to_string(),
            other => return Err(Diagnostic::at(node.offset, format!("a version is a text, not {}", other.kind()))),
        };
        let major = match version.split('.').next() {
            Some("2") => 2,
            Some("3") => 3,
            _ => {
                let message = format!("AsyncAPI {version} is not supported; versions 2 and 3 are");
                return Err(Diagnostic::at(node.offset, message).help(help));
            }
        };
        Ok(Document { root, version, major })
    }

    fn channels(&self) -> Result<&'a [YamlEntry], Diagnostic> {
        let channels = self.root.get("channels").map(entries).unwrap_or_default();
        if channels.is_empty() {
            return Err(Diagnostic::whole("the document has no channels").help("Each channel becomes a flow."));
        }
        Ok(channels)
    }

    /// Returns the system of the first known protocol, and all protocols.
    fn system(&self) -> (&'static str, Vec<&'a str>) {
        let servers = self.root.get("servers").map(entries).unwrap_or_default();
        let protocol = |server: &'a YamlEntry| text(self.resolved(&server.node)?.get("protocol")?);
        let protocols: Vec<&str> = servers.iter().filter_map(protocol).collect();
        let mut known = protocols.iter().filter_map(|name| SYSTEMS.iter().find(|(known, _)| known == name));
        (known.next().map_or(USUAL_SYSTEM, |(_, system)| *system), protocols)
    }

    /// Follows references within the document.
    fn resolved(&self, node: &'a YamlNode) -> Option<&'a YamlNode> {
        let mut node = node;
        for _ in 0..REFERENCES_MAX {
            let Some(pointer) = node.get("$ref") else { return Some(node) };
            node = self.at(text(pointer)?)?;
        }
        None
    }

    /// Returns the value at a JSON pointer of this document.
    fn at(&self, pointer: &str) -> Option<&'a YamlNode> {
        let path = pointer.strip_prefix("#/")?;
        path.split('/').try_fold(self.root, |node, part| {
            let part = part.replace("~1", "/").replace("~0", "~");
            match &node.value {
                YamlValue::List(items) => items.get(part.parse::<usize>().ok()?),
                _ => node.get(&part),
            }
        })
    }

    /// Returns who uses a channel: in version 2 its own operations say it, from the view of the application's users.
    fn usage(&self, channel: &'a YamlEntry) -> Usage<'a> {
        let mut usage = Usage::default();
        let Some(node) = self.resolved(&channel.node) else { return usage };
        if self.major == 2 {
            for (key, sends) in [("publish", false), ("subscribe", true)] {
                let Some(operation) = node.get(key).and_then(|operation| self.resolved(operation)) else { continue };
                (usage.sends, usage.receives) = (usage.sends || sends, usage.receives || !sends);
                usage.qos = usage.qos.max(self.qos(operation));
                usage.messages.extend(operation.get("message").into_iter().flat_map(|message| self.choices(message)));
            }
            return usage;
        }
        let messages = node.get("messages").map(entries).unwrap_or_default();
        usage.messages = messages.iter().filter_map(|message| self.resolved(&message.node)).collect();
        for operation in self.root.get("operations").map(entries).unwrap_or_default() {
            let Some(operation) = self.resolved(&operation.node) else { continue };
            let of = operation.get("channel").and_then(|channel| self.resolved(channel));
            if !of.is_some_and(|of| std::ptr::eq(of, node)) {
                continue;
            }
            match operation.get("action").and_then(text) {
                Some("send") => usage.sends = true,
                Some("receive") => usage.receives = true,
                _ => {}
            }
            usage.qos = usage.qos.max(self.qos(operation));
        }
        usage
    }

    /// Returns a message, or those of which it is one.
    fn choices(&self, message: &'a YamlNode) -> Vec<&'a YamlNode> {
        let Some(message) = self.resolved(message) else { return Vec::new() };
        match message.get("oneOf").map(|several| &several.value) {
            Some(YamlValue::List(several)) => several.iter().filter_map(|one| self.resolved(one)).collect(),
            _ => vec![message],
        }
    }

    /// Returns the quality of service that the MQTT binding of an operation or of one of its traits names.
    fn qos(&self, operation: &'a YamlNode) -> Option<u8> {
        let own = |node: &'a YamlNode| {
            let binding = self.resolved(node.get("bindings")?)?.get("mqtt")?;
            match self.resolved(binding)?.get("qos")?.value {
                YamlValue::Integer(qos) => u8::try_from(qos).ok().filter(|qos| *qos <= 2),
                _ => None,
            }
        };
        let traits = match operation.get("traits").map(|traits| &traits.value) {
            Some(YamlValue::List(traits)) => traits.as_slice(),
            _ => &[],
        };
        own(operation).or_else(|| traits.iter().filter_map(|one| own(self.resolved(one)?)).max())
    }

    /// Returns the table of a channel's flow.
    fn flow(&self, channel: &'a YamlEntry, name: &str, qos_max: u8, remarks: &mut Vec<Remark>) -> String {
        let usage = self.usage(channel);
        let address = self.resolved(&channel.node).and_then(|node| text(node.get("address")?)).unwrap_or(&channel.key);
        let (does, pattern) = match (usage.sends, usage.receives) {
            (true, false) => ("the application sends", "fan-out"),
            (false, true) => ("the application receives", "fan-in"),
            (true, true) => ("the application sends and receives", "pairs"),
            (false, false) => ("no operation uses it", "pairs"),
        };
        let clients = match pattern {
            "pairs" => "pairs = 1\n",
            _ => "publishers = 1\nsubscribers = 1\n",
        };
        let mut out = format!("\n# {}: {does}\n[flows.{name}]\npattern = \"{pattern}\"\n{clients}", comment(address));
        let sizes = usage.messages.iter().map(|message| Estimate::of(message, &|node| self.resolved(node)));
        match sizes.collect::<Option<Vec<u64>>>().and_then(|sizes| sizes.into_iter().max()) {
            Some(bytes) => {
                let _ = writeln!(
                    out,
                    "payload = \"{}B\" # estimated from the schema",
                    bytes.clamp(MIN_LEN as u64, BYTES_MAX)
                );
            }
            None => out += "payload = \"1KiB\" # no schema that a size can be estimated from\n",
        }
        if let Some(qos) = usage.qos {
            let _ = writeln!(out, "qos = {}", qos.min(qos_max));
            if qos > qos_max {
                remarks.push(Remark::Differs(format!("{name}: QoS {qos}, of which the system has at most {qos_max}")));
            }
        }
        out
    }
}

fn entries(node: &YamlNode) -> &[YamlEntry] {
    match &node.value {
        YamlValue::Table(entries) => entries,
        _ => &[],
    }
}

fn text(node: &YamlNode) -> Option<&str> {
    match &node.value {
        YamlValue::Text(text) => Some(text),
        _ => None,
    }
}
