//! Messages of the agent protocol, with hardly any load.

use crate::bench::Bench;
use crate::case::{Case, CaseNeeds};
use crate::course::until;
use crate::order::{clients, places, prepare, workload};
use crate::wrong::{CaseFailure, due};
use pubmark_host::clock;
use pubmark_host::conversation::{ANSWER, AgentConversation, TalkError};
use pubmark_model::line::JsonLine;
use pubmark_model::protocol::{Command, Prepare, Role, UPDATE_AGENT, VERSION};
use pubmark_model::units::{MILLISECOND, SECOND};
use serde_json::{Value, json};

pub const CASES: &[Case] = &[
    Case {
        name: "hello",
        sent: "hello",
        due: "its name, version, process, drivers, CLOCK_MONOTONIC, and this version of the protocol",
        needs: CaseNeeds::Words,
        run: hello,
    },
    Case {
        name: "other-version",
        sent: "hello, version 99",
        due: "a fatal error, or hello of its own version",
        needs: CaseNeeds::Words,
        run: other_version,
    },
    Case {
        name: "unknown-command",
        sent: "hello; a command that the protocol has not",
        due: "an error",
        needs: CaseNeeds::Words,
        run: unknown_command,
    },
    Case {
        name: "unknown-driver",
        sent: "prepare with a driver that it did not name",
        due: "a fatal error",
        needs: CaseNeeds::Words,
        run: unknown_driver,
    },
    Case {
        name: "unknown-option",
        sent: "prepare with an option that it did not name",
        due: "an error",
        needs: CaseNeeds::Words,
        run: unknown_option,
    },
    Case {
        name: "unknown-field",
        sent: "prepare whose workload has a field of a later version",
        due: "bound",
        needs: CaseNeeds::Words,
        run: unknown_field,
    },
    Case {
        name: "late-start",
        sent: "start at an instant that has passed",
        due: "a fatal error",
        needs: CaseNeeds::Words,
        run: late_start,
    },
    Case {
        name: "input-ends-at-once",
        sent: "nothing; its input ends",
        due: "it ends within 2 s",
        needs: CaseNeeds::Words,
        run: |bench| Ok(AgentConversation::start(bench.sending)?.leave("before `hello`")?),
    },
    Case {
        name: "input-ends-after-hello",
        sent: "hello; its input ends",
        due: "it ends within 2 s",
        needs: CaseNeeds::Words,
        run: |bench| Ok(AgentConversation::greeted(bench.sending)?.leave("after `hello`")?),
    },
    Case {
        name: "input-ends-while-ready",
        sent: "prepare; its input ends when it is ready",
        due: "it ends within 2 s",
        needs: CaseNeeds::Words,
        run: |bench| Ok(prepared(bench)?.leave("after `ready`")?),
    },
    Case {
        name: "input-ends-while-sending",
        sent: "start; its input ends in the window",
        due: "it ends within 2 s",
        needs: CaseNeeds::Words,
        run: input_ends_while_sending,
    },
    Case {
        name: "stop-before-start",
        sent: "stop when it is ready; exit",
        due: "result with nothing sent; status 0",
        needs: CaseNeeds::Words,
        run: stop_before_start,
    },
];

fn hello(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = AgentConversation::start(bench.sending)?;
    let hello = talk.hello(ANSWER)?;
    due(hello.protocol == VERSION, || {
        format!("it speaks version {}: this pubmark speaks version {VERSION}: {UPDATE_AGENT}", hello.protocol)
    })?;
    due(!hello.name.trim().is_empty() && !hello.version.trim().is_empty(), || "its name or version is empty".into())?;
    due(!hello.drivers.is_empty(), || "it names no driver".into())?;
    let apart = hello.clock_ns.abs_diff(clock::now());
    due(apart < SECOND, || format!("`clock_ns` is {} ms from CLOCK_MONOTONIC", apart / MILLISECOND))?;
    due(std::path::Path::new(&format!("/proc/{}", hello.pid)).exists(), || {
        format!("there is no process {}, which it names as its own", hello.pid)
    })
}

