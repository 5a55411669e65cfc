//! Outcomes of a study's claims: for a terminal, as Markdown and as JSON.

use super::{ClaimOutcome, ClaimResult, PartResult, PointResult};
use crate::report::Report;
use crate::text::{clean, counted, wrap};
use serde_json::{Value, json};

/// Longest sentence that is shown, characters.
const PROSE_CHARS: usize = 1_000;
/// Longest id that is shown, characters.
const ID_CHARS: usize = 40;
/// Least width of a claim's sentence, characters.
const SAYS_WIDTH_MIN: usize = 20;
/// Most points of a claim that are listed; JSON has all.
const POINTS_SHOWN: usize = 6;

/// The outcomes in the order in which they are told.
const OUTCOMES: [ClaimOutcome; 4] =
    [ClaimOutcome::Holds, ClaimOutcome::Fails, ClaimOutcome::Open, ClaimOutcome::Untested];

impl ClaimOutcome {
    /// Returns its name in JSON.
    pub fn key(self) -> &'static str {
        match self {
            ClaimOutcome::Holds => "holds",
            ClaimOutcome::Fails => "fails",
            ClaimOutcome::Open => "open",
            ClaimOutcome::Untested => "not_tested",
        }
    }
}

impl Report {
    /// Returns the outcomes of the claims as JSON.
    pub fn claims_json(&self) -> Value {
        json!({ "claims": self.claims().iter().map(claim_json).collect::<Vec<Value>>() })
    }

    /// Returns one line for each claim.
    pub fn claims_brief(&self, width: usize) -> String {
        let row = |claim: &ClaimResult| {
            let of_it = |part: &&PartResult| part.outcome == claim.outcome;
            let (count, parts) = (claim.parts.iter().filter(of_it).count(), claim.parts.len());
            let share = if parts > count { format!(" ({count} of {parts})") } else { String::new() };
            let says = claim.parts.iter().find(of_it).map(|part| part.says.clone()).unwrap_or_default();
            let gate = if claim.gate { " (gate)" } else { "" };
            [clean(&claim.id, ID_CHARS), format!("{}{share}{gate}", claim.outcome), says]
        };
        let rows: Vec<[String; 3]> = self.claims().iter().map(row).collect();
        let widest = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
        let (id_width, outcome_width) = (widest(0), widest(1));
        let left = width.saturating_sub(id_width + outcome_width + 4).max(SAYS_WIDTH_MIN);
        let line = |[id, outcome, says]: &[String; 3]| {
            format!("{id:<id_width$}  {outcome:<outcome_width$}  {}\n", clean(says, left))
        };
        match rows.len() {
            0 => self.claims_summary() + "\n",
            _ => rows.iter().map(line).collect::<String>() + "\n" + &self.claims_summary() + "\nEvidence: --all\n",
        }
    }

    /// Returns every part of every claim with its evidence, for a terminal of this width.
    pub fn claims_text(&self, width: usize) -> String {
        let mut out = String::new();
        for claim in self.claims() {
            let gate = if claim.gate { " (gate)" } else { "" };
            let head = format!("{}: {}{gate}", clean(&claim.id, PROSE_CHARS), claim.outcome);
            push(&mut out, 0, &head, width);
            push(&mut out, 2, &says(claim), width);
            for part in &claim.parts {
                if claim.parts.len() > 1 {
                    push(&mut out, 2, &format!("{}: {}", part.outcome, clean(&part.says, PROSE_CHARS)), width);
                }
                if let Some(restates) = &part.restates {
                    push(&mut out, 4, &format!("restates: {}", clean(restates, PROSE_CHARS)), width);
                }
                if let Some(expr) = &part.expr {
                    push(&mut out, 4, &clean(expr, PROSE_CHARS), width);
                }
                lines(part).iter().for_each(|line| push(&mut out, 4, line, width));
            }
            out.push('\n');
        }
        out.push_str(&self.claims_summary());
        out.push('\n');
        out
    }

