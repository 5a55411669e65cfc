//! Resolves a study to cells, and cells to the order of runs.

mod carry;
mod cluster;
mod group;
mod last_will;
mod late;
mod mock;
mod power;
mod silence;

use crate::cell::{Cell, Limits};
use crate::cluster::members_of;
use crate::diagnostic::{Diagnostic, suggestion};
use crate::fault::{Fault, Script, Target};
use crate::flow::{FLOW, StudyFlow, key_of_flow, plays, whole};
use crate::host::Placement;
use crate::hosts::Ends;
use crate::link::Link;
use crate::options::{OptionValues, Options};
use crate::power::Power;
use crate::protocol::Flow;
use crate::setting::{FreshServer, Settings, Time, WindowLength, as_typed, key};
use crate::study::{Axis, Study, StudyPart};
use crate::system::System;
use crate::tuning::Use;
use crate::units::format_time;
use crate::watch::Watch;
use crate::windows::MessagesAsked;
use crate::wire_protocol::{Protocol, Scheme};
use crate::workload::{Transport, Workload};
use carry::{can_carry, has_expiries_and_aliases};
use group::{can_coordinate, can_kill};
use last_will::can_leave_wills;
use late::can_start_late;
use pubmark_stats::Random;
use serde_json::{Map, Value};
use silence::can_give_up;
use std::collections::HashMap;

/// The most cells that a study may have.
pub const MAX_CELLS: usize = 100_000;

/// Combines the axes. Reports all errors of all cells at once.
pub fn cells(study: &Study) -> Result<Vec<Cell>, Vec<Diagnostic>> {
    let whole = [None];
    let parts: Vec<Option<&StudyPart>> =
        if study.parts.is_empty() { whole.to_vec() } else { study.parts.iter().map(Some).collect() };
    let axes_of = |part: Option<&StudyPart>| -> Vec<Axis> {
        let Some(part) = part else { return study.axes.clone() };
        let mine = study.axes.iter().map(|axis| match axis.name.as_str() {
            "part" => Axis { name: "part".into(), values: vec![part.name.as_str().into()] },
            _ => axis.clone(),
        });
        mine.chain(part.axes.iter().cloned()).collect()
    };
    let mut points: Vec<Map<String, Value>> = Vec::new();
    for part in parts {
        let axes = axes_of(part);
        let size = axes.iter().try_fold(1usize, |size, axis| size.checked_mul(axis.values.len()));
        if size.and_then(|size| size.checked_add(points.len())).is_none_or(|size| size > MAX_CELLS) {
            return Err(vec![Diagnostic::whole(format!(
                "the axes cross to more than {MAX_CELLS} cells: use fewer values"
            ))]);
        }
        points.extend(cross(&axes).into_iter().filter(is_played));
    }
    let mut cells = Vec::with_capacity(points.len());
    let mut errors: Vec<Diagnostic> = Vec::new();
    for axes in points {
        match cell(study, axes) {
            Ok(cell) => cells.push(cell),
            Err(error) if errors.contains(&error) => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() && cells.iter().all(|cell| cell.skipped.is_some()) {
        errors.push(Diagnostic::whole("every cell is skipped: nothing would be measured"));
    }
    if errors.is_empty() { Ok(cells) } else { Err(errors) }
}

/// Returns every combination of the axes' values, the last axis fastest.
fn cross(axes: &[Axis]) -> Vec<Map<String, Value>> {
    let mut points: Vec<Map<String, Value>> = vec![Map::new()];
    for axis in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                axis.values.iter().map(move |value| {
                    let mut point = point.clone();
                    point.insert(axis.name.clone(), value.clone());
                    point
                })
            })
            .collect();
    }
    points
}

/// True unless these values on axes name a flow that the run does not play.
fn is_played(axes: &Map<String, Value>) -> bool {
    axes.get(FLOW).and_then(Value::as_str).is_none_or(|flow| plays(axes, flow))
}

