//! A system in a form that is sent to another host.

use crate::cache;
use crate::install::tools;
use pubmark_model::system::System;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Paths and texts of the agents that come with pubmark.
type CarriedFiles = &'static [(&'static str, &'static str)];

/// Returns the agent files that this program carries, unpacked on demand.
static CARRIED: OnceLock<fn() -> CarriedFiles> = OnceLock::new();

/// Registers the function that returns the carried agent files. A program sent by another
/// host is of the same build, and has the same files.
pub fn carries(files: fn() -> CarriedFiles) {
    let _ = CARRIED.set(files);
}

/// A system, sent to another host as the text of its file; a tool, which has no file, is
/// sent as its name. Each host uses its own cache.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemFile(pub Arc<System>);

impl SystemFile {
    /// Makes the file of a system, as it is here.
    pub fn of(system: &System) -> SystemFile {
        SystemFile(Arc::new(system.clone()))
    }
}

#[derive(Serialize, Deserialize)]
struct OnItsWay {
    name: String,
    source: String,
    /// Its folder; relative to the cache if it is kept there.
    here: String,
    kept: bool,
    brought: bool,
    carried: bool,
}

impl Serialize for SystemFile {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let System { name, source, here, brought, carried, .. } = self.0.as_ref();
        let below = Path::new(here).strip_prefix(cache::base()).ok().and_then(Path::to_str);
        let way = OnItsWay {
            name: name.clone(),
            source: source.clone(),
            here: below.unwrap_or(here).to_owned(),
            kept: below.is_some(),
            brought: *brought,
            carried: !carried.is_empty(),
        };
        way.serialize(to)
    }
}

impl<'de> Deserialize<'de> for SystemFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SystemFile, D::Error> {
        let OnItsWay { name, source, here, kept, brought, carried } = OnItsWay::deserialize(from)?;
        if let Some(tool) = tools::find(&name).filter(|_| source.is_empty()) {
            return Ok(SystemFile::of(tool));
        }
        let system =
            System::parse(&name, &format!("systems/{name}.toml"), &source).map_err(serde::de::Error::custom)?;
        let here = if kept { cache::base().join(here).display().to_string() } else { here };
        let carried = if carried { CARRIED.get().map_or(&[][..], |files| files()) } else { &[] };
        Ok(SystemFile(Arc::new(System { here, carried, brought, ..system })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_its_name() {
        let tool = SystemFile::of(tools::toxiproxy());
        let line = serde_json::to_string(&tool).unwrap();
        assert_eq!(serde_json::from_str::<SystemFile>(&line).unwrap(), tool);
    }

    #[test]
    fn what_is_kept_is_looked_for_in_the_cache_of_whoever_hears_of_it() {
        let source = "title = \"T\"\nabout = \"a\"\nlicence = \"MIT\"\ndriver = \"mqtt\"\npatterns = [\"pairs\"]\n";
        let system = System::parse("t", "t.toml", source).unwrap_or_else(|errors| panic!("{errors}"));
        let kept = cache::base().join("folders/1").display().to_string();
        for (here, way) in [(kept.as_str(), "folders/1"), ("/home/u/t", "/home/u/t"), ("", "")] {
            let file = SystemFile::of(&System { here: here.into(), brought: true, ..system.clone() });
            let line = serde_json::to_value(&file).unwrap();
            assert_eq!((line["here"].as_str(), line["kept"].as_bool()), (Some(way), Some(here == kept)));
            assert_eq!(serde_json::from_value::<SystemFile>(line).unwrap(), file);
        }
    }
}
