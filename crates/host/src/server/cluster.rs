//! The members of a server, asked whether they have joined and who leads.
//!
//! Only the questions of the system file are asked: over HTTP at a port for monitoring, or by a
//! command. No client's port is used.

use super::command::{CommandError, output};
use super::layout;
use crate::error::HostError;
use crate::http;
use pubmark_model::cluster::{ClusterProbe, ClusterSpec, most_named};
use pubmark_model::server::Places;
use std::time::Duration;

/// Time limit of a question over HTTP.
const HTTP: Duration = Duration::from_secs(2);
/// Time limit of a command.
const COMMAND: Duration = Duration::from_secs(30);
/// Length of an answer that is quoted, characters.
const QUOTED: usize = 200;

/// The cluster of a server that was started here.
#[derive(Clone, Debug)]
pub struct Cluster {
    spec: ClusterSpec,
    /// Environment of the server, which its commands get too.
    environment: Vec<(String, String)>,
    /// Values of placeholders of each member that is here.
    members: Vec<Places>,
    /// The processes that keep them, once they are started: a disk of a member's own is mounted for its keeper only.
    keepers: Vec<i32>,
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    /// The file has an unknown placeholder.
    #[error(transparent)]
    Place(#[from] HostError),
    /// The address is not reached.
    #[error("`{what}`: {source}")]
    Io { what: String, source: std::io::Error },
    /// The answer is not JSON.
    #[error("`{what}` answers `{answer}`")]
    Json { what: String, answer: String },
    /// The values are not those that are expected.
    #[error("`{what}` says `{found}`, not `{wanted}`")]
    Other { what: String, found: String, wanted: String },
    /// The command failed, or took too long.
    #[error(transparent)]
    Command(#[from] CommandError),
}

impl Cluster {
    /// Makes the cluster of members with these values of placeholders.
    pub fn new(spec: &ClusterSpec, environment: &[(String, String)], members: Vec<Places>) -> Cluster {
        Cluster { spec: spec.clone(), environment: environment.to_vec(), members, keepers: Vec::new() }
    }

    /// Notes the processes that keep the members, in their order. Commands see files as these do.
    #[must_use]
    pub fn kept_by(self, keepers: Vec<i32>) -> Cluster {
        Cluster { keepers, ..self }
    }

    /// Checks that a member that is here has joined, by its number. An error describes the answer.
    pub fn joined(&self, number: u32) -> Result<(), String> {
        let places = self.members.iter().find(|places| places.member == number).ok_or("no such member")?;
        self.spec.joined.iter().try_for_each(|probe| self.holds(probe, places)).map_err(|error| error.to_string())
    }

    /// Returns the number, from 1, of the member that leads, as another says that is not among `silent` (numbers).
    ///
    /// # Errors
    /// No member names one. The text quotes the last answer.
    pub fn leader(&self, silent: &[u32]) -> Result<u32, String> {
        let probe = self.spec.leader.as_ref().ok_or("its file has no [cluster.leader]")?;
        let first = self.members.first().ok_or("no member is here")?;
        let names: Result<Vec<String>, _> =
            (1..=first.members.len() as u32).map(|number| first.of_member(number).fill(&self.spec.name)).collect();
        let names = names.map_err(|error| error.to_string())?;
        let mut why = "no member can be asked".to_owned();
        for places in self.members.iter().filter(|places| !silent.contains(&places.member)) {
            match self.ask(probe, places) {
                Ok((what, values)) => match most_named(&names, &values) {
                    Some(place) => return Ok(place as u32 + 1),
                    None => {
                        why = format!("`{what}` names none of {}: {}", names.join(", "), quoted(&values.join(", ")))
                    }
                },
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    fn holds(&self, probe: &ClusterProbe, places: &Places) -> Result<(), ProbeError> {
        let (what, values) = self.ask(probe, places)?;
        let fill = |text: &String| places.fill(text).map_err(HostError::from);
        let (is, count) = (fill(&probe.is)?, fill(&probe.count)?);
        let right = is.is_empty() || !values.is_empty() && values.iter().all(|value| *value == is);
        let enough = count.is_empty() || values.len().to_string() == count;
        if right && enough {
            return Ok(());
        }
        let wanted = if right { format!("{count} of them") } else { is };
        Err(ProbeError::Other { what, found: quoted(&values.join(", ")), wanted })
    }

    /// Returns the question and the values of its answer.
    fn ask(&self, probe: &ClusterProbe, places: &Places) -> Result<(String, Vec<String>), ProbeError> {
        let (what, answer) = if probe.command.is_empty() {
            let url = places.fill(&probe.http).map_err(HostError::from)?;
            let answer = http::get(&url, HTTP).map_err(|source| ProbeError::Io { what: url.clone(), source })?;
            (url, answer)
        } else {
            let command = layout::fill(places, &probe.command)?;
            let what = command.join(" ");
            let place = self.members.iter().position(|member| member.member == places.member);
            let keeper = place.and_then(|place| self.keepers.get(place));
            let command = if let Some(keeper) = keeper { in_files_of(*keeper, command) } else { command };
            let answer = output(&command, &layout::fill_values(places, &self.environment)?, COMMAND)?;
            (what, answer)
        };
        match probe.values(&answer) {
            Ok(values) => Ok((what, values)),
            Err(_) => Err(ProbeError::Json { what, answer: quoted(&answer) }),
        }
    }
}

/// Returns a command that sees the files which a process sees.
fn in_files_of(pid: i32, command: Vec<String>) -> Vec<String> {
    let mounts = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    match mounts(&pid.to_string()).filter(|theirs| Some(theirs) != mounts("self").as_ref()) {
        Some(_) => ["nsenter".to_owned(), format!("--mount=/proc/{pid}/ns/mnt")].into_iter().chain(command).collect(),
        None => command,
    }
}

fn quoted(text: &str) -> String {
    text.trim().chars().take(QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::disk::{self, SYS_ADMIN};
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    fn cluster(joined: ClusterProbe, leader: ClusterProbe) -> Cluster {
        let spec = ClusterSpec {
            joined: vec![joined],
            leader: Some(leader),
            name: "n{member}".into(),
            ..ClusterSpec::default()
        };
        let place = |member| Places { member, members: vec![Vec::new(); 3], ..Places::default() };
        Cluster::new(&spec, &[("MINE".into(), "n{member}".into())], (1..=3).map(place).collect())
    }

    fn says(command: &str, count: &str, is: &str) -> ClusterProbe {
        let command = ["sh", "-c", command].map(str::to_owned).to_vec();
        ClusterProbe { command, count: count.into(), is: is.into(), ..ClusterProbe::default() }
    }

    /// As root, for only root mounts.
    #[test]
    fn a_member_is_asked_about_files_that_only_its_keeper_sees() {
        if !disk::capable(SYS_ADMIN) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let script = "mount -t tmpfs none \"$0\" && echo n1 >\"$0/name\" && echo there && exec cat";
        let mut keeper = Command::new("unshare")
            .args(["--mount", "sh", "-c", script])
            .arg(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let asks = says(&format!("cat '{}/name'", dir.path().display()), "1", "");
        let hidden = cluster(asks.clone(), asks.clone());
        assert!(hidden.joined(1).unwrap_err().contains("No such file"));
        let seen = cluster(asks.clone(), asks).kept_by(vec![keeper.id() as i32]);
        assert_eq!((seen.joined(1), seen.leader(&[])), (Ok(()), Ok(1)));
        assert!(seen.joined(2).is_err(), "its keeper is another one");
        drop(keeper.stdin.take());
        keeper.wait().unwrap();
    }

    #[test]
    fn members_join_and_lead_as_their_answers_say() {
        let all = cluster(says("echo $MINE; echo $MINE", "2", "n{member}"), says("echo n2; echo n3; echo n3", "", ""));
        assert_eq!((all.joined(1), all.joined(3)), (Ok(()), Ok(())));
        assert_eq!(all.leader(&[]), Ok(3));
        let one = cluster(says("echo $MINE", "2", ""), says("test $MINE = n2 && echo n1", "", ""));
        let why = one.joined(2).unwrap_err();
        assert!(why.contains("says `n2`, not `2 of them`"), "{why}");
        assert_eq!(one.leader(&[]), Ok(1), "the second was asked because the first failed");
        let why = one.leader(&[2]).unwrap_err();
        assert!(why.contains("exit status: 1"), "{why}");
    }
}