fn cell(study: &Study, axes: Map<String, Value>) -> Result<Cell, Diagnostic> {
    let name = axes.get("system").and_then(Value::as_str).unwrap_or_default().to_owned();
    let owned = study
        .system(&name)
        .ok_or_else(|| Diagnostic::whole(format!("unknown system `{name}`")).help("`pubmark systems` lists them"))?;
    let system: &System = owned;
    let skip = study.skips.iter().find(|skip| skip.holds(&axes));
    let mut settings = study.settings.clone();
    // A part may count messages even if the study sets a time, and vice versa.
    settings.duration.take_if(|_| axes.contains_key("count"));
    settings.count.take_if(|_| axes.contains_key("duration"));
    for (name, value) in &axes {
        if let Some(key) = key(name) {
            let text = as_typed(value);
            let set = match study.recorded {
                true => key.set_recorded(&mut settings, &text),
                false => key.set(&mut settings, &text),
            };
            set.map_err(Diagnostic::whole)?;
        }
    }
    // A pilot run that the study requests gives a better value than the file.
    if settings.warmup.is_none() && settings.warmup_max.is_none() {
        settings.warmup = system.warmup_ns.map(Time);
        // Late subscribers make no state steady.
        settings.warmup_max = system.warmup_max_ns.filter(|_| settings.subscribers_start.is_none()).map(Time);
    }
    let (mut workload, flows) = traffic(study, &settings, &axes)?;
    if workload.transport.is_none() && !system.broker() {
        let only = system.transports.first().filter(|_| system.transports.len() == 1);
        workload.transport = study.transports.get(&name).or(only).copied();
    }
    if settings.agents.is_none() && spreads(system, &workload).is_ok() {
        workload.agents = system.agent.processes;
    }
    let faults = settings.fault();
    let link = Link::resolve(&settings, &faults).map_err(Diagnostic::whole)?;
    // A fault at an instant of the window needs the whole window.
    let is_asked = settings.windows == Some(WindowLength::Asked) && !axes.contains_key("duration");
    if is_asked && flows.is_empty() && faults.is_empty() && link.is_none() {
        MessagesAsked::of(study, &axes).iter().for_each(|asked| asked.shorten(&mut workload));
    }
    workload.reconnect = faults.breaks_connections()
        || link.is_some_and(|link| link.mttf_ns.is_some())
        || workload.client_timeout_ns.is_some();
    let asked = settings.r#use.unwrap_or_default();
    let (options, set_options) = match options(study, system, &axes, asked) {
        // A skipped cell need not have the options of the others.
        Err(_) if skip.is_some() || study.recorded => Default::default(),
        options => options?,
    };
    let mut lacks_hosts = None;
    let members = if system.broker() { members_of(&options) } else { 0 };
    let placement = study.hosts.place(members, &workload, settings.placement);
    let placement = match placement {
        Err(_) if skip.is_some() => Placement::default(),
        // A study may have a part for users with a second machine.
        Err(error) if settings.placement == Some(Ends::ServerApart) => {
            lacks_hosts = Some(error.message);
            Placement::default()
        }
        Err(_) if study.recorded => Placement::default(),
        placement => placement?,
    };
    let watch = settings.watch.clone();
    let placement = match watch.as_ref().and_then(|watch| watch.host.as_ref()) {
        Some(host) if skip.is_none() && !study.recorded => placement.with_server(study.hosts.named(host)?),
        _ => placement,
    };
    // Leaders move with the faults of members, and clients follow.
    workload.reconnect |= members_of(&options) > 1 && faults.on(Target::Server).next().is_some();
    if skip.is_none() && !study.recorded {
        let with_transport = |flow: &Flow| Workload { transport: workload.transport, ..flow.workload.clone() };
        let is_played = |flow: &Workload| {
            fits(system, flow)?;
            can_carry(system, flow, &options)?;
            can_start_late(system, flow, &options)?;
            can_give_up(system, flow)?;
            can_leave_wills(system, flow, &faults, link.as_ref())?;
            can_kill(&faults, flow, &options)?;
            can_coordinate(system, flow, &options)
        };
        match flows.is_empty() {
            true => is_played(&workload)?,
            false => flows.iter().try_for_each(|flow| is_played(&with_transport(flow)))?,
        }
        has_expiries_and_aliases(system, &workload, &options)?;
        can_spread(&settings, system, &workload)?;
        can_happen(&faults, system, &workload, &options)?;
        power::can_cut_power((&faults, settings.power), system, &placement, &options)?;
        cluster::can_cluster(system, &options, &faults, link.as_ref())?;
        cluster::can_part(&faults, system, (&options, workload.tls), &placement)?;
        cluster::can_scatter(&placement, system, workload.tls)?;
        for fault in faults.on(Target::Host) {
            let (name, for_ns) = (fault.host.as_deref().unwrap_or_default(), fault.for_ns.unwrap_or(0));
            study.hosts.can_cut(name, for_ns, &placement)?;
        }
        can_replay(&workload, &flows, &placement)?;
        can_encrypt(&workload, system, &options)?;
        can_queue(&workload, system, &options)?;
        can_watch(watch.as_ref(), system, &options)?;
        can_bind(&workload, system, &options)?;
        can_stay(study.fresh(), system, &placement, &options)?;
        if let Some(link) = &link {
            can_link(link, system, &workload)?;
        }
    }
    Ok(Cell {
        faults,
        power: settings.power.unwrap_or(Power::Disk),
        link,
        placement,
        watch,
        settings: asked,
        options,
        set_options,
        limits: Limits {
            cpus: settings.cpus.map(|cpus| cpus.thousandths as f64 / 1e3),
            memory_bytes: settings.memory.map(|memory| memory.0),
        },
        system: owned.clone(),
        workload,
        flows,
        skipped: skip.map(|skip| skip.why.clone()).or(lacks_hosts),
        axes,
    })
}

