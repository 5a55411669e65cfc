//! Authentication and authorisation at real brokers: certificates and keys as people make them, and users whose rights
//! are limited to a prefix.

use crate::support::Place;
use crate::tls::{ASSURED, Authority, MOSQUITTO, NATS, STEADY, Serving, delivers, refused, serve, with_config};
use pubmark_host::server::ports;
use pubmark_model::server::{Places, ServerSpec};
use pubmark_study::registry;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, SanType, date_time_ymd};
use std::os::unix::fs::PermissionsExt;

/// Returns the path of a file that was made once (`make.sh` beside it shows how).
fn made(name: &str) -> String {
    format!("{}/../load/tests/logins/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Makes `name.crt` and `name.key`: a self-signed certificate, as `openssl req -x509` makes it, with CA:TRUE.
fn sign_itself(authority: &Authority, name: &str, host: &str, until: i32) {
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.subject_alt_names.push(SanType::IpAddress([127, 0, 0, 1].into()));
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(until, 1, 1));
    let key = KeyPair::generate().unwrap();
    std::fs::write(authority.path(&format!("{name}.crt")), params.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(authority.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
}

#[test]
fn a_certificate_that_signed_itself_is_trusted_where_it_is_named() {
    let authority = Authority::new();
    sign_itself(&authority, "self", "localhost", 2090);
    sign_itself(&authority, "namesake", "localhost", 2090);
    let serving = serve(&authority.mosquitto("self"));
    let url = format!("mqtts://localhost:{}", serving.port());
    delivers(&url, Some(&authority.path("self.crt")), 500, &ASSURED);
    // No other CA of the same name, and none that was not named.
    for ca in ["ca.pem", "namesake.crt"] {
        refused(&url, Some(&authority.path(ca)), "the server's certificate cannot be trusted: it is a CA's own");
    }
    // Its dates and its name are checked nevertheless.
    sign_itself(&authority, "old", "localhost", 2020);
    let old = serve(&authority.mosquitto("old"));
    let named = Some(authority.path("old.crt"));
    refused(&format!("mqtts://localhost:{}", old.port()), named.as_deref(), "it has expired");
    sign_itself(&authority, "elsewhere", "broker.example", 2090);
    let elsewhere = serve(&authority.mosquitto("elsewhere"));
    let says = "it is for broker.example, 127.0.0.1, not for localhost";
    refused(&format!("mqtts://localhost:{}", elsewhere.port()), Some(&authority.path("elsewhere.crt")), says);
}

#[test]
fn a_certificate_that_cannot_be_read_is_told_with_what_to_make_instead() {
    let authority = Authority::new();
    let v1 = format!("{MOSQUITTO}cafile {}\ncertfile {}\nkeyfile {}\n", made("ca.crt"), made("v1.crt"), made("v1.key"));
    let serving = serve(&with_config("/usr/sbin/mosquitto", v1));
    let says = "it is of X.509 version 1, which has no names of hosts: make one of version 3";
    refused(&format!("mqtts://localhost:{}", serving.port()), Some(&made("ca.crt")), says);
    let mut nameless = CertificateParams::new(Vec::<String>::new()).unwrap();
    nameless.not_after = date_time_ymd(2090, 1, 1);
    let key = KeyPair::generate().unwrap();
    std::fs::write(authority.path("nameless.crt"), nameless.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(authority.path("nameless.key"), key.serialize_pem()).unwrap();
    let serving = serve(&authority.mosquitto("nameless"));
    let says = "it names no host (common names are not looked at): make one that names localhost";
    refused(&format!("mqtts://localhost:{}", serving.port()), Some(&authority.path("nameless.crt")), says);
}

/// Returns the arguments that set options.
fn set(options: &[String]) -> Vec<&str> {
    options.iter().flat_map(|option| ["--set", option.as_str()]).collect()
}

/// Checks the error of a run that fails with these options.
fn refused_with(endpoint: &str, options: &[String], says: &str) {
    let place = Place::new();
    let all = [&["bench", endpoint, "--repeats", "1", "--duration", "200ms", "--out", "r"][..], &set(options)].concat();
    let output = place.run(&all);
    let said = crate::support::stderr(&output)
        + &place.records("r").first().map_or(String::new(), |record| record["error"].to_string());
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains(says), "{endpoint} should have said `{says}`: {said}");
}

#[test]
fn a_client_shows_its_certificate_where_the_server_asks_for_it() {
    let authority = Authority::new();
    let config = format!(
        "{MOSQUITTO}cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\n",
        made("ca.crt"),
        authority.path("good.crt"),
        authority.path("good.key")
    );
    let serving = serve(&with_config("/usr/sbin/mosquitto", config));
    let url = format!("mqtts://localhost:{}", serving.port());
    let ca = authority.path("ca.pem");
    // As mosquitto-tls(7) makes it: version 1, which servers accept from clients.
    let shown = |key: &str| [format!("options.tls_cert={}", made("v1.crt")), format!("options.tls_key={}", made(key))];
    for key in ["v1.key", "pkcs8.key"] {
        delivers(&url, Some(&ca), 500, &[&ASSURED[..], &set(&shown(key))].concat());
    }
    refused(&url, Some(&ca), "name one with options.tls_cert and options.tls_key");
    let trusted = format!("options.tls_ca={ca}");
    let with = |more: &[String]| [std::slice::from_ref(&trusted), more].concat();
    refused_with(&url, &with(&shown("encrypted-pkcs8.key")), "is encrypted");
    refused_with(&url, &with(&shown("pkcs1.key")), "is not the key of the certificate");
    // Of another CA.
    let stranger = [("tls_cert", "good.crt"), ("tls_key", "good.key")];
    let stranger = stranger.map(|(option, name)| format!("options.{option}={}", authority.path(name)));
    refused_with(&url, &with(&stranger), "let a CA sign it that the server knows");
}

#[test]
fn clients_of_nats_sign_in_by_key_and_by_credentials() {
    let public = std::fs::read_to_string(made("user.pub")).unwrap();
    let users = format!("{NATS}authorization: {{ users: [ {{ nkey: {} }} ] }}\n", public.trim());
    let by_key = serve(&with_config("/usr/sbin/nats-server", users));
    let url = format!("nats://127.0.0.1:{}", by_key.port());
    let nkey = [format!("options.nkey={}", made("user.nk"))];
    let creds = [format!("options.creds={}", made("user.creds"))];
    delivers(&url, None, 500, &[&STEADY[..], &set(&nkey)].concat());
    refused(&url, None, "or options.nkey, or options.creds");
    refused_with(&url, &[format!("options.nkey={}", made("account.nk"))], "its seed is not a user's");
    let accounts = std::fs::read_to_string(made("nats.conf")).unwrap();
    let by_credentials = serve(&with_config("/usr/sbin/nats-server", format!("{NATS}{accounts}")));
    let url = format!("nats://127.0.0.1:{}", by_credentials.port());
    delivers(&url, None, 500, &[&STEADY[..], &set(&creds)].concat());
    refused_with(&url, &nkey, "check user, password and token");
}

/// Rights limited to a prefix: with it a run is complete, without it is refused.
fn confined(serving: &Serving, url: &str, prefix: &str, (steady, has_patterns): (&[&str], bool), says: &str) {
    let option = [format!("options.prefix={prefix}")];
    let url = url.replace("{port}", &serving.port().to_string());
    delivers(&url, None, 500, &[steady, &set(&option)].concat());
    if has_patterns {
        let tree = ["--pattern", "tree", "--publishers", "5", "--subscribers", "1"];
        // Without `--pairs 5`.
        delivers(&url, None, 500, &[&steady[2..], &tree, &set(&option)].concat());
    }
    refused(&url, None, says);
}

#[test]
fn who_may_use_a_prefix_alone_can_measure() {
    let place = Place::new();
    let acl = place.path("acl");
    std::fs::write(&acl, "topic readwrite bench/#\n").unwrap();
    std::fs::set_permissions(&acl, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mosquitto = with_config("/usr/sbin/mosquitto", format!("{MOSQUITTO}acl_file {}\n", acl.display()));
    confined(&serve(&mosquitto), "mqtt://127.0.0.1:{port}", "bench/", (&ASSURED, true), "");
    let rights = "permissions: { publish: \"bench.>\", subscribe: [\"bench.>\"] }";
    let nats = format!("{NATS}authorization: {{ users: [ {{ user: me, password: \"p@ss\", {rights} }} ] }}\n");
    let nats = serve(&with_config("/usr/sbin/nats-server", nats));
    confined(&nats, "nats://me:p%40ss@127.0.0.1:{port}", "bench.", (&STEADY, true), "Permissions Violation");
    let command = "/usr/bin/redis-server {dir}/x.conf";
    let users = "user default off\nuser me on >pw resetchannels &bench:* +@connection +@pubsub +info\n";
    let redis = ServerSpec {
        command: command.split(' ').map(str::to_owned).collect(),
        ..with_config("", format!("bind 127.0.0.1\nport {{port}}\nsave \"\"\ndir {{dir}}\n{users}"))
    };
    // Its rules require a pattern letter by letter.
    confined(&serve(&redis), "redis://me:pw@127.0.0.1:{port}/3", "bench:", (&STEADY, false), "NOPERM");
}

/// A user of a virtual host with a slash and a blank in its name, whose rights to queues and exchanges are limited to a
/// prefix.
#[test]
fn who_may_use_a_prefix_alone_of_a_virtual_host_can_measure_at_rabbitmq() {
    let system = registry::built_in("rabbitmq-amqp").unwrap();
    let mut spec = system.server.clone().unwrap();
    let rights = ["configure", "read", "write"].map(|right| format!("default_permissions.{right} = ^bench\\..*\n"));
    let config = spec.files.iter_mut().find(|(name, _)| name == "rabbitmq.conf").unwrap();
    config.1 += &format!("default_vhost = a/b c\ndefault_user = me\ndefault_pass = p@ss\n{}", rights.concat());
    let options = system.options.iter().filter_map(|option| Some((option.name.clone(), option.default.clone()?)));
    let [plain, dist, epmd] = ports::free(3).unwrap()[..] else { panic!("three ports") };
    let home = Place::new();
    let places = Places {
        ports: vec![(String::new(), plain), ("dist".into(), dist), ("epmd".into(), epmd)],
        cpus: 1,
        memory_mb: 512,
        options: options.collect(),
        address: "127.0.0.1".into(),
        ..Places::default()
    };
    let server = home.serve(&spec, places);
    let url = format!("amqp://me:p%40ss@127.0.0.1:{plain}/a%2Fb%20c?heartbeat=30");
    let prefix = ["--set", "options.prefix=bench."];
    for more in [&["--qos", "1"][..], &["--qos", "0"], &["--qos", "1", "--durable"]] {
        delivers(&url, None, 500, &[&STEADY[..8], more, &prefix].concat());
    }
    refused(&url, None, "ACCESS_REFUSED");
    refused(&url.replace("b%20c", "b"), None, "vhost a/b not found");
    server.stop();
}

/// Publishers may only publish, and subscribers only subscribe: each client logs in by its own line.
#[test]
fn each_client_has_a_login_of_its_own() {
    let place = Place::new();
    let file = |name: &str, users: &[&str]| {
        let lines: String = users.iter().map(|user| format!("{user},hidden-{user},x\n").repeat(5)).collect();
        std::fs::write(place.path(name), lines).unwrap();
        [format!("options.credentials_file={}", place.path(name).display())]
    };
    let (right, swapped) = (file("right.csv", &["ann", "bob"]), file("swapped.csv", &["bob", "ann"]));
    let (few, stranger) = (file("few.csv", &["ann"]), file("stranger.csv", &["ann", "eve"]));
    let acl = place.path("acl");
    std::fs::write(&acl, "user ann\ntopic write pubmark/#\nuser bob\ntopic read pubmark/#\n").unwrap();
    std::fs::set_permissions(&acl, std::fs::Permissions::from_mode(0o600)).unwrap();
    let mosquitto = with_config("/usr/sbin/mosquitto", format!("{MOSQUITTO}acl_file {}\n", acl.display()));
    let user =
        |name: &str, rights: &str| format!("{{ user: {name}, password: \"hidden-{name},x\", permissions: {rights} }}");
    let users = [
        user("ann", "{ publish: \"pubmark.>\", subscribe: { deny: \">\" } }"),
        user("bob", "{ publish: { deny: \">\" }, subscribe: \"pubmark.>\" }"),
    ];
    let nats = format!("{NATS}authorization: {{ users: [ {} ] }}\n", users.join(", "));
    let command = "/usr/bin/redis-server {dir}/x.conf";
    let users = "user default off\nuser ann on >hidden-ann,x &* +@connection +publish +info\n\
                 user bob on >hidden-bob,x &* +@connection +subscribe +info\n";
    let redis = ServerSpec {
        command: command.split(' ').map(str::to_owned).collect(),
        ..with_config("", format!("bind 127.0.0.1\nport {{port}}\nsave \"\"\ndir {{dir}}\n{users}"))
    };
    for (server, scheme) in
        [(mosquitto, "mqtt"), (with_config("/usr/sbin/nats-server", nats), "nats"), (redis, "redis")]
    {
        let serving = serve(&server);
        let url = format!("{scheme}://127.0.0.1:{}", serving.port());
        delivers(&url, None, 500, &[&STEADY[..], &set(&right), &["--set", "churn=20/s"]].concat());
        let all =
            ["bench", &url, "--pairs", "5", "--repeats", "1", "--duration", "200ms", "--set", "connect_timeout=1s"];
        for (file, code) in [(&swapped, 3), (&stranger, 3), (&few, 2)] {
            // A broker of MQTT without a list of users takes any user, and does not say what an ACL denies.
            if scheme == "mqtt" && code == 3 {
                continue;
            }
            let output = place.run(&[&all[..], &["--out", scheme], &set(file)].concat());
            let said = crate::support::stderr(&output) + &crate::support::stdout(&output);
            assert_eq!(output.status.code(), Some(code), "{scheme} {file:?}: {said}");
            assert!(!said.contains("hidden-"), "{said}");
            let names_both = said.contains(" has 5 lines, but the run has 10 clients");
            assert_eq!(names_both, code == 2, "{said}");
            if code == 3 {
                for record in place.records(scheme) {
                    assert!(!record.to_string().contains("hidden-"), "{record}");
                }
                std::fs::remove_dir_all(place.path(scheme)).unwrap();
            }
        }
    }
    let both = [right[0].clone(), "options.password=hidden-word".into(), "options.username=ann".into()];
    refused_with("nats://127.0.0.1:1", &both, "both `credentials_file` and a user or password for all clients");
    let output = place.run(&[&["bench", "kafka://127.0.0.1:1", "--qos", "1"][..], &set(&right)].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(crate::support::stderr(&output).contains("clients of kafka have no logins of their own"), "{output:?}");
}

/// As above, but the users are the common names of certificates.
#[test]
fn each_client_has_a_certificate_of_its_own() {
    let authority = Authority::new();
    let acl = authority.path("acl");
    let right = |client: u32| {
        authority.certify(&client.to_string(), "localhost", 2090);
        format!("user {client}\ntopic {} pubmark/#\n", if client < 5 { "write" } else { "read" })
    };
    std::fs::write(&acl, (0..10).map(right).collect::<String>()).unwrap();
    std::fs::set_permissions(&acl, std::fs::Permissions::from_mode(0o600)).unwrap();
    let certificates = format!(
        "cafile {}\ncertfile {}\nkeyfile {}\nrequire_certificate true\nuse_identity_as_username true\n",
        authority.path("ca.pem"),
        authority.path("good.crt"),
        authority.path("good.key")
    );
    let config = format!("{MOSQUITTO}{certificates}acl_file {acl}\n");
    let serving = serve(&with_config("/usr/sbin/mosquitto", config));
    let url = format!("mqtts://localhost:{}", serving.port());
    let shown = [("tls_cert", "crt"), ("tls_key", "key")]
        .map(|(option, end)| format!("options.{option}={}", authority.path(&format!("{{client}}.{end}"))));
    let all = [&STEADY[..], &set(&shown), &["--set", "churn=20/s"]].concat();
    delivers(&url, Some(&authority.path("ca.pem")), 500, &all);
    std::fs::remove_file(authority.path("7.key")).unwrap();
    let output = Place::new().run(&[&["bench", &url, "--pairs", "5"][..], &set(&shown)].concat());
    assert_eq!(output.status.code(), Some(2));
    let said = crate::support::stderr(&output);
    assert!(said.contains("tls_key: client 7 of 10 has no file") && said.contains("7.key"), "{said}");
}
