use super::super::conversation::{Conversation, HeardEvent, message, settings, spec};
use super::*;
use crate::session::{SubTopics, TopicShare};
use pubmark_model::header::{END, PROBE};
use pubmark_model::protocol::Role;
use pubmark_wire::resp::RespCommand;

/// The answer of Redis 7.0 to HELLO 3.
const HELLO: &[u8] = b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
    $2\r\nid\r\n:4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n";
const INFO: &[u8] = b"$73\r\n# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n\r\n";

fn plain(resp: &str) -> RedisSettings {
    settings::<Redis>("redis://h", 0, false, &[("resp", resp)]).unwrap()
}

/// Returns the words of each command.
fn commands(mut bytes: &[u8]) -> Vec<String> {
    let mut commands = Vec::new();
    while let Some((item, taken)) = Item::decode(bytes).unwrap() {
        assert!(RespCommand::of(&item).is_ok());
        let words = item.values().unwrap().map(|word| String::from_utf8_lossy(word.text().unwrap()).into_owned());
        commands.push(words.collect::<Vec<_>>().join(" "));
        bytes = &bytes[taken..];
    }
    commands
}

#[test]
fn resp_3_is_understood_wherever_the_bytes_are_cut() {
    let settings = plain("3");
    let words = b">3\r\n$7\r\nmessage\r\n$1\r\nt\r\n$5\r\nhello\r\n>4\r\n$8\r\npmessage\r\n$3\r\nt.*\r\n$3\r\nt.1\r\n$0\r\n\r\n+PONG\r\n";
    for cut in 0..=HELLO.len() {
        let mut talk = Conversation::<Redis>::new(&settings, spec(Role::Subscriber, "t"));
        assert_eq!(commands(&talk.said()), ["HELLO 3 SETNAME c0"]);
        talk.say_cut(HELLO, cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Server("redis 7.0.15".into()), HeardEvent::Connected]);
        talk.subscribe();
        assert_eq!(commands(&talk.said()), ["SUBSCRIBE t"]);
        talk.say_cut(b">3\r\n$9\r\nsubscribe\r\n$1\r\nt\r\n:1\r\n", cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        talk.say_cut(words, cut).unwrap();
        assert_eq!(talk.heard(), [message(b"hello"), message(b"")]);
        assert!(talk.all_taken());
    }
}

#[test]
fn resp_2_is_understood_wherever_the_bytes_are_cut() {
    let settings = settings::<Redis>("redis://:pw@h", 0, false, &[("resp", "2")]).unwrap();
    let greeting = [b"+OK\r\n", INFO, b"+PONG\r\n"].concat();
    let words = b"*4\r\n$8\r\npmessage\r\n$3\r\nt.*\r\n$3\r\nt.1\r\n$2\r\nhi\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n";
    for cut in 0..=greeting.len() {
        let mut talk =
            Conversation::<Redis>::new(&settings, ClientSpec { wild: true, ..spec(Role::Subscriber, "t.*") });
        assert_eq!(commands(&talk.said()), ["AUTH pw", "INFO server", "PING"]);
        talk.say_cut(&greeting, cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Server("valkey 8.0.1".into()), HeardEvent::Connected]);
        talk.subscribe();
        talk.session.keep_alive(&settings, &mut talk.out);
        assert_eq!(commands(&talk.said()), ["PSUBSCRIBE t.*", "PING"]);
        talk.say_cut(b"*3\r\n$10\r\npsubscribe\r\n$3\r\nt.*\r\n:1\r\n", cut).unwrap();
        assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
        talk.say_cut(words, cut).unwrap();
        assert_eq!(talk.heard(), [message(b"hi")]);
        assert!(talk.all_taken());
    }
}

#[test]
fn a_share_of_topics_is_one_command_and_counts_when_all_are_confirmed() {
    let (settings, share) = (plain("3"), SubTopics::Share(TopicShare { first: 1, step: 2, count: 5 }));
    let mut talk = Conversation::<Redis>::new(&settings, ClientSpec { leaves: share, ..spec(Role::Subscriber, "t") });
    talk.say(HELLO).unwrap();
    talk.said();
    talk.heard();
    talk.subscribe();
    assert_eq!(commands(&talk.said()), ["SUBSCRIBE t.markers t.1 t.3"]);
    let confirm = |number| format!(">3\r\n$9\r\nsubscribe\r\n$3\r\nt.1\r\n:{number}\r\n");
    talk.say((confirm(1) + &confirm(2)).as_bytes()).unwrap();
    assert_eq!(talk.heard(), []);
    talk.say(confirm(3).as_bytes()).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Subscribed]);
}

