//! Servers in containers, run by the command line of podman or docker, which have the
//! same commands. Commands are computed from the container alone. The keeper runs them:
//! first `run`, then `logs --follow` in the place of the server, which ends when the
//! container does, and at the end `stop` and `rm`.

use super::accounts::Accounts;
use super::command::{CommandError, output};
use super::limits::{Applied, orphaned};
use super::orders::EngineOrders;
use crate::programs::find_program;
use pubmark_model::cell::Limits;
use pubmark_model::record::ContainerFacts;
use std::path::PathBuf;
use std::time::Duration;

/// Time limit of a query to an engine.
const QUESTION: Duration = Duration::from_secs(20);
/// No server has more processes than this, and an engine may not be allowed to allow more.
const PROCESSES_MAX: u64 = 20_000;

/// A container engine, identified by the name of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine(&'static str);

/// The known engines; the first that answers is used.
const ENGINES: [Engine; 2] = [Engine("podman"), Engine("docker")];

impl Engine {
    /// Returns the engines for a deployment: any for `container`, otherwise the one of
    /// this name.
    fn meant(deployment: &str) -> impl Iterator<Item = Engine> {
        ENGINES.into_iter().filter(move |engine| deployment == "container" || deployment == engine.0)
    }

    /// True if a deployment uses a container.
    pub fn runs(deployment: &str) -> bool {
        Engine::meant(deployment).next().is_some()
    }

    /// Returns the engine for a deployment, by its program; `None` if there is none.
    pub fn find(deployment: &str) -> Option<Engine> {
        let found: Vec<Engine> = Engine::meant(deployment).filter(|engine| find_program(engine.0).is_some()).collect();
        match found[..] {
            [] => None,
            [only] => Some(only),
            [first, ..] => Some(found.iter().copied().find(|engine| engine.version().is_some()).unwrap_or(first)),
        }
    }

    /// Returns its program.
    pub fn program(self) -> &'static str {
        self.0
    }

    /// Returns the version of its server; `None` if it does not answer.
    pub fn version(self) -> Option<String> {
        let answer = output(&self.words(&["version", "--format", "{{.Server.Version}}"]), &[], QUESTION).ok()?;
        Some(answer.trim().to_owned()).filter(|version| !version.is_empty())
    }

    fn words(self, words: &[&str]) -> Vec<String> {
        [self.0].iter().chain(words).map(|word| (*word).to_owned()).collect()
    }
}

/// The network of a container's ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// The machine's own network: the server itself is configured where to listen.
    Host,
    /// The engine's network, with one published port.
    Published {
        /// Address on the machine at which the port is published.
        address: String,
        /// Port there.
        here: u16,
        /// Port within the container.
        within: u16,
    },
    /// The engine's network, with nothing published.
    Engine,
}

/// A container before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Container {
    /// Its engine.
    pub engine: Engine,
    /// Its name: `pubmark-PID-NUMBER`.
    pub name: String,
    /// Image with its tag.
    pub image: String,
    /// Arguments of the image's entry point.
    pub command: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Files: path here, and read-only mount point.
    pub files: Vec<(PathBuf, String)>,
    /// Folders that it may write to: path here, or `None` for a volume of the engine, and
    /// mount point.
    pub volumes: Vec<(Option<PathBuf>, String)>,
    /// Its network.
    pub network: Network,
    /// Limits.
    pub limits: Limits,
    /// Open files that the server may have; equal to pubmark's own limit.
    pub open_files: u64,
    /// Processes that this user may have, if there is a limit.
    pub processes: Option<u64>,
}

/// An engine's information on a running container.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// Its first process, as numbered on this machine; 0 if it does not run.
    pub pid: i32,
    /// The limits in force, as the engine reports them.
    pub applied: Applied,
    /// Hash of the image's configuration.
    pub image_id: String,
}

/// The way in which a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerEnd {
    /// Exit code.
    pub code: i32,
    /// True if the kernel killed it because memory ran out.
    pub oom: bool,
}

/// Returns the namespace in which process numbers mean the same as here: they identify
/// coordinators that are dead.
fn numbers() -> String {
    std::fs::read_link("/proc/self/ns/pid").map_or_else(|_| "unknown".into(), |link| link.display().to_string())
}

