//! System files: what is read, and what is refused.

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

[docker]
image = "makers/broker:1.2.3"
port = 1883
command = ["--memory", "{memory_mb}"]

[docker.environment]
A = "b"

[docker.files."/etc/b.conf"]
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

/// A broker's file with these lines after its first ones.
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
    let docker = server.docker.as_ref().unwrap();
    assert_eq!((docker.image.as_str(), docker.port), ("makers/broker:1.2.3", 1883));
    assert_eq!(docker.files, [("/etc/b.conf".to_owned(), "port 1883".to_owned())]);
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
         [server.environment]\nA = \"{prot}\"\n[server.files.\"../x\"]\ntxt = \"\"\n[docker]\nimage = \"a/b\"\n\
         [servers]\nx = 1",
        &[
            "6 `3` is no level of quality of service: write a list of 0, 1 and 2",
            "7 `perhaps` is neither true nor false",
            "9 unknown key `atp` in [install]",
            "10 `g:a` names no version",
            "11 `p` names no version",
            "12 `c` names no version",
            "13 `endpoint` speaks nats, but the driver speaks mqtt",
            "15 `command` takes a list of words",
            "16 unknown key `ready` in [server]",
            "17 `start_timeout` is 0: no server is that quick",
            "19 `{prot}` is no place that can be filled in",
            "20 the file's path `../x` is to be below the folder of the run",
            "20 the file `../x` has no `text`",
            "21 unknown key `txt` in a file",
            "22 [docker] has no `port`",
            "23 the image `a/b` is not pinned",
            "24 unknown table [servers]",
        ],
    );
}

#[test]
fn what_does_not_go_together_is_refused() {
    refused(
        "[server]\nendpoint = \"mqtt://h:1\"",
        &["6 [server] has no `command`, and there is no [docker] either: nothing would start it"],
    );
    refused("[docker]\nimage = \"a:1\"\nport = 1", &["[server] is missing: it says where clients connect to"]);
    refused("[server]\ncommand = [\"b\"]", &["6 [server] has no `endpoint`"]);
    refused(
        "transports = [\"tcp\"]\nlossless = [\"fan-in\"]",
        &[
            "`lossless` names `fan-in`, which is none of its `patterns`",
            "a broker has no `transports`: it is reached over its driver's protocol",
        ],
    );
    refused(
        "[server]\nendpoint = \"mqtt://h:{port}\"\ncommand = [\"b\", \"{options.endpoint}\"]",
        &["8 `{options.endpoint}` is no place that can be filled in"],
    );
    let library = with("[server]\nendpoint = \"mqtt://h:{port}\"\ncommand = [\"b\"]").replace("\"mqtt\"", "\"zeromq\"");
    let errors = read(&library).unwrap_err();
    assert!(errors.iter().any(|error| error.contains("connects to no server")), "{errors:?}");
}
