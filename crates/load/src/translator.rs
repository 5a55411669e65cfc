//! Translates between a coordinator, which speaks protocol 2, and an agent that speaks
//! protocol 3. It passes orders on to the agent with numbers that the agent would otherwise
//! compute, and turns the agent's rows into the figures of protocol 2.

use crate::clock;
use crate::outcome::merge;
use crate::replay::{ClientFacts, PlayedPublisher, Replay};
use crate::rows::{RowFile, RowOrder, RowPlan};
use crate::subscriber::Totals;
use crate::usage::UsageSampler;
use crate::window::Window;
use nix::sys::memfd::{MFdFlags, memfd_create};
use pubmark_model::line::JsonLine;
use pubmark_model::protocol::{AgentResult, Command, Event, MAX_LINE, Prepare, PublisherTotal, ROWS_VERSION, VERSION};
use pubmark_model::rows;
use pubmark_model::units::Ns;
use pubmark_model::workload::Workload;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, Command as Program, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time that the agent has to end after its coordinator has exited.
const ORPHAN: Duration = Duration::from_secs(2);

/// A line from either side, or its end.
enum Heard {
    Order(Vec<u8>),
    NoMoreOrders,
    Said(Vec<u8>),
    Ended,
}

/// The reason why the translation ended.
#[derive(Debug, thiserror::Error)]
pub enum TranslatorError {
    /// The agent cannot be started.
    #[error("{program} cannot be started: {source}")]
    Start {
        /// Its program.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The agent or the coordinator cannot be written to.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The next step of the translation.
enum Next {
    GoesOn,
    /// The agent ends by itself.
    Ends,
    /// The coordinator has gone; the agent is ended.
    GivesUp,
}

/// The prepared run.
struct Run {
    prepare: Prepare,
    workload: Workload,
    rows: RowFile,
    window: Option<Window>,
    sampler: Option<UsageSampler>,
    played: Vec<Option<PlayedPublisher>>,
    totals: Vec<PublisherTotal>,
}

/// Number of rows that a client has written, as the agent reports it.
#[derive(Deserialize)]
struct SentRows {
    rows: Vec<u64>,
    #[serde(default)]
    killed_ns: Option<Ns>,
}

/// An agent's report on its clients and itself at the end of a run.
#[derive(Deserialize)]
struct RowResult {
    clients: Vec<FactsSaid>,
    ticks: u64,
    sent: SentRows,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct FactsSaid {
    received_rows: u64,
    has_heard: bool,
    #[serde(default)]
    spent_ns: Ns,
    #[serde(default)]
    margin_ns: Ns,
}

struct Translator<W> {
    output: W,
    agent: Option<ChildStdin>,
    pid: u32,
    waited_ns: Ns,
    run: Option<Run>,
}

/// Starts an agent of protocol 3, and serves a coordinator that speaks protocol 2 until `exit`
/// or the end of `input`. Returns the exit status of the agent.
///
/// # Errors
/// If the agent cannot be started, or the coordinator cannot be written to.
pub fn serve(
    words: &[String],
    input: impl BufRead + Send + 'static,
    output: impl Write,
) -> Result<i32, TranslatorError> {
    let program = words.first().cloned().unwrap_or_default();
    let mut command = Program::new(&program);
    command.args(&words[1.min(words.len())..]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|source| TranslatorError::Start { program, source })?;
    let (sender, receiver) = channel();
    let orders = sender.clone();
    thread::Builder::new().name("orders".into()).spawn(move || {
        read_lines(input, &orders, Heard::Order);
        let _ = orders.send(Heard::NoMoreOrders);
    })?;
    if let Some(said) = child.stdout.take() {
        thread::Builder::new().name("events".into()).spawn(move || {
            read_lines(BufReader::new(said), &sender, Heard::Said);
            let _ = sender.send(Heard::Ended);
        })?;
    }
    let agent = child.stdin.take();
    let mut translator = Translator { output, agent, pid: child.id(), waited_ns: 0, run: None };
    for heard in receiver {
        let next = match heard {
            Heard::Order(line) => translator.order(&line)?,
            Heard::Said(line) => translator.said(&line)?,
            Heard::NoMoreOrders => Next::GivesUp,
            Heard::Ended => Next::Ends,
        };
        match next {
            Next::GoesOn => {}
            // End of input is expected from an agent that was sent `exit`.
            Next::Ends => return Ok(ended(&mut child)),
            Next::GivesUp => break,
        }
    }
    drop(translator);
    Ok(ended(&mut child).max(1))
}

fn read_lines(mut input: impl BufRead, to: &Sender<Heard>, heard: fn(Vec<u8>) -> Heard) {
    loop {
        let mut line = Vec::new();
        match (&mut input).take(MAX_LINE as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if to.send(heard(line)).is_err() => return,
            Ok(_) => {}
        }
    }
}

/// Returns the exit status of an agent whose input is closed; kills it if it does not
/// end.
fn ended(child: &mut Child) -> i32 {
    let until = Instant::now() + ORPHAN;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.code().unwrap_or(1),
            Ok(None) if Instant::now() < until => thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return 1;
            }
        }
    }
}

