//! TLS and WebSocket to real servers, with certificates made for each test.

use crate::servers::start_plan;
use crate::support::{Place, stderr, stdout};
use pubmark_host::server::{Server, ports};
use pubmark_model::server::ServerSpec;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd,
};
use serde_json::Value;
use std::io::Read;
use std::net::{Shutdown, TcpListener};
use std::process::Output;

/// Its queues have no bound, so that it drops no message of a flood.
pub const MOSQUITTO: &str =
    "listener {port} 127.0.0.1\nallow_anonymous true\nuser root\nmax_queued_messages 0\nmax_inflight_messages 0\n";
pub const NATS: &str = "listen: \"127.0.0.1:{port}\"\n";
const REDIS: &str = "/usr/bin/redis-server --bind 127.0.0.1 --save  --appendonly no --dir {dir}";

/// Certificate authority of one test.
pub struct Authority {
    place: Place,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let place = Place::new();
        let (issuer, pem) = issuer("pubmark test CA");
        std::fs::write(place.path("ca.pem"), &pem).unwrap();
        // Another one, which signs nothing.
        std::fs::write(place.path("other.pem"), self::issuer("another CA").1).unwrap();
        let authority = Authority { place, issuer };
        authority.certify("good", "localhost", 2090);
        authority
    }

    pub fn path(&self, name: &str) -> String {
        self.place.path(name).display().to_string()
    }

    /// Makes `name.crt` and `name.key`, of a common name, for a host and 127.0.0.1 if that is localhost.
    pub fn certify(&self, name: &str, host: &str, until: i32) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if host == "localhost" {
            params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
        }
        params.distinguished_name.push(DnType::CommonName, name);
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(until, 1, 1));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.crt")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    pub fn mosquitto(&self, certificate: &str) -> ServerSpec {
        let (crt, key) = (self.path(&format!("{certificate}.crt")), self.path(&format!("{certificate}.key")));
        let config = format!("{MOSQUITTO}cafile {}\ncertfile {crt}\nkeyfile {key}\n", self.path("ca.pem"));
        with_config("/usr/sbin/mosquitto", config)
    }

    /// Returns the lines of a NATS configuration for TLS.
    pub fn nats_tls(&self) -> String {
        format!("tls {{ cert_file: \"{}\", key_file: \"{}\" }}", self.path("good.crt"), self.path("good.key"))
    }
}

fn issuer(name: &str) -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let key = KeyPair::generate().unwrap();
    let pem = params.self_signed(&key).unwrap().pem();
    (Issuer::new(params, key), pem)
}

pub fn with_config(program: &str, config: String) -> ServerSpec {
    ServerSpec {
        endpoint: "x://127.0.0.1:{port}".into(),
        command: [program, "-c", "{dir}/x.conf"].map(str::to_owned).to_vec(),
        files: vec![("x.conf".into(), config)],
        ..ServerSpec::default()
    }
}

/// A server, and its working folder.
pub struct Serving {
    server: Server,
    place: Place,
}

pub fn serve(spec: &ServerSpec) -> Serving {
    let place = Place::new();
    let server = Server::start(&start_plan(&place, spec)).unwrap();
    Serving { server, place }
}

impl Serving {
    pub fn port(&self) -> u16 {
        self.server.endpoint().rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Returns its log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place.path("server.log")).unwrap()
    }
}

/// Starts an MQTT server over WebSocket, which Debian's Mosquitto does not support. Returns also the port of its
/// WebSockets.
fn serve_websocket(tls: &str) -> (Serving, u16) {
    let port = ports::free(1).unwrap()[0];
    let config = format!(
        "server_name: x\n{NATS}jetstream {{ store_dir: \"{{dir}}\" }}\nmqtt {{ listen: \"127.0.0.1:{{port.mqtt}}\" }}\n\
         websocket {{ listen: \"127.0.0.1:{port}\", {tls} }}\n"
    );
    let spec = ServerSpec { ready_log: "Server is ready".into(), ..with_config("/usr/sbin/nats-server", config) };
    (serve(&spec), port)
}

