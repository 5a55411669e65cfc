//! The ledger of a server whose power is cut: a file system of pubmark's own over the server's folder, which keeps what was
//! synced. A power cut takes everything else, whenever it was written, so every cut loses the same.
//!
//! A process of its own serves it, `pubmark ledger-disk`, below the keeper. Root mounts it in a mount namespace of the
//! keeper's own, like a [`super::disk`]. Other users mount it with `fusermount3`, and the rest of the machine sees it:
//! the process unmounts it when the keeper has ended, and [`remove_all`] if it was killed too.

mod contents;
mod filesystem;
mod tree;

use super::command::output;
use super::disk::{self, DiskError, image_of, step};
use crate::clock;
use crate::programs::find_program;
use filesystem::LedgerMount;
use fuser::{Config, MountOption, Session, SessionACL};
use nix::errno::Errno;
use nix::mount::{MntFlags, umount2};
use nix::sys::signal::Signal;
use nix::unistd::{geteuid, syncfs};
use pubmark_model::units::Ns;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tree::Tree;

/// Program with which users mount.
const FUSERMOUNT: &str = "fusermount3";
/// Time limit of that program.
const PROGRAM: Duration = Duration::from_secs(10);
/// Device of the kernel's module.
const DEVICE: &str = "/dev/fuse";
/// Name of the file with the counts, in the store.
const COUNTS: &str = "counts";
/// Time limit for an answer of the process.
const ANSWER: Duration = Duration::from_secs(60);
/// Time limit for the end of the last use of a mount.
const BUSY: Duration = Duration::from_secs(10);
/// Interval at which a mount that is in use is tried again.
const LOOK: Duration = Duration::from_millis(5);
/// Orders to the process, a line each.
const SETTLE: &str = "settle";
const FAIL: &str = "fail";
const REPLAY: &str = "replay";

/// An answer of the process: the instant at which it did what it was told.
type Answer = Result<Ns, String>;

/// Returns why there can be no ledger on this machine, and what to do; `None` if there can.
pub fn missing() -> Option<String> {
    let instead = "or kill the server instead";
    match OpenOptions::new().read(true).write(true).open(DEVICE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Some(format!(
                "there is no {DEVICE}: load the kernel module `fuse`, give the container that device, {instead}"
            ));
        }
        Err(error) => {
            return Some(format!("{DEVICE} cannot be used ({error}): allow it (chmod 666 {DEVICE}), {instead}"));
        }
        Ok(_) => {}
    }
    if geteuid().is_root() {
        let why = "root may not mount here (no CAP_SYS_ADMIN): give the container that right,";
        return (!disk::capable(disk::SYS_ADMIN)).then(|| format!("{why} {instead}"));
    }
    let lacks = find_program(FUSERMOUNT).is_none();
    lacks.then(|| format!("there is no `{FUSERMOUNT}`: install it (apt-get install fuse3), {instead}"))
}

/// Returns the number of a ledger's mount and its syncs so far, from its store.
pub fn counts(store: &Path) -> Option<(u64, u64)> {
    let text = fs::read_to_string(store.join(COUNTS)).ok()?;
    let (mount, syncs) = text.split_once(' ')?;
    Some((mount.parse().ok()?, syncs.parse().ok()?))
}

/// The keeper's end of a ledger.
#[derive(Debug)]
pub struct LedgerDisk {
    folder: PathBuf,
    pid: i32,
    input: ChildStdin,
    answers: Receiver<Answer>,
}

