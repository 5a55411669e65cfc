//! Registry of systems and studies. Systems come with pubmark, one file each in `systems/`, or in `agents/` beside the
//! agent that plays their clients, collected at build time; or users provide them. Studies come with pubmark, one
//! folder each in `studies/`.

pub mod user_files;

use flate2::read::DeflateDecoder;
use pubmark_host::cache;
use pubmark_host::install::tools;
use pubmark_model::diagnostic::Diagnostics;
use pubmark_model::printable::hexadecimal;
use pubmark_model::record::SystemOrigin;
use pubmark_model::system::System;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, OnceLock};
use user_files::{RefusedFile, UserFile, is_path};

/// A study that comes with pubmark.
pub struct IncludedStudy {
    /// Name that `pubmark run` takes.
    pub name: &'static str,
    /// Text of its `study.toml`.
    pub text: &'static str,
    /// Text of its `reference.csv`, if it names published figures.
    pub reference: Option<&'static str>,
}

include!(concat!(env!("OUT_DIR"), "/included.rs"));

fn built_in_systems() -> &'static Result<Vec<Arc<System>>, Diagnostics> {
    static LOADED: OnceLock<Result<Vec<Arc<System>>, Diagnostics>> = OnceLock::new();
    LOADED.get_or_init(|| {
        let agents = agents_folder();
        let parse = |(name, folder, text): &(&str, &str, &str)| {
            let system = System::parse(name, &format!("{name}.toml"), text)?;
            let (here, carried) = match folder.is_empty() {
                true => (String::new(), &[][..]),
                false => (agents.join(folder).display().to_string(), carried()),
            };
            Ok(Arc::new(System { here, carried, ..system }))
        };
        SYSTEMS.iter().map(parse).collect()
    })
}

/// Finds a system that comes with pubmark, even if a user's file has the same name.
pub fn built_in(name: &str) -> Option<Arc<System>> {
    let all = built_in_systems().as_deref().unwrap_or_default();
    all.iter().find(|system| system.name == name).cloned()
}

/// Returns the folder of this version's own agents; each version of pubmark has another.
fn agents_folder() -> PathBuf {
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    digest.update(format!("{CARRIED:?}").as_bytes());
    digest.update(PACKED);
    cache::agents_folder(&hexadecimal(&digest.finish().as_ref()[..6]))
}

/// Returns the sources of the agents that come with pubmark: path and text of each.
pub fn carried() -> &'static [(&'static str, &'static str)] {
    static UNPACKED: LazyLock<String> = LazyLock::new(|| {
        let mut text = String::new();
        // Packed at build time: tests find a broken archive.
        let _ = DeflateDecoder::new(PACKED).read_to_string(&mut text);
        text
    });
    static FILES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
        let mut at = 0;
        let file = |(path, length): &(&'static str, usize)| {
            let from = at;
            at += length;
            (*path, UNPACKED.get(from..at).unwrap_or_default())
        };
        CARRIED.iter().map(file).collect()
    });
    &FILES
}

/// Returns the text of the system of this name that comes with pubmark. A tool has no text, and its name is reserved.
fn text_of(name: &str) -> Option<&'static str> {
    let tool = tools::find(name).map(|_| "");
    SYSTEMS.iter().find(|(known, ..)| *known == name).map(|(.., text)| *text).or(tool)
}

/// The systems that can be named: those that come with pubmark, and the user's.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// The user's files in the folders, including invalid ones.
    of_folders: Vec<Arc<UserFile>>,
    /// Files that were named by their paths, with these names.
    named: Vec<(String, Arc<UserFile>)>,
    /// Paths of files that equal a system that comes with pubmark.
    same: Vec<String>,
}