fn other_version(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = AgentConversation::start(bench.sending)?;
    match talk.greet(99, ANSWER) {
        Ok(hello) => due(hello.protocol != 99, || "it says that it speaks version 99".into()),
        Err(TalkError::Refused { fatal, .. }) => gave_up(fatal, "version 99"),
        Err(other) => Err(other.into()),
    }
}

/// Checks that an error is fatal.
fn gave_up(fatal: bool, what: &str) -> Result<(), CaseFailure> {
    due(fatal, || format!("it refused {what}, and called its error not fatal: a run would go on without it"))
}

fn unknown_command(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = AgentConversation::greeted(bench.sending)?;
    talk.tell_json(&json!({"type": "rewind"}));
    talk.refused("the command `rewind`")?;
    Ok(())
}

/// Returns the order for a publisher of fan-out, on the first transport.
fn order(bench: &Bench<'_>, talk: &AgentConversation) -> Result<Prepare, CaseFailure> {
    let workload = workload(bench, &[("pattern", "fan-out")])?;
    let server = bench.relay()?;
    let bind = match server {
        None => places(bench, &talk.scratch, 1),
        Some(_) => Vec::new(),
    };
    let clients = clients(&workload, Role::Publisher, &bind, &[]);
    Ok(Prepare { server, ..prepare(bench, &workload, clients, &talk.scratch) })
}

fn prepared(bench: &Bench<'_>) -> Result<AgentConversation, CaseFailure> {
    let mut talk = AgentConversation::greeted(bench.sending)?;
    let order = order(bench, &talk)?;
    talk.prepare(order)?;
    talk.ready()?;
    Ok(talk)
}

/// Sends the order in JSON after a change.
fn changed(bench: &Bench<'_>, change: impl Fn(&mut Value)) -> Result<AgentConversation, CaseFailure> {
    let mut talk = AgentConversation::greeted(bench.sending)?;
    let order = Command::Prepare(Box::new(talk.fitted(order(bench, &talk)?)));
    let order = order.to_json().and_then(|order| serde_json::from_slice(&order));
    let mut order = order.map_err(|error| CaseFailure::NotTried(error.to_string()))?;
    change(&mut order);
    talk.tell_json(&order);
    Ok(talk)
}

fn unknown_driver(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = changed(bench, |order| order["driver"] = "no-such-driver".into())?;
    gave_up(talk.refused("the driver `no-such-driver`")?, "a driver that it has not")
}

fn unknown_option(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = changed(bench, |order| order["options"]["no_such_option"] = json!(1))?;
    if !talk.hello.tells_options(bench.driver) {
        return Err(CaseFailure::NotTried(format!(
            "its `hello` does not say which options of `{}` it knows",
            bench.driver
        )));
    }
    talk.refused("the option `no_such_option`")?;
    Ok(())
}

fn unknown_field(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = changed(bench, |order| order["flows"][0]["workload"]["of_a_later_version"] = json!({"a": [1]}))?;
    talk.bound()?;
    Ok(())
}

fn late_start(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = prepared(bench)?;
    talk.begin(clock::now().saturating_sub(SECOND));
    gave_up(talk.refused("a start that has passed")?, "a start that has passed")
}

fn input_ends_while_sending(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = prepared(bench)?;
    let at = clock::now() + 100 * MILLISECOND;
    talk.begin(at);
    talk.silent(until(at + 200 * MILLISECOND))?;
    Ok(talk.leave("in the window")?)
}

fn stop_before_start(bench: &Bench<'_>) -> Result<(), CaseFailure> {
    let mut talk = prepared(bench)?;
    let result = talk.stop()?;
    let sent: u64 = result.publishers().map(|total| total.sent).sum();
    due(sent == 0, || format!("it says that it sent {sent} messages before the start"))?;
    Ok(talk.exit()?)
}
