//! System files: valid content, and refused content.

use pubmark_model::system::System;
use pubmark_model::units::SECOND;

const BROKER: &str = r#"
title = "Some broker"
about = "a broker"
licence = "MIT"
driver = "mqtt"
patterns = ["pairs", "fan-out"]
lossless = ["pairs"]
qos = [0, 1]
durable = true

[install]
apt = ["broker"]
maven = ["g:a:1.0", "g:b:2:tar.gz:bin"]
pip = ["p==1"]
cargo = ["c@2"]
manual = "ask"

[server]
endpoint = "mqtt://127.0.0.1:{port}"
command = ["broker", "-c", "{dir}/b.conf", "--admin", "{port.admin}"]
version = ["broker", "-v"]
version_after = "broker "
ready_log = "up"
start_timeout = "90s"

[[server.prepare]]
command = ["first", "{cache}"]

[[server.prepare]]
command = ["second"]

[server.environment]
THREADS = "{cpus}"

[server.files."etc/b.conf"]
text = "queue {options.queue}\nstore {durable:yes|no}\n"

[container]
image = "makers/broker:1.2.3"
port = 1883
command = ["--memory", "{memory_mb}"]

[container.environment]
A = "b"

[container.files."/etc/b.conf"]
text = "port 1883"

[options.queue]
kind = "count"
default = 7
doc = "why"
"#;

fn read(text: &str) -> Result<System, Vec<String>> {
    System::parse("b", "b.toml", text).map_err(|errors| {
        assert!(!errors.to_string().is_empty());
        let place = |offset: usize| pubmark_model::diagnostic::line_column(text, offset).0;
        let one = |error: &pubmark_model::diagnostic::Diagnostic| match error.offset {
            Some(offset) => format!("{} {}", place(offset), error.message),
            None => error.message.clone(),
        };
        errors.errors.iter().map(one).collect()
    })
}

/// Returns a broker's file with these lines after its first ones.
fn with(more: &str) -> String {
    format!("title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n{more}")
}

#[track_caller]
fn refused(more: &str, wanted: &[&str]) {
    let errors = read(&with(more)).map(|_| ()).unwrap_err();
    assert_eq!(errors, wanted, "{more}");
}

#[test]
fn everything_about_a_broker_is_read() {
    let system = read(BROKER).unwrap();
    assert!(system.broker() && system.durable);
    assert_eq!(system.qos, [0, 1]);
    let install = &system.install;
    assert_eq!((install.apt.len(), install.maven.len(), install.manual.as_str()), (1, 2, "ask"));
    assert_eq!((install.pip[0].as_str(), install.cargo[0].as_str()), ("p==1", "c@2"));
    let server = system.server.as_ref().unwrap();
    assert_eq!(server.prepare, [vec!["first".to_owned(), "{cache}".into()], vec!["second".into()]]);
    assert_eq!(server.environment, [("THREADS".to_owned(), "{cpus}".to_owned())]);
    assert_eq!(server.files[0].0, "etc/b.conf");
    assert_eq!((server.version_after.as_str(), server.ready_log.as_str()), ("broker ", "up"));
    assert_eq!(server.start_timeout_ns, 90 * SECOND);
    assert_eq!(server.ports(), ["", "admin"]);
    let container = server.container.as_ref().unwrap();
    assert_eq!((container.image.as_str(), container.port), ("makers/broker:1.2.3", 1883));
    assert_eq!(container.files, [("/etc/b.conf".to_owned(), "port 1883".to_owned())]);
    assert!(system.option("queue").is_some() && system.option("mqtt_version").is_some());
    assert!(system.option("library").is_none(), "a broker loads no library");
}

#[test]
fn a_library_has_no_quality_above_0_and_no_server_unless_it_says_so() {
    let text = with("transports = [\"tcp\"]").replace("mqtt", "zeromq");
    let system = read(&text).unwrap();
    assert!(!system.broker() && !system.durable && system.server.is_none());
    assert_eq!(system.qos, [0]);
    assert!(system.option("library").is_some());
}

#[test]
fn all_mistakes_are_reported_at_once_in_order() {
    refused(
        "qos = [0, 3]\ndurable = \"perhaps\"\n[install]\natp = []\nmaven = [\"g:a\"]\npip = [\"p\"]\ncargo = [\"c\"]\n\
         [server]\nendpoint = \"nats://127.0.0.1:{port}\"\ncommand = \"b\"\nready = \"x\"\nstart_timeout = \"0s\"\n\
         [server.environment]\nA = \"{prot}\"\n[server.files.\"../x\"]\ntxt = \"\"\n[container]\nimage = \"a/b\"\n\
         [servers]\nx = 1",
        &[
            "6 `3` is not a level of quality of service: write a list of 0, 1 and 2",
            "7 `perhaps` is neither true nor false",
            "9 unknown key `atp` in [install]",
            "10 `g:a` names no version",
            "11 `p` names no version",
            "12 `c` names no version",
            "13 `endpoint` speaks nats, but the driver speaks mqtt",
            "15 `command` takes a list of words",
            "16 unknown key `ready` in [server]",
            "17 `start_timeout` is 0: no server is that quick",
            "19 `{prot}` is not a place that can be filled in",
            "20 the file's path `../x` is to be below the folder of the run",
            "20 the file `../x` has no `text`",
            "21 unknown key `txt` in a file",
            "22 [container] has no `port`",
            "23 the image `a/b` is not pinned",
            "24 unknown table [servers]",
        ],
    );
}

