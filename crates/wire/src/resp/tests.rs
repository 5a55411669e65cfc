use super::*;
use proptest::prelude::*;

/// A value with nested values, to be written and compared.
#[derive(Clone, Debug)]
enum Tree {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Null,
    Array(u8, Vec<Tree>),
}

impl Tree {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Tree::Simple(text) => put_line(out, b'+', text),
            Tree::Error(text) => put_line(out, b'-', text),
            Tree::Integer(number) => put_integer(out, *number),
            Tree::Bulk(text) => put_bulk(out, text),
            Tree::Null => out.extend_from_slice(b"_\r\n"),
            Tree::Array(kind, trees) => {
                put_front(out, *kind, trees.len());
                trees.iter().for_each(|tree| tree.put(out));
            }
        }
    }

    fn is(&self, item: &Item<'_>) -> bool {
        match (self, item) {
            (Tree::Simple(a), Item::Simple(b)) | (Tree::Error(a), Item::Error(b)) | (Tree::Bulk(a), Item::Bulk(b)) => {
                a == b
            }
            (Tree::Integer(a), Item::Integer(b)) => a == b,
            (Tree::Null, Item::Null) => true,
            (Tree::Array(kind, trees), Item::Array(values) | Item::Push(values)) => {
                (*kind == b'>') == matches!(item, Item::Push(_))
                    && values.count() == trees.len()
                    && trees.iter().zip(*values).all(|(tree, item)| tree.is(&item))
            }
            _ => false,
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        "[ -~]{0,9}".prop_map(|text| Tree::Simple(text.into())),
        "[ -~]{0,9}".prop_map(|text| Tree::Error(text.into())),
        any::<i64>().prop_map(Tree::Integer),
        proptest::collection::vec(any::<u8>(), 0..20).prop_map(Tree::Bulk),
        Just(Tree::Null),
    ];
    leaf.prop_recursive(5, 30, 4, |inner| {
        (proptest::sample::select(b"*>~".to_vec()), proptest::collection::vec(inner, 0..4))
            .prop_map(|(kind, trees)| Tree::Array(kind, trees))
    })
}

proptest! {
    #[test]
    fn values_read_back_and_their_beginnings_do_not(tree in tree()) {
        let mut bytes = Vec::new();
        tree.put(&mut bytes);
        for end in 0..bytes.len() {
            prop_assert_eq!(Item::decode(&bytes[..end]), Ok(None));
        }
        bytes.extend_from_slice(b":1");
        let (item, taken) = Item::decode(&bytes).unwrap().unwrap();
        prop_assert_eq!(taken, bytes.len() - 2);
        prop_assert!(tree.is(&item), "{:?} {:?}", tree, item);
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(
        prop_oneof![any::<u8>(), proptest::sample::select(b"+-:$=_#,(*~%>!0123\r\n\r\n".to_vec())], 0..60,
    )) {
        if let Ok(Some((item, taken))) = Item::decode(&bytes) {
            prop_assert!((1..=bytes.len()).contains(&taken));
            prop_assert!(item.values().into_iter().flatten().count() as u64 <= MAX_VALUES);
            let _ = RespCommand::of(&item);
        }
    }
}

fn whole(bytes: &[u8]) -> Item<'_> {
    match Item::decode(bytes) {
        Ok(Some((item, taken))) if taken == bytes.len() => item,
        other => panic!("{}: {other:?}", bytes.escape_ascii()),
    }
}

