//! A relay that replaces the proxy of links where that cannot be built: it supports pubmark's requests, and delays and
//! cuts. The test program plays it itself, as a separate process that is kept as the proxy is.

use pubmark_host::install::tools;
use pubmark_stats::Random;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Variable that makes the test program play the relay, with the arguments of the proxy.
const PLAY: &str = "PUBMARK_TEST_PLAYS_RELAY";

/// Puts the relay where the proxy would be installed, below this cache folder.
pub fn install(cache: &Path) {
    let tool = tools::toxiproxy();
    let folder = cache.join("pubmark/systems").join(&tool.name);
    std::fs::create_dir_all(folder.join("bin")).unwrap();
    let program = folder.join("bin/server");
    let this = std::env::current_exe().unwrap();
    let play = format!(
        "#!/bin/sh\n{PLAY}=\"$*\" exec '{}' --exact relay::plays_where_it_is_asked_to --nocapture\n",
        this.display()
    );
    std::fs::write(&program, play).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let pins: String = tool.install.go.iter().map(|pin| format!("go {pin}\n")).collect();
    std::fs::write(folder.join("installed"), pins).unwrap();
}

#[test]
fn plays_where_it_is_asked_to() {
    let Ok(arguments) = std::env::var(PLAY) else { return };
    let words: Vec<&str> = arguments.split(' ').collect();
    let after = |name: &str| words[words.iter().position(|word| *word == name).unwrap() + 1];
    let listener = TcpListener::bind(format!("{}:{}", after("-host"), after("-port"))).unwrap();
    let mut link: Option<Link> = None;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let (path, body) = request(&mut stream);
        match (path.as_str(), &mut link) {
            ("/proxies", _) => {
                let address = |key: &str| body[key].as_str().unwrap().parse().unwrap();
                let mut made = Link::new(address("listen"), address("upstream"));
                made.enable();
                link = Some(made);
            }
            (path, Some(link)) if path.ends_with("/toxics") => link.toxic(&body),
            (_, Some(link)) if body["enabled"] == true => link.enable(),
            (_, Some(link)) => link.disable(),
            (path, None) => panic!("{path} before there is a link"),
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    }
}

/// Returns the path and the document of a request.
fn request(stream: &mut TcpStream) -> (String, Value) {
    let (mut heard, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut piece).unwrap();
        heard.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&heard).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
        if let Some(body) = whole {
            return (text.split(' ').nth(1).unwrap().to_owned(), body);
        }
        assert!(count > 0, "a request breaks off: {text}");
    }
}

struct Link {
    listen: SocketAddr,
    upstream: SocketAddr,
    /// Delay and jitter to the server, and from it.
    delays: [[Duration; 2]; 2],
    open: Option<Open>,
}

/// A link that passes connections on.
struct Open {
    ends: Arc<AtomicBool>,
    streams: Arc<Mutex<Vec<TcpStream>>>,
    accepts: JoinHandle<()>,
}

impl Link {
    fn new(listen: SocketAddr, upstream: SocketAddr) -> Link {
        Link { listen, upstream, delays: [[Duration::ZERO; 2]; 2], open: None }
    }

    fn toxic(&mut self, toxic: &Value) {
        match toxic["type"].as_str().unwrap() {
            "latency" => {
                let from_server = toxic["stream"] == "downstream";
                self.delays[usize::from(from_server)] = ["latency", "jitter"]
                    .map(|name| Duration::from_millis(toxic["attributes"][name].as_u64().unwrap()));
                // Future connections are delayed; there are none yet.
                self.disable();
                self.enable();
            }
            // Cutting is abrupt enough without it.
            "reset_peer" => {}
            other => panic!("this relay has no {other}"),
        }
    }

    fn enable(&mut self) {
        let listener = TcpListener::bind(self.listen).unwrap();
        let (ends, streams) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (over, opened, upstream, delays) = (ends.clone(), streams.clone(), self.upstream, self.delays);
        let accepts = thread::spawn(move || {
            for client in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(upstream)) else { continue };
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                    opened.lock().unwrap().push(stream.try_clone().unwrap());
                }
                pass(client.try_clone().unwrap(), server.try_clone().unwrap(), delays[0]);
                pass(server, client, delays[1]);
            }
        });
        self.open = Some(Open { ends, streams, accepts });
    }

    /// Ends all connections and refuses new ones before it returns.
    fn disable(&mut self) {
        let Some(Open { ends, streams, accepts }) = self.open.take() else { return };
        ends.store(true, Ordering::SeqCst);
        // This connection wakes the loop that waits for one.
        let _ = TcpStream::connect(self.listen);
        accepts.join().unwrap();
        for stream in streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes bytes on in order, each after the delay with random jitter.
fn pass(mut from: TcpStream, mut to: TcpStream, [delay, jitter]: [Duration; 2]) {
    let mut random = Random(u64::from(from.peer_addr().map_or(1, |address| address.port())));
    let (sender, pieces) = channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            let due = Instant::now() + delay - jitter + jitter.mul_f64(2.0 * random.unit());
            if sender.send((due, piece[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    thread::spawn(move || {
        for (due, piece) in pieces {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&piece).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}