    /// Returns the outcomes of the claims as Markdown.
    pub fn claims_markdown(&self) -> String {
        let mut out = format!("## Claims: {}\n\n", escape(&clean(&self.study().title, PROSE_CHARS)));
        out.push_str("| claim | outcome | says | what it rests on |\n| --- | --- | --- | --- |\n");
        for claim in self.claims() {
            let rests: Vec<String> = claim
                .parts
                .iter()
                .map(|part| {
                    let expr = part.expr.as_deref().map(|expr| format!("`{expr}`: ")).unwrap_or_default();
                    let says = if claim.parts.len() > 1 { part.sentence() + ": " } else { String::new() };
                    format!("{}{expr}{}", clean(&says, PROSE_CHARS), lines(part).join("<br>"))
                })
                .collect();
            let entries = [
                clean(&claim.id, PROSE_CHARS),
                claim.outcome.to_string(),
                if claim.parts.len() == 1 { clean(&claim.sentence(), PROSE_CHARS) } else { says(claim) },
                rests.join("<br>"),
            ];
            out.push_str(&format!("| {} |\n", entries.map(|text| escape(&text)).join(" | ")));
        }
        out.push_str(&format!("\n{}\n", self.claims_summary()));
        out
    }

    fn claims_summary(&self) -> String {
        let of = |outcome| self.claims().iter().filter(|claim| claim.outcome == outcome).count();
        let words = OUTCOMES.map(|outcome| format!("{} {outcome}", of(outcome)));
        match self.claims().len() {
            0 => "the study has no claims".into(),
            claims => format!("{}: {}", counted(claims, "claim"), words.join(", ")),
        }
    }
}

fn claim_json(claim: &ClaimResult) -> Value {
    json!({
        "id": claim.id,
        "says": claim.says,
        "gate": claim.gate,
        "outcome": claim.outcome.key(),
        "parts": claim.parts.iter().map(part_json).collect::<Vec<Value>>(),
    })
}

fn part_json(part: &PartResult) -> Value {
    json!({
        "says": part.says,
        "restates": part.restates,
        "expr": part.expr,
        "outcome": part.outcome.key(),
        "share": part.share,
        "held": part.won,
        "failed": part.lost,
        "open": part.open,
        "not_tested": part.untested,
        "repeats_more": part.repeats_more(),
        "points": part.points.iter().map(point_json).collect::<Vec<Value>>(),
    })
}

fn point_json(point: &PointResult) -> Value {
    json!({
        "at": point.at,
        "outcome": point.outcome.key(),
        "evidence": point.words,
        "runs": point.runs,
        "repeats_more": point.more,
    })
}

/// Returns the statement of a claim; if its parts differ, only their number.
fn says(claim: &ClaimResult) -> String {
    let alike = claim.parts.iter().all(|part| part.says == claim.says);
    match claim.parts.len() {
        parts if parts > 1 && !alike => format!("all of these {parts}"),
        _ => clean(&claim.says, PROSE_CHARS),
    }
}

/// Returns the evidence of a part: its counts, and its points, the deciding ones first.
fn lines(part: &PartResult) -> Vec<String> {
    if part.points.is_empty() {
        return vec![part.counts()];
    }
    let mut points: Vec<&PointResult> = part.points.iter().collect();
    points.sort_by_key(|point| point.outcome != part.outcome);
    let mut lines = Vec::new();
    if points.len() > 1 {
        lines.push(part.counts());
    }
    for point in points.iter().take(POINTS_SHOWN) {
        let at = if point.at.is_empty() { String::new() } else { format!("{}: ", point.at) };
        let outcome = if points.len() > 1 { format!("{}: ", point.outcome) } else { String::new() };
        let more = point.more.filter(|_| point.outcome == ClaimOutcome::Open);
        let more = more.map(|more| format!("; about {more} more repeats")).unwrap_or_default();
        lines.push(clean(&format!("{at}{outcome}{}{more}", point.words), PROSE_CHARS));
    }
    let hidden = points.len().saturating_sub(POINTS_SHOWN);
    lines.extend((hidden > 0).then(|| format!("… and {hidden} more points; --json has all")));
    lines
}

fn push(out: &mut String, indent: usize, text: &str, width: usize) {
    for (index, line) in wrap(text, width.saturating_sub(indent + 2)).iter().enumerate() {
        let hang = if index > 0 { 2 } else { 0 };
        out.push_str(&format!("{:indent$}{line}\n", "", indent = indent + hang));
    }
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}