impl Container {
    /// Returns the `run` command. It has no `--rm`, so that the engine can report how the
    /// container ended.
    pub fn run(&self) -> Vec<String> {
        let label = format!("pubmark.numbers={}", numbers());
        let mut command = self.engine.words(&["run", "--detach", "--name", &self.name, "--label", &label]);
        let mut add = |name: &str, value: String| command.extend([name.to_owned(), value]);
        if let Some(cpus) = self.limits.cpus {
            add("--cpus", cpus.to_string());
        }
        if let Some(bytes) = self.limits.memory_bytes {
            // One value for memory, and for memory with swap.
            add("--memory", bytes.to_string());
            add("--memory-swap", bytes.to_string());
        }
        add("--ulimit", format!("nofile={0}:{0}", self.open_files));
        // Podman's own default exceeds what a user with a limit may set.
        if let Some(most) = self.processes.filter(|_| self.engine.0 == "podman") {
            add("--ulimit", format!("nproc={0}:{0}", most.min(PROCESSES_MAX)));
        }
        match &self.network {
            Network::Host => add("--network", "host".into()),
            Network::Published { address, here, within } if address.contains(':') => {
                add("--publish", format!("[{address}]:{here}:{within}"));
            }
            Network::Published { address, here, within } => add("--publish", format!("{address}:{here}:{within}")),
            Network::Engine => {}
        }
        for (name, value) in &self.environment {
            add("--env", format!("{name}={value}"));
        }
        for (here, within) in &self.files {
            add("--volume", format!("{}:{within}:ro", here.display()));
        }
        for (here, within) in &self.volumes {
            let here = here.as_ref().map_or(String::new(), |here| format!("{}:", here.display()));
            add("--volume", format!("{here}{within}"));
        }
        command.push(self.image.clone());
        command.extend(self.command.iter().cloned());
        command
    }
}

/// A container that was started, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedContainer {
    /// Its engine.
    pub engine: Engine,
    /// Its name.
    pub name: String,
}

impl NamedContainer {
    fn asked(&self, words: &[&str]) -> Vec<String> {
        let mut command = self.engine.words(words);
        command.push(self.name.clone());
        command
    }

    /// Writes what the container prints, until it ends.
    pub fn logs(&self) -> Vec<String> {
        self.asked(&["logs", "--follow"])
    }

    /// Returns the commands that a keeper runs to stop, kill and start it.
    pub fn orders(&self) -> EngineOrders {
        EngineOrders {
            stop: self.asked(&["pause"]),
            go_on: self.asked(&["unpause"]),
            kill: self.asked(&["kill", "--signal", "KILL"]),
            wait: self.asked(&["wait"]),
            start: self.asked(&["start"]),
            follow: self.asked(&["logs", "--follow", "--since", EngineOrders::NOW]),
        }
    }

    /// Returns the commands that stop the container and remove it.
    pub fn clean_up(&self, grace_ms: u64) -> Vec<Vec<String>> {
        let grace_s = grace_ms.div_ceil(1_000).to_string();
        vec![self.asked(&["stop", "-t", &grace_s]), self.remove()]
    }

    /// Removes the container, running or not.
    fn remove(&self) -> Vec<String> {
        self.asked(&["rm", "--force", "--volumes"])
    }

    /// Queries the engine about the container, which should run.
    pub fn running(&self) -> Result<Running, EngineError> {
        let format = "{{.State.Pid}} {{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.Image}}";
        let answer = output(&self.asked(&["inspect", "--format", format]), &[], QUESTION)?;
        self.parse_running(&answer).ok_or_else(|| self.strange(&answer))
    }

    fn strange(&self, answer: &str) -> EngineError {
        EngineError::Answer { engine: self.engine.0, answer: answer.trim().to_owned() }
    }

    fn parse_running(&self, answer: &str) -> Option<Running> {
        let fields: Vec<&str> = answer.split_whitespace().collect();
        let (pid, nano_cpus, memory_bytes, image) = match fields[..] {
            [pid, nano_cpus, memory_bytes] => (pid, nano_cpus, memory_bytes, ""),
            [pid, nano_cpus, memory_bytes, image] => (pid, nano_cpus, memory_bytes, image),
            _ => return None,
        };
        let (nano_cpus, memory_bytes): (u64, u64) = (nano_cpus.parse().ok()?, memory_bytes.parse().ok()?);
        let applied = Applied {
            cpus: (nano_cpus > 0).then_some(nano_cpus as f64 / 1e9),
            memory_bytes: (memory_bytes > 0).then_some(memory_bytes),
            by: self.engine.0.into(),
            note: None,
        };
        Some(Running { pid: pid.parse().ok()?, applied, image_id: image.to_owned() })
    }

