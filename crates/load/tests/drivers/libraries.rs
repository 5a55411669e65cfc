//! Drivers of C libraries: their options, and libraries that are missing or wrong.

use super::*;

#[test]
fn an_inproc_connection_may_come_before_its_binder() {
    for name in LIBRARIES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Case { name, transport: Transport::Inproc, options: defaults(), payload: SMALL, folder };
        let mut driver = case.load();
        let endpoint = case.fresh();
        let mut pull = case.connect(&mut *driver, Role::Subscriber, Pattern::Pipeline, &endpoint);
        let mut push =
            case.open(&mut *driver, Role::Publisher, Pattern::Pipeline, Some(&endpoint), &[]).expect("binds");
        send(&case, &mut *push, &body(7, SMALL));
        assert_eq!(receive(&case, &mut *pull), body(7, SMALL));
    }
}

#[test]
fn an_address_in_use_is_an_error_that_names_it() {
    each(&LIBRARIES, &[SMALL], &defaults(), |case, driver| {
        let (_holder, endpoint) = case.bind(driver, Role::Publisher, Pattern::FanOut);
        // libzmq takes an ipc path over from its current owner.
        if !["zeromq", "czmq"].contains(&case.name) || case.transport != Transport::Ipc {
            let error = case
                .open(driver, Role::Publisher, Pattern::FanOut, Some(&endpoint), &[])
                .err()
                .expect("in use")
                .to_string();
            assert!(error.contains(&endpoint) && error.contains("in use"), "{case}: {error}");
        }
    });
}

#[test]
fn what_zeromq_accepted_is_sent_after_its_socket_and_driver_are_dropped() {
    each(&["zeromq"], &[4096], &defaults(), |case, driver| {
        if case.transport == Transport::Inproc {
            return;
        }
        let count = 500;
        let (mut pull, endpoint) = case.bind(driver, Role::Subscriber, Pattern::Pipeline);
        let mut sender = case.load();
        let mut push = case.connect(&mut *sender, Role::Publisher, Pattern::Pipeline, &endpoint);
        for number in 0..count {
            send(case, &mut *push, &body(number, case.payload));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                drop(push);
                drop(sender);
            });
            for number in 0..count {
                assert!(receive(case, &mut *pull) == body(number, case.payload), "{case}: message {number} is another");
            }
        });
    });
}

/// Without `nodrop` almost all of these are dropped: the queues have room for a few.
#[test]
fn a_publisher_of_zeromq_that_drops_nothing_waits_for_its_subscriber() {
    let options = with(&[("nodrop", true.into()), ("queue_messages", 10.into())]);
    each(&["zeromq"], &[4096], &options, |case, driver| {
        let count = 5_000;
        let (mut publisher, endpoint) = case.bind(driver, Role::Publisher, Pattern::FanOut);
        let mut subscriber = case.connect(driver, Role::Subscriber, Pattern::FanOut, &endpoint);
        assert_eq!(publisher.applied()["nodrop"], true, "{case}");
        until(&format!("{case}: a probe"), || {
            send(case, &mut *publisher, &body(u32::MAX, case.payload));
            attempt(case, &mut *subscriber)
        });
        std::thread::scope(|scope| {
            scope.spawn(|| (0..count).for_each(|number| send(case, &mut *publisher, &body(number, case.payload))));
            let mut expected = 0;
            while expected < count {
                let message = receive(case, &mut *subscriber);
                if number_of(&message) != u32::MAX {
                    assert!(message == body(expected, case.payload), "{case}: message {expected} is another");
                    expected += 1;
                }
            }
        });
    });
}

#[test]
fn what_a_socket_holds_that_crashes_is_lost_and_nobody_listens_there_any_more() {
    each(&registered(), &[4096], &defaults(), |case, driver| {
        if case.transport == Transport::Inproc {
            return;
        }
        let mut sender = case.load();
        let (mut push, endpoint) = case.bind(&mut *sender, Role::Publisher, Pattern::Pipeline);
        let mut pull = case.connect(driver, Role::Subscriber, Pattern::Pipeline, &endpoint);
        until(&format!("{case}: a probe"), || {
            send(case, &mut *push, &body(u32::MAX, case.payload));
            attempt(case, &mut *pull)
        });
        let mut accepted = 0;
        while push.send(&body(accepted, case.payload)).unwrap() == Sent::Accepted {
            accepted += 1;
        }
        push.crash();
        // Messages in flight arrive quickly; then nothing does.
        let (mut came, mut silent) = (0, 0);
        while silent < 10 {
            match attempt(case, &mut *pull) {
                Some(probe) if number_of(&probe) == u32::MAX => {}
                Some(message) => {
                    assert!(message == body(came, case.payload), "{case}: message {came} is another");
                    (came, silent) = (came + 1, 0);
                }
                None => silent += 1,
            }
        }
        assert!(came <= accepted, "{case}: {came} of {accepted}");
        assert!(case.name != "zeromq" || came < accepted, "{case}: it lingered, and sent all {accepted}");
        if let Some(address) = endpoint.strip_prefix("tcp://") {
            until(&format!("{case}: its end"), || std::net::TcpStream::connect(address).is_err().then_some(()));
        }
    });
}