#[test]
fn a_publisher_names_the_leaf_and_takes_the_answers() {
    let settings = plain("3");
    let mut talk =
        Conversation::<Redis>::new(&settings, ClientSpec { leaves: SubTopics::Turns(3), ..spec(Role::Publisher, "t") });
    talk.say(HELLO).unwrap();
    talk.said();
    talk.heard();
    assert!(talk.publish(b"m", 7) && talk.publish(b"n", 8));
    assert_eq!(commands(&talk.said()), ["PUBLISH t.1 m", "PUBLISH t.2 n"]);
    talk.say(b":0\r\n:12\r\n").unwrap();
    assert!(talk.heard().is_empty() && talk.all_taken());
    talk.session.close(&settings, &talk.spec, &mut talk.out);
    assert_eq!(commands(&talk.said()), ["QUIT"]);
}

#[test]
fn user_and_password_are_said() {
    let said = |url: &str, set: &[(&str, &str)]| {
        let settings = settings::<Redis>(url, 0, false, set).unwrap();
        commands(&Conversation::<Redis>::new(&settings, spec(Role::Publisher, "t")).said()).remove(0)
    };
    assert_eq!(said("redis://me:pw@h", &[]), "HELLO 3 AUTH me pw SETNAME c0");
    assert_eq!(said("redis://:pw@h", &[]), "HELLO 3 AUTH default pw SETNAME c0");
    assert_eq!(said("redis://h", &[("username", "me"), ("password", "pw"), ("resp", "2")]), "AUTH me pw");
    let error = settings::<Redis>("redis://me@h", 0, false, &[]).err().unwrap().to_string();
    assert!(error.contains("`me` has no password"), "{error}");
}

#[test]
fn what_cannot_be_had_is_refused() {
    assert!(settings::<Redis>("redis://h", 2, false, &[]).err().unwrap().to_string().contains("qos = 1"));
    assert!(settings::<Redis>("redis://h", 0, true, &[]).err().unwrap().to_string().contains("durable"));
    assert!(settings::<Redis>("redis://h", 0, false, &[("resp", "4")]).err().unwrap().to_string().contains("2 or 3"));
}

#[test]
fn refusals_are_told_apart() {
    let (two, three) = (plain("2"), plain("3"));
    let say = |settings, bytes: &[u8]| Conversation::<Redis>::new(settings, spec(Role::Publisher, "t")).say(bytes);
    for text in [
        "NOAUTH HELLO must be called with the client already authenticated",
        "WRONGPASS invalid username-password pair or user is disabled.",
        "NOPERM this user has no permissions to run the 'publish' command",
        "NOPROTO unsupported protocol version",
        "ERR unknown command 'HELLO', with args beginning with: '3'",
        "DENIED Redis is running in protected mode",
    ] {
        let fault = say(&three, format!("-{text}\r\n").as_bytes()).unwrap_err();
        assert!(matches!(&fault, SessionError::Denied(words) if words.contains(text)), "{fault:?}");
    }
    let fault = say(&three, b"-LOADING Redis is loading the dataset in memory\r\n").unwrap_err();
    assert!(matches!(&fault, SessionError::Busy(words) if words.contains("LOADING Redis is")), "{fault:?}");
    for text in ["ERR max number of clients reached", "OOM command not allowed", "MISCONF Errors writing to the AOF"] {
        let fault = say(&three, format!("-{text}\r\n").as_bytes()).unwrap_err();
        assert!(matches!(&fault, SessionError::Limit(words) if words.contains(text)), "{fault:?}");
    }
    say(&two, b"-NOPERM this user has no permissions to run the 'info' command\r\n+PONG\r\n").unwrap();
    let fault = say(&three, b"+OK POP3 ready\r\n").unwrap_err();
    assert!(matches!(&fault, SessionError::Foreign(words) if words.contains("POP3 ready..")), "{fault:?}");
    let fault = say(&three, b"HTTP/1.1 400 Bad Request\r\n").unwrap_err();
    assert!(
        matches!(&fault, SessionError::Foreign(words) if words.contains("does not speak the Redis protocol: it sent \"HTTP/1.1 400 Bad"))
    );
}

