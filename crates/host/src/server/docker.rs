//! Servers in containers, by the Docker command line. What is run is made by
//! functions of the container alone. The keeper runs it: first `docker run`,
//! then `docker logs --follow` in the place of the server, which ends when the
//! container does, and at the end `docker stop` and `docker rm`.

use super::limits::{Applied, orphaned};
use pubmark_model::cell::Limits;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a question to Docker may take.
const QUESTION: Duration = Duration::from_secs(20);

/// A container, before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// Its name: `pubmark-PID-NUMBER`.
    pub name: String,
    /// Image with its tag.
    pub image: String,
    /// Arguments of the image's entry point.
    pub command: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Files: where they are here, and where they are mounted to, read-only.
    pub files: Vec<(PathBuf, String)>,
    /// The port here, and the one within.
    pub ports: Option<(u16, u16)>,
    /// Limits.
    pub limits: Limits,
    /// Open files that the server may have; those of pubmark itself.
    pub open_files: u64,
}

/// What Docker says of a container that runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Running {
    /// Its first process, as this machine numbers it; 0 if it does not run.
    pub pid: i32,
    /// What Docker holds in force.
    pub applied: Applied,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Exit code.
    pub code: i32,
    /// Whether the kernel killed it for want of memory.
    pub oom: bool,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `docker run`. Without `--rm`, so that it can be asked how it ended.
pub fn run(container: &Container) -> Vec<String> {
    let mut command = words(&["docker", "run", "--detach", "--name", &container.name]);
    if let Some(cpus) = container.limits.cpus {
        command.extend(["--cpus".to_owned(), cpus.to_string()]);
    }
    if let Some(bytes) = container.limits.memory_bytes {
        // The same for both: memory, and memory with swap.
        command.extend(["--memory".to_owned(), bytes.to_string(), "--memory-swap".to_owned(), bytes.to_string()]);
    }
    command.extend(["--ulimit".to_owned(), format!("nofile={0}:{0}", container.open_files)]);
    if let Some((here, within)) = container.ports {
        command.extend(["--publish".to_owned(), format!("127.0.0.1:{here}:{within}")]);
    }
    for (name, value) in &container.environment {
        command.extend(["--env".to_owned(), format!("{name}={value}")]);
    }
    for (here, within) in &container.files {
        command.extend(["--volume".to_owned(), format!("{}:{within}:ro", here.display())]);
    }
    command.push(container.image.clone());
    command.extend(container.command.iter().cloned());
    command
}

/// Writes what the container prints, until it ends.
pub fn logs(name: &str) -> Vec<String> {
    words(&["docker", "logs", "--follow", name])
}

/// Asks for [`Running`].
pub fn inspect_running(name: &str) -> Vec<String> {
    let format = "{{.State.Pid}} {{.HostConfig.NanoCpus}} {{.HostConfig.Memory}}";
    words(&["docker", "inspect", "--format", format, name])
}

/// Asks for [`Ended`].
pub fn inspect_ended(name: &str) -> Vec<String> {
    words(&["docker", "inspect", "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}", name])
}

/// Ends the container politely, and removes it.
pub fn clean_up(name: &str, grace_ms: u64) -> Vec<Vec<String>> {
    let grace_s = grace_ms.div_ceil(1_000).to_string();
    vec![words(&["docker", "stop", "-t", &grace_s, name]), remove(name)]
}

/// Removes the container, running or not.
pub fn remove(name: &str) -> Vec<String> {
    words(&["docker", "rm", "--force", "--volumes", name])
}

/// Lists the names of pubmark's containers.
pub fn list() -> Vec<String> {
    words(&["docker", "ps", "--all", "--filter", "name=^pubmark-", "--format", "{{.Names}}"])
}

/// Reads the answer to [`inspect_running`].
pub fn parse_running(answer: &str) -> Option<Running> {
    let fields: Vec<&str> = answer.split_whitespace().collect();
    let [pid, nano_cpus, memory_bytes] = fields[..] else { return None };
    let (nano_cpus, memory_bytes): (u64, u64) = (nano_cpus.parse().ok()?, memory_bytes.parse().ok()?);
    let applied = Applied {
        cpus: (nano_cpus > 0).then_some(nano_cpus as f64 / 1e9),
        memory_bytes: (memory_bytes > 0).then_some(memory_bytes),
        by: "docker".into(),
        note: None,
    };
    Some(Running { pid: pid.parse().ok()?, applied })
}

/// Reads the answer to [`inspect_ended`].
pub fn parse_ended(answer: &str) -> Option<Ended> {
    let (code, oom) = answer.trim().split_once(' ')?;
    Some(Ended { code: code.parse().ok()?, oom: oom.parse().ok()? })
}

