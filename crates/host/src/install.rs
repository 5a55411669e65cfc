//! Finds what is installed, and installs the rest.

mod execute;
mod gather;
pub mod library;
mod plan;
mod sources;
pub mod tools;

use crate::agent::AgentCommand;
use crate::cache::{bin_folder, cache_folder};
use crate::error::HostError;
use crate::programs::{LOOKED_FOR, find_program, find_program_from};
use crate::server::container::Engine;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::printable::printable;
use pubmark_model::server::{Places, ServerSpec};
use pubmark_model::system::System;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Time that a program has to print its version.
const ANSWER: Duration = Duration::from_secs(10);

/// The default deployment.
pub const NATIVE: &str = "native";

/// The availability of a system on this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Available, with its version report.
    Here(Map<String, Value>),
    /// Not available, with the reason.
    Missing(String),
    /// Available only if the user runs it.
    External,
}

/// Checks whether a broker can be deployed here, by asking its program for its version.
pub fn probe(system: &System) -> Availability {
    let found = look(system);
    match found {
        Availability::Here(mut found) => {
            found.extend(version(system).map(|version| ("version".to_owned(), version.into())));
            Availability::Here(found)
        }
        other => other,
    }
}

/// Checks whether the programs of a broker are there, without starting anything.
pub fn look(system: &System) -> Availability {
    if let Some(why) = agent_missing(system) {
        return Availability::Missing(why);
    }
    let mut found = Map::new();
    let Some(server) = &system.server else {
        if system.broker() {
            return Availability::External;
        }
        let program = agent_programs(system).into_iter().flatten().next();
        found.extend(program.map(|path| ("agent".to_owned(), path.display().to_string().into())));
        return Availability::Here(found);
    };
    if let Some(why) = absent(system) {
        return Availability::Missing(why);
    }
    let program = server.command.first().and_then(|word| find_program(&in_cache(system, word)));
    found.extend(program.map(|path| ("program".to_owned(), path.display().to_string().into())));
    Availability::Here(found)
}

/// Returns why a system's server cannot be deployed here, with advice; `None` if it can,
/// or if `endpoint` gives a running one, or if there is no server.
pub fn missing(system: &System, options: &Options) -> Option<String> {
    if let Some(why) = agent_missing(system) {
        return Some(why);
    }
    if !system.broker() || options.text("endpoint").is_some() {
        return None;
    }
    let Some(server) = &system.server else {
        return Some(format!(
            "pubmark does not start {}: {}name one that runs, as the option `endpoint` or as {}",
            system.title,
            hint(system),
            format_args!("`pubmark bench {}://HOST:PORT`", system.driver),
        ));
    };
    deployment_missing(system, server, options.text("deployment").unwrap_or(NATIVE))
}

/// Returns why a server cannot be started here by this deployment, with advice.
pub fn server_missing(system: &System, deployment: &str) -> Option<String> {
    deployment_missing(system, system.server.as_ref()?, deployment)
}

fn deployment_missing(system: &System, server: &ServerSpec, deployment: &str) -> Option<String> {
    if !Engine::runs(deployment) {
        return absent(system);
    }
    if server.container.is_none() {
        return Some(format!("{} has no container image: set deployment = \"native\"", system.name));
    }
    let programs = if deployment == "container" { "podman nor docker" } else { deployment };
    let none = || format!("no {programs} is found: install one, or set deployment = \"native\"");
    Engine::find(deployment).is_none().then(none)
}

/// Returns why a tool cannot be used here, with advice; `None` if it can.
pub fn missing_tool(tool: &System) -> Option<String> {
    absent(tool)
}

/// Describes how to install a system here.
pub fn way(system: &System) -> String {
    match (can(system), system.install.manual.as_str()) {
        (true, _) => format!("`pubmark systems {} --install` brings it", called(system)),
        (false, "") => "its file does not say what brings it ([install])".into(),
        (false, manual) => manual.to_owned(),
    }
}

/// Returns a system's name on the command line.
pub fn called(system: &System) -> String {
    if system.brought { format!("{}/{}.toml", system.here, system.name) } else { system.name.clone() }
}

