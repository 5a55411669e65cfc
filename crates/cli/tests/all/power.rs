//! A server whose power is cut, or whose disk is full: what it had acknowledged and not synced is lost, nothing else, and no disk stays.

use crate::left_out::{is_long, leave_out};
use crate::support::{Benched, Place, bench_arguments, children, stderr, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::programs::find_program;
use pubmark_host::server::{processes, server_disk};
use pubmark_model::power::Power;
use pubmark_stats::Random;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Returns false, and notes that the test was left out, if no power can be cut here.
fn can_cut(test: &str) -> bool {
    can_cut_with(Power::Disk, test)
}

pub fn can_cut_with(power: Power, test: &str) -> bool {
    server_disk::missing(power).inspect(|why| leave_out(test, why)).is_none()
}

/// Returns a place with a system `stored`: the scripted peer with a store in its folder. Before it starts, it runs
/// `first` in its shell.
fn stored(first: &str) -> Place {
    let place = Place::new();
    let server = r#"
[server.files."script.toml"]
text = """
[store]
file = "store"
sync = {options.sync}
"""

[options.sync]
kind = "text"
default = "'before'"
doc = "when the store is synced"
"#;
    let keys = "lossless = [\"pairs\"]\nqos = [1]\ndurable = true";
    place.peer_system("stored", keys, (first, "--script {dir}/script.toml"), server);
    place
}

/// Runs `stored` with 500 messages/s until its power is cut at `cut_ms`, and a while longer. With a sync before each
/// acknowledgement, a busy disk bears fewer.
fn cut(place: &Place, power: Power, sync: &str, cut_ms: u64) -> Benched {
    let rate = if sync == "'before'" { "40" } else { "500" };
    let sync = format!("options.sync={sync}");
    let fault = format!("cut power of server at {cut_ms}ms for 200ms");
    let load = ["stored", "--pairs", "1", "--rate", rate, "--qos", "1", "--durable", "--duration", "2500ms"];
    let power = format!("power={power}");
    let set = ["--set", &sync, "--set", "drain=5s", "--set", &power, "--fault", &fault];
    let bench = place.bench(&[&load[..], &set].concat());
    std::fs::remove_dir_all(place.path("r")).unwrap();
    assert_eq!(bench.error(), "");
    let log = &bench.record["fault_log"];
    let instants = [&log[0]["at_ns"], &log[0]["until_ns"]].map(|at| at.as_u64().unwrap());
    assert!(instants[0] >= cut_ms * 1_000_000 && instants[1] > instants[0], "{log}");
    assert_eq!((&log[0]["what"], &log[1]["what"]), (&"cut_power".into(), &"kill".into()), "{log}");
    assert!(bench.count("acked") > 0, "{}", bench.record["counts"]);
    bench
}

/// Returns the bytes that the server wrote, and the flushes of its disk until the power cut.
fn wrote(bench: &Benched) -> (u64, u64) {
    let (server, disk) = (&bench.record["server"], &bench.record["deployment"]["disk"]);
    (server["written_bytes"].as_u64().unwrap(), disk["flushes"].as_u64().unwrap())
}

/// Checks how many syncs the kernel told of, where it tells: one for each message, but for some at both ends of the
/// window, or none.
fn assert_traced(bench: &Benched, one_each: bool) {
    let traced = &bench.record["deployment"]["syncs"];
    let Some(syncs) = traced["count"].as_u64() else { return println!("left out: syncs cannot be traced here") };
    let (acked, sent) = (bench.count("acked"), bench.count("sent"));
    let due = if one_each { acked.saturating_sub(50)..=sent + 50 } else { 0..=5 };
    assert!(due.contains(&syncs), "{acked} of {sent} acknowledged: {traced}");
    assert!(traced["time_ns"].as_u64().is_none_or(|ns| (ns > 0) == (syncs > 0)), "{traced}");
}

/// Checks what is lost with a sync before the acknowledgement of every hundredth message.
fn assert_lost_since_last_hundred(bench: &Benched) {
    let (acked, lost, sent) = (bench.count("acked"), bench.count("acked_lost"), bench.count("sent"));
    let warmed_up = bench.record["workload"]["warmup_ns"].as_u64().unwrap() / 2_000_000;
    // The message that completes a hundred is synced before its acknowledgement, which may be on its way at the cut.
    let since = |messages: u64| (messages + warmed_up) % 100;
    let may_be: Vec<u64> = (acked..=sent).map(|stored| acked.saturating_sub(stored - since(stored))).collect();
    assert!(may_be.contains(&lost), "{lost} of {acked}, expected {may_be:?}");
}

#[test]
fn what_is_lost_is_exactly_what_was_acknowledged_and_not_synced() {
    if !can_cut("power::what_is_lost_is_exactly_what_was_acknowledged_and_not_synced") {
        return;
    }
    let place = stored("");
    let instants: &[u64] =
        if is_long("power::what_is_lost_is_exactly_what_was_acknowledged_and_not_synced, three instants") {
            &[700, 1_100, 1_600]
        } else {
            &[1_100]
        };
    for &cut_ms in instants {
        let bench = cut(&place, Power::Disk, "'before'", cut_ms);
        assert_eq!(bench.count("acked_lost"), 0, "{}", bench.record["counts"]);
        let (acked, (written, flushes)) = (bench.count("acked"), wrote(&bench));
        // Each sync writes a page of 4 KiB at least, and needs a flush for the data and one for the journal. What was
        // synced just before the readings at both ends is not seen.
        assert!(
            written >= acked * 1_024 && flushes >= acked,
            "{acked} acknowledged: {written} bytes, {flushes} flushes"
        );
        assert_traced(&bench, true);
        let bench = cut(&place, Power::Disk, "'never'", cut_ms);
        assert_traced(&bench, false);
        let (never, (_, flushes)) = (bench.count("acked"), wrote(&bench));
        assert!(flushes < never / 10, "{never} acknowledged without a sync: {flushes} flushes");
        assert_eq!(bench.count("acked_lost"), bench.count("acked"), "{}", bench.record["counts"]);
        assert_eq!(bench.count("delivered"), 0, "{}", bench.record["counts"]);
        let bench = cut(&place, Power::Disk, "{ every = 100 }", cut_ms);
        assert_lost_since_last_hundred(&bench);
    }
    place.assert_swept();
}

/// The kernel's other journal: what was synced survives, and nothing else.
#[test]
fn xfs_loses_what_was_acknowledged_and_not_synced() {
    if !can_cut_with(Power::Xfs, "power::xfs_loses_what_was_acknowledged_and_not_synced") {
        return;
    }
    let place = stored("");
    let bench = cut(&place, Power::Xfs, "'before'", 1_100);
    assert_eq!(bench.count("acked_lost"), 0, "{}", bench.record["counts"]);
    assert_traced(&bench, true);
    let bench = cut(&place, Power::Xfs, "'never'", 1_100);
    assert_traced(&bench, false);
    assert_eq!(bench.count("acked_lost"), bench.count("acked"), "{}", bench.record["counts"]);
    place.assert_swept();
}

/// The same over a ledger, whose counts are exact: each sync is one, and nothing that was not synced survives.
#[test]
fn a_ledger_loses_exactly_what_was_acknowledged_and_not_synced() {
    if !can_cut_with(Power::Ledger, "power::a_ledger_loses_exactly_what_was_acknowledged_and_not_synced") {
        return;
    }
    let times =
        if is_long("power::a_ledger_loses_exactly_what_was_acknowledged_and_not_synced, 20 cuts") { 20 } else { 3 };
    let place = stored("");
    for number in 0..times {
        let (cut_ms, power) = (500 + 83 * number, if number % 2 == 0 { Power::Ledger } else { Power::StrictLedger });
        let sync = ["'before'", "'never'", "{ every = 100 }"][number as usize % 3];
        let bench = cut(&place, power, sync, cut_ms);
        let (acked, lost) = (bench.count("acked"), bench.count("acked_lost"));
        let counts = &bench.record["counts"];
        let disk = &bench.record["deployment"]["disk"];
        let flushes = disk["flushes"].as_u64().unwrap();
        match sync {
            "'before'" => {
                assert_eq!(lost, 0, "{counts}");
                // One for each message, but for those at both ends: of the warm-up, or not acknowledged yet.
                let most = bench.count("sent") + 50;
                assert!(flushes > acked / 2 && flushes <= most, "{acked} acknowledged, {flushes} syncs");
            }
            "'never'" => assert_eq!((lost, bench.count("delivered"), flushes), (acked, 0, 0), "{counts}"),
            _ => assert_lost_since_last_hundred(&bench),
        }
        assert!(disk["writes"].is_null() && disk["flush_ns"].is_null(), "{disk}");
        assert!(bench.record["server"]["written_bytes"].is_null(), "{}", bench.record["server"]);
        assert_eq!(bench.record["deployment"]["power"], power.word());
        let reasons = bench.record["verdict"]["reasons"].as_array().unwrap();
        let found = reasons.iter().find(|found| found["reason"] == "ledger-disk").expect("the reason");
        assert_eq!(found["figures"], serde_json::json!(["latency_p50", "latency_p99", "cost"]));
    }
    place.assert_swept();
}

#[test]
fn redis_over_a_ledger_loses_all_that_it_does_not_sync() {
    if !can_cut_with(Power::Ledger, "power::redis_over_a_ledger_loses_all_that_it_does_not_sync") {
        return;
    }
    let place = Place::new();
    let lost = |fsync: &str| {
        let fsync = format!("options.appendfsync={fsync}");
        let load = ["redis-streams", "--pairs", "1", "--rate", "200", "--qos", "1", "--durable", "--duration", "4s"];
        let set = ["--set", &fsync, "--set", "power=ledger", "--set", "link=subscribers", "--set", "drain=10s"];
        let fault = ["--fault", "cut link at 0s for 3s, cut power of server at 2s for 500ms"];
        let bench = place.bench(&[&load[..], &set, &fault].concat());
        std::fs::remove_dir_all(place.path("r")).unwrap();
        assert_eq!(bench.error(), "");
        assert!(bench.count("acked") > 100, "{}", bench.record["counts"]);
        // One message every 5 ms. Those before the subscribers are cut off may still be delivered.
        let before = bench.record["fault_log"][0]["at_ns"].as_u64().unwrap() / 5_000_000 + 1;
        (bench.count("acked_lost"), bench.count("acked"), before)
    };
    assert_eq!(lost("always").0, 0);
    let (lost, acked, before) = lost("no");
    assert!((acked - before..=acked).contains(&lost), "{lost} of {acked} since the settling, {before} before the cut");
    place.assert_swept();
}

#[test]
fn a_server_that_does_not_start_again_is_a_result() {
    if !can_cut("power::a_server_that_does_not_start_again_is_a_result") {
        return;
    }
    let place = stored("if [ -e started ]; then echo 'no way back' >&2; exit 7; fi; touch started;");
    let bench = cut(&place, Power::Disk, "'before'", 500);
    let verdict = &bench.record["verdict"];
    let said = verdict["notes"].to_string();
    assert!(said.contains("did not start again after its power was cut") && said.contains("no way back"), "{verdict}");
    assert_eq!(bench.evidence("server-died"), None, "{verdict}");
    assert_eq!(bench.count("acked_lost"), bench.count("acked"), "nothing of it can be read any more");
    place.assert_swept();
}

/// Redis appends each message to a file. While the disk is full it refuses them, and goes on when there is room again.
#[test]
fn a_full_disk_refuses_messages_and_loses_none_that_was_acknowledged() {
    if !can_cut("power::a_full_disk_refuses_messages_and_loses_none_that_was_acknowledged") {
        return;
    }
    let place = Place::new();
    let load = ["redis-streams", "--pairs", "1", "--rate", "200", "--payload", "16KB", "--qos", "1", "--durable"];
    let fault = ["--duration", "6s", "--set", "drain=10s", "--fault", "fill disk of server at 2s for 2s"];
    let bench = place.bench(&[&load[..], &fault].concat());
    let (counts, log) = (&bench.record["counts"], &bench.record["fault_log"][0]);
    assert_eq!((bench.error(), bench.evidence("server-died")), ("", None));
    assert_eq!((bench.count("acked_lost"), bench.count("corrupted")), (0, 0), "{counts}");
    assert!(bench.count("refused") > 0, "{counts}");
    // More than came before: it went on afterwards.
    assert!(bench.count("delivered") > 450, "{counts}");
    assert!(log["what"] == "fill_disk" && log["at_ns"].is_u64() && log["until_ns"].is_u64(), "{log}");
    place.assert_swept();
}

#[test]
fn a_server_that_ends_on_a_full_disk_is_a_result() {
    if !can_cut("power::a_server_that_ends_on_a_full_disk_is_a_result") {
        return;
    }
    let place = stored(
        "(while head -c 100000 /dev/zero >probe; do rm probe; sleep 0.02; done; echo 'no room here' >&2; kill $$) &",
    );
    let load = ["stored", "--pairs", "1", "--rate", "100", "--qos", "1", "--durable", "--duration", "4s"];
    let bench = place.bench(&[&load[..], &["--fault", "fill disk of server at 1s for 2s"]].concat());
    assert_eq!((bench.error(), bench.evidence("server-died")), ("", None));
    let said = bench.record["verdict"]["notes"].to_string();
    assert!(said.contains("the server ended after its disk was filled") && said.contains("no room here"), "{said}");
    place.assert_swept();
}

/// Returns whether a loop device or a mount of any process belongs to this place.
fn has_disk(place: &Path) -> bool {
    let name = place.to_str().unwrap();
    let in_file = |path: &Path| std::fs::read_to_string(path).is_ok_and(|text| text.contains(name));
    let loops = std::fs::read_dir("/sys/block").unwrap().flatten();
    let mounts = processes::all().into_iter().map(|pid| format!("/proc/{pid}/mountinfo"));
    loops.map(|entry| entry.path().join("loop/backing_file")).any(|path| in_file(&path))
        || mounts.into_iter().any(|path| in_file(Path::new(&path)))
}

#[test]
fn no_disk_stays_whatever_is_killed_and_when() {
    if can_cut("power::no_disk_stays_whatever_is_killed_and_when") {
        let times = if is_long("power::no_disk_stays_whatever_is_killed_and_when, 40 times") { 40 } else { 10 };
        assert_no_disk_stays(Power::Disk, times);
    }
}

#[test]
fn no_ledger_stays_whatever_is_killed_and_when() {
    if can_cut_with(Power::Ledger, "power::no_ledger_stays_whatever_is_killed_and_when") {
        let times = if is_long("power::no_ledger_stays_whatever_is_killed_and_when, 40 times") { 40 } else { 10 };
        assert_no_disk_stays(Power::Ledger, times);
    }
}

fn assert_no_disk_stays(power: Power, times: u32) {
    let place = stored("");
    let power = format!("power={power}");
    let mut random = Random(37);
    let (mut with_disk, mut all_at_once) = (0, 0);
    for _ in 0..times {
        let fault = ["--fault", "cut power of server at 300ms for 200ms", "--duration", "60s"];
        let load = ["stored", "--pairs", "1", "--qos", "1", "--durable", "--set", &power];
        let mut run = place.command(&bench_arguments(&[&load[..], &fault].concat()));
        let mut run = run.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        wait_for("its first process", || Some(()).filter(|()| !children(run.id()).is_empty()));
        std::thread::park_timeout(Duration::from_millis((random.unit() * 2_500.0) as u64));
        with_disk += u32::from(has_disk(place.0.path()));
        // In turns: the coordinator alone, and with its keeper and all others.
        let mut doomed = vec![run.id() as i32];
        if random.unit() < 0.5 {
            all_at_once += 1;
            doomed.extend(processes::descendants(run.id() as i32));
        }
        for pid in doomed.iter() {
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
        run.wait().unwrap();
        if doomed.len() > 1 {
            // The next start ends what was being started, and removes the folders of the dead.
            let next = ["bench", "mock", "--duration", "100ms", "--repeats", "1", "--out", "m"];
            // A busy machine makes its figures unreliable: code 3.
            assert!(matches!(place.run(&next).status.code(), Some(0 | 3)));
            std::fs::remove_dir_all(place.path("m")).unwrap();
        }
        wait_for("the end of its disk", || (!has_disk(place.0.path())).then_some(()));
        std::fs::remove_dir_all(place.path("r")).unwrap_or_default();
    }
    assert!(with_disk > 0 && all_at_once > 0, "{with_disk} with a disk, {all_at_once} all at once, of {times}");
    wait_for("the folders' end", || std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(()));
}

#[test]
fn a_power_that_cannot_be_cut_is_said_before_anything_starts() {
    let place = Place::new();
    let fault = ["--fault", "cut power of server at 1s for 1s", "--duration", "5s"];
    let refused = |code: i32, command: &mut Command, says: &[&str]| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        for text in says {
            assert!(stderr(&output).contains(text), "should say {text:?}: {}", stderr(&output));
        }
    };
    let bench = |arguments: &[&str]| place.command(&[&["bench"], arguments, &fault[..]].concat());
    refused(2, &mut bench(&["mqtt://127.0.0.1:1"]), &["not started by pubmark"]);
    refused(2, &mut bench(&["zeromq"]), &["has no server"]);
    let fill =
        ["--fault", "fill disk of server at 1s for 1s", "--duration", "5s", "--set", "options.deployment=container"];
    refused(2, &mut place.command(&[&["bench", "mosquitto"][..], &fill].concat()), &["lies in a container"]);
    let fill = ["--fault", "fill disk of server at 1s for 1s", "--duration", "5s", "--set", "power=ledger"];
    refused(
        2,
        &mut place.command(&[&["bench", "mosquitto"][..], &fill].concat()),
        &["has no size", "leave `power` out"],
    );
    refused(2, &mut place.command(&["bench", "mosquitto", "--set", "power=ledger"]), &["power", "no cell cuts"]);
    let contained = ["mosquitto", "--set", "options.deployment=container"];
    refused(2, &mut bench(&contained), &["lies in a container", "deployment = \"native\"", "kill server"]);
    refused(
        2,
        &mut place.command(&["bench", "mosquitto", "--fault", "cut power of link at 1s for 1s"]),
        &["only a server's power", "cut power of server at"],
    );
    if !can_cut("power::a_power_that_cannot_be_cut_is_said_before_anything_starts, without CAP_SYS_ADMIN") {
        return;
    }
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", env!("CARGO_BIN_EXE_pubmark")]);
    without.args([&["bench", "mosquitto"][..], &fault].concat()).current_dir(place.0.path());
    refused(2, &mut without, &["no CAP_SYS_ADMIN", "power = \"ledger\"", "or kill the server instead"]);
}

/// Runs a script as `nobody`, in mounts of its own, where every user may use /dev/fuse, as on most machines. `$PUBMARK`
/// is the program. `None` if there can be none such here.
fn as_nobody(place: &Place, script: &str) -> Option<std::process::Output> {
    const NOBODY: u32 = 65_534;
    let first = "{ [ -e fuse ] || mknod fuse c 10 229; } && chmod 666 fuse && mount --bind fuse /dev/fuse && exec setpriv \
        --reuid=65534 --regid=65534 --clear-groups sh -c \"$0\"";
    for path in [place.0.path().to_owned(), place.tmp(), place.path("systems")] {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).ok()?;
    }
    let environment = [("HOME", "home"), ("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")];
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", first, script]).current_dir(place.0.path());
    command.envs(environment.map(|(name, folder)| (name, place.path(folder)))).env("TMPDIR", place.tmp());
    command.env("PUBMARK", env!("CARGO_BIN_EXE_pubmark"));
    let output = command.output().unwrap();
    // Its program may lie where only root can read.
    output.status.code().filter(|code| ![126, 127].contains(code)).map(|_| output)
}

