//! Turns a keeper's child into the server: it sets limits and executes the command.

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The steps of `launch` before it executes the command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The keeper; the command dies with it.
    pub parent: i32,
    /// Control groups to join.
    pub groups: Vec<PathBuf>,
    /// Processors to bind to; all if empty.
    pub cpus: Vec<usize>,
    /// Program and arguments.
    pub command: Vec<String>,
}

/// The reason why `launch` does not execute the command.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The command is empty.
    #[error("the command is empty")]
    Empty,
    /// The command would outlive its keeper.
    #[error("no signal at the keeper's death: {0}")]
    DeathSignal(Errno),
    /// The keeper has died already.
    #[error("the keeper has gone")]
    Orphan,
    /// A control group cannot be joined.
    #[error("{}: {source}", path.display())]
    Group {
        /// The group's list of processes.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The processors cannot be bound to.
    #[error("processors {cpus:?}: {source}")]
    Cpus {
        /// The processors.
        cpus: Vec<usize>,
        /// The system's error.
        source: Errno,
    },
    /// The program cannot be executed.
    #[error("`{command}` cannot be run: {source}")]
    Exec {
        /// Program and arguments.
        command: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Executes a command under limits. Returns only if it fails, with the reason.
pub fn launch(launch: &Launch) -> LaunchError {
    match prepare(launch) {
        Err(why) => why,
        Ok(mut command) => LaunchError::Exec { source: command.exec(), command: launch.command.join(" ") },
    }
}

fn prepare(launch: &Launch) -> Result<Command, LaunchError> {
    let (program, arguments) = launch.command.split_first().ok_or(LaunchError::Empty)?;
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(LaunchError::DeathSignal)?;
    if nix::unistd::getppid() != Pid::from_raw(launch.parent) {
        return Err(LaunchError::Orphan);
    }
    for group in &launch.groups {
        let path = group.join("cgroup.procs");
        std::fs::write(&path, std::process::id().to_string()).map_err(|source| LaunchError::Group { path, source })?;
    }
    if !launch.cpus.is_empty() {
        let mut set = nix::sched::CpuSet::new();
        let bound = launch.cpus.iter().try_for_each(|cpu| set.set(*cpu));
        bound
            .and_then(|()| nix::sched::sched_setaffinity(Pid::from_raw(0), &set))
            .map_err(|source| LaunchError::Cpus { cpus: launch.cpus.clone(), source })?;
    }
    // Every client is an open file of the server.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_command_nothing_is_run() {
        assert!(matches!(prepare(&Launch::default()), Err(LaunchError::Empty)));
    }
}