impl<W: Write> Translator<W> {
    fn tell(&mut self, order: &Value) -> std::io::Result<()> {
        let Some(agent) = &mut self.agent else { return Ok(()) };
        let mut line = serde_json::to_vec(order)?;
        line.push(b'\n');
        // If the agent has exited, its output ends, which is handled there.
        let _ = agent.write_all(&line);
        Ok(())
    }

    fn pass_on(&mut self, line: &[u8]) {
        if let Some(agent) = &mut self.agent {
            let _ = agent.write_all(line);
        }
    }

    fn say(&mut self, event: &Event) -> std::io::Result<()> {
        let mut line = event.to_json()?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()
    }

    fn refuse(&mut self, message: String) -> std::io::Result<Next> {
        self.say(&Event::Error { message, fatal: true, too_late: false })?;
        Ok(Next::GivesUp)
    }

    fn order(&mut self, line: &[u8]) -> std::io::Result<Next> {
        match Command::from_json(line) {
            Ok(Command::Hello { protocol: VERSION }) => {
                self.tell(&json!({"type": "hello", "protocol": ROWS_VERSION}))?;
            }
            Ok(Command::Prepare(prepare)) if self.run.is_none() => return self.prepare(*prepare, line),
            Ok(Command::Start { at_ns }) => self.start(at_ns)?,
            Ok(Command::Drain { publishers, deadline_ns, .. }) => {
                if let Some(run) = &mut self.run {
                    run.totals = publishers;
                }
                self.tell(&json!({"type": "drain", "deadline_ns": deadline_ns}))?;
            }
            Ok(Command::Exit {}) => {
                self.pass_on(line);
                return Ok(Next::Ends);
            }
            // Lines that are not valid orders are refused by the agent.
            Ok(_) | Err(_) => self.pass_on(line),
        }
        Ok(Next::GoesOn)
    }

    fn prepare(&mut self, prepare: Prepare, line: &[u8]) -> std::io::Result<Next> {
        let [flow] = prepare.flows.as_slice() else {
            self.pass_on(line);
            return Ok(Next::GoesOn);
        };
        let workload = flow.workload.clone();
        let plan = match RowPlan::of(&workload, &prepare.clients) {
            Ok(plan) => plan,
            Err(error) => return self.refuse(error.to_string()),
        };
        let file = File::from(memfd_create(c"pubmark-rows", MFdFlags::MFD_CLOEXEC)?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        let rows = RowFile::create(file, plan, &workload, &prepare.clients)?;
        let mut order: Value = serde_json::from_slice(line)?;
        order["rows"] = serde_json::to_value(RowOrder::of(&prepare, &workload, path, &rows.plan))?;
        self.tell(&order)?;
        let played = prepare.clients.iter().map(|_| None).collect();
        let run = Run { prepare, workload, rows, window: None, sampler: None, played, totals: Vec::new() };
        self.run = Some(run);
        Ok(Next::GoesOn)
    }

    fn start(&mut self, at_ns: Ns) -> std::io::Result<()> {
        let mut order = json!({"type": "start", "at_ns": at_ns});
        if let Some(run) = &mut self.run {
            let window = Window { ahead_ns: run.prepare.clock_offset_ns, ..Window::new(&run.workload, at_ns) };
            order["from_ns"] = window.from_ns.into();
            order["to_ns"] = window.to_ns.into();
            order["give_up_ns"] = crate::publisher::give_up_ns(&run.workload, &window).into();
            if run.window.replace(window).is_none() && at_ns > clock::now() {
                run.sampler = Some(UsageSampler::start_for(self.pid as i32, window));
            }
        }
        self.tell(&order)
    }

    fn said(&mut self, line: &[u8]) -> std::io::Result<Next> {
        let event: Value = serde_json::from_slice(line).unwrap_or_default();
        match event["type"].as_str() {
            Some("hello") => self.hello(event),
            Some("sent") => self.sent(event),
            Some("result") => self.result(event),
            _ => {
                self.output.write_all(line)?;
                self.output.flush()?;
                Ok(Next::GoesOn)
            }
        }
    }

    fn hello(&mut self, mut event: Value) -> std::io::Result<Next> {
        self.waited_ns = event["waited_ns"].as_u64().unwrap_or_default();
        if event["protocol"] == json!(ROWS_VERSION) {
            event["protocol"] = VERSION.into();
            if let Some(features) = event["features"].as_object_mut() {
                features.insert("drains_by_markers".into(), true.into());
                features.insert("row_bytes".into(), rows::MOST_BYTES.into());
            }
        }
        let mut line = serde_json::to_vec(&event)?;
        line.push(b'\n');
        self.output.write_all(&line)?;
        self.output.flush()?;
        Ok(Next::GoesOn)
    }

    /// Returns the replay of the current run; `None` before its start.
    fn replay(run: &Run, waited_ns: Ns, killed_ns: Option<Ns>) -> Option<Replay<'_>> {
        let senders = run.prepare.clients.iter().filter(|client| client.role.sends()).count().max(1);
        Some(Replay {
            workload: &run.workload,
            window: run.window?,
            file: &run.rows,
            killed_ns,
            waited_ns,
            spin_cores: run.prepare.spin_cores / senders as f64,
        })
    }

