//! Programs that runs need in addition to a system. They are not measured, and are listed
//! as tools after the systems.

use pubmark_model::server::ServerSpec;
use pubmark_model::system::{Install, System};
use std::sync::{Arc, LazyLock};

/// Returns the proxy that plays the link of a run.
pub fn toxiproxy() -> &'static Arc<System> {
    static TOOL: LazyLock<Arc<System>> = LazyLock::new(|| Arc::new(described()));
    &TOOL
}

fn described() -> System {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    System {
        name: "toxiproxy".into(),
        title: "Toxiproxy".into(),
        about: "TCP proxy that delays, narrows and cuts: the link of a run, a tool and no system".into(),
        licence: "MIT".into(),
        homepage: "https://github.com/Shopify/toxiproxy".into(),
        server: Some(ServerSpec {
            endpoint: "http://127.0.0.1:{port}".into(),
            command: words(&["{cache}/bin/server", "-host", "127.0.0.1", "-port", "{port}"]),
            // Otherwise it would log several lines for each connection.
            environment: vec![("LOG_LEVEL".into(), "error".into())],
            ..ServerSpec::default()
        }),
        install: Install { go: words(&["github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0"]), ..Install::default() },
        ..System::default()
    }
}

/// Returns the tool of this name.
pub fn find(name: &str) -> Option<&'static Arc<System>> {
    Some(toxiproxy()).filter(|tool| tool.name == name)
}