/// The examples of the specification.
#[test]
fn known_values() {
    assert_eq!(whole(b"+OK\r\n"), Item::Simple(b"OK"));
    assert_eq!(whole(b"-ERR unknown command 'asdf'\r\n"), Item::Error(b"ERR unknown command 'asdf'"));
    assert_eq!(whole(b":-1000\r\n"), Item::Integer(-1000));
    assert_eq!(whole(b":+7\r\n"), Item::Integer(7));
    assert_eq!(whole(b"$5\r\nhello\r\n"), Item::Bulk(b"hello"));
    assert_eq!(whole(b"$0\r\n\r\n"), Item::Bulk(b""));
    for null in [&b"$-1\r\n"[..], b"*-1\r\n", b"_\r\n"] {
        assert_eq!(whole(null), Item::Null);
    }
    assert_eq!(whole(b"#t\r\n"), Item::Boolean(true));
    assert_eq!(whole(b",1.23\r\n"), Item::Number(b"1.23"));
    assert_eq!(
        whole(b"(3492890328409238509324850943850943825024385\r\n"),
        Item::Number(b"3492890328409238509324850943850943825024385")
    );
    assert_eq!(whole(b"!21\r\nSYNTAX invalid syntax\r\n"), Item::Error(b"SYNTAX invalid syntax"));
    assert_eq!(whole(b"=15\r\ntxt:Some string\r\n"), Item::Bulk(b"Some string"));
    let array = whole(b"*2\r\n*1\r\n:1\r\n$3\r\nfoo\r\n").values().unwrap().collect::<Vec<_>>();
    assert_eq!(array[0].values().unwrap().collect::<Vec<_>>(), [Item::Integer(1)]);
    assert_eq!(array[1], Item::Bulk(b"foo"));
    let map = whole(b"%2\r\n+first\r\n:1\r\n+second\r\n:2\r\n").values().unwrap().collect::<Vec<_>>();
    assert_eq!(map, [Item::Simple(b"first"), Item::Integer(1), Item::Simple(b"second"), Item::Integer(2)]);
}

#[test]
fn what_is_no_value_is_refused() {
    let deep = b"*1\r\n".repeat(MAX_DEPTH + 1);
    let wide = b"*2\r\n*4096\r\n".to_vec();
    let long = [b"+".to_vec(), vec![b'x'; MAX_LINE_BYTES]].concat();
    for (bytes, says) in [
        (&b"HTTP/1.1 400"[..], "begins with 'H'"),
        (b"\x00", "begins with '\\x00'"),
        (b"+OK\n", "no CR LF"),
        (b":x\r\n", "does not fit"),
        (b":\r\n", "does not fit"),
        (b":9223372036854775808\r\n", "does not fit"),
        (b"$-2\r\n", "does not fit"),
        (b"$?\r\n", "does not fit"),
        (b"$536870913\r\n", "does not fit"),
        (b"$3\r\nabcd\r\n", "no CR LF follows"),
        (b"=3\r\nabc\r\n", "does not fit"),
        (b"=4\r\nabcd\r\n", "does not fit"),
        (b"#x\r\n", "does not fit"),
        (b"_x\r\n", "does not fit"),
        (b"*4097\r\n", "does not fit"),
        (b"|1\r\n", "begins with '|'"),
        (&deep, "deeper than 8"),
        (&wide, "more than 4096"),
        (&long, "longer than"),
    ] {
        let error = Item::decode(bytes).unwrap_err();
        assert!(error.0.contains(says), "{}: {error}", bytes[..bytes.len().min(60)].escape_ascii());
    }
    assert_eq!(Item::decode(&long[..MAX_LINE_BYTES - 1]), Ok(None));
}

#[test]
fn commands_are_understood() {
    let mut bytes = Vec::new();
    let mut of = |words: &[&str]| {
        bytes.clear();
        put_command(&mut bytes, &words.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
        format!("{:?}", RespCommand::of(&whole(&bytes)).map_err(|error| error.0))
    };
    let debug = |command: RespCommand<'_>| format!("{:?}", Ok::<_, String>(command));
    assert_eq!(of(&["publish", "c", "m"]), debug(RespCommand::Publish(b"c", b"m")));
    assert_eq!(of(&["AUTH", "secret"]), debug(RespCommand::Auth(None, b"secret")));
    assert_eq!(of(&["AUTH", "me", "secret"]), debug(RespCommand::Auth(Some(b"me"), b"secret")));
    assert_eq!(of(&["PING"]), debug(RespCommand::Ping(None)));
    assert_eq!(of(&["GET", "k"]), debug(RespCommand::Other(b"GET")));
    assert!(of(&["PUBLISH", "c"]).contains("lacks its arguments"));
    assert!(of(&[]).contains("array of strings"));
    let item = whole(b"*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n$1\r\nb\r\n");
    let Ok(RespCommand::Subscribe(channels)) = RespCommand::of(&item) else { panic!("{item:?}") };
    assert_eq!(channels.collect::<Vec<_>>(), [Item::Bulk(b"a"), Item::Bulk(b"b")]);
}