    fn sent(&mut self, event: Value) -> std::io::Result<Next> {
        let waited_ns = self.waited_ns;
        let Some(run) = &mut self.run else { return Ok(Next::GoesOn) };
        let said: SentRows = match serde_json::from_value(event) {
            Ok(said) => said,
            Err(error) => return self.refuse(format!("its `sent` cannot be read: {error}")),
        };
        match play_sends(run, &said, waited_ns) {
            Ok(publishers) => self.say(&Event::Sent { publishers, ends: Vec::new() })?,
            Err(error) => return self.refuse(error),
        }
        Ok(Next::GoesOn)
    }

    fn result(&mut self, event: Value) -> std::io::Result<Next> {
        let waited_ns = self.waited_ns;
        let said: RowResult = match serde_json::from_value(event) {
            Ok(said) => said,
            Err(error) => return self.refuse(format!("its `result` cannot be read: {error}")),
        };
        let result = match &mut self.run {
            Some(run) => result_of(run, said, waited_ns),
            None => Ok(AgentResult::default()),
        };
        match result {
            Ok(result) => self.say(&Event::Result(Box::new(result)))?,
            Err(error) => return self.refuse(error),
        }
        Ok(Next::GoesOn)
    }
}

/// Replays the sends of all publishers that have not been replayed, and returns how much
/// each sent.
fn play_sends(run: &mut Run, said: &SentRows, waited_ns: Ns) -> Result<Vec<PublisherTotal>, String> {
    let mut played = std::mem::take(&mut run.played);
    let Some(replay) = Translator::<Vec<u8>>::replay(run, waited_ns, said.killed_ns) else { return Ok(Vec::new()) };
    let mut totals = Vec::new();
    let mut counts = said.rows.iter();
    for ((client, sections), played) in run.prepare.clients.iter().zip(&run.rows.plan.clients).zip(&mut played) {
        if !client.role.sends() {
            continue;
        }
        let rows = counts.next().copied().unwrap_or_default();
        if played.is_none() {
            let publisher = replay.publisher(client.id, sections, rows);
            *played = Some(publisher.map_err(|error| format!("publisher {}: {error}", client.id))?);
        }
        totals.extend(played.as_ref().map(PlayedPublisher::total));
    }
    run.played = played;
    Ok(totals)
}

fn result_of(run: &mut Run, said: RowResult, waited_ns: Ns) -> Result<AgentResult, String> {
    play_sends(run, &said.sent, waited_ns)?;
    let played = std::mem::take(&mut run.played);
    let usage = run.sampler.take().map(|sampler| sampler.finish().0);
    let mut outcomes = Vec::new();
    let mut pauses = None;
    if let Some(replay) = Translator::<Vec<u8>>::replay(run, waited_ns, said.sent.killed_ns) {
        let totals = Totals::new(&run.totals);
        let clients = run.prepare.clients.iter().zip(&run.rows.plan.clients).zip(played);
        if said.clients.len() != run.prepare.clients.len() {
            return Err(format!("its result has {} clients, not {}", said.clients.len(), run.prepare.clients.len()));
        }
        for (((client, sections), sends), facts) in clients.zip(&said.clients) {
            let facts = ClientFacts {
                received_rows: facts.received_rows,
                has_heard: facts.has_heard,
                spent_ns: facts.spent_ns,
                margin_ns: facts.margin_ns,
            };
            let outcome = replay.outcome(client, sections, sends, &facts, &totals);
            outcomes.push(outcome.map_err(|error| format!("{:?} {}: {error}", client.role, client.id).to_lowercase())?);
        }
        pauses = Some(replay.pauses(said.ticks).map_err(|error| format!("ticks: {error}"))?);
    }
    let result = merge(&run.workload, outcomes);
    let mut fields = serde_json::to_value(&result).map_err(|error| error.to_string())?;
    // Versions, applied options and the remarks of the runtime are the agent's own.
    let mut remarks = result.remarks;
    for (field, value) in said.rest {
        if field == "remarks" {
            remarks.extend(value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
        } else {
            fields[field] = value;
        }
    }
    let mut result: AgentResult = serde_json::from_value(fields).map_err(|error| error.to_string())?;
    (result.remarks, result.pauses) = (remarks, pauses);
    result.usage = usage.unwrap_or_default();
    Ok(result)
}
