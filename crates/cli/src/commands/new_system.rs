//! `pubmark systems NAME --new`: writes a system file to be filled in.

use super::shared::SYSTEMS;
use crate::args::protocols;
use crate::failure::{Code, Failure};
use crate::output::print;
use pubmark_model::system::{System, is_system_name};
use pubmark_model::wire_protocol::Protocol;
use pubmark_study::registry;
use std::io::Write;
use std::path::Path;

/// Writes `systems/NAME.toml`, unless the file exists.
pub fn write(name: &str, protocol: Option<Protocol>, agent: bool) -> Result<Code, Failure> {
    if !is_system_name(name) {
        return Err(Failure::usage(format!(
            "`{name}` is not a name for a system: up to 64 letters, digits, `-`, `_` and `.`"
        )));
    }
    let text = match (protocol, agent) {
        (Some(protocol), _) => broker(name, protocol),
        (None, true) => library(name),
        (None, false) => {
            let spoken: Vec<&str> = protocols::spoken().map(Protocol::word).collect();
            return Err(Failure::usage(format!(
                "--new: say what it is: --protocol {} for a broker, or --agent for a program of your own that plays \
                 clients",
                spoken.join("|")
            )));
        }
    };
    let path = Path::new(SYSTEMS).join(format!("{name}.toml"));
    // The written file is valid: only the commands must still be filled in.
    System::parse(name, &path.display().to_string(), &text).map_err(Failure::run)?;
    let cannot = |error: std::io::Error| Failure::usage(format!("{}: {error}", path.display()));
    std::fs::create_dir_all(SYSTEMS).map_err(cannot)?;
    let made = std::fs::File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    made.map_err(cannot)?;
    print(&format!(
        "{}: fill in the command, then\n  pubmark systems {name}\n  pubmark bench {name} --rate 100",
        path.display()
    ));
    Ok(Code::Done)
}

fn broker(name: &str, protocol: Protocol) -> String {
    let (word, title) = (protocol.word(), protocol.title());
    // The system file of this protocol's broker lists what such brokers support.
    let usual = registry::built_in(word);
    let patterns: Vec<&str> = usual.iter().flat_map(|system| &system.patterns).map(|pattern| pattern.word()).collect();
    let guarantees = match usual.is_some_and(|system| system.qos.len() > 1) {
        true => {
            "# What it promises: the levels of quality of service that it has, the patterns in\n\
             # which it loses nothing from QoS 1 up, and whether sessions outlive a restart.\n\
             qos = [0, 1]\nlossless = [\"pairs\", \"fan-out\", \"fan-in\"]\ndurable = false\n"
        }
        false => "",
    };
    format!(
        r#"# A broker that speaks {title}.
title = "{name}"
about = "a broker, in a sentence"
licence = "UNKNOWN"
driver = "{word}"
patterns = {patterns:?}
{guarantees}
# How it is started: in the foreground, logging to standard output, writing nothing
# outside {{dir}}. Places that are filled in for each run:
#   {{address}}, {{port}}   where it has to listen; {{port.admin}} for a second port
#   {{dir}}               an empty folder of this run; [server.files] are written into it
#   {{here}}              the folder of this file
#   {{cache}}             where [install] puts what it brings
#   {{cpus}}, {{memory_mb}} what it may use
[server]
endpoint = "{word}://{{address}}:{{port}}"
command = ["{name}", "-c", "{{dir}}/broker.conf"]
# version = ["{name}", "--version"]
# version_after = "version "
# ready_log = "is running"
# start_timeout = "60s"

# [server.environment]
# GOMAXPROCS = "{{cpus}}"

[server.files."broker.conf"]
text = """
listen {{address}}:{{port}}
"""

# What brings it here: `pubmark systems {name} --install`.
[install]
# apt = ["{name}"]
# pip = ["{name}==1.0.0"]
# npm = ["{name}@1.0.0"]
# go = ["example.org/{name}@v1.0.0"]
# cargo = ["{name}@1.0.0"]
# maven = ["group:artifact:1.0.0"]
# build = ["make", "PREFIX={{cache}}"]
manual = "say here where it is to be had"
"#
    )
}

fn library(name: &str) -> String {
    format!(
        r#"# A program that plays clients by the agent protocol: `pubmark agent-check` tries it.
title = "{name}"
about = "a library, in a sentence"
licence = "UNKNOWN"
# The driver that the program is asked for. Where it speaks to the same sockets as one of
# pubmark's (zeromq, nanomsg, nng, kernel), that name: `pubmark agent-check` can then be
# the other side, and sees its messages.
driver = "{name}"
transports = ["tcp"]
patterns = ["pairs", "fan-out"]
# The patterns in which it promises to lose, duplicate and reorder nothing.
lossless = []

# The program, started in the folder of this file. {{here}} is that folder, {{cache}}
# where [install] puts what it brings. A program for each side:
#   agent = {{ publisher = ["…"], subscriber = ["…"] }}
agent = ["./agent"]
# Processes a side, for a runtime that has one thread.
agents = 1
# How long it may take to say hello.
start_timeout = "10s"
# From the start to the measured window where a study does not say: until it is warm.
# warmup = "5s"
# Or found by a pilot run, so long at most:
# warmup_max = "5s"

[env]
# NODE_PATH = "{{cache}}/node_modules"

# A setting of the program, which a study may change; it is in `options` of `prepare`.
# [options.window]
# kind = "count"
# default = 100
# doc = "messages that may be on their way"

# What brings it here: `pubmark systems {name} --install`.
[install]
# apt = ["lib{name}1"]
# pip = ["{name}==1.0.0"]
# npm = ["{name}@1.0.0"]
# build = ["make"]
manual = "say here what it needs"
"#
    )
}
