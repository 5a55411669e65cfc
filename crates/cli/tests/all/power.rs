//! A server whose power is cut, or whose disk is full: what it had acknowledged and not synced is lost, nothing else, and no disk stays.

use crate::left_out::{is_long, leave_out};
use crate::support::{Benched, Place, bench_arguments, children, stderr, wait_for};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pubmark_host::server::{disk, processes};
use pubmark_stats::Random;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Returns false, and notes that the test was left out, if no power can be cut here.
fn can_cut(test: &str) -> bool {
    disk::missing().inspect(|why| leave_out(test, why)).is_none()
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
fn cut(place: &Place, sync: &str, cut_ms: u64) -> Benched {
    let rate = if sync == "'before'" { "40" } else { "500" };
    let sync = format!("options.sync={sync}");
    let fault = format!("cut power of server at {cut_ms}ms for 200ms");
    let load = ["stored", "--pairs", "1", "--rate", rate, "--qos", "1", "--durable", "--duration", "2500ms"];
    let bench = place.bench(&[&load[..], &["--set", &sync, "--set", "drain=5s", "--fault", &fault]].concat());
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

#[test]
fn what_is_lost_is_exactly_what_was_acknowledged_and_not_synced() {
    if !can_cut("power::what_is_lost_is_exactly_what_was_acknowledged_and_not_synced") {
        return;
    }
    let place = stored("");
    for cut_ms in [700, 1_100, 1_600] {
        let bench = cut(&place, "'before'", cut_ms);
        assert_eq!(bench.count("acked_lost"), 0, "{}", bench.record["counts"]);
        let (acked, (written, flushes)) = (bench.count("acked"), wrote(&bench));
        // Each sync writes a page of 4 KiB at least, and needs a flush for the data and one for the journal. What was
        // synced just before the readings at both ends is not seen.
        assert!(
            written >= acked * 1_024 && flushes >= acked,
            "{acked} acknowledged: {written} bytes, {flushes} flushes"
        );
        let bench = cut(&place, "'never'", cut_ms);
        let (never, (_, flushes)) = (bench.count("acked"), wrote(&bench));
        assert!(flushes < never / 10, "{never} acknowledged without a sync: {flushes} flushes");
        assert_eq!(bench.count("acked_lost"), bench.count("acked"), "{}", bench.record["counts"]);
        assert_eq!(bench.count("delivered"), 0, "{}", bench.record["counts"]);
        let bench = cut(&place, "{ every = 100 }", cut_ms);
        let (acked, lost, sent) = (bench.count("acked"), bench.count("acked_lost"), bench.count("sent"));
        let warmed_up = bench.record["workload"]["warmup_ns"].as_u64().unwrap() / 2_000_000;
        // The message that completes a hundred is synced before its acknowledgement, which may be on its way at the cut.
        let since = |messages: u64| (messages + warmed_up) % 100;
        let may_be: Vec<u64> = (acked..=sent).map(|stored| acked.saturating_sub(stored - since(stored))).collect();
        assert!(may_be.contains(&lost), "{lost} of {acked}, expected {may_be:?}");
    }
    place.assert_swept();
}

#[test]
fn a_server_that_does_not_start_again_is_a_result() {
    if !can_cut("power::a_server_that_does_not_start_again_is_a_result") {
        return;
    }
    let place = stored("if [ -e started ]; then echo 'no way back' >&2; exit 7; fi; touch started;");
    let bench = cut(&place, "'before'", 500);
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
    if !can_cut("power::no_disk_stays_whatever_is_killed_and_when") {
        return;
    }
    let times = if is_long("power::no_disk_stays_whatever_is_killed_and_when, 40 times") { 40 } else { 10 };
    let place = stored("");
    let mut random = Random(37);
    let (mut with_disk, mut all_at_once) = (0, 0);
    for _ in 0..times {
        let fault = ["--fault", "cut power of server at 300ms for 200ms", "--duration", "60s"];
        let load = ["stored", "--pairs", "1", "--qos", "1", "--durable"];
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
    refused(2, &mut without, &["no CAP_SYS_ADMIN", "or kill the server instead"]);
}