/// Returns the workload of a cell, and its flows if it has several; of a cell that is one flow of a report, that one's.
fn traffic(study: &Study, settings: &Settings, axes: &Map<String, Value>) -> Result<(Workload, Vec<Flow>), Diagnostic> {
    if study.flows.is_empty() {
        return Ok((Workload::resolve_with(settings, study.files()).map_err(Diagnostic::whole)?, Vec::new()));
    }
    if settings.count.is_some() {
        return Err(Diagnostic::whole("the flows of a run have one window: write `duration` in place of `count`"));
    }
    let named = |flow: &StudyFlow| {
        let wrong = |errors: String| Diagnostic::whole(format!("[flows.{}]: {errors}", flow.name));
        let mut flow = flow.clone();
        for (axis, value) in axes {
            if let Some((_, key)) = key_of_flow(axis).filter(|(name, _)| *name == flow.name) {
                flow.set(key.name, &as_typed(value)).map_err(|error| wrong(error.to_string()))?;
            }
        }
        flow.resolve(settings, study.files()).map_err(|errors| wrong(errors.to_string()))
    };
    let played = study.flows.iter().filter(|flow| plays(axes, &flow.name));
    let mut flows = played.map(named).collect::<Result<Vec<Flow>, Diagnostic>>()?;
    let own = axes.get(FLOW).and_then(|name| flows.iter().position(|flow| *name == flow.name.as_str()));
    match (own, whole(&flows)) {
        (Some(own), _) => Ok((flows.swap_remove(own).workload, Vec::new())),
        (None, Some(whole)) => Ok((whole, flows)),
        (None, None) => Err(Diagnostic::whole("the study has no flow of the name that `playing` gives")),
    }
}