impl Registry {
    /// Reads the system files of these folders; the first file of each name counts.
    ///
    /// # Errors
    /// Returns the faults in the files that come with pubmark.
    pub fn load(folders: &[PathBuf]) -> Result<Registry, &'static Diagnostics> {
        built_in_systems().as_ref()?;
        let files = folders.iter().flat_map(|folder| user_files::of_folder(folder, &text_of));
        Ok(Registry { of_folders: files.map(Arc::new).collect(), ..Registry::default() })
    }

    /// Returns the user's files: the first of a name counts.
    fn files(&self) -> impl Iterator<Item = &UserFile> {
        self.named.iter().map(|(_, file)| file).chain(&self.of_folders).map(|file| &**file)
    }

    fn file(&self, name: &str) -> Option<&UserFile> {
        self.files().find(|file| file.name == name)
    }

    /// Returns the user's files, each name once, including invalid ones.
    pub fn brought(&self) -> Vec<&UserFile> {
        let mut brought: Vec<&UserFile> = Vec::new();
        for file in self.files() {
            if brought.iter().all(|known| known.name != file.name) {
                brought.push(file);
            }
        }
        brought
    }

    /// Returns every system that can be named, by name.
    pub fn systems(&self) -> Vec<Arc<System>> {
        let brought = self.brought();
        let own = built_in_systems().as_deref().unwrap_or_default();
        let own = own.iter().filter(|system| brought.iter().all(|file| file.name != system.name));
        let mut systems: Vec<Arc<System>> =
            brought.iter().filter_map(|file| file.system.as_ref().ok()).cloned().collect();
        systems.extend(own.cloned());
        systems.sort_by(|a, b| a.name.cmp(&b.name));
        systems
    }

    /// Returns the names of all systems.
    pub fn names(&self) -> Vec<String> {
        self.systems().iter().map(|system| system.name.clone()).collect()
    }

    /// Returns true if a name is that of a system, or of a user's file that is not a valid one.
    pub fn knows(&self, name: &str) -> bool {
        self.file(name).is_some() || self.find(name).is_some()
    }

    /// Finds a system by name, or by a path that [`Registry::require`] has read.
    pub fn find(&self, name: &str) -> Option<Arc<System>> {
        if is_path(name) {
            let named = self.named.iter().find(|(known, _)| known == name).map(|(_, file)| file);
            // A file that equals a system that comes with pubmark was not kept.
            return named.map_or_else(|| self.of_stem(name), |file| file.system.as_ref().ok().cloned());
        }
        match self.file(name) {
            Some(file) => file.system.as_ref().ok().cloned(),
            None => built_in(name),
        }
    }

    /// Returns the system that comes with pubmark, if a path was read and its file equals it.
    fn of_stem(&self, path: &str) -> Option<Arc<System>> {
        let stem = Path::new(path).file_stem()?.to_str()?;
        built_in(stem).filter(|_| self.same.iter().any(|same| same == path))
    }

    /// Reads the file that a name stands for, if it is a path, below `base` unless absolute; from then on
    /// [`Registry::find`] knows it.
    ///
    /// # Errors
    /// If the file that is named, or that would have this name, is no valid system. An unknown name is no error.
    pub fn require(&mut self, name: &str, base: &Path) -> Result<(), Arc<RefusedFile>> {
        if !is_path(name) {
            return self.file(name).map_or(Ok(()), |file| file.system.clone().map(drop));
        }
        if self.find(name).is_some() {
            return Ok(());
        }
        let Some(file) = user_files::read(&base.join(name), &text_of) else {
            self.same.push(name.to_owned());
            return Ok(());
        };
        file.system.clone()?;
        let is_other = |(_, other): &&(String, Arc<UserFile>)| other.name == file.name && other.path != file.path;
        if let Some((_, other)) = self.named.iter().find(is_other) {
            let other = other.path.clone();
            return Err(Arc::new(RefusedFile::Twice { name: file.name, path: file.path, other }));
        }
        self.named.push((name.to_owned(), Arc::new(file)));
        Ok(())
    }
}

