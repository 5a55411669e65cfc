//! The disk of a server whose power is cut, or whose disk is filled: an ext4 or xfs file system on a loop file beside
//! the server's folder.
//!
//! It is mounted in a mount namespace of the keeper's own, so only the keeper and the server see it. The kernel
//! removes the mount and frees the loop device as soon as the last of them has ended, whatever ends them.

use super::command::{CommandError, output};
use crate::clock;
use crate::programs::find_program;
use nix::fcntl::{FallocateFlags, fallocate};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{geteuid, syncfs};
use pubmark_model::power::Power;
use pubmark_model::record::DiskFigures;
use pubmark_model::units::{MILLISECOND, Ns};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// CAP_SYS_ADMIN.
pub(super) const SYS_ADMIN: u64 = 1 << 21;
/// Size of the disk, bytes. The loop file is sparse.
const SIZE: u64 = 8 << 30;
/// `EXT4_IOC_SHUTDOWN` of `fs/ext4/ext4.h`, and `XFS_IOC_GOINGDOWN`: the file system forgets what it has not written.
const SHUTDOWN: nix::libc::Ioctl = 0x8004_587D;
/// `EXT4_GOING_FLAGS_NOLOGFLUSH`, and that of xfs: the journal in memory is forgotten as well.
const NO_LOG_FLUSH: u32 = 2;
/// Name of the file that takes all room on a disk.
const FILLER: &str = ".pubmark-filler";
/// The smallest piece of that file, bytes: a block of the file system.
const PIECE_MIN: u64 = 4096;
/// Time limit of `mkfs` and `mount`.
const PROGRAM: Duration = Duration::from_secs(30);
/// Time limit for the end of the last use of a disk.
const BUSY: Duration = Duration::from_secs(10);
/// Interval at which a disk that is in use is tried again.
const LOOK: Duration = Duration::from_millis(5);

/// What a block device has done since it was made: `writes`, `flushes` and `flush_ms` of
/// `/sys/block/NAME/stat`. Of a ledger, only syncs are known, as flushes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskCounts {
    writes: Option<u64>,
    flushes: u64,
    flush_ms: Option<u64>,
}

impl DiskCounts {
    /// Parses the line of a device. `None` before Linux 5.5, which did not count flushes.
    fn parse(text: &str) -> Option<DiskCounts> {
        let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let (writes, flush_ms) = (Some(*fields.get(4)?), Some(*fields.get(16)?));
        Some(DiskCounts { writes, flushes: *fields.get(15)?, flush_ms })
    }

    /// Returns the counts of a ledger, which knows its syncs only.
    pub(super) fn of_syncs(syncs: u64) -> DiskCounts {
        DiskCounts { writes: None, flushes: syncs, flush_ms: None }
    }

    /// Returns what was done since an earlier reading.
    pub fn since(self, then: DiskCounts) -> DiskFigures {
        let grown = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        DiskFigures {
            writes: grown(self.writes, then.writes),
            flushes: self.flushes.saturating_sub(then.flushes),
            flush_ns: grown(self.flush_ms, then.flush_ms).map(|ms| ms.saturating_mul(MILLISECOND)),
        }
    }
}

/// Returns the file of the disk of a server's folder, or the folder of its ledger's store.
pub fn image_of(folder: &Path) -> PathBuf {
    folder.with_extension("disk")
}

/// Returns the loop device of a disk's file and the number of its attachment, with its counts so far.
pub(super) fn counts(image: &Path) -> Option<((String, String), DiskCounts)> {
    let image = image.canonicalize().ok()?;
    let is_its = |device: &PathBuf| {
        let file = fs::read_to_string(device.join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim_end_matches('\n')) == image)
    };
    let device = fs::read_dir("/sys/block").ok()?.flatten().map(|entry| entry.path()).find(is_its)?;
    let read = |file: &str| fs::read_to_string(device.join(file)).ok();
    let attachment = read("diskseq").unwrap_or_default().trim().to_owned();
    Some(((device.display().to_string(), attachment), DiskCounts::parse(&read("stat")?)?))
}

/// A mounted disk.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    image: PathBuf,
}