fn fits(system: &System, workload: &Workload) -> Result<(), Diagnostic> {
    let name = &system.name;
    let leave_out = "leave it out with a [[skip]] entry, or choose another";
    if !system.patterns.contains(&workload.pattern) {
        let known: Vec<&str> = system.patterns.iter().map(|pattern| pattern.word()).collect();
        return Err(Diagnostic::whole(format!(
            "{name} does not play the pattern `{}`; it plays: {}",
            workload.pattern,
            known.join(", ")
        ))
        .help(leave_out));
    }
    let known: Vec<&str> = system.transports.iter().map(|transport| transport.word()).collect();
    match workload.transport {
        Some(transport) if system.broker() => {
            return Err(Diagnostic::whole(format!(
                "{name} is a broker: it is reached over its protocol, not over the transport `{transport}`"
            ))
            .help("leave `transport` out, or leave the cell out with a [[skip]] entry"));
        }
        None if system.transports.is_empty() => {}
        None => {
            return Err(Diagnostic::whole(format!("{name} needs a transport: {}", known.join(", ")))
                .help("set `transport` in [workload], its own in [transports], or --transport"));
        }
        Some(transport) if !system.transports.contains(&transport) => {
            return Err(Diagnostic::whole(format!(
                "{name} has no transport `{transport}`; it has: {}",
                known.join(", ")
            ))
            .help(leave_out));
        }
        // A library fragments messages.
        Some(Transport::Udp) if workload.payload_bytes > 65_507 && system.agent.built_in() => {
            let longest = workload.payload_bodies.as_ref().and_then(|bodies| bodies.longest_line());
            let line = longest.map(|line| format!("{line}: ")).unwrap_or_default();
            return Err(Diagnostic::whole(format!("{line}a UDP datagram carries at most 65,507 bytes"))
                .help("use a smaller payload, or a [[skip]] entry"));
        }
        Some(_) => {}
    }
    if !system.qos.contains(&workload.qos) {
        let levels: Vec<String> = system.qos.iter().map(u8::to_string).collect();
        let levels = levels.join(", ");
        return Err(Diagnostic::whole(format!("{name} has no quality of service {}; it has: {levels}", workload.qos))
            .help(leave_out));
    }
    let plays = |protocol: Protocol| protocol.plays(workload.pattern, workload.qos);
    if system.agent.built_in() && !system.protocol().is_none_or(plays) {
        let what = format!("{name} does not play the pattern `{}` with qos = {}", workload.pattern, workload.qos);
        return Err(Diagnostic::whole(what).help(leave_out));
    }
    if workload.asks_ahead() {
        let one = match system.protocol() {
            None => Some("a socket of its clients has one request at a time"),
            Some(Protocol::Redis) => Some("a connection of Redis that waits for a list does nothing else"),
            Some(_) => None,
        };
        if let Some(why) = one {
            return Err(Diagnostic::whole(format!("{name} cannot have `outstanding` requests: {why}"))
                .help("leave `outstanding` out, or leave the cell out with a [[skip]] entry"));
        }
    }
    if !workload.churn.is_none() && !system.broker() {
        let why = if system.driver == "mock" { "it runs in virtual time" } else { "it is a library and has no server" };
        return Err(Diagnostic::whole(format!("{name} cannot have clients that come and go (`churn`): {why}"))
            .help("leave `churn` out, or leave the cell out with a [[skip]] entry"));
    }
    if workload.durable && !system.durable {
        return Err(Diagnostic::whole(format!("{name} has no subscriptions that outlive its server"))
            .help("set durable = false, or leave it out with a [[skip]] entry"));
    }
    Ok(())
}

/// Checks that the clients of a trace are on this machine, which has its file.
fn can_replay(workload: &Workload, flows: &[Flow], placement: &Placement) -> Result<(), Diagnostic> {
    let workloads = || flows.iter().map(|flow| &flow.workload).chain([workload]);
    let Some(trace) = workloads().find_map(|workload| workload.rate.trace()) else { return Ok(()) };
    let Some(host) = placement.publishers.iter().chain(&placement.subscribers).find(|host| !host.reach.is_empty())
    else {
        return Ok(());
    };
    let message = format!("`{trace}` cannot be replayed on the host {}: its file is on this machine", host.name);
    Err(Diagnostic::whole(message).help("let clients run on this machine, or set a `rate`"))
}

/// Checks that a side can have several agents. The error is the reason and advice.
fn spreads(system: &System, workload: &Workload) -> Result<(), [&'static str; 2]> {
    let within = workload.transport.is_none_or(|transport| transport == Transport::Inproc);
    if system.driver == "mock" {
        return Err(["it runs in virtual time, in one process", "leave it out with a [[skip]] entry"]);
    }
    match within && !system.broker() {
        true => Err([
            "over `inproc` one process plays all clients",
            "leave it out with a [[skip]] entry, or choose another `transport`",
        ]),
        false => Ok(()),
    }
}