impl LedgerDisk {
    /// Puts a ledger in the place of a folder, with what that contains. With `strict`, only a sync of its folder makes a
    /// name durable.
    ///
    /// # Errors
    /// If it cannot be mounted.
    pub fn make(folder: &Path, strict: bool) -> Result<LedgerDisk, DiskError> {
        if geteuid().is_root() {
            disk::part_mounts()?;
        }
        // This very program, even if its file has been replaced meanwhile.
        let mut serve = Command::new("/proc/self/exe");
        serve.arg("ledger-disk").arg(folder).args(strict.then_some("--strict"));
        // Its own process group, so that Ctrl-C reaches only the coordinator. Its errors go to the server's log.
        serve.process_group(0).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = serve.spawn().map_err(step("its process cannot be started"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(DiskError::Ledger("its process has no input".into()));
        };
        let (sender, answers) = channel();
        let listen = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer = serde_json::from_str(&line);
                if sender.send(answer.unwrap_or_else(|_| Err(format!("its process says `{line}`")))).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(listen).map_err(step("no thread"))?;
        let ledger = LedgerDisk { folder: folder.to_owned(), pid: child.id() as i32, input, answers };
        ledger.hear()?;
        Ok(ledger)
    }

    /// Returns the process that serves it.
    pub fn process(&self) -> i32 {
        self.pid
    }

    fn hear(&self) -> Result<Ns, DiskError> {
        match self.answers.recv_timeout(ANSWER) {
            Ok(answer) => answer.map_err(DiskError::Ledger),
            Err(RecvTimeoutError::Timeout) => {
                Err(DiskError::Ledger(format!("its process did not answer within {} s", ANSWER.as_secs())))
            }
            Err(RecvTimeoutError::Disconnected) => Err(DiskError::Ledger("its process ended".into())),
        }
    }

    fn order(&mut self, order: &str) -> Result<Ns, DiskError> {
        let told = writeln!(self.input, "{order}").and_then(|()| self.input.flush());
        told.map_err(step("its process cannot be told anything"))?;
        self.hear()
    }

    /// Has everything count as synced, also pages that a process has mapped. Returns when this was done.
    ///
    /// # Errors
    /// If its process fails.
    pub fn settle(&mut self) -> Result<Ns, DiskError> {
        let folder = File::open(&self.folder).map_err(step("it cannot be opened"))?;
        syncfs(folder).map_err(step("it cannot be synced"))?;
        self.order(SETTLE)
    }

    /// Cuts the power: reads and writes fail. Returns the instant.
    ///
    /// # Errors
    /// If its process fails.
    pub fn fail(&mut self) -> Result<Ns, DiskError> {
        self.order(FAIL)
    }

    /// Goes back to what was synced, when no process uses it any more. Returns when it could be used again.
    ///
    /// # Errors
    /// If its process fails, or another still uses it.
    pub fn replay(&mut self) -> Result<Ns, DiskError> {
        self.order(REPLAY)
    }

    /// Unmounts it, even if a process uses it.
    pub fn remove(self) {
        let LedgerDisk { folder, pid, input, answers } = self;
        drop(input);
        let deadline = Instant::now() + BUSY;
        while Instant::now() < deadline {
            if let Err(RecvTimeoutError::Disconnected) = answers.recv_timeout(BUSY) {
                break;
            }
        }
        // Its parent reaps it: it may have ended.
        if super::processes::lives(pid) {
            super::processes::signal(pid, Signal::SIGKILL);
        }
        unmount_below(&folder);
    }
}

/// A mount that a thread serves.
struct Served {
    thread: JoinHandle<io::Result<()>>,
}

/// Serves a ledger over `folder` until `orders` ends, and unmounts it then. Answers, after mounting and after each order,
/// are lines of JSON. The caller ensures that signals do not end this process.
///
/// # Errors
/// If it cannot be mounted, or not any more.
pub fn serve(folder: &Path, strict: bool, orders: impl BufRead, mut answers: impl Write) -> Result<(), DiskError> {
    let mut say = |answer: &Answer| -> Result<(), DiskError> {
        let line = serde_json::to_string(answer).map_err(|error| step("no answer")(io::Error::from(error)))?;
        writeln!(answers, "{line}").and_then(|()| answers.flush()).map_err(step("nobody hears its answers"))
    };
    let store = image_of(folder);
    let made = Tree::of_folder(folder, &store, strict).map_err(step("the server's files cannot be copied to it"));
    let made = made.and_then(|tree| {
        let tree = Arc::new(Mutex::new(tree));
        Ok((mount(&tree, folder, &store, 1)?, tree))
    });
    let (mut served, tree) = match made {
        Ok(made) => made,
        Err(error) => return say(&Err(words(&error))),
    };
    let lock = || tree.lock().unwrap_or_else(PoisonError::into_inner);
    let mut mounts = 1;
    let mut said = say(&Ok(clock::now()));
    for order in orders.lines().map_while(Result::ok) {
        let done = match order.as_str() {
            SETTLE => {
                lock().settle();
                Ok(clock::now())
            }
            FAIL => {
                let mut tree = lock();
                tree.fail();
                Ok(clock::now())
            }
            REPLAY => {
                mounts += 1;
                let again = end(served, folder).and_then(|()| {
                    lock().go_back().map_err(step("it cannot go back to what was synced"))?;
                    mount(&tree, folder, &store, mounts)
                });
                match again {
                    Ok(again) => {
                        served = again;
                        Ok(clock::now())
                    }
                    Err(error) => {
                        said = say(&Err(words(&error)));
                        break;
                    }
                }
            }
            other => Err(format!("`{other}` is not an order")),
        };
        said = say(&done);
        if said.is_err() {
            break;
        }
    }
    unmount_below(folder);
    said
}

/// Returns the words of an error that are not said again by those who hear it.
fn words(error: &DiskError) -> String {
    let words = error.to_string();
    words.strip_prefix("the server's disk: ").map_or(words.clone(), str::to_owned)
}

/// Mounts a tree, and serves it on a thread.
fn mount(tree: &Arc<Mutex<Tree>>, folder: &Path, store: &Path, number: u64) -> Result<Served, DiskError> {
    let counts = OpenOptions::new().write(true).create(true).truncate(false).open(store.join(COUNTS));
    let counts = counts.map_err(step("its counts cannot be written"))?;
    let mut config = Config::default();
    config.mount_options = vec![MountOption::FSName("pubmark".into()), MountOption::DefaultPermissions];
    // A server that root starts may become another user. Others may not allow it (user_allow_other), and need not.
    config.acl = if geteuid().is_root() { SessionACL::All } else { SessionACL::Owner };
    let filesystem = LedgerMount::new(Arc::clone(tree), store, counts, number);
    let session = Session::new(filesystem, folder, &config).map_err(step("it cannot be mounted"))?;
    let thread = thread::Builder::new().name("ledger".into()).spawn(move || session.run());
    Ok(Served { thread: thread.map_err(step("no thread"))? })
}

/// Unmounts a ledger that no process uses any more, and waits for its thread.
fn end(served: Served, folder: &Path) -> Result<(), DiskError> {
    let deadline = Instant::now() + BUSY;
    while let Err(error) = unmount(folder, false) {
        if Instant::now() >= deadline {
            return Err(step("it cannot be unmounted after its power was cut")(error));
        }
        thread::park_timeout(LOOK);
    }
    while !served.thread.is_finished() {
        if Instant::now() >= deadline {
            return Err(DiskError::Ledger("the kernel did not end its mount in time".into()));
        }
        thread::park_timeout(LOOK);
    }
    Ok(())
}

/// Unmounts what is mounted at a path: `lazily` even if a process uses it.
fn unmount(path: &Path, lazily: bool) -> io::Result<()> {
    let flags = if lazily { MntFlags::MNT_DETACH } else { MntFlags::empty() };
    match umount2(path, flags) {
        Err(Errno::EPERM) => {
            let mut command = vec![FUSERMOUNT.to_owned(), "-u".into(), "-q".into()];
            command.extend(lazily.then(|| "-z".into()));
            command.extend(["--".into(), path.display().to_string()]);
            output(&command, &[], PROGRAM).map(drop).map_err(io::Error::other)
        }
        done => done.map_err(io::Error::from),
    }
}

/// Removes a folder with everything below it, and unmounts ledgers there before.
///
/// # Errors
/// Those of the removal.
pub fn remove_all(folder: &Path) -> io::Result<()> {
    unmount_below(folder);
    fs::remove_dir_all(folder)
}

/// Unmounts the ledgers at a folder and below it, even if processes use them.
fn unmount_below(folder: &Path) {
    let Ok(mounts) = fs::read_to_string("/proc/self/mountinfo") else { return };
    for path in ledgers(&mounts).into_iter().filter(|path| path.starts_with(folder)) {
        // It fails if another process has unmounted it meanwhile, which is as good.
        let _ = unmount(&path, true);
    }
}

/// Returns where ledgers are mounted, by the text of `/proc/self/mountinfo` (proc(5)).
fn ledgers(mountinfo: &str) -> Vec<PathBuf> {
    let point = |line: &str| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let is_ledger = right.next()?.starts_with("fuse") && right.next()? == "pubmark";
        // A blank in a name is escaped like this.
        let point = left.split(' ').nth(4)?.replace("\\040", " ");
        is_ledger.then(|| PathBuf::from(point))
    };
    mountinfo.lines().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledgers_are_told_from_other_mounts() {
        let text = "43 27 0:39 / /tmp/a\\040b/server rw - fuse pubmark rw,user_id=0\n\
            44 27 0:40 / /home/x/remote rw - fuse.sshfs host: rw\n\
            45 27 8:1 / /tmp/pubmark rw - ext4 pubmark rw\nodd\n";
        assert_eq!(ledgers(text), [Path::new("/tmp/a b/server")]);
    }

    #[test]
    fn counts_are_those_of_the_mount() {
        let store = tempfile::tempdir().unwrap();
        assert_eq!(counts(store.path()), None);
        fs::write(store.path().join(COUNTS), format!("{:020} {:020}", 2, 31)).unwrap();
        assert_eq!(counts(store.path()), Some((2, 31)));
    }
}
