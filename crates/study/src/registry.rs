//! The systems and studies that come with pubmark: one file and one line each.

use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::system::System;
use std::sync::OnceLock;

const SYSTEMS: &[(&str, &str)] = &[
    ("activemq", include_str!("../../../systems/activemq.toml")),
    ("amqp", include_str!("../../../systems/amqp.toml")),
    ("apollo", include_str!("../../../systems/apollo.toml")),
    ("artemis", include_str!("../../../systems/artemis.toml")),
    ("emqx", include_str!("../../../systems/emqx.toml")),
    ("hivemq", include_str!("../../../systems/hivemq.toml")),
    ("jorammq", include_str!("../../../systems/jorammq.toml")),
    ("kernel", include_str!("../../../systems/kernel.toml")),
    ("mock", include_str!("../../../systems/mock.toml")),
    ("moquette", include_str!("../../../systems/moquette.toml")),
    ("mosquitto", include_str!("../../../systems/mosquitto.toml")),
    ("mqtt", include_str!("../../../systems/mqtt.toml")),
    ("nanomsg", include_str!("../../../systems/nanomsg.toml")),
    ("nats", include_str!("../../../systems/nats.toml")),
    ("nng", include_str!("../../../systems/nng.toml")),
    ("rabbitmq-amqp", include_str!("../../../systems/rabbitmq-amqp.toml")),
    ("rabbitmq-mqtt", include_str!("../../../systems/rabbitmq-mqtt.toml")),
    ("redis", include_str!("../../../systems/redis.toml")),
    ("rumqttd", include_str!("../../../systems/rumqttd.toml")),
    ("valkey", include_str!("../../../systems/valkey.toml")),
    ("zenoh", include_str!("../../../systems/zenoh.toml")),
    ("zeromq", include_str!("../../../systems/zeromq.toml")),
];

/// A study that comes with pubmark.
pub struct Included {
    /// Its name: what `pubmark run` takes.
    pub name: &'static str,
    /// Its `study.toml`.
    pub text: &'static str,
    /// Its `reference.csv`, if it names published figures.
    pub reference: Option<&'static str>,
}

/// The studies, by name.
pub const STUDIES: &[Included] = &[
    Included {
        name: "brokerless",
        text: include_str!("../../../studies/brokerless/study.toml"),
        reference: Some(include_str!("../../../studies/brokerless/reference.csv")),
    },
    Included { name: "durability", text: include_str!("../../../studies/durability/study.toml"), reference: None },
    Included {
        name: "faults",
        text: include_str!("../../../studies/faults/study.toml"),
        reference: Some(include_str!("../../../studies/faults/reference.csv")),
    },
    Included {
        name: "iot-edge",
        text: include_str!("../../../studies/iot-edge/study.toml"),
        reference: Some(include_str!("../../../studies/iot-edge/reference.csv")),
    },
    Included {
        name: "multi-publisher",
        text: include_str!("../../../studies/multi-publisher/study.toml"),
        reference: Some(include_str!("../../../studies/multi-publisher/reference.csv")),
    },
    Included { name: "quickstart", text: include_str!("../../../studies/quickstart/study.toml"), reference: None },
];

/// All systems, or what is wrong with their files.
pub fn load() -> Result<&'static [System], &'static Diagnostics> {
    static LOADED: OnceLock<Result<Vec<System>, Diagnostics>> = OnceLock::new();
    let loaded = LOADED.get_or_init(|| {
        let parse = |(name, text): &(&str, &str)| System::parse(name, &format!("systems/{name}.toml"), text);
        SYSTEMS.iter().map(parse).collect()
    });
    loaded.as_deref()
}

/// Every system.
pub fn systems() -> &'static [System] {
    load().unwrap_or_default()
}