/// Checks that a side can have as many agents as the study requests.
fn can_spread(settings: &Settings, system: &System, workload: &Workload) -> Result<(), Diagnostic> {
    let Some(agents) = settings.agents.map(|agents| agents.0).filter(|agents| *agents > 1) else { return Ok(()) };
    let name = &system.name;
    let refused =
        |why: &str, help| Diagnostic::whole(format!("{name} cannot have {agents} agents a side: {why}")).help(help);
    spreads(system, workload).map_err(|[why, help]| refused(why, help))?;
    match workload.publishers.max(workload.subscribers) {
        most if agents <= most => Ok(()),
        1 => Err(refused("each side has one client", "set more clients, or leave `agents` at 1")),
        most => Err(refused(&format!("no side has more than {most} clients"), "set fewer `agents`, or more clients")),
    }
}

/// Checks that the faults are possible: each has a process to affect, and ends while the window
/// still measures its effect.
fn can_happen(faults: &Script, system: &System, workload: &Workload, options: &Options) -> Result<(), Diagnostic> {
    let Some(first) = faults.0.first() else { return Ok(()) };
    let refuse = |fault: &Fault, why: &str, help: &str| {
        Err(Diagnostic::whole(format!("`{fault}` cannot be done to {}: {why}", system.name)).help(help))
    };
    let leave_out = "leave it out with a [[skip]] entry, or set `fault` to none";
    let is_mock = system.driver == "mock";
    if is_mock {
        mock::can_stop(faults, options).or_else(|(fault, [why, help])| refuse(fault, why, help))?;
    }
    let Some(window_ns) = workload.window_ns() else {
        return refuse(first, "a count of messages at `max` has no known end", "set `duration` instead of `count`");
    };
    if let Some(fault) = faults.outlasts(window_ns) {
        let (what, at_ns) = match fault.until_ns() {
            Some(until_ns) => ("is over", until_ns),
            None => ("happens", fault.at_ns),
        };
        let ends = format!("it {what} {} into a window of {}", format_time(at_ns), format_time(window_ns));
        let help = "let it end within the window: a longer `duration`, or an earlier fault";
        return refuse(fault, &ends, help);
    }
    if let Some(fault) = faults.on(Target::Server).next() {
        if !system.broker() && !is_mock {
            return refuse(fault, "it is a library and has no server", leave_out);
        }
        if !is_mock && system.server.is_none() || options.contains_key("endpoint") {
            let cut = "use `cut link at … for …` or `cut clients at …`, or set `fault` to none";
            return refuse(fault, "its server was not started by pubmark", cut);
        }
    }
    if let Some(fault) = faults.0.iter().find(|fault| fault.cut_percent().is_some()).filter(|_| !system.broker()) {
        return refuse(fault, "it is a library, and its clients have no connection to a server", leave_out);
    }
    if workload.pattern.requests() && workload.qos > 0 {
        let why = "a replier does not send its answers again after it has lost its connection";
        return refuse(first, why, "set qos = 0, or leave `fault` out");
    }
    let inproc = workload.transport == Some(Transport::Inproc);
    if let Some(fault) =
        faults.0.iter().find(|fault| inproc && matches!(fault.who, Target::Publishers | Target::Subscribers))
    {
        return refuse(fault, "over `inproc` publishers and subscribers are one process", "choose another `transport`");
    }
    Ok(())
}

/// Checks that a type of queue fits the workload. Quorum queues and streams are always stored.
fn can_queue(workload: &Workload, system: &System, options: &Options) -> Result<(), Diagnostic> {
    let is_amqp = system.protocol() == Some(Protocol::Amqp);
    let Some(kind @ ("quorum" | "stream")) = options.text("queue_type").filter(|_| is_amqp) else { return Ok(()) };
    let refused = |why: &str, help: &str| {
        Err(Diagnostic::whole(format!("{} cannot have queue_type = {kind} here: {why}", system.name)).help(help))
    };
    match kind {
        _ if !workload.durable => refused("such queues outlive their connections", "set durable = true"),
        "stream" if workload.qos == 0 => {
            refused("a stream is read with acknowledgements only", "set qos = 1, or leave it out with a [[skip]] entry")
        }
        "stream" if workload.competing() => {
            let why = "each subscriber of a stream is sent all its messages";
            refused(why, "choose another pattern, or leave it out with a [[skip]] entry")
        }
        _ => Ok(()),
    }
}

