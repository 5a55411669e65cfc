//! The survey of hosts before the first run: hosts are surveyed once, cells that do not fit on them are skipped with
//! the reason, and missing systems can be installed. The hosts are this machine under other names, without a namespace:
//! with another PATH, and another cache folder.

use crate::support::{Place, pubmark, stderr, stdout};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pubmark");

/// Writes a file of hosts: name, the words that reach it, and more lines of its table.
fn hosts(place: &Place, hosts: &[(&str, &[&str], &str)]) -> String {
    let table = |(index, (name, reach, more)): (usize, &(&str, &[&str], &str))| {
        let reach = reach.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        format!("[hosts.{name}]\nreach = [{reach}]\naddress = \"127.0.0.{}\"\n{more}\n", index + 1)
    };
    let path = place.path("hosts.toml");
    std::fs::write(&path, hosts.iter().enumerate().map(table).collect::<String>()).unwrap();
    path.display().to_string()
}

/// Writes a script as a program into a folder of the place.
fn script(place: &Place, name: &str, text: &str) {
    let path = place.path(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// Checks that a command ended before its first run: exit code 2, and no results folder.
fn ended_before(place: &Place, output: &Output, says: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    says.iter().for_each(|says| assert!(said.contains(says), "should say {says:?}: {said}"));
    assert!(!place.path("r").exists(), "there is a results folder: {said}");
}

#[test]
fn a_host_that_cannot_be_reached_and_twins_end_a_study_before_its_first_run() {
    let place = Place::new();
    let bench = |hosts: &str| {
        let mut command = place.command(&["bench", "mosquitto", "--repeats", "3", "--duration", "1s"]);
        command.args(["--hosts", hosts, "--out", "r"]).output().unwrap()
    };
    let lost = hosts(&place, &[("b1", &["sh", "-c", "echo no way >&2; exit 3"], "")]);
    ended_before(&place, &bench(&lost), &["host b1 is lost", "no way", "pubmark doctor --hosts"]);
    let plan = place.run(&["run", "quickstart", "--quick", "--hosts", &lost, "--dry-run"]);
    assert!(stdout(&plan).contains("on b1"), "a plan is drawn without hosts: {}", stderr(&plan));
    let twins = hosts(&place, &[("b1", &["env", "A=1"], ""), ("b2", &["env", "A=2"], "")]);
    ended_before(&place, &bench(&twins), &["hosts b1 and b2 are one machine", "leave one of them out"]);
    let doctor = place.run(&["doctor", "--hosts", &twins]);
    let told = stdout(&doctor);
    assert_eq!(doctor.status.code(), Some(1), "{told}");
    assert!(told.contains("BAD   machine: hosts b1 and b2 are one machine"), "{told}");
    assert!(told.contains("systems: ") && told.contains("mosquitto"), "{told}");
}

/// Errors of a host contain output of its own programs, such as an installer.
#[test]
fn no_secret_of_an_environment_stands_in_what_a_host_complains_of() {
    const SECRET: &str = "planted-1f0e9d";
    let place = Place::new();
    let says = format!("echo no index at https://me:{SECRET}@example.org, token {SECRET} >&2; exit 3");
    let lost = hosts(&place, &[("b1", &["sh", "-c", &says], "")]);
    let agent = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\nhomepage = \"h\"\ndriver = \"mine\"\npatterns = [\"pairs\"]\n\
                 agent = [\"sh\", \"-c\", \"true\"]\n[env]\nINDEX_TOKEN = \"SECRET\"\n";
    script(&place, "systems/mine.toml", &agent.replace("SECRET", SECRET));
    for arguments in [
        &["bench", "mine", "--repeats", "1", "--out", "r", "--hosts", &lost][..],
        &["systems", "mine", "--hosts", &lost],
        &["doctor", "--hosts", &lost],
    ] {
        let output = place.run(arguments);
        let said = stdout(&output) + &stderr(&output);
        assert!(said.contains("no index at"), "{arguments:?}: {said}");
        assert!(!said.contains(SECRET), "{arguments:?}: {said}");
    }
}

#[test]
fn what_does_not_fit_on_its_hosts_is_left_out_with_the_reason() {
    let place = Place::new();
    let small = hosts(&place, &[("b1", &["env", "A=1"], "cpus = 1\nmemory = \"64MB\"\n")]);
    let bench = |more: &[&str]| {
        let mut command = place.command(&["bench", "mosquitto", "--repeats", "1", "--duration", "500ms"]);
        command.args(["--warmup", "100ms", "--rate", "100", "--hosts", &small, "--out", "r"]).args(more);
        command.output().unwrap()
    };
    ended_before(&place, &bench(&["--cpus", "400"]), &["400 processors for the server are more than the 1 of host b1"]);
    ended_before(&place, &bench(&["--memory", "1GB"]), &["of memory for the server are more than the", "of host b1"]);
    ended_before(&place, &bench(&["--pairs", "1000000"]), &["2000000 connections to one server", "on host b1"]);
    // A study without limits gets those of its host.
    let done = bench(&["--json"]);
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", stderr(&done)));
    let limits = &told["runs"][0]["deployment"]["limits"];
    assert_eq!((&told["runs"][0]["error"], limits["cpus"].as_f64()), (&Value::Null, Some(1.0)), "{told}");
}

/// A broker that is on the coordinator's PATH and not on the host's.
#[test]
fn a_server_that_its_host_has_not_is_left_out_and_the_rest_is_measured() {
    let place = Place::new();
    let top = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";
    let broker = "[server]\nendpoint = \"mqtt://{address}:{port}\"\ncommand = [\"my-broker\"]\n[install]\nmanual = \"ask its makers\"\n";
    std::fs::write(place.path("mine.toml"), format!("{top}{broker}")).unwrap();
    script(&place, "bin/my-broker", "#!/bin/sh\nexec sleep 600\n");
    let path = std::env::var("PATH").unwrap();
    let hosts = hosts(&place, &[("b1", &["env", &format!("PATH={path}")], "")]);
    let with_broker = format!("{}:{path}", place.path("bin").display());
    let text = "title = \"t\"\n[workload]\nrate = 100\nwarmup = \"100ms\"\nduration = \"500ms\"\n[run]\nrepeats = 1\n\
                [axes]\nsystem = [\"mosquitto\", \"./mine.toml\"]\n";
    place.study(text);
    let mut command = place.command(&["run", "study.toml", "--hosts", &hosts, "--out", "r"]);
    let output = command.env("PATH", &with_broker).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("skipped: host b1: `my-broker` is not found: ask its makers"), "{said}");
    let records = place.records("r");
    let systems: Vec<(&Value, &Value)> = records.iter().map(|run| (&run["system"], &run["error"])).collect();
    assert_eq!(systems, [(&Value::from("mosquitto"), &Value::Null)], "{said}");
}

/// An agent that needs no installation plays on a host that does not have it.
#[test]
fn a_script_agent_travels_with_its_folder_and_what_has_to_be_installed_says_so() {
    let place = Place::new();
    let top = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"kernel\"\ntransports = [\"tcp\"]\npatterns = [\"pairs\"]\n";
    let started = place.path("started").display().to_string();
    let env = format!("[env]\nPUBMARK = \"{PROGRAM}\"\nSTARTED = \"{started}\"\nLIB = \"{{here}}/lib\"\n");
    script(&place, "mine/agent.sh", "#!/bin/sh\n. \"$LIB/play.sh\"\n");
    script(&place, "mine/lib/play.sh", "echo \"$LIB\" >>\"$STARTED\"\nexec \"$PUBMARK\" agent\n");
    let file = place.path("mine/mine.toml");
    std::fs::write(&file, format!("{top}agent = [\"{{here}}/agent.sh\"]\n{env}")).unwrap();
    let cache = place.path("cache-of-b1").display().to_string();
    let hosts = hosts(&place, &[("b1", &["env", &format!("XDG_CACHE_HOME={cache}")], "")]);
    let bench = |system: &str, out: &str| {
        let mut command = place.command(&["bench", system, "--repeats", "1", "--duration", "500ms", "--rate", "100"]);
        command.args(["--warmup", "100ms", "--transport", "tcp", "--json", "--hosts", &hosts, "--out", out]);
        command.output().unwrap()
    };
    let done = bench("mine/mine.toml", "s");
    let told: Value = serde_json::from_slice(&done.stdout).unwrap_or_else(|_| panic!("{}", stderr(&done)));
    let run = &told["runs"][0];
    assert_eq!((&run["error"], run["counts"]["delivered"].as_u64()), (&Value::Null, Some(50)), "{run}");
    let played = std::fs::read_to_string(&started).unwrap();
    assert_eq!(played.lines().count(), 2, "{played}");
    assert!(played.lines().all(|lib| lib.starts_with(&format!("{cache}/pubmark/folders/"))), "{played}");
    // An installed agent is looked up in the host's own cache.
    std::fs::write(
        &file,
        format!("{top}agent = [\"{{cache}}/python/bin/python\", \"{{here}}/agent.py\"]\n{env}[install]\npip = [\"no-such==1\"]\n"),
    )
    .unwrap();
    let refused = bench("mine/mine.toml", "r");
    ended_before(&place, &refused, &["host b1: mine is not installed", "--install` brings it"]);
}

#[test]
fn systems_are_listed_and_installed_by_host() {
    let place = Place::new();
    let cache = place.path("cache-of-b1").display().to_string();
    let hosts =
        hosts(&place, &[("b1", &["env", &format!("XDG_CACHE_HOME={cache}")], ""), ("b2", &["sh", "-c", "exit 3"], "")]);
    let top = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";
    let server = "[server]\nendpoint = \"mqtt://127.0.0.1:{port}\"\ncommand = [\"{here}/built\"]\n";
    let build = "[install]\nbuild = [\"sh\", \"-c\", \"printf '#!/bin/sh' >{here}/built; chmod 755 {here}/built\"]\n";
    place.system("mine", &format!("{top}{server}{build}"));
    let run = |arguments: &[&str]| {
        let mut command = pubmark();
        command.args(arguments).current_dir(place.0.path()).env("TMPDIR", place.tmp());
        command.env("XDG_CONFIG_HOME", place.path("config")).output().unwrap()
    };
    let listed = run(&["systems", "--hosts", &hosts]);
    let told = stdout(&listed);
    assert_eq!(listed.status.code(), Some(3), "{told}");
    assert!(stderr(&listed).contains("host b2 is lost"), "{}", stderr(&listed));
    let row = |name: &str| told.lines().find(|line| line.split_whitespace().next() == Some(name)).map(str::to_owned);
    let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(told.lines().next().map(|line| words(line.to_owned())), Some(vec!["b1".to_owned(), "b2".to_owned()]));
    assert_eq!(row("mine").map(words).unwrap(), ["mine", "missing", "?"], "{told}");
    assert_eq!(row("kernel").map(words).unwrap()[2], "?", "{told}");
    let installed = run(&["systems", "mine", "--install", "--hosts", &hosts]);
    let told = stdout(&installed);
    assert!(told.contains("b1: here"), "{told}{}", stderr(&installed));
}

/// Systems that a study's host lacks are installed there, into the host's own cache folder.
#[test]
fn a_study_installs_what_its_hosts_lack() {
    let place = Place::new();
    let cache = place.path("cache-of-b1");
    let hosts = hosts(&place, &[("b1", &["env", &format!("XDG_CACHE_HOME={}", cache.display())], "")]);
    let top = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";
    let server =
        "[server]\nendpoint = \"mqtt://127.0.0.1:{port}\"\ncommand = [\"{cache}/built\"]\nstart_timeout = \"10s\"\n";
    let build = "[install]\nbuild = [\"sh\", \"-c\", \"printf '#!/bin/sh\\nexit 7' >{cache}/built; chmod 755 {cache}/built\"]\n";
    std::fs::write(place.path("mine.toml"), format!("{top}{server}{build}")).unwrap();
    let text = "title = \"t\"\n[workload]\nwarmup = \"100ms\"\nduration = \"300ms\"\n[run]\nrepeats = 1\n\
                [axes]\nsystem = [\"./mine.toml\", \"mosquitto\"]\n";
    place.study(text);
    let left_out = place.run(&["run", "study.toml", "--hosts", &hosts, "--out", "r"]);
    assert!(stderr(&left_out).contains("skipped: host b1: mine is not installed"), "{}", stderr(&left_out));
    let output = place.run(&["run", "study.toml", "--install", "--hosts", &hosts, "--out", "s"]);
    let said = stderr(&output);
    assert!(said.contains("installing mine on host b1") && !said.contains("skipped: host"), "{said}");
    assert!(cache.join("pubmark/systems/mine/built").exists(), "{said}");
    let records = place.records("s");
    let error = |run: &Value| run["error"].as_str().map(str::to_owned);
    let mine = records.iter().find(|run| run["system"] == "mine").and_then(error).unwrap_or_default();
    assert!(mine.contains("ended while starting"), "it was started there: {mine}");
}

/// As on this machine, a failed installation on a host stops no other system.
#[test]
fn what_cannot_be_installed_on_a_host_is_left_out_and_the_study_goes_on() {
    let place = Place::new();
    let cache = place.path("cache-of-b1").display().to_string();
    let hosts = hosts(&place, &[("b1", &["env", &format!("XDG_CACHE_HOME={cache}")], "")]);
    let top = "about = \"a\"\nlicence = \"MIT\"\ndriver = \"kernel\"\ntransports = [\"tcp\"]\npatterns = [\"pairs\"]\n";
    let agent = "agent = [\"{cache}/agent\"]\n[install]\nbuild = [\"false\"]\n";
    std::fs::write(place.path("never.toml"), format!("title = \"Never\"\n{top}{agent}")).unwrap();
    place.study(
        "title = \"t\"\n[workload]\npattern = \"pairs\"\ntransport = \"tcp\"\nrate = 100\nwarmup = \"100ms\"\n\
         duration = \"300ms\"\n[run]\nrepeats = 1\n[axes]\nsystem = [\"./never.toml\", \"kernel\"]\n",
    );
    let output = place.run(&["run", "study.toml", "--install", "--hosts", &hosts, "--out", "s"]);
    let said = stderr(&output);
    let why = "never cannot be installed on host b1, and the study goes on: ";
    assert_eq!(said.matches(why).count(), 1, "{said}");
    assert!(said.contains("skipped: host b1: never is not installed"), "{said}");
    let records = place.records("s");
    let played: Vec<(&Value, &Value)> = records.iter().map(|run| (&run["system"], &run["error"])).collect();
    assert_eq!(played, [(&Value::from("kernel"), &Value::Null)], "{said}");
}

/// A host that is lost during an installation is not a host without a system.
#[test]
fn a_host_that_is_lost_while_it_installs_ends_the_study() {
    let place = Place::new();
    let cache = place.path("cache-of-b1").display().to_string();
    let hosts = hosts(&place, &[("b1", &["env", &format!("XDG_CACHE_HOME={cache}")], "")]);
    let top = "title = \"Mine\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"kernel\"\ntransports = [\"tcp\"]\npatterns = [\"pairs\"]\n";
    // The build is a child of the host's program.
    let agent = "agent = [\"{cache}/agent\"]\n[install]\nbuild = [\"sh\", \"-c\", \"kill -9 $PPID\"]\n";
    std::fs::write(place.path("mine.toml"), format!("{top}{agent}")).unwrap();
    place.study(
        "title = \"t\"\n[workload]\npattern = \"pairs\"\ntransport = \"tcp\"\nrate = 100\n[run]\nrepeats = 1\n\
         [axes]\nsystem = [\"./mine.toml\", \"kernel\"]\n",
    );
    let output = place.run(&["run", "study.toml", "--install", "--hosts", &hosts, "--out", "r"]);
    ended_before(&place, &output, &["host b1 is lost"]);
    assert!(!stderr(&output).contains("the study goes on"), "{}", stderr(&output));
}
