//! Tests of how URLs are read, and which are refused by name.

use super::*;
use serde_json::json;

#[test]
fn urls_are_taken_apart() {
    let endpoint = Endpoint::parse("mqtts://us%40er:p%3Aw@broker.example:8884/").unwrap();
    assert_eq!((endpoint.protocol, endpoint.carrier, endpoint.port), (Protocol::Mqtt, Carrier::Tls, 8884));
    assert_eq!((endpoint.user.as_deref(), endpoint.password.as_deref()), (Some("us@er"), Some("p:w")));
    assert_eq!(endpoint.to_string(), "mqtts://broker.example:8884/", "a password is never shown");
    for (text, address) in [
        ("nats://localhost", "localhost:4222"),
        ("NATS://localhost", "localhost:4222"),
        ("nats://localhost:", "localhost:4222"),
        ("redis://[::1]:7000", "[::1]:7000"),
        ("redis://[::1]", "[::1]:6379"),
        ("mqtt://[fe80::1%25eth0]:7", "[fe80::1%eth0]:7"),
        ("mqtt://local%68ost:7", "localhost:7"),
        ("mqtt://user:a:b@h:7", "h:7"),
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().address(), address, "{text}");
    }
    assert_eq!(Endpoint::parse("mqtt://[fe80::1%25eth0]:7").unwrap().to_string(), "mqtt://[fe80::1%25eth0]:7");
}

#[test]
fn user_and_password_are_told_apart_from_empty_ones() {
    for (login, user, password) in [
        ("", None, None),
        ("@", None, None),
        ("u@", Some("u"), None),
        ("u:@", Some("u"), Some("")),
        (":p@", Some(""), Some("p")),
        (":@", Some(""), Some("")),
        ("u:p:q@", Some("u"), Some("p:q")),
        ("u:p@q@", Some("u"), Some("p@q")),
        ("u%3A:p%25@", Some("u:"), Some("p%")),
    ] {
        for scheme in ["mqtt", "wss", "tls", "redis", "amqps"] {
            let endpoint = Endpoint::parse(&format!("{scheme}://{login}h")).unwrap();
            assert_eq!((endpoint.user.as_deref(), endpoint.password.as_deref()), (user, password), "{scheme} {login}");
        }
    }
}

#[test]
fn what_path_and_query_say_becomes_options() {
    for (text, options) in [
        ("amqp://h", vec![]),
        ("amqp://h/a%2Fb%20c%C3%A4", vec![("vhost", json!("a/b cä"))]),
        ("amqp://h/%2F", vec![("vhost", json!("/"))]),
        ("amqp://h?heartbeat=5&verify=verify_peer&", vec![("heartbeat", json!("5s"))]),
        ("amqps://h/v?cacertfile=%2Fa%20b", vec![("vhost", json!("v")), ("tls_ca", json!("/a b"))]),
        ("amqps://h?certfile=c&keyfile=k", vec![("tls_cert", json!("c")), ("tls_key", json!("k"))]),
        ("redis://h/", vec![]),
        ("redis://h/7", vec![("database", json!(7))]),
        ("rediss://h?db=7", vec![("database", json!(7))]),
        ("ws://h/a?b=c", vec![]),
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().options, options, "{text}");
    }
    let redis = Endpoint::parse("redis://h/1?password=p%26w").unwrap();
    assert_eq!((redis.user.as_deref(), redis.password.as_deref()), (Some(""), Some("p&w")));
    assert!(!redis.to_string().contains("p%26w"));
}

#[test]
fn a_websocket_asks_for_path_and_query() {
    for (text, resource) in [
        ("ws://h", "/mqtt"),
        ("ws://h/", "/"),
        ("wss://h/a%20b/c?d=e", "/a%20b/c?d=e"),
        ("ws://h?token=x", "/mqtt?token=x"),
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().resource(), resource, "{text}");
    }
}

#[test]
fn all_but_the_address_stays_where_a_server_is_reached_elsewhere() {
    for (url, elsewhere) in [
        ("mqtt://127.0.0.1:1883", "mqtt://127.0.0.1:9"),
        ("mqtts://a%40b:c@host", "mqtts://a%40b:c@127.0.0.1:9"),
        ("ws://[::1]:80/mqtt", "ws://127.0.0.1:9/mqtt"),
        ("ws://h?token=x", "ws://127.0.0.1:9?token=x"),
        ("amqp://u@h:1/vhost?heartbeat=5", "amqp://u@127.0.0.1:9/vhost?heartbeat=5"),
    ] {
        assert_eq!(Endpoint::at(url, "127.0.0.1:9"), elsewhere);
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (text, says) in [
        ("mosquitto", "is not an endpoint"),
        ("http://x", "not a scheme that is known"),
        ("mqtt://", "not a host"),
        ("mqtt://:1883", "not a host"),
        ("mqtt://h:0", "not a port"),
        ("mqtt://h:00", "not a port"),
        ("mqtt://h:65536", "not a port"),
        ("mqtt://h:+1", "not a port"),
        ("mqtt://h:1x", "not a port"),
        ("mqtt://[::1]x", "`x` is not a port"),
        ("mqtt://[::1", "closing bracket"),
        ("mqtt://[::g]", "not a host"),
        ("mqtt://[1.2.3.4]", "not a host"),
        ("mqtt://::1:1883", "in brackets"),
        ("nats://a,b", "names one server"),
        ("nats://a:4222,nats://b:4222", "names one server"),
        ("mqtt://%zz@h", "hexadecimal"),
        ("mqtt://u:%+1@h", "hexadecimal"),
        ("mqtt://u%00@h", "%00"),
        ("mqtt://%ff@h", "UTF-8"),
        ("mqtt://a b", "not a host"),
        ("mqtt://bröker", "not a host"),
        ("mqtt://me:pass/word@h", "write %40"),
        ("mqtt://me:pass#word@h", "as %2F, %3F and %23"),
        ("mqtt://h#x", "fragments"),
        ("ws://h/a#x", "fragments"),
        ("ws://h/a b", "holds ' '"),
        ("ws://h/a\r\nX: y", "holds '\\r'"),
        ("ws://h/ä", "holds 'ä'"),
        ("ws://h/%2", "hexadecimal"),
        ("mqtt://h/topic", "mqtt:// takes no path: leave out what follows the port; topics begin with"),
        ("mqtts://h?clientId=x", "mqtts:// takes no parameter `clientId`: it takes none"),
        ("nats://h/x", "nats:// takes no path"),
        ("tls://h?x=1", "tls:// takes no parameter `x`"),
        ("zenoh://h/x", "zenoh:// takes no path"),
        ("redis://h/x", "the number of a database"),
        ("redis://h/-1", "the number of a database"),
        ("redis://h/1/2", "the number of a database"),
        ("redis://h/1?db=1", "sets `db` twice"),
        ("redis://:a@h?password=b", "sets `password` twice"),
        ("redis://h?db=x", "`db` of an endpoint is count"),
        ("redis://h?timeout=1", "takes no parameter `timeout`: it takes db, password; other options"),
        ("amqp://h/", "no slash at all"),
        ("amqp://h/a/b", "write %2F for a slash"),
        ("amqp://h?heartbeat=x", "a number of s"),
        ("amqp://h?verify=verify_none", "`verify_peer` here"),
        ("amqp://h?channel_max=1", "takes no parameter `channel_max`"),
    ] {
        let error = Endpoint::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
