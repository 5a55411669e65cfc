//! The link of a run: a proxy between clients and their server that delays, limits and
//! cuts connections. It has a keeper like a server, which always ends it.

pub mod http;

use crate::cache::cache_folder;
use crate::error::HostError;
use crate::install::{self, tools};
use crate::server::sample::Sampler;
use crate::server::{GRACE_MS, Server, StartPlan, ports};
use http::{Api, ProxyError};
use pubmark_model::cell::Limits;
use pubmark_model::endpoint::Endpoint;
use pubmark_model::link::Link;
use pubmark_model::record::Usage;
use pubmark_model::secret::Secrets;
use pubmark_model::server::Places;
use pubmark_model::server_reports::LinkReport;
use pubmark_model::units::{MILLISECOND, Ns};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The proxy's name for the link.
const NAME: &str = "link";

/// The plan for starting the proxy.
pub struct ProxyPlan<'a> {
    /// Its folder, absolute.
    pub dir: PathBuf,
    /// File for everything that it prints.
    pub log: PathBuf,
    /// The `pubmark` program.
    pub program: PathBuf,
    /// Secrets that its log may not contain.
    pub secrets: Secrets,
    /// Set when the user interrupts.
    pub interrupt: &'a AtomicBool,
}

/// The link of a run, open unless it was cut. It ends on drop.
pub struct Proxy {
    link: Link,
    server: Server,
    api: Api,
    endpoint: String,
    version: Option<String>,
    sampler: Option<Sampler>,
    usage: Option<Usage>,
}

impl Proxy {
    /// Puts a link before a server, at an address of this machine.
    pub fn open(link: &Link, server: &str, address: &str, how: ProxyPlan<'_>) -> Result<Proxy, HostError> {
        let tool = tools::toxiproxy();
        let spec = tool.server.as_ref().ok_or("the link's proxy cannot be started")?;
        install::missing_tool(tool).map_or(Ok(()), |why| Err(format!("the link of this run is missing: {why}")))?;
        let behind = Endpoint::parse(server)?;
        let [api, port] = ports::free(2)?[..] else { return Err("no free ports for the link".into()) };
        let at = if address.contains(':') { format!("[{address}]:{port}") } else { format!("{address}:{port}") };
        let plan = StartPlan {
            system: &tool.name,
            spec,
            deployment: "native",
            places: Places {
                ports: vec![(String::new(), api)],
                cache: cache_folder(tool).display().to_string(),
                ..Places::default()
            },
            certificates: None,
            remove: vec![how.dir.clone()],
            dir: how.dir,
            log: how.log,
            processors: &[],
            disk: None,
            mesh: None,
            limits: Limits::default(),
            program: how.program,
            secrets: how.secrets,
            grace_ms: GRACE_MS,
            interrupt: how.interrupt,
        };
        let mut proxy = Proxy {
            link: *link,
            server: Server::start(&plan)?,
            api: Api { port: api },
            endpoint: Endpoint::at(server, &at),
            version: install::version(tool).map(|version| format!("{} {version}", tool.name)),
            sampler: None,
            usage: None,
        };
        let set_up = proxy.set_up(&behind.address(), &at, port);
        set_up.map_err(|source| HostError::Link { what: "the link was not put up", source })?;
        Ok(proxy)
    }

    fn set_up(&mut self, behind: &str, listen: &str, port: u16) -> Result<(), ProxyError> {
        self.api.send(
            "POST",
            "/proxies",
            &json!({ "name": NAME, "listen": listen, "upstream": behind, "enabled": true }),
        )?;
        // It is never triggered. Its presence makes the proxy reset the connections that
        // it closes when the link is cut: without it they end as politely as if a program
        // had closed them.
        self.toxic("abrupt", "reset_peer", "upstream", 0.0, &json!({ "timeout": 0 }))?;
        for direction in ["upstream", "downstream"] {
            if self.link.delay_ns > 0 {
                let [latency, jitter] = [self.link.delay_ns, self.link.jitter_ns].map(|ns| ns / MILLISECOND);
                let attributes = json!({ "latency": latency, "jitter": jitter });
                self.toxic(&format!("delay-{direction}"), "latency", direction, 1.0, &attributes)?;
            }
            if let Some(bytes) = self.link.bandwidth_bytes_per_s {
                let attributes = json!({ "rate": bytes / 1_000 });
                self.toxic(&format!("bandwidth-{direction}"), "bandwidth", direction, 1.0, &attributes)?;
            }
        }
        if !self.server.holds(port) {
            return Err(ProxyError::PortHeld(port));
        }
        Ok(())
    }

    fn toxic(&self, name: &str, kind: &str, stream: &str, toxicity: f64, attributes: &Value) -> Result<(), ProxyError> {
        let toxic =
            json!({ "name": name, "type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes });
        self.api.send("POST", &format!("/proxies/{NAME}/toxics"), &toxic)
    }

    /// Returns the endpoint for clients that use the link.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Resets all connections, and refuses new ones. When this returns it has happened.
    pub fn cut(&self) -> Result<(), HostError> {
        self.enable(false)
    }

    /// Lets connections through again.
    pub fn mend(&self) -> Result<(), HostError> {
        self.enable(true)
    }

    fn enable(&self, enabled: bool) -> Result<(), HostError> {
        let what = match enabled {
            true => "nobody knows whether the link was repaired",
            false => "nobody knows whether the link was cut",
        };
        let done = self.api.send("PATCH", &format!("/proxies/{NAME}"), &json!({ "enabled": enabled }));
        done.map_err(|source| HostError::Link { what, source })
    }

    /// Samples its usage from the window's beginning to its end.
    pub fn watch(&mut self, from_ns: Ns, window_ns: Option<Ns>) {
        self.sampler = Some(self.server.sample(from_ns, window_ns.map(|window| from_ns.saturating_add(window))));
    }

    /// Ends the sampling. Returns the CPU time used in the window, ns. `window` is set if
    /// the window's end was not known before.
    pub fn cpu_ns(&mut self, window: Option<(Ns, Ns)>) -> Ns {
        self.usage = self.sampler.take().map(|sampler| sampler.finish(window).usage).or(self.usage.take());
        self.usage.map_or(0, |usage| (usage.cpu_s * 1e9) as Ns)
    }

    /// Returns why its proxy ended, if it has.
    pub fn exit_reason(&mut self) -> Option<String> {
        self.server.ended()
    }

    /// Returns the report on the link.
    pub fn report(&mut self) -> LinkReport {
        self.cpu_ns(None);
        LinkReport { usage: self.usage, version: self.version.clone() }
    }
}
