//! `pubmark doctor`

use crate::args::DoctorArgs;
use crate::failure::{Code, Failure};
use crate::output::{colour, print};
use pubmark_host::doctor::{Severity, examine};

/// Prints what was found, and what mends it. Exit code 1 if something is bad.
pub fn doctor(args: &DoctorArgs) -> Result<Code, Failure> {
    let checkups = examine();
    let bad = checkups.iter().any(|checkup| checkup.severity == Severity::Bad);
    if args.json {
        print(&serde_json::to_string_pretty(&checkups).unwrap_or_default());
    } else {
        for checkup in &checkups {
            let (word, paint) = match checkup.severity {
                Severity::Good => ("good", "32"),
                Severity::Note => ("note", "33"),
                Severity::Bad => ("BAD ", "31"),
            };
            let word = if colour() { format!("\x1b[{paint}m{word}\x1b[0m") } else { word.to_owned() };
            print(&format!("{word}  {}: {}", checkup.what, checkup.found));
            if let Some(mend) = &checkup.mend {
                print(&format!("      -> {mend}"));
            }
        }
    }
    Ok(if bad { Code::Gate } else { Code::Done })
}