/// Returns the file that a system was read from, as records name it.
pub fn origin(system: &System) -> SystemOrigin {
    let digest = ring::digest::digest(&ring::digest::SHA256, system.source.as_bytes());
    SystemOrigin {
        sha256: hexadecimal(digest.as_ref()),
        built_in: !system.brought,
        replaces: system.brought && text_of(&system.name).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pubmark_host::install;
    use pubmark_model::endpoint::Endpoint;
    use pubmark_model::plan::cells;
    use pubmark_model::server::{Places, ServerLogin, TlsFiles};
    use pubmark_model::study::{ReadOptions, Study};
    use pubmark_model::tuning::Use;

    #[test]
    fn every_system_file_in_the_folder_is_registered_and_sound() {
        let registry = Registry::load(&[]).unwrap_or_else(|errors| panic!("{errors}"));
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let paths = |folder: &Path| -> Vec<PathBuf> {
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        let of_agents = paths(&root.join("agents")).into_iter().filter(|path| path.is_dir());
        let is_system = |path: &PathBuf| std::fs::read_to_string(path).is_ok_and(|text| text.contains("\nlicence = "));
        let files = paths(&root.join("systems")).into_iter().chain(of_agents.flat_map(|folder| paths(&folder)));
        let files = files.filter(|path| path.extension().is_some_and(|end| end == "toml") && is_system(path));
        let mut files: Vec<String> = files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        files.sort();
        assert_eq!(files, registry.names());
    }

    #[test]
    fn what_is_carried_is_what_lies_in_the_folders_of_the_agents() {
        let agents = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../agents"));
        assert!(carried().len() > 40, "{} files", carried().len());
        for (path, text) in carried() {
            assert_eq!(std::fs::read_to_string(agents.join(path)).unwrap(), *text, "{path}");
        }
        let here = |name: &str| carried().iter().any(|(path, _)| *path == name);
        assert!(here("zeromq-python/agent.py") && here("cpp/agent.cpp") && !here("zenoh/Cargo.toml"));
    }

    /// Returns the values behind a setting's name for every way of starting a server: natively and in a container. Tags
    /// in a name may be nested.
    fn told(system: &System, name: &str) -> Vec<String> {
        let Some(server) = &system.server else { return Vec::new() };
        let container = server.container.iter();
        let of_container =
            container.flat_map(|one| one.files.iter().chain(&one.environment).map(|(_, text)| text.clone()));
        let mut texts: Vec<String> =
            server.files.iter().chain(&server.environment).map(|(_, text)| text.clone()).collect();
        texts.extend(of_container);
        let commands = server.container.iter().map(|one| &one.command).chain([&server.command]).chain(&server.prepare);
        texts.extend(commands.map(|words| {
            let word = |word: &String| if word.is_empty() { "\"\"".to_owned() } else { word.clone() };
            words.iter().map(word).collect::<Vec<_>>().join(" ")
        }));
        let mut found = Vec::new();
        for text in &texts {
            let small = text.to_lowercase();
            let whole = name.to_lowercase();
            let parts: Vec<&str> = if small.contains(&whole) { vec![&whole] } else { whole.split('.').collect() };
            let mut from = 0;
            while let Some(end) =
                parts.iter().try_fold(from, |at, part| Some(at + small[at..].find(part)? + part.len()))
            {
                found.push(text[end..].trim_start_matches([' ', '=', ':', '>', '(']).to_owned());
                from = text[end..].find('\n').map_or(text.len(), |line| end + line);
            }
        }
        found
    }

    #[test]
    fn what_is_recorded_as_fixed_is_what_the_server_is_told() {
        let mut checked = 0;
        for system in Registry::default().systems().into_iter().filter(|system| system.server.is_some()) {
            for fixed in &system.fixed {
                let told = told(&system, &fixed.name);
                assert!(!told.is_empty(), "{}: nothing tells the server {}", system.name, fixed.name);
                for said in &told {
                    let rest = said.strip_prefix(&fixed.value);
                    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.');
                    let place = &said[..said.len().min(60)];
                    assert!(
                        rest.is_some_and(ends),
                        "{}: {} is {:?} in {place:?}",
                        system.name,
                        fixed.name,
                        fixed.value
                    );
                    checked += 1;
                }
            }
        }
        assert!(checked >= 16, "{checked}");
    }

    #[test]
    fn every_place_of_every_system_file_can_be_filled_in() {
        for system in Registry::default().systems() {
            let Some(server) = &system.server else { continue };
            let defaults = system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.default.clone()?)));
            for durable in [false, true] {
                let places = Places {
                    member: 1,
                    members: Vec::new(),
                    addresses: Vec::new(),
                    program: String::new(),
                    ports: server.ports().into_iter().zip(11_000..).collect(),
                    dir: "/run/x".into(),
                    cache: "/cache/x".into(),
                    here: String::new(),
                    cpus: 3,
                    memory_mb: 1024,
                    durable,
                    address: String::new(),
                    login: durable.then(ServerLogin::default),
                    tls: durable.then(TlsFiles::default),
                    options: defaults.clone().collect(),
                };
                let fill = |text: &str| places.fill(text).unwrap_or_else(|error| panic!("{}: {error}", system.name));
                let container = server.container.clone().unwrap_or_default();
                let variables = server.environment.iter().chain(&server.files).chain(&container.environment);
                let values = variables.chain(&container.files).map(|(_, value)| value);
                let commands = server.prepare.iter().flatten().chain(&server.command).chain(&container.command);
                for text in commands.chain(&server.version).chain(values) {
                    let filled = fill(text);
                    assert!(!filled.contains("{port") && !filled.contains("{options"), "{}: {filled}", system.name);
                    assert!(!text.contains("{here}"), "{}: what comes with pubmark has no folder", system.name);
                }
                let endpoint = fill(&server.endpoint);
                assert_eq!(Endpoint::parse(&endpoint).unwrap().address(), "127.0.0.1:11000", "{}", system.name);
            }
            for option in &system.options {
                assert!(!option.doc.is_empty(), "{}: the option `{}` gives no reason", system.name, option.name);
            }
            let ways = [!install::commands(&system).is_empty(), !system.install.manual.is_empty()];
            assert!(ways.contains(&true), "{}: nothing says how to get it", system.name);
        }
    }

    /// Returns a system's files and commands with these settings filled in.
    fn filled(name: &str, asked: Use) -> String {
        let system = built_in(name).unwrap();
        let server = system.server.as_ref().unwrap();
        let options = system.options.iter().filter_map(|spec| Some((spec.name.clone(), spec.value(asked)?)));
        let ports = server.ports().into_iter().zip(11_000..).collect();
        let places = Places { ports, cpus: 3, memory_mb: 1024, options: options.collect(), ..Places::default() };
        let texts = server.command.iter().chain(server.files.iter().map(|(_, text)| text));
        texts.map(|text| places.fill(text).unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn stock_settings_are_the_makers_and_reach_the_server() {
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
                let study = Study::parse(included.name, included.text, &built_in, &reading)
                    .unwrap_or_else(|errors| panic!("{errors}"));
                let cells = cells(&study).unwrap();
                assert!(!cells.is_empty());
                let again = Study::parse("resolved", &study.to_toml(), &built_in, &ReadOptions::default())
                    .unwrap_or_else(|errors| panic!("{errors}"));
                assert_eq!(Study { quick, ..again }, study, "what is written reads back");
            }
        }
    }

    /// Compares `pubmark run NAME … # … N runs …` in a study's README with the plan.
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
                let study = Study::parse(included.name, included.text, &built_in, &reading).unwrap();
                assert_eq!(said, crate::plan::StudyPlan::new(study).unwrap().extent().1.to_string(), "{line}");
                told += 1;
            }
        }
        assert!(told >= 10, "{told} lines");
    }

    #[test]
    fn whatever_runs_in_a_java_says_so() {
        let runs_java =
            |server: &pubmark_model::server::ServerSpec| server.command.first().is_some_and(|it| it == "java");
        let servers = Registry::default().systems().into_iter().filter_map(|system| system.server.clone());
        let servers: Vec<_> = servers.filter(runs_java).collect();
        assert!(servers.len() >= 5, "{}", servers.len());
        assert!(servers.iter().all(|server| server.out_of_memory_log == "java.lang.OutOfMemoryError"));
    }
}