/// The reason why a server has no disk of its own, or why its power could not be cut.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A step failed.
    #[error("the server's disk: {what}: {source}")]
    Step {
        /// The step.
        what: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// A program failed, or took too long.
    #[error("the server's disk: {0}")]
    Program(#[from] CommandError),
    /// The process of a ledger failed, or took too long.
    #[error("the server's disk: {0}")]
    Ledger(String),
    /// A ledger has no size.
    #[error("the server's disk: a ledger cannot be filled")]
    Endless,
}

pub(super) fn step<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> DiskError {
    move |source| DiskError::Step { what, source: source.into() }
}

/// Returns why there can be no such disk on this machine, and what to do; `None` if there can.
pub(super) fn missing(power: Power) -> Option<String> {
    let instead = "set power = \"ledger\", or kill the server instead";
    if !geteuid().is_root() {
        return Some(format!("a disk can only be mounted by root: run pubmark as root, {instead}"));
    }
    if !capable(SYS_ADMIN) {
        return Some(format!("root may not mount here (no CAP_SYS_ADMIN): give the container that right, {instead}"));
    }
    if !Path::new("/dev/loop-control").exists() {
        return Some("there is no /dev/loop-control: load the kernel module `loop`".into());
    }
    let (package, maker) = maker(power);
    let needed = [(maker[0], package), ("mount", "util-linux")];
    let without = needed.into_iter().find(|(program, _)| find_program(program).is_none());
    without.map(|(program, package)| format!("there is no `{program}`: install {package}"))
}

/// Returns the command that makes the file system, without its file, after its package.
fn maker(power: Power) -> (&'static str, &'static [&'static str]) {
    const LAZILY: &str = "lazy_itable_init=0,lazy_journal_init=0";
    match power {
        Power::Xfs => ("xfsprogs", &["mkfs.xfs", "-q", "-f", "-K"]),
        _ => ("e2fsprogs", &["mkfs.ext4", "-q", "-F", "-m", "0", "-N", "65536", "-E", LAZILY]),
    }
}

/// Returns whether this process has all of some capabilities, of which each is a bit.
pub(super) fn capable(wanted: u64) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    effective.is_none_or(|effective| effective & wanted == wanted)
}

impl Disk {
    /// Makes a disk, and puts it in the place of `folder`, with what that contains. From now on the calling thread and
    /// the processes that it starts see other mounts than the rest of the machine.
    pub fn make(power: Power, folder: &Path) -> Result<Disk, DiskError> {
        let disk = Disk { folder: folder.to_owned(), image: image_of(folder) };
        let file = File::create_new(&disk.image).map_err(step("its file cannot be made"))?;
        file.set_len(SIZE).map_err(step("its file cannot be made"))?;
        run(maker(power).1, &[&disk.image])?;
        part_mounts()?;
        let beside = folder.with_extension("mount");
        fs::create_dir(&beside).map_err(step("no folder to mount it"))?;
        run(&["mount", "-o", "loop"], &[&disk.image, &beside])?;
        // Not every server starts with a folder that it does not know.
        let _ = fs::remove_dir(beside.join("lost+found"));
        copy(folder, &beside).map_err(step("the server's files cannot be copied to it"))?;
        let moved = mount(Some(&beside), folder, None::<&str>, MsFlags::MS_MOVE, None::<&str>);
        moved.map_err(step("it cannot be mounted"))?;
        let _ = fs::remove_dir(&beside);
        Ok(disk)
    }

    fn open(&self) -> Result<File, DiskError> {
        File::open(&self.folder).map_err(step("it cannot be opened"))
    }

    /// Writes everything to the disk, as if it had been there for long. Returns when this was done.
    pub fn settle(&self) -> Result<Ns, DiskError> {
        syncfs(self.open()?).map_err(step("it cannot be synced"))?;
        Ok(clock::now())
    }

    /// Cuts the power: what was not synced is gone, and reads and writes fail. Returns the instant.
    #[allow(unsafe_code)]
    pub fn fail(&self) -> Result<Ns, DiskError> {
        let folder = self.open()?;
        let at_ns = clock::now();
        // SAFETY: the descriptor is open, and the kernel reads one u32 from the pointer, which is valid for the call.
        let done = unsafe { nix::libc::ioctl(folder.as_raw_fd(), SHUTDOWN, std::ptr::from_ref(&NO_LOG_FLUSH)) };
        nix::errno::Errno::result(done).map_err(step("its power cannot be cut"))?;
        Ok(at_ns)
    }

    /// Takes all room on the disk, without writing to it. Returns when that was done.
    pub fn fill(&self) -> Result<Ns, DiskError> {
        let filler = File::create(self.folder.join(FILLER)).map_err(step("it cannot be filled"))?;
        let (mut bytes, mut piece) = (0, SIZE);
        while piece >= PIECE_MIN {
            match fallocate(&filler, FallocateFlags::empty(), bytes as i64, piece as i64) {
                Ok(()) => bytes += piece,
                Err(nix::errno::Errno::EINTR) => {}
                // A failed request may have taken a part of its piece, which the next one finds.
                Err(nix::errno::Errno::ENOSPC) => piece /= 2,
                Err(error) => return Err(step("it cannot be filled")(error)),
            }
        }
        Ok(clock::now())
    }

    /// Gives the room back that [`Disk::fill`] took. Returns when that began.
    pub fn free(&self) -> Result<Ns, DiskError> {
        let at_ns = clock::now();
        fs::remove_file(self.folder.join(FILLER)).map_err(step("it cannot be emptied again"))?;
        Ok(at_ns)
    }

    /// Mounts the disk again after a power cut, when no process uses it any more; its journal is replayed. Returns when
    /// this was done.
    pub fn replay(&self) -> Result<Ns, DiskError> {
        let deadline = Instant::now() + BUSY;
        while let Err(error) = umount2(&self.folder, MntFlags::empty()) {
            if error != nix::errno::Errno::EBUSY || Instant::now() >= deadline {
                return Err(step("it cannot be unmounted after its power was cut")(error));
            }
            thread::park_timeout(LOOK);
        }
        run(&["mount", "-o", "loop"], &[&self.image, &self.folder])?;
        Ok(clock::now())
    }

    /// Unmounts the disk, even if a process uses it.
    pub fn remove(self) {
        let _ = umount2(&self.folder, MntFlags::MNT_DETACH);
    }
}

/// Has the calling thread, and the processes that it starts, see other mounts than the rest of the machine.
pub(super) fn part_mounts() -> Result<(), DiskError> {
    let apart = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
    };
    apart().map_err(step("no mounts of its own"))
}