/// Returns the paths of a system's agent programs, if they are found: for publishers,
/// then for subscribers.
fn agent_programs(system: &System) -> [Option<PathBuf>; 2] {
    [true, false].map(|sends| {
        let program = agent_program(system, sends)?;
        find_program_from(folder_of(system), &program)
    })
}

/// Returns the path of the agent's program for a side, if it is found.
pub fn agent_path(system: &System, sends: bool) -> Option<PathBuf> {
    let [sending, receiving] = agent_programs(system);
    if sends { sending } else { receiving }
}

/// Returns the agent's program for a side, as it is to be started.
fn agent_program(system: &System, sends: bool) -> Option<String> {
    let program = system.agent.command(sends).first()?;
    Some(system.fill_for_agent(program, &cache_folder(system).display().to_string()))
}

/// Returns the folder in which a system's agent and its build are started.
fn folder_of(system: &System) -> Option<&Path> {
    Some(Path::new(&system.here)).filter(|folder| !folder.as_os_str().is_empty())
}

/// Returns why a system's own agent cannot be started, with the searched places and
/// advice.
pub fn agent_missing(system: &System) -> Option<String> {
    if system.agent.built_in() {
        return None;
    }
    if !sources::is_there(system) || system.install.cached() && !gather::is_whole(system) {
        return Some(format!("{} is not installed: {}", system.name, way(system)));
    }
    let lacking = [true, false].into_iter().zip(agent_programs(system)).find(|(_, found)| found.is_none());
    let program = agent_program(system, lacking?.0)?;
    let places = match program.contains('/') {
        // Without redundant parts (`./`).
        true => folder_of(system)
            .unwrap_or(Path::new("."))
            .join(&program)
            .components()
            .collect::<PathBuf>()
            .display()
            .to_string(),
        false => format!("{LOOKED_FOR} {}", bin_folder().display()),
    };
    Some(format!("the agent `{program}` of {} is not found (looked for: {places}): {}", system.name, way(system)))
}

/// Returns the command of the agent for a side; without words for the built-in agent.
pub fn agent_command(system: &System, sends: bool) -> AgentCommand {
    let cache = cache_folder(system).display().to_string();
    let fill = |text: &String| system.fill_for_agent(text, &cache);
    AgentCommand {
        words: system.agent.command(sends).iter().map(fill).collect(),
        writes_rows: system.agent.writes_rows(),
        folder: system.here.clone(),
        environment: system.agent.environment.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
    }
}

/// Returns the command of a system's own agent, with the path of its program.
///
/// # Errors
/// If the program is not found, with advice.
pub fn own_agent(system: &System, sends: bool) -> Result<AgentCommand, HostError> {
    if let Some(missing) = agent_missing(system) {
        return Err(missing.into());
    }
    let found = agent_path(system, sends).ok_or_else(|| format!("{} has no agent", system.name))?;
    let mut command = agent_command(system, sends);
    if let Some(word) = command.words.first_mut() {
        *word = found.display().to_string();
    }
    Ok(command)
}

/// Returns why a server's programs cannot be started natively.
fn absent(system: &System) -> Option<String> {
    let server = system.server.as_ref()?;
    let name = &system.name;
    if server.command.is_empty() {
        return Some(format!(
            "{} is not started as a process of its own: {}set deployment = \"container\", or `endpoint` to one that runs",
            system.title,
            hint(system)
        ));
    }
    let way = way(system);
    if system.install.cached() && !gather::is_whole(system) {
        return Some(format!("{name} is not installed: {way}"));
    }
    let programs = server.prepare.iter().chain([&server.command]).filter_map(|command| command.first());
    let lacking = programs.map(|word| in_cache(system, word)).find(|word| find_program(word).is_none());
    // Programs that the preparations make cannot be there yet.
    lacking.filter(|word| !word.contains("{dir}")).map(|word| format!("`{word}` is not found: {way}"))
}

fn hint(system: &System) -> String {
    if system.install.manual.is_empty() { String::new() } else { format!("{}; ", system.install.manual) }
}