#[test]
fn the_library_tells_what_it_is_and_where_it_lies() {
    for name in LIBRARIES {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let case = Case { name, transport: Transport::Inproc, options: defaults(), payload: SMALL, folder };
        let driver = case.load();
        let versions = driver.versions();
        let path = versions["path"].as_str().expect("a path");
        assert!(Path::new(path).is_absolute() && Path::new(path).is_file(), "{name}: {path}");
        assert!(versions["library"].as_str().is_some_and(|library| path.contains(library)), "{name}: {versions:?}");
        assert!(versions["version"].as_str().is_some_and(|version| version.contains('.')), "{name}: {versions:?}");
        // The same file, given by its path.
        let named = find(name).expect("registered")(&with(&[("library", path.into())])).expect("loads by its path");
        assert_eq!(named.versions(), versions);
    }
}

#[test]
fn a_library_that_cannot_be_used_is_an_error_that_names_it_and_the_way_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let absent = folder.path().join("libabsent.so").display().to_string();
    let prose = folder.path().join("prose.so").display().to_string();
    std::fs::write(&prose, "no ELF file").expect("writes");
    for name in LIBRARIES {
        for (library, reason) in [
            (absent.as_str(), "does not exist"),
            (prose.as_str(), "is not a shared library"),
            (folder.path().to_str().expect("UTF-8"), "is not a shared library"),
            ("libno-such-library.so.7", "is not a shared library"),
            ("libc.so.6", "has no function"),
        ] {
            let error = find(name).expect("registered")(&with(&[("library", library.into())]))
                .err()
                .expect("refused")
                .to_string();
            for part in [library, reason, "option `library`"] {
                assert!(error.contains(part), "{name}: no {part:?} in: {error}");
            }
        }
    }
}

#[test]
fn what_a_library_cannot_do_is_an_error() {
    for (name, option, value) in [
        ("zeromq", "tcp_nodelay", Value::from(false)),
        ("zeromq", "io_threads", 0.into()),
        ("czmq", "tcp_nodelay", Value::from(false)),
        ("czmq", "io_threads", 0.into()),
        ("nng", "socket_buffer", 65_536.into()),
        ("nng", "io_threads", 2.into()),
        ("nanomsg", "io_threads", 2.into()),
    ] {
        let error = find(name).expect("registered")(&with(&[(option, value)])).err().expect("refused").to_string();
        assert!(error.contains(name), "{error}");
        assert!(error.to_lowercase().contains(option), "{error}");
    }
}

#[test]
fn options_take_effect_and_are_recorded() {
    let options = with(&[("queue_messages", 10_000.into()), ("linger", "250ms".into())]);
    each(&LIBRARIES, &[SMALL], &options, |case, driver| {
        let (push, _) = case.bind(driver, Role::Publisher, Pattern::Pipeline);
        let (subscriber, _) = case.bind(driver, Role::Subscriber, Pattern::FanOut);
        let (sender, receiver) = (push.applied(), subscriber.applied());
        if case.transport == Transport::Tcp {
            assert_eq!(sender["tcp_nodelay"], true, "{case}");
        }
        match case.name {
            "zeromq" | "czmq" => {
                assert_eq!(
                    (&sender["send_queue_messages"], &receiver["receive_queue_messages"]),
                    (&10_000.into(), &10_000.into())
                );
                assert_eq!(sender["linger"], "250ms");
            }
            "nng" => {
                assert_eq!(
                    (&sender["send_queue_messages"], &receiver["receive_queue_messages"]),
                    (&8192.into(), &8192.into())
                );
                assert_eq!(
                    (&sender["receive_queue_messages"], &sender["linger"]),
                    (&"unsupported".into(), &"unsupported".into())
                );
            }
            _ if case.transport == Transport::Inproc => assert_eq!(receiver["receive_queue_bytes"], 640_000),
            _ => assert!(
                sender["send_buffer_bytes"].as_u64().is_some_and(|bytes| (1..=640_000).contains(&bytes)),
                "{case}: {sender:?}"
            ),
        }
    });
}
