//! Checks that a server can have the members that a cell asks for, and that faults of members are possible.

use crate::cluster::{MEMBERS, MEMBERS_MAX, members_of};
use crate::diagnostic::Diagnostic;
use crate::fault::{Act, Members, Script, Target};
use crate::link::Link;
use crate::options::{OptionValues, Options};
use crate::system::System;

/// Option of Kafka with the number of partitions of a topic.
const PARTITIONS: &str = "partitions";

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
        if options.number(PARTITIONS) > 1 {
            let why = "spreads the leaders of partitions over its members, and a client of pubmark connects to one";
            return refuse(why.into(), "set partitions = 1, or members = 1");
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
    faults.on(Target::Server).try_for_each(|fault| {
        let refuse = |why: &str, help: &str| {
            Err(Diagnostic::whole(format!("`{fault}` cannot be done to {name}: {why}")).help(help.to_owned()))
        };
        if fault.what == Act::Restart && in_container {
            return refuse("pubmark restarts servers only as processes", "set deployment = native, or use `kill`");
        }
        match fault.member {
            Some(_) if members == 1 => refuse("its server has one member", &format!("set options.{MEMBERS} = 3")),
            Some(Members::Number(number)) if number > members => {
                refuse(&format!("it has {members} members"), "name one of them, or write `leader`")
            }
            Some(Members::Leader) if system.server.iter().all(|server| !server.tells_leader()) => {
                refuse("its file has no [cluster.leader], so nothing says who leads", "name a member by its number")
            }
            _ => Ok(()),
        }
    })
}