    /// Queries the engine about how it ended.
    pub fn ended(&self) -> Option<ContainerEnd> {
        let format = "{{.State.ExitCode}} {{.State.OOMKilled}} {{.State.Running}}";
        parse_ended(&output(&self.asked(&["inspect", "--format", format]), &[], QUESTION).ok()?)
    }

    /// Returns its facts for the record; what cannot be queried is left empty.
    pub fn facts(&self, image: &str, image_id: &str) -> ContainerFacts {
        let asked = self.engine.words(&["image", "inspect", "--format", "{{json .RepoDigests}}", image_id]);
        let digests = output(&asked, &[], QUESTION).unwrap_or_default();
        ContainerFacts {
            engine: format!("{} {}", self.engine.0, self.engine.version().unwrap_or_default()).trim_end().to_owned(),
            image: image.to_owned(),
            image_id: image_id.trim_start_matches("sha256:").to_owned(),
            digest: parse_digest(&digests),
        }
    }
}

/// Returns the limits in force, read back from the control group of the container's first
/// process; if that cannot be seen from here, what the engine reports, marked as such.
pub fn in_force(running: &Running) -> (Accounts, Applied) {
    let accounts = Accounts::of(running.pid).filter(|_| running.pid > 0).unwrap_or_default();
    let mut applied = running.applied.clone();
    if accounts.version == 0 {
        let limited = applied.cpus.is_some() || applied.memory_bytes.is_some();
        applied.note = limited.then(|| format!("the word of {}: its control group cannot be seen", applied.by));
        return (accounts, applied);
    }
    applied.by = format!("cgroup v{}", accounts.version);
    (applied.cpus, applied.memory_bytes) = (accounts.cpus(), accounts.memory_limit_bytes());
    (accounts, applied)
}

/// Returns how many processes the kernel has killed on this machine because memory ran
/// out. An engine may not notice that one of them was a container's.
pub fn machine_oom_kills() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// Parses how it ended; `None` if it runs.
fn parse_ended(answer: &str) -> Option<ContainerEnd> {
    let mut words = answer.split_whitespace();
    let (code, oom, running) = (words.next()?, words.next()?, words.next()?);
    (running == "false").then_some(ContainerEnd { code: code.parse().ok()?, oom: oom.parse().ok()? })
}

/// Returns the first digest of a list `["name@sha256:…", …]`; an image that was never in
/// a registry may have none.
fn parse_digest(answer: &str) -> Option<String> {
    let names: Vec<String> = serde_json::from_str(answer.trim()).ok()?;
    names.iter().find_map(|name| name.split_once('@')).map(|(_, digest)| digest.to_owned())
}

/// The reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A command of the engine failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The answer is not understood.
    #[error("`{engine} inspect` says `{answer}`")]
    Answer {
        /// The engine.
        engine: &'static str,
        /// Its answer.
        answer: String,
    },
}

/// Returns the first process of a container that runs here, whoever started it; `None` if
/// no engine knows one of this name.
pub fn first_process(name: &str) -> Option<i32> {
    let ask = |engine: &Engine| {
        let question = engine.words(&["inspect", "--type", "container", "--format", "{{.State.Pid}}", name]);
        output(&question, &[], QUESTION).ok()?.trim().parse().ok().filter(|pid: &i32| *pid > 1)
    };
    ENGINES.iter().find_map(ask)
}

