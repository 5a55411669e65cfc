//! From settings to a link.

use super::{Link, Side};
use crate::fault::{Script, Target};
use crate::setting::Settings;
use crate::units::parse_time;
use serde_json::Value;

impl Link {
    /// The link that settings ask for: there is one where any of its keys is
    /// set, or the script cuts it.
    pub fn resolve(settings: &Settings, script: &Script) -> Result<Option<Link>, String> {
        let text = |key: &str| settings.get(key).and_then(Value::as_str);
        let time = |key: &str| text(key).map(|text| parse_time(text).map_err(|error| format!("{key}: {error}")));
        let (mttf_ns, mttr_ns) = (time("mttf").transpose()?, time("mttr").transpose()?);
        let delay_ns = time("link_delay").transpose()?;
        let bandwidth = settings.get("link_bandwidth").and_then(Value::as_u64);
        let cut = script.on(Target::Link).next().is_some();
        match (mttf_ns, mttr_ns) {
            (Some(_), None) => {
                return Err("`mttf` says when the link fails, and nothing says for how long: set `mttr`".into());
            }
            (None, Some(_)) => {
                return Err("`mttr` says how long the link fails, and nothing says how often: set `mttf`".into());
            }
            (Some(_), Some(_)) if cut => {
                return Err("the script cuts the link, and `mttf` has it fail by chance: leave one of them out".into());
            }
            _ => {}
        }
        if mttf_ns.is_none() && delay_ns.is_none() && bandwidth.is_none() && !cut {
            return match text("link") {
                None => Ok(None),
                Some(side) => Err(format!(
                    "`link = \"{side}\"` says who goes over a link, and nothing says what it does: set `mttf` and \
                     `mttr`, `link_delay` or `link_bandwidth` (`link_delay = \"0s\"` for the link alone)"
                )),
            };
        }
        Ok(Some(Link {
            side: text("link").map_or(Ok(Side::Subscribers), Side::parse)?,
            delay_ns: delay_ns.unwrap_or(0),
            bandwidth_bytes_per_s: bandwidth,
            mttf_ns,
            mttr_ns,
        }))
    }
}
