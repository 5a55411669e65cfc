//! `pubmark trace ENDPOINT`: records time, topic and size of the messages at a server.

use super::shared::{interrupt_flag, pairs};
use super::trace_output::TraceOutput;
use crate::args::TraceArgs;
use crate::failure::{Code, Failure};
use crate::output::note;
use pubmark_import::trace::TraceRow;
use pubmark_load::agent::listening::overhear;
use pubmark_load::shard::ListenerEvent;
use pubmark_model::diagnostic::suggestion;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::options::{OptionSpec, Options};
use pubmark_model::units::{format_time, parse_time};
use pubmark_model::wire_protocol::Protocol;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::time::{SystemTime, UNIX_EPOCH};

/// Most topics that are counted; beyond it the number is a lower bound.
const TOPICS_MAX: usize = 1 << 16;

/// Totals of a recording, and its clock.
struct Recording {
    messages: u64,
    bytes: u64,
    /// Hashes of the topics.
    topics: HashSet<u64>,
    /// Time of the subscription: since 1970, and on the clock of the listener, ns.
    began: Option<(u64, u64)>,
    last_ns: u64,
    endpoint: String,
}

/// Records until the duration is over or Ctrl-C is pressed.
pub fn record(args: &TraceArgs, scale: f64) -> Result<Code, Failure> {
    let duration = args.duration.as_deref().map(parse_time).transpose();
    let duration_ns = duration.map_err(|error| Failure::usage(format!("--duration: {error}")))?;
    if duration_ns == Some(0) {
        return Err(Failure::usage("--duration should be at least 1ns, but is 0: leave it out to record until Ctrl-C"));
    }
    let endpoint = Endpoint::parse(&args.source).map_err(Failure::usage)?;
    let options = options(&args.set, endpoint.protocol)?;
    let mut output = TraceOutput::open(args.out.as_deref(), args.fit)?;
    let stop = interrupt_flag()?;
    let mut recording = Recording {
        messages: 0,
        bytes: 0,
        topics: HashSet::new(),
        began: None,
        last_ns: 0,
        endpoint: endpoint.to_string(),
    };
    let mut failure = None;
    let mut hear = |event: ListenerEvent<'_>| match recording.hear(&event, &mut output) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failure = Some(error);
            ControlFlow::Break(())
        }
    };
    let name = client_name();
    let client = (name.as_str(), args.topic.as_deref(), duration_ns);
    let heard = overhear(&args.source, &options, client, &stop, &mut hear);
    if let Some(failure) = failure {
        return Err(failure);
    }
    if recording.began.is_some() {
        note(&recording.summary());
    }
    let broken = heard.map_err(|error| if error.is_of_server() { Failure::run(error) } else { Failure::usage(error) });
    // What was recorded before the connection was lost stays.
    let is_empty = args.fit && recording.messages == 0;
    if broken.is_ok() && is_empty {
        return Err(Failure::usage(
            "no message was published meanwhile, so there is nothing to fit. Record for longer",
        ));
    }
    if !is_empty {
        output.finish(&recording.endpoint, scale, system(endpoint.protocol))?;
    }
    broken.map(|()| Code::Done)
}

/// Returns the options of a connection as typed. One that starts a server, or that only a run has, is unknown here.
fn options(typed: &[String], protocol: Protocol) -> Result<Options, Failure> {
    let known: Vec<OptionSpec> = protocol
        .options()
        .into_iter()
        .filter(|option| !["endpoint", "deployment", "prefix"].contains(&&*option.name))
        .collect();
    let mut options = Options::new();
    for (name, text) in pairs(typed, "--set")? {
        let own = name.strip_prefix("options.").unwrap_or(&name);
        let Some(option) = known.iter().find(|option| option.name == own) else {
            let near = suggestion(own, known.iter().map(|option| option.name.as_str()));
            return Err(Failure::usage(format!(
                "--set {own}: a connection over {protocol} has no such option: {near}"
            )));
        };
        let value = option.kind.read(&text).map_err(|error| Failure::usage(format!("--set {own}: {error}")))?;
        options.insert(own.to_owned(), value);
    }
    Ok(options)
}

/// Returns a name that no other client at the server has: at most 23 characters of 0-9 and a-z.
fn client_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("pbt{:x}n{:x}", std::process::id(), now.as_micros() & 0xfff_ffff)
}

/// Returns a system of the protocol.
fn system(protocol: Protocol) -> &'static str {
    match protocol.word() {
        "nats" => "nats",
        "redis" => "redis",
        "kafka" => "kafka",
        "amqp" => "rabbitmq-amqp",
        "amqp1" => "artemis-amqp",
        _ => "mosquitto",
    }
}

impl Recording {
    fn hear(&mut self, event: &ListenerEvent<'_>, output: &mut TraceOutput) -> Result<(), Failure> {
        match *event {
            ListenerEvent::Subscribed(at_ns) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
                self.began = Some((now, at_ns));
                note(&format!("recording at {}: press Ctrl-C to end", self.endpoint));
                output.flush()
            }
            ListenerEvent::Message { at_ns, topic, bytes } => {
                let (began_ns, from_ns) = self.began.unwrap_or_default();
                self.last_ns = at_ns.saturating_sub(from_ns);
                self.messages += 1;
                self.bytes = self.bytes.saturating_add(bytes);
                if self.topics.len() < TOPICS_MAX {
                    let mut hasher = DefaultHasher::new();
                    topic.hash(&mut hasher);
                    self.topics.insert(hasher.finish());
                }
                let time_ns = began_ns.saturating_add(self.last_ns);
                output.row(&TraceRow { time_ns, flow: String::from_utf8_lossy(topic), bytes })
            }
            ListenerEvent::Idle => output.flush(),
        }
    }

    fn summary(&self) -> String {
        let than = if self.topics.len() == TOPICS_MAX { "at least " } else { "" };
        let whole_ms = self.last_ns / 1_000_000 * 1_000_000;
        format!(
            "{} messages, {than}{} topics, {} bytes in {}",
            self.messages,
            self.topics.len(),
            self.bytes,
            format_time(whole_ms)
        )
    }
}