/// Finds a system by name.
pub fn find(name: &str) -> Option<&'static System> {
    systems().iter().find(|system| system.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_host::install;
    use pubmark_model::endpoint::Endpoint;
    use pubmark_model::plan::cells;
    use pubmark_model::server::Places;
    use pubmark_model::study::{ReadOptions, Study};
    use pubmark_model::tuning::Use;

    #[test]
    fn every_system_file_in_the_folder_is_registered_and_sound() {
        load().unwrap_or_else(|errors| panic!("{errors}"));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../systems");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        files.sort();
        let names: Vec<&str> = systems().iter().map(|system| system.name.as_str()).collect();
        assert_eq!(files, names);
    }

    #[test]
    fn every_place_of_every_system_file_can_be_filled_in() {
        for system in systems() {
            let Some(server) = &system.server else { continue };
            let defaults = system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?)));
            for durable in [false, true] {
                let places = Places {
                    ports: server.ports().into_iter().zip(11_000..).collect(),
                    dir: "/run/x".into(),
                    cache: "/cache/x".into(),
                    cpus: 3,
                    memory_mb: 1024,
                    durable,
                    address: String::new(),
                    options: defaults.clone().collect(),
                };
                let fill = |text: &str| places.fill(text).unwrap_or_else(|error| panic!("{}: {error}", system.name));
                let docker = server.docker.clone().unwrap_or_default();
                let variables = server.environment.iter().chain(&server.files).chain(&docker.environment);
                let values = variables.chain(&docker.files).map(|(_, value)| value);
                let commands = server.prepare.iter().flatten().chain(&server.command).chain(&docker.command);
                for text in commands.chain(&server.version).chain(values) {
                    let filled = fill(text);
                    assert!(!filled.contains("{port") && !filled.contains("{options"), "{}: {filled}", system.name);
                }
                let endpoint = fill(&server.endpoint);
                assert_eq!(Endpoint::parse(&endpoint).unwrap().address(), "127.0.0.1:11000", "{}", system.name);
            }
            for option in &system.options {
                assert!(!option.doc.is_empty(), "{}: the option `{}` gives no reason", system.name, option.name);
            }
            let ways = [!install::commands(system).is_empty(), !system.install.manual.is_empty()];
            assert!(ways.contains(&true), "{}: nothing says how to get it", system.name);
        }
    }

    /// What a system's files and commands come to with these settings.
    fn filled(name: &str, asked: Use) -> String {
        let system = find(name).unwrap();
        let server = system.server.as_ref().unwrap();
        let options = system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.value(asked)?)));
        let ports = server.ports().into_iter().zip(11_000..).collect();
        let places = Places { ports, cpus: 3, memory_mb: 1024, options: options.collect(), ..Places::default() };
        let texts = server.command.iter().chain(server.files.iter().map(|(_, text)| text));
        texts.map(|text| places.fill(text).unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stock_settings_are_the_makers_and_reach_the_server() {
        load().unwrap();
        let cases: [(&str, &[&str], &[&str]); 4] = [
            (
                "mosquitto",
                &["autosave_interval 1\n", "max_inflight_messages 0", "max_queued_messages 0", "set_tcp_nodelay true"],
                &["autosave_interval 1800", "max_inflight_messages 20", "max_queued_messages 1000", "nodelay false"],
            ),
            ("rabbitmq-mqtt", &["mqtt.prefetch = 1000", "backlog = 4096"], &["mqtt.prefetch = 10\n", "backlog = 128"]),
            (
                "redis",
                &["pubsub 67108864 0 0", "--io-threads 1", "--maxclients 100000"],
                &["pubsub 33554432 8388608 60", "--io-threads 1", "--maxclients 10000 "],
            ),
            ("nats", &["max_payload: 67108864"], &["max_payload: 1048576", "max_connections: 65536"]),
        ];
        for (name, tuned, stock) in cases {
            for (asked, says) in [(Use::Tuned, tuned), (Use::Stock, stock)] {
                let text = filled(name, asked);
                assert!(says.iter().all(|says| text.contains(says)), "{name} {asked:?}: {says:?} in {text}");
            }
        }
    }

    #[test]
    fn every_study_folder_is_registered_and_plans_whole_and_quick() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
        let mut folders: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        folders.sort();
        assert_eq!(folders, STUDIES.iter().map(|study| study.name).collect::<Vec<_>>());
        for included in STUDIES {
            for quick in [false, true] {
                let reading = ReadOptions { quick, ..ReadOptions::default() };
                let study = Study::parse(included.name, included.text, &find, &reading)
                    .unwrap_or_else(|errors| panic!("{errors}"));
                let cells = cells(&study, &find).unwrap();
                assert!(!cells.is_empty());
                let again = Study::parse("resolved", &study.to_toml(), &find, &ReadOptions::default())
                    .unwrap_or_else(|errors| panic!("{errors}"));
                assert_eq!(Study { quick, ..again }, study, "what is written reads back");
            }
        }
    }

    /// `pubmark run NAME … # … N runs …` in a study's README.
    #[test]
    fn a_readme_says_how_many_runs_its_study_has() {
        let mut told = 0;
        for included in STUDIES {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies");
            let readme = std::fs::read_to_string(format!("{folder}/{}/README.md", included.name)).unwrap_or_default();
            let command = format!("pubmark run {}", included.name);
            for line in readme.lines().filter(|line| line.starts_with(&command)) {
                let Some((typed, comment)) = line.split_once('#').filter(|(_, told)| told.contains(" runs")) else {
                    continue;
                };
                let said = comment.split(" runs").next().unwrap().rsplit(' ').next().unwrap().replace(',', "");
                let reading = ReadOptions { quick: typed.contains("--quick"), ..ReadOptions::default() };
                let study = Study::parse(included.name, included.text, &find, &reading).unwrap();
                assert_eq!(said, crate::plan::Plan::new(study).unwrap().extent().1.to_string(), "{line}");
                told += 1;
            }
        }
        assert!(told >= 10, "{told} lines");
    }

    #[test]
    fn whatever_runs_in_a_java_says_so() {
        load().unwrap();
        let runs_java =
            |server: &&pubmark_model::server::ServerSpec| server.command.first().is_some_and(|it| it == "java");
        let servers: Vec<_> = systems().iter().filter_map(|system| system.server.as_ref()).filter(runs_java).collect();
        assert!(servers.len() >= 5, "{}", servers.len());
        assert!(servers.iter().all(|server| server.out_of_memory_log == "java.lang.OutOfMemoryError"));
    }
}