/// Checks that the server can be started with TLS if the study asks for that.
fn can_encrypt(workload: &Workload, system: &System, options: &Options) -> Result<(), Diagnostic> {
    if !workload.tls {
        return Ok(());
    }
    let name = &system.name;
    let refuse = |why: String, help: &str| Err(Diagnostic::whole(format!("tls: {name} {why}")).help(help));
    let leave_out = "set tls = false, or leave it out with a [[skip]] entry";
    let Some(protocol) = system.protocol() else { return refuse("has no server".into(), leave_out) };
    let Some(server) = system.server.as_ref().filter(|_| !options.contains_key("endpoint")) else {
        let mut schemes = Scheme::all().filter(|(of, scheme)| *of == protocol && scheme.carrier.is_tls());
        let why = "already runs, and `tls` is for servers that pubmark starts".into();
        return match schemes.next() {
            Some((_, scheme)) => refuse(why, &format!("leave `tls` out, and write {}:// in the endpoint", scheme.name)),
            None => refuse(why, "leave `tls` out"),
        };
    };
    let in_container = options.text("deployment").is_some_and(|how| how != "native");
    if !server.takes_tls(in_container) {
        let place = if in_container { " in a container" } else { "" };
        return refuse(format!("cannot be started with TLS{place} yet: its system file has no {{tls_key}}"), leave_out);
    }
    if !system.agent.built_in() {
        return refuse("has an agent of its own, and only pubmark's clients trust its certificates".into(), leave_out);
    }
    match ["tls_ca", "tls_cert", "tls_key"].into_iter().find(|option| options.contains_key(*option)) {
        Some(option) => refuse(
            format!("gets certificates from pubmark, so options.{option} has no meaning"),
            "leave the option out, or name a server that already runs with options.endpoint",
        ),
        None => Ok(()),
    }
}

/// Returns the reason why a system's server cannot be pinned to processors; `None` if it can.
pub fn why_unbound(system: &System, options: &Options) -> Option<&'static str> {
    let in_container = options.text("deployment").is_some_and(|how| how != "native");
    match system.broker() {
        false => Some("it is a library and has no server"),
        true if options.contains_key("endpoint") => Some("its server was not started by pubmark"),
        true if in_container => Some("its server runs in a container"),
        true => None,
    }
}

/// Checks that the server can be pinned to processors if the workload asks for that.
fn can_bind(workload: &Workload, system: &System, options: &Options) -> Result<(), Diagnostic> {
    match why_unbound(system, options) {
        Some(why) if !workload.pin.of_server().is_empty() => {
            Err(Diagnostic::whole(format!("pin: `{}`: {}'s server cannot be bound: {why}", workload.pin, system.name)))
        }
        _ => Ok(()),
    }
}

/// Checks that the server was already running if the study measures it by `watch`.
fn can_watch(watch: Option<&Watch>, system: &System, options: &Options) -> Result<(), Diagnostic> {
    match watch {
        Some(watch) if !options.contains_key("endpoint") => {
            let name = &system.name;
            let what = if system.broker() { "is started for the run, and watched anyway" } else { "has no server" };
            Err(Diagnostic::whole(format!("watch: `{watch}`: {name} {what}"))
                .help("it is for a server that is there: bench its URL, or set options.SYSTEM.endpoint"))
        }
        _ => Ok(()),
    }
}

