//! Plain files on a ledger: what a power cut leaves of them.

use crate::left_out::leave_out;
use crate::support::pubmark;
use pubmark_host::server::server_disk;
use pubmark_model::power::Power;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A folder that lies on a ledger, until it is dropped.
struct Ledger {
    place: tempfile::TempDir,
    child: Child,
    input: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Ledger {
    /// Returns a ledger with the files that `before` makes; `None`, with a note, if there can be none here.
    fn over(test: &str, strict: bool, before: impl FnOnce(&Path)) -> Option<Ledger> {
        if let Some(why) = server_disk::missing(Power::Ledger) {
            leave_out(test, &why);
            return None;
        }
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("server");
        fs::create_dir(&folder).unwrap();
        before(&folder);
        let mut command = pubmark();
        command.arg("ledger-disk").arg(&folder).args(strict.then_some("--strict"));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, answers) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut ledger = Ledger { place, child, input, answers };
        ledger.hear();
        assert!(is_mounted(&ledger.path("")));
        Some(ledger)
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.place.path().join("server") } else { self.place.path().join("server").join(name) }
    }

    fn hear(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(line.starts_with("{\"Ok\":"), "{line}");
    }

    fn order(&mut self, order: &str) {
        writeln!(self.input.as_mut().unwrap(), "{order}").unwrap();
        self.hear();
    }

    /// Cuts the power, after which no file may be open.
    fn cut(&mut self) {
        self.order("fail");
        assert_eq!(fs::read(self.path("anything")).unwrap_err().raw_os_error(), Some(nix::libc::EIO));
        self.order("replay");
    }

    /// Returns the content of a file; `None` if there is none.
    fn read(&self, name: &str) -> Option<Vec<u8>> {
        fs::read(self.path(name)).ok()
    }

    fn write(&self, name: &str, bytes: &[u8], syncs: bool) {
        let mut file = File::create(self.path(name)).unwrap();
        file.write_all(bytes).unwrap();
        if syncs {
            file.sync_all().unwrap();
        }
    }

    fn sync_folder(&self, name: &str) {
        File::open(self.path(name)).unwrap().sync_all().unwrap();
    }

    /// Returns the names in the folder.
    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        drop(self.input.take());
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(ended.unwrap().success());
            assert!(!is_mounted(&self.path("")));
        }
    }
}

fn is_mounted(path: &Path) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&format!(" {} ", path.display()))
}

