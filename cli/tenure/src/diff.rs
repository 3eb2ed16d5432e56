//! `tenure diff`: two traces by site.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::symbols::{Symbolizer, Symbols};
use crate::text::{bytes, count, time};
use crate::{Failure, Input};

#[derive(clap::Args, Debug)]
pub struct Diff {
    /// The trace before
    pub before: PathBuf,
    /// The trace after
    pub after: PathBuf,
    /// Exit 1 where this holds: FIELD > NUMBER or NUMBER%, FIELD one of count, bytes, live, peak,
    /// lifetime (of all sites), site.count ... (of any one site), new_sites; several with `or`
    #[arg(long, value_name = "EXPR")]
    pub fail_on: Option<String>,
    /// Frames by which a site is known
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub frames: usize,
    /// Sites to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Where names come from
    #[arg(long, value_enum, default_value_t = Symbols::Files)]
    pub symbols: Symbols,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    count: u64,
    bytes: u64,
    live: u64,
    peak: u64,
    frees: u64,
    lifetime_sum: u64,
}

impl Figures {
    fn get(&self, field: Field) -> u64 {
        match field {
            Field::Count => self.count,
            Field::Bytes => self.bytes,
            Field::Live => self.live,
            Field::Peak => self.peak,
            Field::Lifetime => self.lifetime_sum.checked_div(self.frees).unwrap_or(0),
        }
    }

    fn add(&mut self, o: &Figures) {
        self.count += o.count;
        self.bytes += o.bytes;
        self.live += o.live;
        self.peak += o.peak;
        self.frees += o.frees;
        self.lifetime_sum = self.lifetime_sum.saturating_add(o.lifetime_sum);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Count,
    Bytes,
    Live,
    Peak,
    Lifetime,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    All(Field),
    AnySite(Field),
    NewSites,
}

/// The growth of a figure is compared: by itself, or in per cent of what it was.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Term {
    subject: Subject,
    limit: f64,
    relative: bool,
}

fn parse_term(text: &str) -> Option<Term> {
    let (left, right) = text.split_once('>')?;
    let right = right.trim();
    let (number, relative) = right.strip_suffix('%').map_or((right, false), |n| (n.trim(), true));
    let limit: f64 = number.parse().ok().filter(|n: &f64| n.is_finite())?;
    let left = left.trim();
    let field = |name: &str| {
        Some(match name {
            "count" => Field::Count,
            "bytes" => Field::Bytes,
            "live" => Field::Live,
            "peak" => Field::Peak,
            "lifetime" => Field::Lifetime,
            _ => return None,
        })
    };
    let subject = match left.strip_prefix("site.") {
        Some(name) => Subject::AnySite(field(name)?),
        None if left == "new_sites" => Subject::NewSites,
        None => Subject::All(field(left)?),
    };
    Some(Term { subject, limit, relative })
}

fn exceeds(before: u64, after: u64, term: &Term) -> bool {
    let grown = after as f64 - before as f64;
    if term.relative {
        grown > 0.0 && grown * 100.0 > term.limit * before as f64
    } else {
        grown > term.limit
    }
}

type Sites = BTreeMap<String, Figures>;
type Pairs = BTreeMap<String, (Figures, Figures)>;

impl Term {
    fn holds(&self, all: &(Figures, Figures), sites: &Pairs) -> bool {
        match self.subject {
            Subject::All(f) => exceeds(all.0.get(f), all.1.get(f), self),
            Subject::AnySite(f) => sites.values().any(|(a, b)| exceeds(a.get(f), b.get(f), self)),
            Subject::NewSites => {
                sites.values().filter(|(a, _)| a.count == 0).count() as f64 > self.limit
            }
        }
    }
}