const CONTAINED: &str = "[server]\nendpoint = \"mqtt://{address}:{port}\"\n[container]\nimage = \"a:1\"\n";

#[test]
fn a_container_has_the_machines_network_or_a_port() {
    let shares = read(&with(&format!("{CONTAINED}network = \"host\"\nvolumes = [\"/data\"]"))).unwrap();
    let container = shares.server.unwrap().container.unwrap();
    assert_eq!((container.port, container.volumes), (0, vec!["/data".to_owned()]));
    refused(
        &format!("{CONTAINED}network = \"host\"\nport = 1"),
        &["8 [container] has a `port` and the machine's network: nothing is published there"],
    );
    refused(
        &format!("{CONTAINED}network = \"none\"\nport = 1\nvolumes = [\"data\", \"/a/../b\"]"),
        &[
            "10 `none` is not a network of a container",
            "12 the folder `data` is to be absolute, in the container",
            "12 the folder `/a/../b` is to be absolute, in the container",
        ],
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    refused(
        "[server]\nendpoint = \"mqtt://h:1\"",
        &["6 [server] has no `command`, and there is no [container] either: nothing would start it"],
    );
    refused("[container]\nimage = \"a:1\"\nport = 1", &["[server] is missing: it says where clients connect to"]);
    refused("[server]\ncommand = [\"b\"]", &["6 [server] has no `endpoint`"]);
    refused(
        "[server]\nendpoint = \"mqtt://h:{port}\"\ncommand = [\"b\", \"{tls_key}\"]",
        &["6 the server takes {tls_key}, but its `endpoint` has no scheme for TLS"],
    );
    refused(
        "transports = [\"tcp\"]\nlossless = [\"fan-in\"]",
        &[
            "`lossless` names `fan-in`, which is not one of its `patterns`",
            "a broker has no `transports`: it is reached over its driver's protocol",
        ],
    );
    refused("warmup = \"5s\"\nwarmup_max = \"4s\"", &["`warmup_max` is shorter than `warmup`, which is 5s"]);
    refused("warmup_max = \"900ms\"", &["`warmup_max` is shorter than `warmup`, which is 1s"]);
    refused(
        "[server]\nendpoint = \"mqtt://h:{port}\"\ncommand = [\"b\", \"{options.endpoint}\"]",
        &["8 `{options.endpoint}` is not a place that can be filled in"],
    );
    let library = with("[server]\nendpoint = \"mqtt://h:{port}\"\ncommand = [\"b\"]").replace("\"mqtt\"", "\"zeromq\"");
    let errors = read(&library).unwrap_err();
    assert!(errors.iter().any(|error| error.contains("connects to no server")), "{errors:?}");
}

/// Returns a library's file with these lines after its first ones.
fn library(more: &str) -> String {
    with(more).replace("\"mqtt\"", "\"mine\"")
}

#[test]
fn an_agent_is_a_command_with_a_folder_and_an_environment() {
    let one = read(&library("agent = \"mine\"\ntransports = [\"tcp\"]")).unwrap().agent;
    assert_eq!((one.command(true), one.command(false)), (&["mine".to_owned()][..], &["mine".to_owned()][..]));
    assert_eq!((one.processes, one.start_timeout_ns), (1, 10 * SECOND));
    let more =
        "agent = [\"node\", \"{here}/a.js\"]\nagents = 4\nstart_timeout = \"30s\"\n[env]\nNODE_PATH = \"{cache}/n\"";
    let mut system = read(&library(more)).unwrap();
    system.here = "/my".into();
    let agent = &system.agent;
    assert!(!agent.built_in() && !agent.differs());
    assert_eq!((agent.processes, agent.start_timeout_ns), (4, 30 * SECOND));
    assert_eq!(system.fill_for_agent(&agent.sending[1], "/c"), "/my/a.js");
    assert_eq!(system.fill_for_agent(&agent.environment[0].1, "/c"), "/c/n");
    let sides = read(&library("agent = { publisher = [\"p\"], subscriber = [\"s\", \"-x\"] }")).unwrap().agent;
    assert!(sides.differs());
    assert_eq!((sides.command(true), sides.command(false).len()), (&["p".to_owned()][..], 2));
}

#[test]
fn an_agent_that_cannot_be_is_refused() {
    let refused = |more: &str, wanted: &[&str]| {
        let errors = read(&library(more)).map(|_| ()).expect_err(more);
        assert_eq!(errors, wanted, "{more}");
    };
    refused("agent = []", &["6 `agent` names no program"]);
    refused("agent = { publisher = [\"p\"] }", &["6 `agent` names a command for one side only"]);
    refused(
        "agent = { publisher = \"p\", subscribers = \"s\" }",
        &["6 `agent` names a command for one side only", "6 unknown key `subscribers` in `agent`"],
    );
    refused("agent = [\"a\", \"{dir}\"]", &["6 `{dir}` is not a place that can be filled in"]);
    refused("agent = \"a\"\nagents = 0", &["7 `agents` is 0: write how many processes a side has, 1 to 256"]);
    refused(
        "agent = \"a\"\nagents = 99999999999999999999",
        &["7 `agents` is 99999999999999999999: write how many processes a side has, 1 to 256"],
    );
    refused("agent = \"a\"\nstart_timeout = \"0s\"", &["7 `start_timeout` is 0: no program is that quick"]);
    refused("[env]\nA = \"b\"", &["[env] is for an agent of its own, and the file names none"]);
    refused(
        "transports = [\"inproc\"]\nagent = { publisher = \"p\", subscriber = \"s\" }",
        &["over `inproc` one process plays both sides, and `agent` names a program for each"],
    );
}

#[test]
fn what_is_installed_is_pinned_and_is_no_option_of_the_tool() {
    let read = |install: &str| read(&with(&format!("[install]\n{install}"))).map(|system| system.install);
    let install =
        read("apt = [\"a\", \"b=1.0-1\"]\nnpm = [\"a@1.0.0\", \"@s/b@2.0.0-rc.1\"]\nbuild = [\"make\"]").unwrap();
    assert_eq!((install.apt.len(), install.npm.len(), install.build.len()), (2, 2, 1));
    for wrong in [
        "npm = [\"a\"]",
        "npm = [\"a@latest\"]",
        "npm = [\"a@^1\"]",
        "npm = [\"@s/b\"]",
        "npm = [\"--prefix=/ a@1.0.0\"]",
        "pip = [\"--index-url=x==1\"]",
        "pip = [\"a b==1\"]",
        "apt = [\"-o\"]",
        "apt = [\"\"]",
        "go = [\"-x@v1\"]",
        "build = []",
    ] {
        assert_eq!(read(wrong).map(|_| ()).unwrap_err().len(), 1, "{wrong}");
    }
}

#[test]
fn whatever_a_file_holds_is_answered_with_its_place() {
    let bombs = [
        format!("title = {}", "[".repeat(200_000)),
        format!("title = {}", "{a=".repeat(200_000)),
        format!("{}x = 1", "a.".repeat(200_000)),
        format!("[{}x]", "a.".repeat(200_000)),
        format!("title = \"{}", "x".repeat(1 << 20)),
        "[options.x]\nkind = \"count\"\ndefault = 18446744073709551616".to_owned(),
        "title = \"\\u001b[2J\"".to_owned(),
        "title = \"\u{1b}[2J\"".to_owned(),
        "# \u{1b}[2J\ntitle = 1".to_owned(),
        "\"\\u001b\" = 1".to_owned(),
        "[server.files.\"../../x\"]\ntext = \"\"".to_owned(),
        "[server.files.\"/etc/x\"]\ntext = \"\"".to_owned(),
    ];
    for bomb in bombs {
        let errors = System::parse("b", "b.toml", &bomb).unwrap_err().to_string();
        assert!(errors.starts_with("b.toml"), "{}", errors.chars().take(200).collect::<String>());
        assert!(!errors.contains('\u{1b}'), "{errors:?}");
        assert!(errors.len() < 200_000, "{} of {}", errors.len(), bomb.len());
    }
}

#[test]
fn options_that_bound_a_queue_are_read_and_checked() {
    let text =
        format!("{BROKER}\n[full_queue]\nmost = 50\n\n[options.most]\nkind = \"count\"\ndefault = 0\ndoc = \"d\"\n");
    let system = System::parse("b", "b.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(system.full_queue, [("most".to_owned(), 50.into())]);
    for (from, to, says) in [
        ("most = 50", "mots = 50", "unknown key `mots` in full_queue"),
        ("most = 50", "most = \"many\"", "many"),
        ("most = 50", "most = [50, 60]", "takes one value"),
        ("[full_queue]", "[full_queues]", "[full_queues]"),
    ] {
        let error = System::parse("b", "b.toml", &text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(says), "should say {says:?}: {error}");
    }
}