/// Why a command did not answer.
#[derive(Debug, thiserror::Error)]
pub enum DockerError {
    /// There is none.
    #[error("an empty command")]
    Empty,
    /// Its program cannot be run.
    #[error("`{program}` cannot be run: {source}")]
    NotRun {
        /// Which.
        program: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It took too long, and was killed.
    #[error("`{command}` did not end within {} s", most.as_secs())]
    TooLong {
        /// Which.
        command: String,
        /// How long it was given.
        most: Duration,
    },
    /// It ended badly.
    #[error("`{command}` ended: {status}: {said}")]
    Ended {
        /// Which.
        command: String,
        /// How.
        status: ExitStatus,
        /// What it said.
        said: String,
    },
    /// It says what nobody asked.
    #[error("`docker inspect` says `{0}`")]
    Answer(String),
}

/// Asks Docker about a container that should run.
pub fn running(name: &str) -> Result<Running, DockerError> {
    let answer = output(&inspect_running(name), QUESTION)?;
    parse_running(&answer).ok_or_else(|| DockerError::Answer(answer.trim().to_owned()))
}

/// The first process of a container of docker's or podman's that runs here; none
/// where neither knows one of this name.
pub fn first_process(name: &str) -> Option<i32> {
    let ask = |engine: &str| {
        let question =
            [engine, "inspect", "--type", "container", "--format", "{{.State.Pid}}", name].map(str::to_owned);
        output(&question, QUESTION).ok()?.trim().parse().ok().filter(|pid: &i32| *pid > 1)
    };
    ["docker", "podman"].into_iter().find_map(ask)
}

/// Whether an engine answers at all.
pub fn answers() -> bool {
    let question = ["docker", "version", "--format", "{{.Server.Version}}"].map(str::to_owned);
    output(&question, QUESTION).is_ok()
}

/// Asks Docker how a container ended.
pub fn ended(name: &str) -> Option<Ended> {
    parse_ended(&output(&inspect_ended(name), QUESTION).ok()?)
}

/// Removes the containers of coordinators that are no more.
pub fn sweep() {
    let names = output(&list(), QUESTION).unwrap_or_default();
    for name in names.lines().filter(|name| orphaned(name)) {
        let _ = output(&remove(name), QUESTION);
    }
}

/// What a command prints. It is killed if it takes too long.
pub fn output(command: &[String], most: Duration) -> Result<String, DockerError> {
    let shown = || command.join(" ");
    let (program, arguments) = command.split_first().ok_or(DockerError::Empty)?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| DockerError::NotRun { program: program.clone(), source })?;
    let deadline = Instant::now() + most;
    // Answers are a few lines: they fit into the pipe.
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() < deadline => thread::park_timeout(Duration::from_millis(2)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(DockerError::TooLong { command: shown(), most });
            }
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let _ = child.stdout.take().map(|mut pipe| pipe.read_to_end(&mut out));
    let _ = child.stderr.take().map(|mut pipe| pipe.read_to_end(&mut err));
    if !status.success() {
        let said = String::from_utf8_lossy(&err).trim().to_owned();
        return Err(DockerError::Ended { command: shown(), status, said });
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_run_with_all_that_was_asked_for() {
        let container = Container {
            name: "pubmark-1-0".into(),
            image: "eclipse-mosquitto:2.0.18".into(),
            command: words(&["mosquitto", "-c", "/m.conf"]),
            environment: vec![("A".into(), "b c".into())],
            files: vec![("/run/d/0".into(), "/m.conf".into())],
            ports: Some((11_000, 1_883)),
            limits: Limits { cpus: Some(1.5), memory_bytes: Some(64 << 20) },
            open_files: 20_000,
        };
        let expected = "docker run --detach --name pubmark-1-0 --cpus 1.5 --memory 67108864 --memory-swap 67108864 --ulimit nofile=20000:20000 --publish 127.0.0.1:11000:1883 --env A=b c --volume /run/d/0:/m.conf:ro eclipse-mosquitto:2.0.18 mosquitto -c /m.conf";
        assert_eq!(run(&container).join(" "), expected);
        let free = Container { limits: Limits::default(), ports: None, files: vec![], ..container };
        assert!(
            !run(&free).iter().any(|word| ["--cpus", "--memory", "--publish", "--volume"].contains(&word.as_str()))
        );
        assert_eq!(clean_up("x", 1_500)[0].join(" "), "docker stop -t 2 x");
        assert_eq!(clean_up("x", 0)[1].join(" "), "docker rm --force --volumes x");
    }

    #[test]
    fn answers_are_read() {
        let running = parse_running("4711 500000000 67108864\n").unwrap();
        assert_eq!(
            (running.pid, running.applied.cpus, running.applied.memory_bytes),
            (4_711, Some(0.5), Some(64 << 20))
        );
        let free = parse_running("4711 0 0\n").unwrap().applied;
        assert_eq!((free.cpus, free.memory_bytes, free.by.as_str()), (None, None, "docker"));
        assert_eq!(parse_running("Error: no such object"), None);
        assert_eq!(parse_ended("137 true\n"), Some(Ended { code: 137, oom: true }));
        assert_eq!(parse_ended("<no value>"), None);
    }

    #[test]
    fn a_command_that_takes_too_long_is_ended() {
        let command = |line: &str| words(&["sh", "-c", line]);
        assert_eq!(output(&command("echo yes"), QUESTION).unwrap(), "yes\n");
        let error = output(&command("echo no >&2; exit 3"), QUESTION).unwrap_err();
        assert!(error.to_string().contains("exit status: 3: no"), "{error}");
        let error = output(&words(&["sleep", "60"]), Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, DockerError::TooLong { .. }), "{error}");
        let error = output(&words(&["/nonexistent"]), QUESTION).unwrap_err();
        assert!(matches!(error, DockerError::NotRun { .. }), "{error}");
    }
}
