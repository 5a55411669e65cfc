//! Checks that a server can have the members that a cell asks for, and that faults of members are possible.

use crate::cluster::{MEMBERS, MEMBERS_MAX, members_of};
use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Fault, Members, Script, Target};
use crate::host::Placement;
use crate::link::Link;
use crate::options::{OptionValues, Options};
use crate::system::System;

/// Option of Redis with the number of replicas that must have a message before it is acknowledged.
const WAIT_REPLICAS: &str = "wait_replicas";
/// Option of Redis with the number of Sentinels that agree on a fail-over.
const QUORUM: &str = "quorum";
/// Option of Redis with the version of its protocol.
const RESP: &str = "resp";

/// Checks the number of members, and what else they make impossible.
pub fn can_cluster(system: &System, options: &Options, faults: &Script, link: Option<&Link>) -> Result<(), Diagnostic> {
    let (name, members) = (&system.name, members_of(options));
    let refuse =
        |why: String, help: &str| Err(Diagnostic::whole(format!("members: {name} {why}")).help(help.to_owned()));
    if !(1..=MEMBERS_MAX).contains(&members) {
        return refuse(format!("cannot have {members} members"), "write a number from 1 to 9");
    }
    let is_attached = options.contains_key("endpoint");
    let in_container = options.text("deployment").is_some_and(|how| how != "native");
    if members > 1 {
        if is_attached {
            return refuse("already runs, and pubmark does not start members for it".into(), "leave `members` out");
        }
        if in_container {
            return refuse("has several members only as processes".into(), "set deployment = native, or members = 1");
        }
        if link.is_some() {
            return refuse("has no single address before which a link could be".into(), "leave the link's keys out");
        }
    }
    if let Some(cluster) = system.server.as_ref().filter(|_| !is_attached).and_then(|server| server.cluster.as_ref()) {
        let (replicas, option) = (options.number(&cluster.replicas), &cluster.replicas);
        if replicas > u64::from(members) {
            return refuse(
                format!("has {members} of them, too few for {option} = {replicas}"),
                &format!("set {MEMBERS} = {replicas}, or a smaller {option}"),
            );
        }
    }
    can_follow(system, options, members)?;
    faults.on(Target::Server).try_for_each(|fault| match fault.what {
        Act::Restart if in_container => {
            let help = "set deployment = native, or use `kill`";
            Err(cannot(fault, system, "pubmark restarts servers only as processes", help))
        }
        _ => has_member(fault, system, members),
    })
}

/// Checks the options of Redis about its replicas and Sentinels.
fn can_follow(system: &System, options: &Options, members: u32) -> Result<(), Diagnostic> {
    let refuse = |why: String, help: &str| {
        Err(Diagnostic::whole(format!("members: {} {why}", system.name)).help(help.to_owned()))
    };
    let (waited, quorum) = (options.number(WAIT_REPLICAS), options.number(QUORUM));
    let cluster = system.server.as_ref().and_then(|server| server.cluster.as_ref());
    if !options.contains_key("endpoint") && waited >= u64::from(members) && waited > 0 {
        let help = match cluster {
            Some(_) => format!("set {MEMBERS} = {}, or a smaller {WAIT_REPLICAS}", waited + 1),
            None => format!("leave {WAIT_REPLICAS} out"),
        };
        return refuse(format!("has {} replicas, too few for {WAIT_REPLICAS} = {waited}", members - 1), &help);
    }
    let asks_sentinels = members > 1 && cluster.is_some_and(|cluster| !cluster.discovery.is_empty());
    if asks_sentinels && quorum > u64::from(members) {
        return refuse(format!("has {members} of them, and {QUORUM} = {quorum} never agree"), "set a smaller quorum");
    }
    if members > 1 && options.number(RESP) == 2 {
        return refuse("finds the primary with RESP 3 only".into(), "set resp = 3");
    }
    Ok(())
}

/// Makes the error for a fault that cannot be done to a system.
fn cannot(fault: &Fault, system: &System, why: &str, help: &str) -> Diagnostic {
    Diagnostic::whole(format!("`{fault}` cannot be done to {}: {why}", system.name)).help(help.to_owned())
}

/// Checks that a server of so many members has those that a fault names.
fn has_member(fault: &Fault, system: &System, members: u32) -> Result<(), Diagnostic> {
    let refuse = |why: &str, help: &str| Err(cannot(fault, system, why, help));
    match fault.member {
        Some(_) if members == 1 => refuse("its server has one member", &format!("set options.{MEMBERS} = 3")),
        Some(Members::Number(number) | Members::Pair(_, number)) if number > members => {
            refuse(&format!("it has {members} members"), "name one of them, or write `leader`")
        }
        Some(Members::Leader) if system.server.iter().all(|server| !server.tells_leader()) => {
            refuse("its file has no [cluster.leader], so nothing says who leads", "name a member by its number")
        }
        _ => Ok(()),
    }
}

/// Checks that links between members can be cut: the members can have networks of their own, which clients reach.
pub fn can_part(
    faults: &Script,
    system: &System,
    (options, encrypted): (&Options, bool),
    placement: &Placement,
) -> Result<(), Diagnostic> {
    let members = members_of(options);
    faults.on(Target::Members).try_for_each(|fault| {
        let refuse = |why: &str, help: &str| Err(cannot(fault, system, why, help));
        let of_cluster = system.server.as_ref().and_then(|server| server.cluster.as_ref());
        if of_cluster.is_none() || options.contains_key("endpoint") {
            return refuse(
                "pubmark starts no members of it",
                "name a host, or cut the link of clients: `cut link at …`",
            );
        }
        has_member(fault, system, members)?;
        if !of_cluster.is_some_and(|cluster| cluster.cut_links) {
            let why = "its members reach each other over the loopback interface only ([cluster] has no `cut_links`)";
            return refuse(why, "use `stop server leader at … for …`");
        }
        if encrypted {
            return refuse("members with networks of their own have no certificates", "leave `tls` out");
        }
        if !placement.local() || !placement.other_members.is_empty() {
            let why = "members with networks of their own are reached from this machine only";
            return refuse(why, "let server and clients run on this machine");
        }
        Ok(())
    })
}

/// Checks that members can be on several hosts, and reached there in the way that the run asks for.
pub fn can_scatter(placement: &Placement, system: &System, encrypted: bool) -> Result<(), Diagnostic> {
    if placement.other_members.is_empty() {
        return Ok(());
    }
    let cluster = system.server.as_ref().and_then(|server| server.cluster.as_ref());
    if !cluster.is_some_and(|cluster| cluster.cut_links) {
        let why = "reach each other over the loopback interface only ([cluster] has no `cut_links`)";
        return Err(Diagnostic::whole(format!("members: those of {} {why}", system.name))
            .help("give one host the role `server`"));
    }
    if encrypted {
        return Err(Diagnostic::whole("tls: members on several hosts have no certificates of one authority")
            .help("leave `tls` out, or give one host the role `server`"));
    }
    Ok(())
}
