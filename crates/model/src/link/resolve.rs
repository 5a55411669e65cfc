//! Resolves settings to a link.

use super::{Link, LinkError, Side};
use crate::fault::{Script, Target};
use crate::setting::Settings;

impl Link {
    /// Returns the requested link. There is one if any of its keys is set, or the script cuts it.
    pub fn resolve(settings: &Settings, script: &Script) -> Result<Option<Link>, LinkError> {
        let mttf_ns = settings.mttf.map(|mean| mean.0);
        let mttr_ns = settings.mttr.map(|mean| mean.0);
        let delay_ns = settings.link_delay.map(|delay| delay.0);
        let jitter_ns = settings.link_jitter.map_or(0, |jitter| jitter.0);
        let bandwidth_bytes_per_s = settings.link_bandwidth.map(|bandwidth| bandwidth.0);
        let cut = script.on(Target::Link).next().is_some();
        match (mttf_ns, mttr_ns) {
            (Some(_), None) => return Err(LinkError::NoRepair),
            (None, Some(_)) => return Err(LinkError::NoFailure),
            (Some(_), Some(_)) if cut => return Err(LinkError::FailsTwice),
            _ => {}
        }
        if jitter_ns > delay_ns.unwrap_or(0) {
            return Err(LinkError::Jitter);
        }
        if mttf_ns.is_none() && delay_ns.is_none() && bandwidth_bytes_per_s.is_none() && !cut {
            return settings.link.map_or(Ok(None), |side| Err(LinkError::DoesNothing { side }));
        }
        Ok(Some(Link {
            side: settings.link.unwrap_or(Side::Subscribers),
            delay_ns: delay_ns.unwrap_or(0),
            jitter_ns,
            bandwidth_bytes_per_s,
            mttf_ns,
            mttr_ns,
        }))
    }
}