impl Diff {
    fn sites(&self, path: &Path) -> Result<(Sites, Figures), Failure> {
        let Input { trace, analysis: a } = Input::read(path, |_| {})?;
        crate::damage(&trace, &a)?;
        let mut names = Symbolizer::new(self.symbols);
        let mut sites = Sites::new();
        let mut all = Figures::default();
        for (id, s) in a.sites.iter().enumerate().filter(|(_, s)| s.count > 0) {
            // Without lines, which change with every edit.
            let frames: Vec<String> = a
                .tree
                .stack(id as u32)
                .take(self.frames)
                .map(|n| names.frames(&a.tree, n)[0].function.clone())
                .collect();
            let f = Figures {
                count: s.count,
                bytes: s.bytes,
                live: s.live_bytes,
                peak: s.peak_bytes,
                frees: s.frees,
                lifetime_sum: trace.ns(s.lifetime_stamps),
            };
            sites.entry(frames.join(" < ")).or_default().add(&f);
            all.add(&f);
        }
        all.peak = a.peak.bytes;
        Ok((sites, all))
    }

    pub fn run(&self) -> Result<i32, Failure> {
        let terms: Vec<Term> = match &self.fail_on {
            None => Vec::new(),
            Some(text) => text
                .split(" or ")
                .map(|t| {
                    parse_term(t).ok_or_else(|| {
                        Failure::Usage(format!("--fail-on: `{t}` is not understood"))
                    })
                })
                .collect::<Result<_, _>>()?,
        };
        let (before, all_before) = self.sites(&self.before)?;
        let (after, all_after) = self.sites(&self.after)?;
        let mut pairs = Pairs::new();
        before.into_iter().for_each(|(site, f)| pairs.entry(site).or_default().0 = f);
        after.into_iter().for_each(|(site, f)| pairs.entry(site).or_default().1 = f);
        let all = (all_before, all_after);
        let failed = terms.iter().any(|t| t.holds(&all, &pairs));
        let mut order: Vec<_> =
            pairs.iter().filter(|(_, (a, b))| (a.bytes, a.count) != (b.bytes, b.count)).collect();
        order.sort_by_key(|(site, (a, b))| (std::cmp::Reverse(a.bytes.abs_diff(b.bytes)), *site));
        order.truncate(self.top);
        if self.json {
            let one = |f: &Figures| {
                json!({"count": f.count, "bytes": f.bytes, "live_bytes": f.live, "peak_bytes": f.peak,
                    "mean_lifetime_ns": f.get(Field::Lifetime)})
            };
            let sites: Vec<_> = order
                .iter()
                .map(|(site, (a, b))| json!({"site": site, "before": one(a), "after": one(b)}))
                .collect();
            println!(
                "{}",
                json!({"before": one(&all.0), "after": one(&all.1), "sites": sites, "failed": failed})
            );
        } else {
            print_row("all sites", &all.0, &all.1);
            order.iter().for_each(|(site, (a, b))| print_row(site, a, b));
            crate::next(&format!("tenure stats {}", self.after.display()));
        }
        if failed {
            eprintln!("tenure: --fail-on holds: {}", self.fail_on.as_deref().unwrap_or(""));
        }
        Ok(i32::from(failed))
    }
}

fn print_row(site: &str, a: &Figures, b: &Figures) {
    println!("{site}");
    println!("    blocks   {} -> {}", count(a.count), count(b.count));
    println!("    bytes    {} -> {}", bytes(a.bytes), bytes(b.bytes));
    println!("    peak     {} -> {}", bytes(a.peak), bytes(b.peak));
    println!("    at end   {} -> {}", bytes(a.live), bytes(b.live));
    println!("    lifetime {} -> {}", time(a.get(Field::Lifetime)), time(b.get(Field::Lifetime)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let term = parse_term(" site.bytes > 10 % ").unwrap();
        assert_eq!(
            term,
            Term { subject: Subject::AnySite(Field::Bytes), limit: 10.0, relative: true }
        );
        assert!(exceeds(100, 111, &term) && !exceeds(100, 110, &term) && !exceeds(100, 90, &term));
        assert!(
            parse_term("bytes > ").is_none()
                && parse_term("words > 1").is_none()
                && parse_term("x").is_none()
        );
        assert_eq!(parse_term("new_sites > 0").unwrap().subject, Subject::NewSites);
    }
}
