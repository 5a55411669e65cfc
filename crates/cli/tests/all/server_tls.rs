//! TLS of servers that pubmark starts (`tls = true`): counts, what is recorded, what is left, and refusals.

use crate::hosts::{Network, WHY};
use crate::left_out::leave_out;
use crate::support::{ENDLESS, Place, count, stderr, stdout, wait_for};
use crate::tls::{delivers, refused};
use pubmark_host::server::Server;
use pubmark_host::server::certificates::Certificates;
use pubmark_model::server::Places;
use pubmark_study::registry;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Returns all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Checks that no file of a results folder contains a key or a certificate.
fn assert_no_certificates(place: &Place, folder: &str) {
    let all = files(&place.path(folder));
    assert!(!all.is_empty());
    for path in all {
        let bytes = std::fs::read(&path).unwrap();
        for word in ["PRIVATE KEY-----", "BEGIN CERTIFICATE-----"] {
            let found = bytes.windows(word.len()).any(|part| part == word.as_bytes());
            assert!(!found, "{} contains `{word}`", path.display());
        }
    }
}

fn assert_complete(record: &Value, expected: u64) {
    assert!(record["error"].is_null(), "{}", record["error"]);
    for (name, wanted) in [
        ("expected", expected),
        ("delivered", expected),
        ("lost", 0),
        ("duplicated", 0),
        ("reordered", 0),
        ("corrupted", 0),
    ] {
        assert_eq!(count(record, name), wanted, "{name}: {}", record["counts"]);
    }
}

/// Checks what a record says about TLS.
fn assert_encrypted(record: &Value, scheme: &str) {
    let endpoint = record["deployment"]["endpoint"].as_str().unwrap();
    assert!(endpoint.starts_with(&format!("{scheme}://")), "{endpoint}");
    assert_eq!(record["workload"]["tls"], true);
    assert_eq!(record["applied"]["tls_version"], "1.3");
    assert!(record["applied"]["tls_cipher"].as_str().unwrap().starts_with("TLS_AES_"), "{}", record["applied"]);
    assert_eq!(record["agents"][0]["applied"]["tls_version"], "1.3");
    assert!(record["connections"]["time_ns"]["p50"].as_f64().unwrap() > 0.0, "{}", record["connections"]);
}

#[test]
fn a_study_compares_brokers_with_and_without_tls() {
    let place = Place::new();
    place.study(
        "title = \"t\"\n[workload]\npairs = 3\nrate = 200\ncount = 100\nwarmup = \"50ms\"\nverify = \"full\"\n[axes]\n\
         system = [\"mosquitto\", \"nats\", \"redis\"]\ntls = [false, true]\n[run]\nrepeats = 1\n",
    );
    let output = place.run(&["run", "study.toml", "--dry-run"]);
    assert!(stdout(&output).contains("mosquitto tls=true"), "{}", stdout(&output));
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    place.assert_swept();
    let records = place.records("r");
    assert_eq!(records.len(), 6);
    for record in &records {
        assert_complete(record, 300);
        let scheme = match record["system"].as_str().unwrap() {
            "mosquitto" => ["mqtt", "mqtts"],
            "nats" => ["nats", "tls"],
            _ => ["redis", "rediss"],
        };
        if record["cell"]["tls"] == true {
            assert_encrypted(record, scheme[1]);
        } else {
            assert!(record["deployment"]["endpoint"].as_str().unwrap().starts_with(&format!("{}://", scheme[0])));
            assert_eq!((&record["workload"]["tls"], &record["applied"]["tls_version"]), (&Value::Null, &Value::Null));
        }
    }
    assert_no_certificates(&place, "r");
    let compared = place.run(&["compare", "r", "--across", "tls=false,true"]);
    assert!(stdout(&compared).contains("B: r, tls=true"), "{}{}", stdout(&compared), stderr(&compared));
    let page = std::fs::read_to_string(place.path("r/report.html")).unwrap();
    assert!(page.contains("\"tls\""), "the page has the axis");
}

#[test]
fn rabbitmq_serves_both_protocols_over_tls() {
    for (system, scheme) in [("rabbitmq-amqp", "amqps"), ("rabbitmq-mqtt", "mqtts")] {
        let place = Place::new();
        let run = place.bench(&[system, "--tls", "--pairs", "3", "--qos", "1"]);
        assert_complete(&run.record, 600);
        assert_encrypted(&run.record, scheme);
        assert_no_certificates(&place, "r");
        place.assert_swept();
    }
}

/// Starts a server as its system file describes it, with TLS.
fn serve(place: &Place, name: &str) -> (Server, String) {
    let system = registry::built_in(name).unwrap();
    let options = system.options.iter().filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
    let cache = pubmark_host::cache::cache_folder(&system).display().to_string();
    let places = Places { cache, cpus: 1, memory_mb: 512, options: options.collect(), ..Places::default() };
    let certificates = Certificates::make("").unwrap();
    let authority = certificates.authority.clone();
    (place.serve_with(system.server.as_ref().unwrap(), places, Some(certificates)), authority)
}