#[test]
fn what_was_synced_stays_and_nothing_else() {
    let before = |folder: &Path| {
        fs::create_dir(folder.join("sub")).unwrap();
        fs::write(folder.join("sub/there"), "from before").unwrap();
        fs::set_permissions(folder.join("sub/there"), fs::Permissions::from_mode(0o640)).unwrap();
    };
    let Some(mut ledger) = Ledger::over("ledger_disk::what_was_synced_stays_and_nothing_else", false, before) else {
        return;
    };
    ledger.write("synced", &[1; 5_000], true);
    ledger.write("half", &[2; 4_096], true);
    let mut half = OpenOptions::new().append(true).open(ledger.path("half")).unwrap();
    half.write_all(&[3; 4_096]).unwrap();
    ledger.write("overwritten", &[4; 10_000], true);
    let overwritten = OpenOptions::new().write(true).open(ledger.path("overwritten")).unwrap();
    overwritten.write_all_at(&[5; 100], 4_090).unwrap();
    overwritten.set_len(50).unwrap();
    overwritten.set_len(20_000).unwrap();
    let mut options = OpenOptions::new();
    let mut each =
        options.append(true).create(true).custom_flags(nix::libc::O_DSYNC).open(ledger.path("each")).unwrap();
    (0..77).for_each(|_| each.write_all(b"x").unwrap());
    ledger.write("sub/there", b"changed", false);
    // Its name is made durable by the last sync, and its bytes are not.
    ledger.write("unsynced", &[6; 100], false);
    ledger.write("last", b"", true);
    ledger.write("never", &[7; 100], false);
    drop((half, overwritten, each));
    ledger.cut();
    assert_eq!(ledger.read("synced"), Some(vec![1; 5_000]));
    assert_eq!(ledger.read("half"), Some(vec![2; 4_096]));
    assert_eq!(ledger.read("overwritten"), Some(vec![4; 10_000]));
    assert_eq!(ledger.read("each"), Some(vec![b'x'; 77]));
    assert_eq!(ledger.read("sub/there"), Some(b"from before".to_vec()));
    assert_eq!(fs::metadata(ledger.path("sub/there")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(ledger.read("unsynced"), Some(Vec::new()));
    assert_eq!(ledger.names(), ["each", "half", "last", "overwritten", "sub", "synced", "unsynced"]);
    // It can be used and cut again.
    ledger.write("unsynced", b"now", true);
    ledger.write("synced", b"lost", false);
    ledger.cut();
    assert_eq!((ledger.read("unsynced"), ledger.read("synced")), (Some(b"now".to_vec()), Some(vec![1; 5_000])));
}

/// Renames, removals, links and folders, of which each is followed by a sync of nothing, of a file, or of the folder.
#[test]
fn names_are_durable_after_a_sync_of_any_file_or_only_of_their_folder() {
    enum Sync {
        Nothing,
        File,
        Folder,
    }
    for (strict, sync, lasts) in [
        (false, Sync::Nothing, false),
        (false, Sync::File, true),
        (false, Sync::Folder, true),
        (true, Sync::Nothing, false),
        (true, Sync::File, false),
        (true, Sync::Folder, true),
    ] {
        let before = |folder: &Path| {
            for name in ["new", "old", "gone", "linked", "other"] {
                fs::write(folder.join(name), name).unwrap();
            }
            fs::create_dir(folder.join("empty")).unwrap();
        };
        let test = "ledger_disk::names_are_durable_after_a_sync_of_any_file_or_only_of_their_folder";
        let Some(mut ledger) = Ledger::over(test, strict, before) else { return };
        let all_before = ledger.names();
        fs::rename(ledger.path("new"), ledger.path("old")).unwrap();
        fs::remove_file(ledger.path("gone")).unwrap();
        fs::hard_link(ledger.path("linked"), ledger.path("link")).unwrap();
        symlink("old", ledger.path("symbolic")).unwrap();
        fs::create_dir(ledger.path("made")).unwrap();
        fs::remove_dir(ledger.path("empty")).unwrap();
        assert_eq!(fs::metadata(ledger.path("linked")).unwrap().nlink(), 2);
        let all_after = ledger.names();
        match sync {
            Sync::Nothing => {}
            Sync::File => ledger.write("other", b"synced", true),
            Sync::Folder => ledger.sync_folder(""),
        }
        ledger.cut();
        assert_eq!(ledger.names(), if lasts { all_after } else { all_before });
        assert_eq!(ledger.read("old"), Some(if lasts { b"new".to_vec() } else { b"old".to_vec() }));
        assert_eq!(fs::metadata(ledger.path("linked")).unwrap().nlink(), if lasts { 2 } else { 1 });
        if lasts {
            assert_eq!(ledger.read("symbolic"), Some(b"new".to_vec()));
        } else {
            assert_eq!(ledger.read("gone"), Some(b"gone".to_vec()));
        }
        let synced = matches!(sync, Sync::File);
        assert_eq!(ledger.read("other"), Some(if synced { b"synced".to_vec() } else { b"other".to_vec() }));
    }
}

#[test]
fn a_new_file_that_replaces_another_needs_its_own_sync() {
    let before = |folder: &Path| fs::write(folder.join("file"), "old").unwrap();
    let test = "ledger_disk::a_new_file_that_replaces_another_needs_its_own_sync";
    for (syncs_file, left) in [(true, &b"new"[..]), (false, b"")] {
        let Some(mut ledger) = Ledger::over(test, false, before) else { return };
        ledger.write("part", b"new", syncs_file);
        fs::rename(ledger.path("part"), ledger.path("file")).unwrap();
        ledger.write("other", b"", true);
        ledger.cut();
        assert_eq!(ledger.read("file").as_deref(), Some(left));
        assert_eq!(ledger.names(), ["file", "other"]);
    }
}

#[test]
fn a_file_that_was_removed_while_open_can_be_read_and_leaves_nothing() {
    let test = "ledger_disk::a_file_that_was_removed_while_open_can_be_read_and_leaves_nothing";
    let Some(mut ledger) = Ledger::over(test, false, |_| {}) else { return };
    ledger.write("file", b"here", true);
    let file = File::options().read(true).write(true).open(ledger.path("file")).unwrap();
    fs::remove_file(ledger.path("file")).unwrap();
    file.write_all_at(b"more", 4).unwrap();
    file.sync_all().unwrap();
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!((&bytes, ledger.names().len()), (b"heremore", 0));
    drop(file);
    ledger.cut();
    assert!(ledger.names().is_empty());
    let store = fs::read_dir(ledger.place.path().join("server.disk")).unwrap().count();
    assert_eq!(store, 1, "its counts only");
}

#[test]
fn of_mapped_pages_those_stay_that_were_synced_and_settling_syncs_all() {
    let test = "ledger_disk::of_mapped_pages_those_stay_that_were_synced_and_settling_syncs_all";
    let maps = |ledger: &Ledger, syncs: &str| {
        let script = format!(
            "import mmap\nfile = open('mapped', 'r+b')\npages = mmap.mmap(file.fileno(), 8192)\n\
             pages[0:4] = b'AAAA'\n{syncs}\npages[4096:4100] = b'BBBB'\n"
        );
        Command::new("python3").args(["-c", &script]).current_dir(ledger.path("")).status()
    };
    if !Command::new("python3").args(["-c", "import mmap"]).status().is_ok_and(|status| status.success()) {
        return leave_out(test, "there is no python3 with mmap");
    }
    for (syncs, settles, left) in
        [("pages.flush()", false, [b"AAAA", b"...."]), ("", false, [b"....", b"...."]), ("", true, [b"AAAA", b"BBBB"])]
    {
        let Some(mut ledger) = Ledger::over(test, false, |_| {}) else { return };
        ledger.write("mapped", &[b'.'; 8_192], true);
        assert!(maps(&ledger, syncs).unwrap().success());
        if settles {
            ledger.order("settle");
        }
        ledger.cut();
        let bytes = ledger.read("mapped").unwrap();
        assert_eq!([&bytes[..4], &bytes[4_096..4_100]], left, "{syncs:?}");
    }
}

#[test]
fn many_files_and_folders_are_listed_and_removed() {
    let test = "ledger_disk::many_files_and_folders_are_listed_and_removed";
    let Some(mut ledger) = Ledger::over(test, false, |_| {}) else { return };
    let names: Vec<String> = (0..3_000).map(|number| format!("file-{number:04}")).collect();
    fs::create_dir(ledger.path("deep")).unwrap();
    names.iter().for_each(|name| ledger.write(&format!("deep/{name}"), b"x", false));
    let listed = fs::read_dir(ledger.path("deep")).unwrap().count();
    assert_eq!(listed, names.len());
    ledger.order("settle");
    fs::remove_dir_all(ledger.path("deep")).unwrap();
    assert!(ledger.names().is_empty());
    ledger.cut();
    assert_eq!(fs::read_dir(ledger.path("deep")).unwrap().count(), names.len());
    assert_eq!(ledger.read("deep/file-2999"), Some(b"x".to_vec()));
}