/// Fills `{cache}` and `{here}` into a text of a system file, and leaves the rest as it
/// is.
fn in_cache(system: &System, text: &str) -> String {
    text.replace("{cache}", &cache_folder(system).display().to_string()).replace("{here}", &system.here)
}

/// Returns the version of what would be started: the one that the program prints, or else
/// the version of the first pinned artifact.
pub fn version(system: &System) -> Option<String> {
    let server = system.server.as_ref()?;
    if server.version.is_empty() {
        let install = &system.install;
        let maven = install.maven.first().and_then(|pin| pin.split(':').nth(2));
        let pinned = maven.or_else(|| install.pip.first().and_then(|pin| pin.split("==").nth(1)));
        let pinned = pinned.or_else(|| install.npm.first().and_then(|pin| Some(pin.rsplit_once('@')?.1)));
        let built = install.cargo.first().or(install.go.first()).and_then(|pin| pin.split('@').nth(1));
        return pinned.or(built).map(|version| version.trim_start_matches('v').to_owned());
    }
    let cache = cache_folder(system).display().to_string();
    let places = Places { cache, here: system.here.clone(), ..Places::default() };
    let command: Vec<String> = server.version.iter().map(|word| places.fill(word)).collect::<Result<_, _>>().ok()?;
    let printed = execute::output(&command, ANSWER).ok()?;
    version_in(&printed, &server.version_after).map(|version| printable(&version).into_owned())
}

/// Returns the word that follows `after`.
fn version_in(printed: &str, after: &str) -> Option<String> {
    let (_, rest) = printed.split_once(after)?;
    let word = rest.split(|c: char| c.is_whitespace() || c == ',' || c == ')').find(|word| !word.is_empty())?;
    Some(word.to_owned())
}

/// True if pubmark can install a system here.
pub fn can(system: &System) -> bool {
    !by_hand(system) && (!system.carried.is_empty() || !commands(system).is_empty())
}

/// True if the user has to install a system's agent as its file describes; its packages
/// and its build only fill the cache.
fn by_hand(system: &System) -> bool {
    if system.agent.built_in() || system.install.manual.is_empty() {
        return false;
    }
    let elsewhere = |sends: &bool| system.agent.command(*sends).first().is_some_and(|word| !word.contains("{cache}"));
    [true, false].iter().filter(|sends| elsewhere(sends)).any(|sends| agent_path(system, *sends).is_none())
}

/// Returns the commands that would install a system here, in order.
pub fn commands(system: &System) -> Vec<Vec<String>> {
    let fetch = plan::fetch(system, &cache_folder(system));
    packages(system).into_iter().chain(fetch).map(|step| step.command).collect()
}

fn packages(system: &System) -> Option<plan::InstallStep> {
    let packages = plan::debian(&system.install, &|tool| match tool {
        plan::PYTHON => python_makes_environments(),
        program => find_program(program).is_some(),
    });
    (!packages.is_empty()).then(|| plan::apt(&packages, nix::unistd::geteuid().is_root()))
}

/// Answer of [`python_makes_environments`] until something is installed: a plan asks for each cell.
static PYTHON_MAKES_ENVIRONMENTS: Mutex<Option<bool>> = Mutex::new(None);

fn python_answer() -> MutexGuard<'static, Option<bool>> {
    PYTHON_MAKES_ENVIRONMENTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// True if Python can make environments, which is a separate package in Debian.
fn python_makes_environments() -> bool {
    let ask = ["python3", "-c", "import ensurepip, venv; print('it can')"].map(str::to_owned);
    let asked = || execute::output(&ask, ANSWER).is_ok_and(|said| said.contains("it can"));
    *python_answer().get_or_insert_with(asked)
}