/// Runs a program to its end.
fn run(words: &[&str], paths: &[&Path]) -> Result<(), DiskError> {
    let words = words.iter().map(|word| (*word).to_owned());
    let command: Vec<String> = words.chain(paths.iter().map(|path| path.display().to_string())).collect();
    output(&command, &[], PROGRAM)?;
    Ok(())
}

/// Copies the files below a folder, with their rights.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn writes_and_flushes_are_read_from_the_line_of_a_device() {
        let line = "  1 2 3 4 50 6 7 8 0 10 11 0 0 0 0 120 7\n";
        let then = DiskCounts::parse(line).unwrap();
        assert_eq!(then, DiskCounts { writes: Some(50), flushes: 120, flush_ms: Some(7) });
        let now = DiskCounts { writes: Some(53), flushes: 124, flush_ms: Some(9) };
        assert_eq!(now.since(then), DiskFigures { writes: Some(3), flushes: 4, flush_ns: Some(2_000_000) });
        assert_eq!(DiskCounts::parse("1 2 3 4 50 6 7 8 0 10 11"), None, "before Linux 5.5");
        assert_eq!(DiskCounts::parse("garbage"), None);
    }

    /// The mounts are those of a thread of its own: they end with it.
    #[test]
    fn each_sync_is_a_write_and_a_flush_of_the_disk_and_bytes_are_counted_in_pages() {
        for power in [Power::Disk, Power::Xfs] {
            if missing(power).is_none() {
                syncs_are_counted(power);
            }
        }
    }

    fn syncs_are_counted(power: Power) {
        const SYNCS: u64 = 20;
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("server");
        fs::create_dir(&folder).unwrap();
        let image = image_of(&folder);
        let each = thread::spawn(move || {
            let disk = Disk::make(power, &folder).unwrap();
            let mut file = File::create(folder.join("log")).unwrap();
            disk.settle().unwrap();
            let mut append = |syncs: bool| {
                let (before, then) = (counts(&image).unwrap(), written(std::process::id()));
                for _ in 0..SYNCS {
                    file.write_all(&[7; 100]).unwrap();
                    syncs.then(|| file.sync_data().unwrap());
                }
                let (after, now) = (counts(&image).unwrap(), written(std::process::id()));
                assert_eq!(before.0, after.0);
                (after.1.since(before.1), now - then)
            };
            let each = (append(true), append(false));
            let before = counts(&image).unwrap().0;
            disk.fail().unwrap();
            drop(file);
            disk.replay().unwrap();
            assert_ne!(counts(&image).unwrap().0, before, "it is another attachment");
            disk.remove();
            each
        });
        let ((synced, bytes), (unsynced, _)) = each.join().unwrap();
        assert!(synced.writes >= Some(SYNCS) && synced.flushes >= SYNCS, "{synced:?}");
        assert!(bytes >= SYNCS * 4_096, "a page for each sync: {bytes}");
        assert!(unsynced.flushes < SYNCS, "{unsynced:?}");
    }

    fn written(pid: u32) -> u64 {
        crate::server::processes::counters(pid as i32).unwrap().written_bytes.unwrap()
    }
}