#[test]
fn a_refused_message_is_named_and_the_connection_goes_on() {
    for (resp, greeting) in [("3", HELLO), ("2", b"+PONG\r\n")] {
        let settings = plain(resp);
        let mut talk = Conversation::<Redis>::new(&settings, spec(Role::Publisher, "t"));
        talk.say(greeting).unwrap();
        for sequence in [PROBE, 0, 1, 2, END] {
            assert!(talk.publish(b"m", sequence));
        }
        talk.heard();
        talk.say(b":1\r\n:1\r\n-OOM command not allowed\r\n-NOPERM no 'publish'\r\n").unwrap();
        let refused = |sequence, text: &str| HeardEvent::Refused(sequence, text.into());
        assert_eq!(talk.heard(), [refused(1, "OOM command not allowed"), refused(2, "NOPERM no 'publish'")], "{resp}");
    }
}

#[test]
fn an_idle_session_is_small() {
    assert!(size_of::<Redis>() <= 80, "{} bytes", size_of::<Redis>());
}

/// Covers both versions, and a server that has no such database.
#[test]
fn a_database_is_selected_before_the_client_is_connected() {
    let settings = |url: &str, resp| settings::<Redis>(url, 0, false, &[("resp", resp)]).unwrap();
    let three = settings("redis://me:pw@h/7", "3");
    let mut talk = Conversation::<Redis>::new(&three, spec(Role::Publisher, "t"));
    assert_eq!(commands(&talk.said()), ["HELLO 3 AUTH me pw SETNAME c0", "SELECT 7"]);
    talk.say(HELLO).unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Server("redis 7.0.15".into())]);
    talk.say(b"+OK\r\n").unwrap();
    assert_eq!(talk.heard(), [HeardEvent::Connected]);
    let two = settings("redis://h?db=7", "2");
    let mut talk = Conversation::<Redis>::new(&two, spec(Role::Publisher, "t"));
    assert_eq!(commands(&talk.said()), ["SELECT 7", "INFO server", "PING"]);
    talk.say(&[b"+OK\r\n", INFO, b"+PONG\r\n"].concat()).unwrap();
    assert_eq!(talk.heard().last(), Some(&HeardEvent::Connected));
    for settings in [&two, &three] {
        let mut talk = Conversation::<Redis>::new(settings, spec(Role::Publisher, "t"));
        let answers = if settings.three { HELLO } else { b"" };
        let fault = talk.say(&[answers, b"-ERR DB index is out of range\r\n"].concat()).unwrap_err();
        assert!(matches!(&fault, SessionError::Denied(words) if words.contains("out of range")), "{fault:?}");
        assert!(!talk.heard().contains(&HeardEvent::Connected));
    }
}

#[test]
fn a_login_may_lack_its_user_or_have_an_empty_password() {
    for (url, said) in [
        ("redis://:pw@h", Some(("default", "pw"))),
        ("redis://me:@h", Some(("me", ""))),
        ("redis://h?password=pw", Some(("default", "pw"))),
        ("redis://:@h", None),
        ("redis://@h", None),
    ] {
        let login = settings::<Redis>(url, 0, false, &[]).unwrap().login;
        assert_eq!(login, said.map(|(user, password)| (user.to_owned(), password.to_owned())), "{url}");
    }
    let error = settings::<Redis>("redis://pw@h", 0, false, &[]).err().unwrap().to_string();
    assert!(error.contains("redis://:PASSWORD@HOST"), "{error}");
}

#[test]
fn a_prefix_holds_nothing_that_patterns_know() {
    assert!(settings::<Redis>("redis://h", 0, false, &[("prefix", "bench:")]).is_ok());
    for bad in ["a*", "a?", "[a", "a]", "a\\", "a\n"] {
        let error = settings::<Redis>("redis://h", 0, false, &[("prefix", bad)]).err().unwrap().to_string();
        assert!(error.starts_with("prefix: a channel"), "{bad}: {error}");
    }
}