fn run(place: &Place, endpoint: &str, ca: Option<&str>, more: &[&str]) -> Output {
    let ca = ca.map(|path| format!("options.tls_ca={path}"));
    let mut all = vec!["bench", endpoint, "--repeats", "1", "--json", "-q", "--out", "r", "--set", "verify=full"];
    all.extend(["--warmup", "50ms"]);
    all.extend(ca.iter().flat_map(|set| ["--set", set.as_str()]));
    all.extend(more);
    let output = place.run(&all);
    place.assert_swept();
    output
}

/// Makes a run in which every message must arrive intact, once, and in order.
pub fn delivers(endpoint: &str, ca: Option<&str>, expected: u64, more: &[&str]) -> Value {
    let place = Place::new();
    let output = run(&place, endpoint, ca, more);
    assert!(matches!(output.status.code(), Some(0 | 3)), "{endpoint}: {}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let record = json["runs"][0].clone();
    assert!(record["error"].is_null(), "{endpoint}: {}", record["error"]);
    let counts = &record["counts"];
    assert_eq!(counts["expected"], expected, "{endpoint}: {counts}");
    assert_eq!(counts["delivered"], expected, "{endpoint}: {counts}");
    for none in ["lost", "duplicated", "reordered", "corrupted"] {
        assert_eq!(counts[none], 0, "{endpoint}: {counts}");
    }
    record
}

/// Checks the error of a run that fails.
pub fn refused(endpoint: &str, ca: Option<&str>, says: &str) {
    let place = Place::new();
    let output = run(&place, endpoint, ca, &["--duration", "200ms"]);
    let json: Value = serde_json::from_str(&stdout(&output)).unwrap_or_default();
    let said = stderr(&output) + json["runs"][0]["error"].as_str().unwrap_or_default();
    assert_eq!(output.status.code(), Some(3), "{endpoint}: {said}");
    assert!(said.contains(says), "{endpoint} should have said `{says}`: {said}");
}

pub const STEADY: [&str; 10] = ["--pairs", "5", "--rate", "200", "--count", "100", "--payload", "1KiB", "--qos", "0"];
pub const ASSURED: [&str; 10] = ["--pairs", "5", "--rate", "200", "--count", "100", "--payload", "1KiB", "--qos", "1"];
/// More than sockets hold: both sides must wait for each other.
const HEAVY: [&str; 8] = ["--rate", "max", "--count", "100", "--payload", "1MB", "--qos", "1"];
const LARGE: [&str; 6] = ["--rate", "20", "--count", "10", "--payload", "1MB"];

#[test]
fn mqtt_over_tls_loses_nothing() {
    let authority = Authority::new();
    let ca = authority.path("ca.pem");
    let serving = serve(&authority.mosquitto("good"));
    let port = serving.port();
    let record = delivers(&format!("mqtts://localhost:{port}"), Some(&ca), 500, &ASSURED);
    assert_eq!((&record["counts"]["acked"], &record["counts"]["acked_lost"]), (&500.into(), &0.into()));
    delivers(&format!("mqtts://127.0.0.1:{port}"), Some(&ca), 100, &HEAVY);
    let flood = ["--rate", "max", "--count", "20000", "--payload", "200B", "--qos", "1"];
    delivers(&format!("mqtts://localhost:{port}"), Some(&ca), 20_000, &flood);
}

#[test]
fn what_cannot_be_trusted_is_said_at_once() {
    let authority = Authority::new();
    let (ca, other) = (authority.path("ca.pem"), authority.path("other.pem"));
    let good = serve(&authority.mosquitto("good"));
    let url = format!("mqtts://localhost:{}", good.port());
    let unknown = "the server's certificate cannot be trusted: unknown issuer: name its CA with options.tls_ca";
    refused(&url, Some(&other), unknown);
    refused(&url, None, unknown);
    refused(&url, Some("/nonexistent.pem"), "tls_ca: cannot read certificates from /nonexistent.pem: ");
    refused(&url, Some(&authority.path("good.key")), "holds no certificate");
    refused(&format!("mqtt://localhost:{}", good.port()), None, "TLS (mqtts://)");
    authority.certify("old", "localhost", 2020);
    let old = serve(&authority.mosquitto("old"));
    refused(&format!("mqtts://localhost:{}", old.port()), Some(&ca), "it has expired");
    authority.certify("elsewhere", "broker.example", 2090);
    let elsewhere = serve(&authority.mosquitto("elsewhere"));
    let says = "it is for broker.example, not for localhost";
    refused(&format!("mqtts://localhost:{}", elsewhere.port()), Some(&ca), says);
}

#[test]
fn a_server_without_tls_is_recognised() {
    let mosquitto = serve(&with_config("/usr/sbin/mosquitto", MOSQUITTO.into()));
    refused(&format!("mqtts://localhost:{}", mosquitto.port()), None, "it may not speak TLS on this port");
    refused(&format!("ws://localhost:{}", mosquitto.port()), None, "it may not speak WebSocket on this port");
    let nats = serve(&with_config("/usr/sbin/nats-server", NATS.into()));
    refused(&format!("tls://localhost:{}", nats.port()), None, "the server offers no TLS: write nats://");
    refused(&format!("mqtts://localhost:{}", nats.port()), None, "the server does not speak TLS on this port");
}

#[test]
fn nats_begins_in_plain_text_and_goes_on_in_tls() {
    let authority = Authority::new();
    let ca = authority.path("ca.pem");
    let serving = serve(&with_config("/usr/sbin/nats-server", format!("{NATS}{}\n", authority.nats_tls())));
    let url = format!("tls://localhost:{}", serving.port());
    let record = delivers(&url, Some(&ca), 500, &STEADY);
    assert!(record["versions"].to_string().contains("nats-server"), "{}", record["versions"]);
    delivers(&url, Some(&ca), 10, &LARGE);
    refused(&url, Some(&authority.path("other.pem")), "unknown issuer");
    refused(&format!("nats://localhost:{}", serving.port()), None, "the server demands TLS: write tls://");
}

#[test]
fn redis_over_tls_delivers() {
    let authority = Authority::new();
    let ca = authority.path("ca.pem");
    let mut command: Vec<String> = REDIS.split(' ').map(str::to_owned).collect();
    let files = [
        "--port",
        "0",
        "--tls-auth-clients",
        "no",
        "--tls-port",
        "{port}",
        "--tls-cert-file",
        &authority.path("good.crt"),
        "--tls-key-file",
        &authority.path("good.key"),
        "--tls-ca-cert-file",
        &ca,
    ]
    .map(str::to_owned);
    command.extend(files);
    let serving = serve(&ServerSpec { endpoint: "x://127.0.0.1:{port}".into(), command, ..ServerSpec::default() });
    let url = format!("rediss://localhost:{}", serving.port());
    delivers(&url, Some(&ca), 500, &STEADY);
    delivers(&url, Some(&ca), 10, &LARGE);
    refused(&url, None, "unknown issuer");
}

#[test]
fn mqtt_over_websocket_loses_nothing() {
    let (_serving, port) = serve_websocket("no_tls: true");
    let url = format!("ws://localhost:{port}");
    delivers(&url, None, 500, &ASSURED);
    delivers(&url, None, 10, &LARGE);
    delivers(
        &format!("{url}/mqtt"),
        None,
        20_000,
        &["--rate", "max", "--count", "20000", "--payload", "200B", "--qos", "1"],
    );
    refused(&format!("wss://localhost:{port}"), None, "TLS on this port");
}

#[test]
fn mqtt_over_websocket_over_tls_loses_nothing() {
    let authority = Authority::new();
    let ca = authority.path("ca.pem");
    let (_serving, port) = serve_websocket(&authority.nats_tls());
    delivers(&format!("wss://localhost:{port}"), Some(&ca), 500, &ASSURED);
    delivers(&format!("wss://localhost:{port}"), Some(&ca), 100, &HEAVY);
    refused(&format!("wss://localhost:{port}"), None, "unknown issuer");
}

#[test]
fn a_server_that_hangs_up_during_the_handshake_is_explained() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It first reads its input to the end, so that its end is no reset. It ends with this program.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    for (url, says) in [
        ("mqtt", "it may not speak this version of MQTT (option mqtt_version)"),
        ("nats", "it may not be a NATS server"),
        ("redis", "it may not speak RESP"),
        ("amqp", "it may not speak AMQP 0-9-1"),
    ] {
        let says = format!("the server closed the connection during the handshake; {says}");
        refused(&format!("{url}://127.0.0.1:{port}"), None, &says);
    }
    refused(&format!("mqtts://127.0.0.1:{port}"), None, "it may not speak TLS on this port");
    refused(&format!("ws://127.0.0.1:{port}"), None, "it may not speak WebSocket on this port");
}
