use super::super::conversation::{Conversation, HeardEvent, message, settings, settings_with, spec};
use super::*;
use crate::session::{SubTopics, TopicShare};
use pubmark_model::protocol::Role;

const INFO: &[u8] = b"INFO {\"server_id\":\"NA\",\"server_name\":\"n1\",\"version\":\"2.9.10\",\"proto\":1,\
    \"go\":\"go1.19\",\"host\":\"127.0.0.1\",\"port\":4222,\"headers\":true,\"max_payload\":1048576} \r\n";

fn plain() -> NatsSettings {
    settings::<Nats>("nats://h", 0, false, &[]).unwrap()
}

fn connect_words(url: &str, set: &[(&str, &str)]) -> Value {
    let settings = settings::<Nats>(url, 0, false, set).unwrap();
    let mut talk = Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t"));
    talk.say(INFO).unwrap();
    let said = talk.said();
    let Ok(Some((FromClient::Connect(words), _))) = FromClient::decode(&said) else { panic!("{said:?}") };
    serde_json::from_slice(words).unwrap()
}

#[test]
fn a_subscriber_hears_its_messages_wherever_the_bytes_are_cut() {
    let settings = plain();
    let words = b"MSG a.b 1 5\r\nhello\r\nPING\r\nMSG a.b 1 0\r\n\r\nHMSG a.b 1 22 25\r\n\
        NATS/1.0\r\nA: bcdef\r\n\r\nxyz\r\nINFO {}\r\n";
    for cut in 0..=words.len().max(INFO.len()) {
        let mut talk = Conversation::<Nats>::new(
            &settings,
            ClientSpec { group: Some("g".into()), ..spec(Role::Subscriber, "a.b") },
        );
        assert!(talk.said().is_empty(), "the server speaks first");
        talk.say_cut(INFO, cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Server("nats-server 2.9.10".into())]);
        assert!(talk.said().ends_with(b"}\r\nPING\r\n"));
        talk.say_cut(b"PONG\r\n", cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Connected]);
        talk.session.keep_alive(&settings, &mut talk.out);
        talk.subscribe();
        assert_eq!(talk.said(), b"PING\r\nSUB a.b g 1\r\nPING\r\n");
        talk.say_cut(b"PONG\r\n", cut).unwrap();
        assert_eq!(talk.heard(), [], "this PONG answers the sign of life");
        talk.say_cut(b"PONG\r\n", cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        talk.say_cut(words, cut).unwrap();
        assert_eq!(talk.heard(), [message(b"hello"), message(b""), message(b"xyz")]);
        assert_eq!(talk.said(), b"PONG\r\n");
        assert!(talk.all_taken());
    }
}

#[test]
fn each_topic_of_a_share_has_a_subscription_of_its_own() {
    let (settings, share) = (plain(), SubTopics::Share(TopicShare { first: 1, step: 2, count: 5 }));
    let mut talk = Conversation::<Nats>::new(&settings, ClientSpec { leaves: share, ..spec(Role::Subscriber, "a") });
    talk.subscribe();
    assert_eq!(talk.said(), b"SUB a.markers 1\r\nSUB a.1 2\r\nSUB a.3 3\r\nPING\r\n");
}

#[test]
fn a_publisher_names_the_leaf() {
    let settings = plain();
    let mut talk = Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t"));
    assert!(talk.publish(b"one\r\n", 7));
    assert_eq!(talk.said(), b"PUB t 5\r\none\r\n\r\n");
    let mut talk =
        Conversation::<Nats>::new(&settings, ClientSpec { leaves: SubTopics::Turns(3), ..spec(Role::Publisher, "t") });
    assert!(talk.publish(b"", 7));
    assert_eq!(talk.said(), b"PUB t.1 0\r\n\r\n");
    assert_eq!(talk.session.unacknowledged(), 0);
}

