//! What is installed, and how to get the rest.

mod execute;
mod gather;
mod plan;
pub mod tools;

use crate::cache::cache_folder;
use crate::programs::find_program;
use pubmark_model::options::{OptionValues, Options};
use pubmark_model::server::Places;
use pubmark_model::system::System;
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a program may take to say its version.
const ANSWER: Duration = Duration::from_secs(10);

/// Whether a system can be used here.
#[derive(Clone, Debug, PartialEq)]
pub enum Presence {
    /// Yes: what it reports of itself.
    Here(Map<String, Value>),
    /// No, and why.
    Missing(String),
    /// Only where someone else runs it.
    External,
}

/// Finds out whether a broker can be deployed here: its program says its version.
pub fn probe(system: &System) -> Presence {
    let Some(server) = &system.server else { return Presence::External };
    if let Some(why) = absent(system) {
        return Presence::Missing(why);
    }
    let mut found = Map::new();
    if let Some(version) = version(system) {
        found.insert("version".into(), version.into());
    }
    let program = server.command.first().and_then(|word| find_program(&in_cache(system, word)));
    found.extend(program.map(|path| ("program".to_owned(), path.display().to_string().into())));
    Presence::Here(found)
}

/// Why a system's server cannot be deployed here, with the way out; none if it
/// can, or if `endpoint` names one that is there, or if there is no server.
pub fn missing(system: &System, options: &Options) -> Option<String> {
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
    if options.text("deployment") != Some("docker") {
        return absent(system);
    }
    if server.docker.is_none() {
        return Some(format!("{} has no container image: set deployment = \"native\"", system.name));
    }
    find_program("docker")
        .is_none()
        .then(|| "`docker` is not found: install Docker, or set deployment = \"native\"".into())
}

/// Why a tool cannot be used here, with the way out; none if it can.
pub fn missing_tool(tool: &System) -> Option<String> {
    absent(tool)
}

/// Why a server's programs cannot be started natively.
fn absent(system: &System) -> Option<String> {
    let server = system.server.as_ref()?;
    let name = &system.name;
    if server.command.is_empty() {
        return Some(format!(
            "{} is not started as a process of its own: {}set deployment = \"docker\", or `endpoint` to one that runs",
            system.title,
            hint(system)
        ));
    }
    let way = if commands(system).is_empty() {
        system.install.manual.clone()
    } else {
        format!("`pubmark systems {name} --install` brings it")
    };
    if system.install.cached() && !gather::is_whole(system) {
        return Some(format!("{name} is not installed: {way}"));
    }
    let programs = server.prepare.iter().chain([&server.command]).filter_map(|command| command.first());
    let lacking = programs.map(|word| in_cache(system, word)).find(|word| find_program(word).is_none());
    // What the preparations make cannot be there yet.
    lacking.filter(|word| !word.contains("{dir}")).map(|word| format!("`{word}` is not found: {way}"))
}

fn hint(system: &System) -> String {
    if system.install.manual.is_empty() { String::new() } else { format!("{}; ", system.install.manual) }
}

/// A text of a system file with `{cache}` filled in and the rest as it is.
fn in_cache(system: &System, text: &str) -> String {
    text.replace("{cache}", &cache_folder(system).display().to_string())
}

/// The version of what would be started: what the program says of itself, or
/// else the version of the first artifact that is pinned.
pub fn version(system: &System) -> Option<String> {
    let server = system.server.as_ref()?;
    if server.version.is_empty() {
        let install = &system.install;
        let maven = install.maven.first().and_then(|pin| pin.split(':').nth(2));
        let pinned = maven.or_else(|| install.pip.first().and_then(|pin| pin.split("==").nth(1)));
        let built = install.cargo.first().or(install.go.first()).and_then(|pin| pin.split('@').nth(1));
        return pinned.or(built).map(|version| version.trim_start_matches('v').to_owned());
    }
    let places = Places { cache: cache_folder(system).display().to_string(), ..Places::default() };
    let command: Vec<String> = server.version.iter().map(|word| places.fill(word)).collect::<Result<_, _>>().ok()?;
    let printed = execute::output(&command, ANSWER).ok()?;
    version_in(&printed, &server.version_after)
}

/// The word that stands behind `after`.
fn version_in(printed: &str, after: &str) -> Option<String> {
    let (_, rest) = printed.split_once(after)?;
    let word = rest.split(|c: char| c.is_whitespace() || c == ',' || c == ')').find(|word| !word.is_empty())?;
    Some(word.to_owned())
}

/// The commands that would install a system here, in order.
pub fn commands(system: &System) -> Vec<Vec<String>> {
    let fetch = plan::fetch(system, &cache_folder(system));
    packages(system).into_iter().chain(fetch).map(|step| step.command).collect()
}

fn packages(system: &System) -> Option<plan::InstallStep> {
    let packages = plan::debian(&system.install, &|program| find_program(program).is_some());
    (!packages.is_empty()).then(|| plan::apt(&packages, nix::unistd::geteuid().is_root()))
}

/// Installs a system, unless it is there; `say` is told each command first.
pub fn install(system: &System, say: &dyn Fn(&str)) -> Result<(), String> {
    if commands(system).is_empty() {
        return Err(match system.install.manual.as_str() {
            "" => format!("{} needs no installation", system.name),
            manual => format!("{} cannot be installed by pubmark: {manual}", system.name),
        });
    }
    if (system.broker() || system.server.is_some()) && absent(system).is_none() {
        return Ok(());
    }
    if let Some(step) = packages(system) {
        say(&step.command.join(" "));
        execute::run(&step.command, step.limit).map_err(|error| {
            format!("{error}: try again after `apt-get update`; on systems other than Debian's kin, use their own package manager")
        })?;
    }
    if !system.install.go.is_empty() && find_program("go").is_none() {
        return Err(format!(
            "{} is built by Go, which is not found: install Go 1.23 or later (https://go.dev/doc/install), and try again",
            system.title
        ));
    }
    if system.install.cached() && !gather::is_whole(system) {
        gather::gather(system, say)?;
    }
    Ok(())
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
        assert!(missing(&system, &nothing).is_some(), "a file that cannot be run is no program");
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(missing(&system, &nothing), None);
        assert_eq!(version(&system).as_deref(), Some("1.2.3"));
        let Presence::Here(found) = probe(&system) else { panic!("it is here") };
        assert_eq!((found["version"].as_str(), found["program"].as_str()), (Some("1.2.3"), program.to_str()));
    }

    #[test]
    fn what_cannot_be_deployed_says_the_way_out() {
        let options = |pairs: &[(&str, &str)]| -> Options {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
        };
        let external = broker("[install]\nmanual = \"it is sold\"");
        assert_eq!(probe(&external), Presence::External);
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