/// Removes the containers of dead coordinators, if their processes are numbered like
/// those here.
pub fn sweep(engine: Engine) {
    let label = format!("label=pubmark.numbers={}", numbers());
    let list = engine.words(&["ps", "--all", "--filter", &label, "--format", "{{.Names}}"]);
    let names = output(&list, &[], QUESTION).unwrap_or_default();
    for name in names.lines().filter(|name| orphaned(name)) {
        let _ = output(&NamedContainer { engine, name: name.to_owned() }.remove(), &[], QUESTION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn a_container_is_run_with_all_that_was_asked_for() {
        let container = Container {
            engine: ENGINES[1],
            name: "pubmark-1-0".into(),
            image: "eclipse-mosquitto:2.0.18".into(),
            command: words(&["mosquitto", "-c", "/m.conf"]),
            environment: vec![("A".into(), "b c".into())],
            files: vec![("/run/d/0".into(), "/m.conf".into())],
            volumes: vec![(Some("/run/v/0".into()), "/data".into()), (None, "/log".into())],
            network: Network::Published { address: "10.0.0.2".into(), here: 11_000, within: 1_883 },
            limits: Limits { cpus: Some(1.5), memory_bytes: Some(64 << 20) },
            open_files: 20_000,
            processes: Some(90_000),
        };
        let label = format!("--label pubmark.numbers={}", numbers());
        let expected = format!(
            "docker run --detach --name pubmark-1-0 {label} --cpus 1.5 --memory 67108864 --memory-swap 67108864 \
             --ulimit nofile=20000:20000 --publish 10.0.0.2:11000:1883 --env A=b c --volume /run/d/0:/m.conf:ro \
             --volume /run/v/0:/data --volume /log eclipse-mosquitto:2.0.18 mosquitto -c /m.conf"
        );
        assert_eq!(container.run().join(" "), expected);
        let network = Network::Published { address: "fd00::2".into(), here: 11_000, within: 1_883 };
        let sixth = Container { network, ..container.clone() }.run().join(" ");
        assert!(sixth.contains("--publish [fd00::2]:11000:1883 "), "{sixth}");
        let host = Container { engine: ENGINES[0], network: Network::Host, ..container.clone() }.run().join(" ");
        assert!(host.starts_with("podman run --detach ") && host.contains(" --network host "), "{host}");
        assert!(host.contains(" --ulimit nproc=20000:20000 ") && !host.contains("--publish"), "{host}");
        let free = Container {
            limits: Limits::default(),
            network: Network::Engine,
            files: vec![],
            volumes: vec![],
            ..container
        };
        let absent = ["--cpus", "--memory", "--publish", "--volume", "--network"];
        assert!(!free.run().iter().any(|word| absent.contains(&word.as_str())));
        let named = NamedContainer { engine: ENGINES[0], name: "x".into() };
        assert_eq!(named.clean_up(1_500)[0].join(" "), "podman stop -t 2 x");
        assert_eq!(named.clean_up(0)[1].join(" "), "podman rm --force --volumes x");
    }

    #[test]
    fn a_deployment_means_one_engine_or_any() {
        let meant = |word: &str| Engine::meant(word).map(Engine::program).collect::<Vec<_>>();
        assert_eq!(meant("container"), ["podman", "docker"]);
        assert_eq!((meant("docker"), meant("podman")), (vec!["docker"], vec!["podman"]));
        assert!(!Engine::runs("native") && !Engine::runs("external") && Engine::runs("container"));
    }

    #[test]
    fn answers_are_read() {
        let named = NamedContainer { engine: ENGINES[1], name: "x".into() };
        let running = named.parse_running("4711 500000000 67108864 sha256:ab\n").unwrap();
        assert_eq!(
            (running.pid, running.applied.cpus, running.applied.memory_bytes),
            (4_711, Some(0.5), Some(64 << 20))
        );
        assert_eq!(running.image_id, "sha256:ab");
        let free = named.parse_running("4711 0 0\n").unwrap().applied;
        assert_eq!((free.cpus, free.memory_bytes, free.by.as_str()), (None, None, "docker"));
        assert_eq!(named.parse_running("Error: no such object"), None);
        assert_eq!(parse_ended("137 true false\n"), Some(ContainerEnd { code: 137, oom: true }));
        assert_eq!(parse_ended("0 false true\n"), None, "it runs");
        assert_eq!(parse_ended("<no value>"), None);
        assert_eq!(parse_digest("[\"a/b@sha256:12\",\"c@sha256:34\"]\n").as_deref(), Some("sha256:12"));
        assert_eq!((parse_digest("[]"), parse_digest("no such image")), (None, None));
    }

    #[test]
    fn a_container_that_runs_has_not_ended() {
        let ended = |answer: &str| parse_ended(answer).map(|ended| (ended.code, ended.oom));
        assert_eq!(ended("137 true false\n"), Some((137, true)));
        assert_eq!(ended("0 false false"), Some((0, false)));
        assert_eq!((ended("0 false true"), ended("no such container"), ended("")), (None, None, None));
    }

    #[test]
    fn what_cannot_be_read_back_is_the_engines_word() {
        let own = std::process::id() as i32;
        let applied = Applied { cpus: Some(0.5), by: "docker".into(), ..Applied::default() };
        // In pubmark's own group: its figures would not be the container's.
        let (accounts, applied) = in_force(&Running { pid: own, applied, image_id: String::new() });
        assert_eq!((accounts.version, applied.cpus, applied.by.as_str()), (0, Some(0.5), "docker"));
        assert!(applied.note.unwrap().starts_with("the word of docker"));
    }
}
