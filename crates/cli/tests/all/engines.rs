//! Hosts that are reached through other programs: containers for real, and the commands that need a cluster exactly as
//! documented.

use crate::left_out::leave_out;
use crate::support::{Place, stderr, wait_for};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Returns whether tests with real containers are enabled. Notes the test as left out if not.
pub fn containers_wanted(test: &str) -> bool {
    let wanted = std::env::var("PUBMARK_TEST_CONTAINERS").is_ok_and(|value| value == "1");
    if !wanted {
        leave_out(test, "`make test-containers` installs podman and sets PUBMARK_TEST_CONTAINERS=1");
    }
    wanted
}

/// Makes an image of programs of this machine once, since images cannot be pulled everywhere.
pub fn image(name: &str, programs: &[&str]) -> String {
    static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let image = format!("localhost/pubmark-test-{name}:1");
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if made.contains(&image) {
        return image;
    }
    // One of an earlier test would stay behind without a name.
    let _ = Command::new("podman").args(["image", "rm", &image]).output();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/image-here.sh");
    let output = Command::new(script).args(["podman", &image]).args(programs).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    made.push(image.clone());
    image
}

/// Returns the output of podman, which must succeed.
pub fn podman(arguments: &[&str]) -> String {
    let output = Command::new("podman").args(arguments).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "podman {arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Limits that containers may have here, where processes may not raise theirs.
pub const WITHIN_LIMITS: [&str; 2] = ["--ulimit=nofile=8192:8192", "--ulimit=nproc=4096:4096"];

/// Containers that do nothing until they are reached. They end when this is dropped.
struct Idle(Vec<String>);

impl Idle {
    fn new(image: &str, count: usize) -> Idle {
        Idle::with(image, count, &[], &["sleep", "3600"])
    }

    fn with(image: &str, count: usize, options: &[&str], words: &[&str]) -> Idle {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let mut idle = Idle(Vec::new());
        for _ in 0..count {
            let name = format!("pm-idle-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
            let run = ["run", "--detach", "--name", &name, WITHIN_LIMITS[0], WITHIN_LIMITS[1]];
            idle.0.push(name.clone());
            podman(&[&run, options, &[image], words].concat());
        }
        idle
    }

    /// Returns the address of a container on the engine's network.
    fn address(&self, number: usize) -> String {
        podman(&["inspect", "--format", "{{.NetworkSettings.IPAddress}}", &self.0[number]])
    }

    fn commands_within(&self, number: usize) -> Vec<String> {
        let names = podman(&["top", &self.0[number], "comm"]);
        names.lines().skip(1).map(|name| name.trim().to_owned()).collect()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let mut command = Command::new("podman");
        command.args(["rm", "--force", "--time", "0"]).args(&self.0);
        let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Programs that the bootstrap of a host needs there.
const SHELL: [&str; 12] =
    ["sh", "sleep", "uname", "head", "sha256sum", "mktemp", "cut", "mkdir", "chmod", "mv", "rm", "find"];

#[test]
fn hosts_are_containers_that_are_reached_by_podman() {
    if !containers_wanted("engines::hosts_are_containers_that_are_reached_by_podman") {
        return;
    }
    let idle = Idle::new(
        &image("shell", &[&SHELL[..], &["mosquitto", concat!("+", env!("CARGO_BIN_EXE_pubmark"))]].concat()),
        2,
    );
    let place = Place::new();
    let mut text = String::new();
    for (number, role) in ["\"server\"", "\"publishers\", \"subscribers\""].into_iter().enumerate() {
        let (name, address) = (&idle.0[number], idle.address(number));
        text += &format!(
            "[hosts.c{number}]\nreach = [\"podman\", \"exec\", \"-i\", \"{name}\"]\naddress = \"{address}\"\nroles = [{role}]\n"
        );
    }
    std::fs::write(place.path("hosts.toml"), text).unwrap();
    let mut command = place.command(&["bench", "mosquitto", "--qos", "1", "--pairs", "2", "--rate", "100", "--json"]);
    command.args(["--warmup", "300ms", "--duration", "2s", "--repeats", "1", "--hosts", "hosts.toml", "--out", "r"]);
    let output = command.output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let run = &told["runs"][0];
    assert_eq!(run["error"], Value::Null);
    let count = |name: &str| run["counts"][name].as_u64().unwrap();
    assert_eq!(["sent", "acked", "delivered", "lost"].map(count), [400, 400, 400, 0]);
    assert!(run["deployment"]["endpoint"].as_str().unwrap().contains(&idle.address(0)), "{}", run["deployment"]);
    assert!(run["agents"].as_array().unwrap().iter().all(|agent| agent["host"] == "c1"), "{}", run["agents"]);
    for number in 0..2 {
        wait_for("all to end within", || (idle.commands_within(number) == ["sleep"]).then_some(()));
    }
}

/// Programs with the names in docs/several-machines.md, which are not installed here, are replaced by one that checks
/// its arguments and runs the rest.
#[test]
fn the_prefixes_of_clusters_are_called_as_they_are_documented() {
    let place = Place::new();
    let bin = place.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let page = include_str!("../../../../docs/several-machines.md");
    let prefixes = [
        r#"["docker", "exec", "-i", "b1"]"#,
        r#"["kubectl", "exec", "-i", "pod/b1", "--"]"#,
        r#"["srun", "-w", "b1"]"#,
    ];
    for prefix in prefixes {
        assert!(page.contains(&format!("`{prefix}`")), "{prefix}");
        let words: Vec<String> = serde_json::from_str(prefix).unwrap();
        let script = format!(
            "#!/bin/sh\n[ \"$*\" = '{} sh' ] || {{ echo \"asked for $*\" >&2; exit 2; }}\nshift {}\nexec \"$@\"\n",
            words[1..].join(" "),
            words.len() - 1
        );
        executable(bin.join(&words[0]), &script);
        let hosts = format!("[hosts.b1]\nreach = {prefix}\naddress = \"127.0.0.1\"\n");
        std::fs::write(place.path("hosts.toml"), hosts).unwrap();
        let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let mut command = place.command(&["bench", "kernel", "--transport", "tcp", "--rate", "200", "--json"]);
        command.args(["--warmup", "100ms", "--duration", "500ms", "--repeats", "1", "--hosts", "hosts.toml"]);
        let output = command.args(["--out", &words[0]]).env("PATH", search).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let run = &told["runs"][0];
        assert_eq!((&run["error"], run["counts"]["delivered"].as_u64()), (&Value::Null, Some(100)), "{prefix}");
        assert!(run["agents"].as_array().unwrap().iter().all(|agent| agent["host"] == "b1"), "{}", run["agents"]);
    }
}

/// Writes a program of a test.
pub fn executable(path: PathBuf, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Uses the image of the file Containerfile: `make test-containers` names it.
#[test]
fn pubmark_measures_in_its_own_image_and_is_a_host_there_as_nobody() {
    let name = "engines::pubmark_measures_in_its_own_image_and_is_a_host_there_as_nobody";
    if !containers_wanted(name) {
        return;
    }
    let Ok(image) = std::env::var("PUBMARK_TEST_IMAGE") else { return leave_out(name, "no PUBMARK_TEST_IMAGE is set") };
    let run = |entry: &[&str], words: &[&str]| {
        podman(&[&["run", "--rm", WITHIN_LIMITS[0], WITHIN_LIMITS[1]], entry, &[image.as_str()], words].concat())
    };
    assert_eq!(run(&[], &["--version"]), format!("pubmark {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(run(&["--entrypoint", "id"], &["-u"]), "10001");
    let words =
        ["--transport", "tcp", "--repeats", "1", "--warmup", "200ms", "--duration", "1s", "--json", "--rate", "500"];
    let bench = |system: &str| {
        // A cell without a result is code 3, as on any busy machine.
        let line = format!("pubmark bench {system} {} || [ $? -eq 3 ]", words.join(" "));
        let told: Value = serde_json::from_str(&run(&["--entrypoint", "sh"], &["-c", &line])).unwrap();
        assert_eq!(told["runs"][0]["error"], Value::Null);
        assert_eq!(told["runs"][0]["counts"]["delivered"], 500, "{system}");
    };
    bench("kernel");
    bench("zeromq");
    let idle = Idle::with(&image, 1, &["--entrypoint", "sleep"], &["3600"]);
    let place = Place::new();
    let (container, address) = (&idle.0[0], idle.address(0));
    let hosts =
        format!("[hosts.pod]\nreach = [\"podman\", \"exec\", \"-i\", \"{container}\"]\naddress = \"{address}\"\n");
    std::fs::write(place.path("hosts.toml"), hosts).unwrap();
    let output = place.command(&["bench", "kernel"]).args(words).args(["--hosts", "hosts.toml"]).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(told["runs"][0]["error"], Value::Null);
    assert_eq!(told["runs"][0]["counts"]["delivered"], 500);
}