#[test]
fn headers_are_sent_with_each_message_if_the_server_takes_them() {
    let settings = settings_with::<Nats>("nats://h", 0, false, &[], Some("a: b, long-name: x y")).unwrap();
    let mut talk = Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t"));
    talk.say(INFO).unwrap();
    talk.said();
    assert!(talk.publish(b"one", 7));
    assert_eq!(talk.said(), b"HPUB t 34 37\r\nNATS/1.0\r\na: b\r\nlong-name: x y\r\n\r\none\r\n");
    let without = str::from_utf8(INFO).unwrap().replace("\"headers\":true", "\"headers\":false");
    let small = str::from_utf8(INFO).unwrap().replace("1048576", "1057");
    for (info, said) in [(without, "takes no headers"), (small, "those of this run have 1058 with headers")] {
        let mut talk = Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t"));
        let error = talk.say(info.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn user_password_and_token_are_said() {
    let words = connect_words("nats://h", &[]);
    assert_eq!((&words["name"], &words["verbose"], &words["headers"]), (&json!("c0"), &json!(false), &json!(true)));
    assert!(words.get("user").is_none() && words.get("auth_token").is_none());
    let words = connect_words("nats://me:secret@h", &[]);
    assert_eq!((&words["user"], &words["pass"]), (&json!("me"), &json!("secret")));
    let words = connect_words("nats://h", &[("username", "me"), ("password", "se\"cret")]);
    assert_eq!((&words["user"], &words["pass"]), (&json!("me"), &json!("se\"cret")));
    assert_eq!(connect_words("nats://t0ken@h", &[])["auth_token"], "t0ken");
    assert_eq!(connect_words("nats://h", &[("token", "t0ken")])["auth_token"], "t0ken");
    let both = settings::<Nats>("nats://me:secret@h", 0, false, &[("token", "x")]).err().unwrap().to_string();
    assert!(both.contains("write either"), "{both}");
}

#[test]
fn guarantees_that_nats_core_lacks_are_refused() {
    assert!(settings::<Nats>("nats://h", 0, true, &[]).err().unwrap().to_string().contains("durable"));
}

#[test]
fn refusals_are_told_apart() {
    let settings = plain();
    let fault = |bytes: &[u8]| Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t")).say(bytes).unwrap_err();
    for text in [
        "Authorization Violation",
        "Authentication Timeout",
        "Permissions Violation for Publish to \"t\"",
        "Maximum Payload Violation",
        "Secure Connection - TLS Required",
    ] {
        let fault = fault(format!("-ERR '{text}'\r\n").as_bytes());
        assert!(matches!(&fault, SessionError::Denied(words) if words.contains(text)), "{fault:?}");
    }
    for text in ["maximum connections exceeded", "Slow Consumer"] {
        let fault = fault(format!("-ERR '{text}'\r\n").as_bytes());
        assert!(matches!(&fault, SessionError::Limit(words) if words.contains(text)), "{fault:?}");
    }
    for text in ["Stale Connection", "Server Shutdown"] {
        let fault = fault(format!("-ERR '{text}'\r\n").as_bytes());
        assert!(matches!(&fault, SessionError::Busy(words) if words.contains(text)), "{fault:?}");
    }
    let http = fault(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert!(
        matches!(&http, SessionError::Foreign(words) if words.contains("does not speak NATS: it sent \"HTTP/1.1 400"))
    );
    for bytes in [&b"INFO []\r\n"[..], b"INFO {\r\n", b"\x00\x00", b"-ERR 'Parser Error'\r\n"] {
        assert!(matches!(fault(bytes), SessionError::Foreign(_)), "{}", bytes.escape_ascii());
    }
    assert!(
        matches!(fault(b"INFO {\"tls_required\":true}\r\n"), SessionError::Denied(words) if words.contains("tls://"))
    );
    let tls = super::super::conversation::settings::<Nats>("tls://h", 0, false, &[]).unwrap();
    let fault = Conversation::<Nats>::new(&tls, spec(Role::Publisher, "t")).say(INFO).unwrap_err();
    assert!(matches!(fault, SessionError::Denied(words) if words.contains("no TLS")));
}

#[test]
fn a_publisher_whose_messages_are_too_long_is_told_both_lengths() {
    let info = |role, most: u32| {
        let settings = settings::<Nats>("nats://h", 0, false, &[]).unwrap();
        let mut talk = Conversation::<Nats>::new(&settings, spec(role, "t"));
        talk.say(format!("INFO {{\"max_payload\":{most}}}\r\n").as_bytes())
    };
    let Err(SessionError::Denied(words)) = info(Role::Publisher, 1_023) else { panic!() };
    assert!(words.contains("1023") && words.contains("1024") && words.contains("max_payload"), "{words}");
    assert_eq!((info(Role::Publisher, 1_024), info(Role::Subscriber, 10)), (Ok(()), Ok(())));
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Nats>() <= 80, "{} bytes", size_of::<Nats>());
}

/// Returns the path of a file for the tests.
fn file(name: &str) -> String {
    format!("{}/tests/logins/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// The nonce of an INFO that asks for a signature.
const NONCE: &str = "Xe4kY3DlRlAbGQo";

fn asks() -> Vec<u8> {
    format!("INFO {{\"version\":\"2.9.10\",\"auth_required\":true,\"nonce\":\"{NONCE}\"}} \r\n").into_bytes()
}

#[test]
fn what_the_server_says_is_signed_by_the_users_key() {
    use base64::Engine;
    let public = std::fs::read_to_string(file("user.pub")).unwrap();
    let creds = std::fs::read_to_string(file("user.creds")).unwrap();
    let jwt = creds.lines().nth(1).unwrap();
    for (option, name, field, says) in [("nkey", "user.nk", "nkey", public.trim()), ("creds", "user.creds", "jwt", jwt)]
    {
        let settings = settings::<Nats>("nats://h", 0, false, &[(option, &file(name))]).unwrap();
        let mut talk = Conversation::<Nats>::new(&settings, spec(Role::Publisher, "t"));
        talk.say(&asks()).unwrap();
        let said = talk.said();
        let Ok(Some((FromClient::Connect(words), _))) = FromClient::decode(&said) else { panic!("{said:?}") };
        let words: Value = serde_json::from_slice(words).unwrap();
        assert_eq!(words[field], says);
        let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(words["sig"].as_str().unwrap());
        // The public name contains a byte of prefix, 32 of the key, and a checksum.
        let key = login::from_base32(public.trim()).unwrap();
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &key[1..33]);
        key.verify(NONCE.as_bytes(), &signature.unwrap()).unwrap();
    }
}

#[test]
fn files_without_a_users_key_are_refused_and_not_repeated() {
    let read = |set: &[(&str, &str)]| settings::<Nats>("nats://h", 0, false, set).err().unwrap().to_string();
    let seed = std::fs::read_to_string(file("account.nk")).unwrap();
    for (option, name, says) in [
        ("nkey", "nothing", "cannot read"),
        ("nkey", "user.pub", "It holds the public key"),
        ("nkey", "account.nk", "not a user's"),
        ("creds", "user.nk", "holds no user JWT"),
        ("creds", "ca.crt", "holds no user JWT"),
    ] {
        let error = read(&[(option, &file(name))]);
        assert!(error.starts_with(option) && error.contains(says) && error.contains(name), "{error}");
        assert!(!error.contains(seed.trim()), "{error}");
    }
    let (nkey, creds) = (file("user.nk"), file("user.creds"));
    for (set, says) in [
        ([("nkey", &*nkey), ("creds", &*creds)], "both nkey and creds"),
        ([("nkey", &*nkey), ("token", "t")], "both a token and nkey"),
        ([("username", "me"), ("creds", &*creds)], "both a user name and creds"),
    ] {
        assert!(read(&set).contains(says));
    }
}

#[test]
fn who_signs_is_told_where_the_server_takes_no_signatures_and_the_other_way_round() {
    let signer = settings::<Nats>("nats://h", 0, false, &[("nkey", &file("user.nk"))]).unwrap();
    let mut talk = Conversation::<Nats>::new(&signer, spec(Role::Publisher, "t"));
    assert!(matches!(talk.say(INFO), Err(SessionError::Denied(words)) if words.contains("takes no signatures")));
    let plain = plain();
    let mut talk = Conversation::<Nats>::new(&plain, spec(Role::Publisher, "t"));
    talk.say(&asks()).unwrap();
    let refused = talk.say(b"-ERR 'Authorization Violation'\r\n");
    assert!(matches!(&refused, Err(SessionError::Denied(words)) if words.contains("options.creds")), "{refused:?}");
}

#[test]
fn a_user_name_is_no_token_because_its_password_is_missing() {
    let words = connect_words("nats://h", &[("username", "me")]);
    assert_eq!((&words["user"], &words["pass"], words.get("auth_token")), (&json!("me"), &json!(""), None));
    let words = connect_words("nats://me:@h", &[]);
    assert_eq!((&words["user"], &words["pass"], words.get("auth_token")), (&json!("me"), &json!(""), None));
    let alone = settings::<Nats>("nats://:pw@h", 0, false, &[]).err().unwrap().to_string();
    assert!(alone.contains("a password needs a user name"), "{alone}");
}

#[test]
fn a_prefix_makes_subjects() {
    assert!(settings::<Nats>("nats://h", 0, false, &[("prefix", "bench.a.")]).is_ok());
    for bad in ["a.*.", "a.>", "a b.", "$SYS.", ".a", "a..b", &"x".repeat(1_025)] {
        let error = settings::<Nats>("nats://h", 0, false, &[("prefix", bad)]).err().unwrap().to_string();
        assert!(error.starts_with("prefix: "), "{bad}: {error}");
    }
}