/// Installs a system, unless it is there; a build in place is repeated. `say` gets each
/// command before it runs.
///
/// # Errors
/// If a command fails, a tool is missing, or the user has to install the agent; the text
/// is that of its file.
pub fn install(system: &System, say: &dyn Fn(&str)) -> Result<(), HostError> {
    *python_answer() = None;
    sources::put(system)?;
    if !can(system) && commands(system).is_empty() {
        return Err(HostError::Failed(match system.install.manual.as_str() {
            "" => format!("{} needs no installation", system.name),
            manual => format!("{} cannot be installed by pubmark: {manual}", system.name),
        }));
    }
    let build = !system.install.build.is_empty();
    let own = system.broker() || system.server.is_some() || !system.agent.built_in();
    if own && !build && absent(system).is_none() && agent_missing(system).is_none() {
        return Ok(());
    }
    if let Some(step) = packages(system) {
        say(&step.command.join(" "));
        execute::run(&step.command, None, step.limit).map_err(|error| {
            format!("{error}: try again after `apt-get update`; on systems other than Debian's kin, use their own package manager")
        })?;
    }
    if !system.install.go.is_empty() && find_program("go").is_none() {
        return Err(format!(
            "{} is built by Go, which is not found: install Go 1.23 or later (https://go.dev/doc/install), and try again",
            system.title
        )
        .into());
    }
    if !system.install.cargo.is_empty() && find_program("cargo").is_none() {
        return Err(format!(
            "{} is built by cargo, which is not found: install Rust (https://rustup.rs), and try again",
            system.title
        )
        .into());
    }
    if system.install.cached() && (build || !gather::is_whole(system)) {
        gather::gather(system, say)?;
    }
    // The packages do not contain the agent, only what it needs.
    agent_missing(system).filter(|_| by_hand(system)).map_or(Ok(()), |missing| Err(missing.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn broker(more: &str) -> System {
        let top = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";
        System::parse("t", "t.toml", &format!("{top}{more}")).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn server(program: &str) -> System {
        broker(&format!(
            "[server]\nendpoint = \"mqtt://127.0.0.1:{{port}}\"\ncommand = [\"{program}\"]\nversion = [\"{program}\", \"-v\"]\nversion_after = \"fake \"\n[install]\nmanual = \"ask its makers\""
        ))
    }

    #[test]
    fn a_program_that_runs_is_present_and_says_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("broker");
        let system = server(&program.display().to_string());
        let nothing = Options::new();
        assert!(missing(&system, &nothing).unwrap().contains("ask its makers"));
        std::fs::write(&program, "#!/bin/sh\necho \"fake 1.2.3, of today\" >&2\n").unwrap();
        assert!(missing(&system, &nothing).is_some(), "a file that cannot be run is not a program");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(missing(&system, &nothing), None);
        assert_eq!(version(&system).as_deref(), Some("1.2.3"));
        let Availability::Here(found) = probe(&system) else { panic!("it is here") };
        assert_eq!((found["version"].as_str(), found["program"].as_str()), (Some("1.2.3"), program.to_str()));
    }

    #[test]
    fn what_cannot_be_deployed_says_the_way_out() {
        let options = |pairs: &[(&str, &str)]| -> Options {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
        };
        let external = broker("[install]\nmanual = \"it is sold\"");
        assert_eq!(probe(&external), Availability::External);
        let why = missing(&external, &Options::new()).unwrap();
        assert!(why.contains("it is sold") && why.contains("pubmark bench mqtt://HOST:PORT"), "{why}");
        assert_eq!(missing(&external, &options(&[("endpoint", "mqtt://h")])), None);
        let native = server("no-such-program");
        let why = missing(&native, &options(&[("deployment", "docker")])).unwrap();
        assert!(why.contains("no container image"), "{why}");
        let why = missing(&broker(&format!("{PINNED}[install]\npip = [\"x==1\"]")), &Options::new()).unwrap();
        assert!(why.contains("pubmark systems t --install"), "{why}");
    }

    const PINNED: &str = "[server]\nendpoint = \"mqtt://127.0.0.1:{port}\"\ncommand = [\"{cache}/python/bin/x\"]\n";

    #[test]
    fn a_version_is_the_word_behind_its_mark() {
        assert_eq!(version_in("Redis server v=7.0.15 sha=0", "v=").as_deref(), Some("7.0.15"));
        assert_eq!(version_in("\n3.10.8\n", "").as_deref(), Some("3.10.8"));
        assert_eq!(version_in("mosquitto", "version "), None);
    }
}