#[test]
fn a_user_other_than_root_can_cut_the_power_over_a_ledger_and_leaves_none() {
    const TEST: &str = "power::a_user_other_than_root_can_cut_the_power_over_a_ledger_and_leaves_none";
    if !can_cut_with(Power::Ledger, TEST) {
        return;
    }
    if find_program("fusermount3").is_none() || !nix::unistd::geteuid().is_root() {
        return leave_out(TEST, "it needs fusermount3, and root, to become another user");
    }
    let place = stored("");
    let bench = "$PUBMARK bench stored --pairs 1 --rate 200 --qos 1 --durable --repeats 1 --warmup 100ms \
        --set power=ledger --set options.sync=\"'never'\" --set drain=5s --out r \
        --fault 'cut power of server at 700ms for 200ms'";
    let script = format!("{bench} --duration 2s; code=$?; grep -c ' pubmark ' /proc/self/mountinfo; exit $code");
    let Some(output) = as_nobody(&place, &script) else {
        return leave_out(TEST, "nobody cannot run the program from here");
    };
    // Its latencies are unreliable: code 3.
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("\n0\n"), "a mount is left");
    let record = place.records("r").remove(0);
    let count = |name: &str| record["counts"][name].as_u64().unwrap();
    assert!(record["error"].is_null() && count("acked") > 0, "{record}");
    assert_eq!((count("acked_lost"), count("delivered")), (count("acked"), 0), "{}", record["counts"]);
    place.assert_swept();
    // All are killed at once, and the next start unmounts what they left. They are stopped first: a keeper that sees
    // pubmark end would unmount before its own turn.
    std::fs::remove_dir_all(place.path("r")).unwrap();
    let mounted = "grep -q ' pubmark ' /proc/self/mountinfo";
    let script = format!(
        "{bench} --duration 60s >/dev/null 2>&1 & n=0; until {{ {mounted} && ls t/*/server/store >/dev/null; }} || [ $n = 600 ]; do n=$((n+1)); sleep 0.05; done
        below() {{ for one in $(cat /proc/$1/task/*/children); do echo $one; below $one; done; }}
        all=\"$! $(below $!)\"; {mounted} && kill -STOP $all && kill -9 $all && wait $!; {mounted} && echo left
        $PUBMARK bench mock --duration 100ms --repeats 1 --out m >/dev/null 2>&1; {mounted} || echo swept"
    );
    let output = as_nobody(&place, &script).unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "left\nswept\n", "{}", stderr(&output));
    place.assert_swept();
}