#[test]
fn a_server_with_tls_refuses_plain_text_and_strangers() {
    for (system, plain, tls, says) in [
        ("mosquitto", "mqtt", "mqtts", "TLS (mqtts://)"),
        ("nats", "nats", "tls", "the server demands TLS: write tls://"),
        ("redis", "redis", "rediss", "TLS (rediss://)"),
        ("rabbitmq-amqp", "amqp", "amqps", "the server does not speak AMQP 0-9-1"),
    ] {
        let place = Place::new();
        let (server, authority) = serve(&place, system);
        let ca = place.path("ca.pem").display().to_string();
        std::fs::write(&ca, authority).unwrap();
        let address = server.endpoint().strip_prefix(&format!("{tls}://")).unwrap();
        delivers(&format!("{tls}://{address}"), Some(&ca), 100, &["--rate", "200", "--count", "100"]);
        refused(&format!("{tls}://{address}"), None, "unknown issuer");
        refused(&format!("{plain}://{address}"), None, says);
        let key = place.path("server/tls/server.key");
        assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn certificates_end_with_a_killed_coordinator() {
    let place = Place::new();
    let mut command = place.command(&["bench", "mosquitto", "--tls", "--duration", ENDLESS, "--repeats", "1"]);
    let mut coordinator = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let key = || files(&place.tmp()).into_iter().find(|path| path.ends_with("tls/server.key"));
    wait_for("the key", key);
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    wait_for("the folder's removal", || std::fs::read_dir(place.tmp()).unwrap().next().is_none().then_some(()));
}

#[test]
fn options_choose_version_and_cipher_suite() {
    let place = Place::new();
    let cipher = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
    let set = format!("options.tls_cipher={cipher}");
    let run = place.bench(&["mosquitto", "--tls", "--set", "options.tls_version=1.2", "--set", &set]);
    assert_complete(&run.record, 200);
    assert_eq!(
        (&run.record["applied"]["tls_version"], &run.record["applied"]["tls_cipher"]),
        (&"1.2".into(), &cipher.into())
    );
    let first = Place::new().bench(&["nats", "--tls", "--set", "options.tls_first=true"]);
    assert_complete(&first.record, 200);
    let wrong = Place::new().bench(&["redis", "--tls", "--set", "options.tls_version=1.1"]);
    assert!(wrong.error().contains("tls_version: `1.1`"), "{}", wrong.error());
}

/// pubmark removes over TLS what clients leave at a shared server, and clients reconnect over TLS.
#[test]
fn faults_links_flows_and_shared_servers_use_tls() {
    let place = Place::linked();
    let cut = ["mosquitto", "--tls", "--qos", "1", "--fault", "cut link at 200ms for 100ms"];
    let run = place.bench(&cut);
    assert!(run.record["error"].is_null(), "{}", run.record["error"]);
    assert_eq!((count(&run.record, "acked_lost"), count(&run.record, "corrupted")), (0, 0));
    assert!(run.record["connections"]["reconnected"].as_u64().unwrap() > 0, "{}", run.record["connections"]);
    assert_encrypted(&run.record, "mqtts");
    let place = Place::new();
    let killed = place.bench(&["nats", "--tls", "--fault", "kill server at 200ms for 100ms"]);
    assert!(killed.record["error"].is_null(), "{}", killed.record["error"]);
    assert!(killed.record["connections"]["reconnected"].as_u64().unwrap() > 0, "{}", killed.record["connections"]);
    let place = Place::new();
    place.study(
        "title = \"t\"\n[workload]\ntls = true\nqos = 1\ndurable = true\nwarmup = \"50ms\"\nduration = \"500ms\"\n\
         [flows.a]\nrate = 100\n[flows.b]\nrate = 50\npattern = \"fan-out\"\nsubscribers = 2\n[axes]\n\
         system = [\"mosquitto\"]\n[run]\nrepeats = 2\nfresh = \"cell\"\n",
    );
    let output = place.run(&["run", "study.toml", "--out", "r"]);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    for record in place.records("r") {
        assert_complete(&record, 100);
        assert_encrypted(&record, "mqtts");
    }
    assert!(!stderr(&output).contains("may stay"), "{}", stderr(&output));
    place.assert_swept();
}

#[test]
fn a_server_on_another_host_uses_tls() {
    let Some(network) = Network::new('t') else { return leave_out("a_server_on_another_host_uses_tls", WHY) };
    let place = Place::new();
    let hosts = network.hosts(&place);
    let run = place.bench(&["mosquitto", "--tls", "--hosts", &hosts]);
    assert_complete(&run.record, 200);
    assert_encrypted(&run.record, "mqtts");
    assert!(run.record["deployment"]["endpoint"].as_str().unwrap().contains(&network.address("server")));
    assert_no_certificates(&place, "r");
    assert_eq!(network.processes(), Vec::<String>::new());
    place.assert_swept();
}

#[test]
fn what_cannot_use_tls_is_refused_by_name() {
    let place = Place::new();
    for (arguments, wanted) in [
        (&["emqx"][..], "tls: emqx cannot be started with TLS yet: its system file has no {tls_key}"),
        (&["zenoh"], "tls: zenoh cannot be started with TLS yet"),
        (&["zeromq"], "tls: zeromq has no server"),
        (&["mock"], "tls: mock has no server"),
        (&["mqtt://localhost"], "leave `tls` out, and write mqtts:// in the endpoint"),
        (&["nats://localhost"], "leave `tls` out, and write tls:// in the endpoint"),
        (&["redis", "--set", "options.endpoint=redis://localhost"], "write rediss:// in the endpoint"),
        (&["amqp"], "write amqps:// in the endpoint"),
        (&["mosquitto", "--set", "options.tls_ca=x"], "so options.tls_ca has no meaning"),
    ] {
        let output = place.run(&[&["bench"], arguments, &["--tls"]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
    }
    place.study(
        "title = \"t\"\n[transports]\nzeromq = \"tcp\"\n[axes]\nsystem = [\"zeromq\", \"emqx\"]\ntls = [false, true]\n",
    );
    let output = place.run(&["run", "study.toml", "--dry-run"]);
    let said = stderr(&output);
    assert!(said.contains("zeromq has no server") && said.contains("emqx cannot be started with TLS yet"), "{said}");
    place.assert_swept();
}