/// Checks that a server can run for several runs if the study asks for that.
fn can_stay(fresh: FreshServer, system: &System, placement: &Placement, options: &Options) -> Result<(), Diagnostic> {
    let is_afar = !placement.serves_here() && system.broker() && !options.contains_key("endpoint");
    match fresh {
        FreshServer::Cell if is_afar => Err(Diagnostic::whole(format!(
            "fresh = cell: servers on other hosts are started for each run, and {}'s is on {}",
            system.name, placement.server.name
        ))
        .help("leave `fresh` out, or place the server on this machine")),
        FreshServer::Cell | FreshServer::Run => Ok(()),
    }
}

/// Checks that clients can be connected over a link.
fn can_link(link: &Link, system: &System, workload: &Workload) -> Result<(), Diagnostic> {
    let name = &system.name;
    if !system.broker() {
        return Err(Diagnostic::whole(format!("no link can be put before {name}: it is a library and has no server"))
            .help("leave it out with a [[skip]] entry, or leave the keys of the link out"));
    }
    if link.mttf_ns.is_some() {
        let Some(window_ns) = workload.window_ns() else {
            return Err(Diagnostic::whole(
                "a count of messages at `max` has no known end: nothing says when the link fails",
            )
            .help("set `duration` instead of `count`"));
        };
        if let Some(why) = link.fails_too_often(window_ns) {
            return Err(Diagnostic::whole(why).help("a larger `mttf`, or a shorter `duration`"));
        }
    }
    Ok(())
}

/// Returns the options of a cell, and the names of those that the study sets.
fn options(
    study: &Study,
    system: &System,
    axes: &Map<String, Value>,
    asked: Use,
) -> Result<(Options, Vec<String>), Diagnostic> {
    let mut set_options: Vec<String> = Vec::new();
    let mut options: Options =
        system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.value(asked)?))).collect();
    let mut set = |name: &str, text: &str| -> Result<(), Diagnostic> {
        let spec = system.option(name).ok_or_else(|| {
            let names: Vec<&str> = system.options.iter().map(|spec| spec.name.as_str()).collect();
            Diagnostic::whole(format!("{} has no option `{name}`", system.name)).help(suggestion(name, names))
        })?;
        let value = spec.kind.read(text).map_err(|error| Diagnostic::whole(format!("options.{name}: {error}")))?;
        options.insert(name.to_owned(), value);
        set_options.push(name.to_owned());
        Ok(())
    };
    let mut settings: Vec<_> =
        study.options.iter().filter(|option| option.system.as_ref().is_none_or(|name| *name == system.name)).collect();
    settings.sort_by_key(|option| option.system.is_some());
    for option in settings {
        set(&option.name, &option.text)?;
    }
    for (axis, value) in axes {
        if let Some(name) = axis.strip_prefix("options.") {
            set(name, &as_typed(value))?;
        }
    }
    Ok((options, set_options))
}

/// A planned run: a cell and its repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Planned {
    /// Index of the cell.
    pub cell: usize,
    /// Repeat, from 1.
    pub repeat: u32,
}

/// The position of a run in the study.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Repeat, from 1.
    pub repeat: u32,
    /// Position in the order of runs, from 0.
    pub position: u64,
}

/// Returns the order of runs. It is interleaved: in each repeat the points of the workload come in
/// a seeded random order, and at each point the systems follow one another, also in random order,
/// so that drift affects all of them alike.
pub fn order(study: &Study, cells: &[Cell]) -> Vec<Planned> {
    let mut random = Random(study.seed());
    // Cells that differ only in the system, by their place on the other axes.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.skipped.is_none()) {
        let point = cell.axes.iter().filter(|(name, _)| *name != "system");
        let point = point.map(|(name, value)| format!("{name}={value}\n")).collect();
        let place = *places.entry(point).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(index);
    }
    let mut runs = Vec::new();
    if !study.interleaved() {
        for index in (0..cells.len()).filter(|index| cells[*index].skipped.is_none()) {
            runs.extend((1..=study.repeats()).map(|repeat| Planned { cell: index, repeat }));
        }
        return runs;
    }
    for repeat in 1..=study.repeats() {
        random.shuffle(&mut groups);
        for members in &mut groups {
            random.shuffle(members);
            runs.extend(members.iter().map(|cell| Planned { cell: *cell, repeat }));
        }
    }
    runs
}
