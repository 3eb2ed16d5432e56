//! `tenure memory`: where resident memory is, and whether the program leaks, hoards or fragments it.

use std::collections::HashMap;
use std::path::PathBuf;

use serde_json::json;
use tenure_trace::analysis::{Analysis, Object};
use tenure_trace::{Sample, Trace};

use crate::symbols::{Symbolizer, Symbols};
use crate::text::{bytes, count, percent, sparkline, time};
use crate::{Failure, Input};

#[derive(clap::Args, Debug)]
pub struct Memory {
    /// The trace; not with --kernel
    #[arg(required_unless_present = "kernel")]
    pub file: Option<PathBuf>,
    /// Run a command and show which caches of the kernel's slab allocator it stresses
    #[arg(long)]
    pub kernel: bool,
    /// With --kernel: show this cache twice a second while the command runs
    #[arg(long, value_name = "CACHE", requires = "kernel")]
    pub watch: Option<String>,
    /// Rows to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Where names come from
    #[arg(long, value_enum, default_value_t = Symbols::Files)]
    pub symbols: Symbols,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// With --kernel: the command
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

const PAGE: u64 = 4096;
/// Less than this is no finding.
const NOTABLE: u64 = 4 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Healthy,
    Leaking,
    Hoarding,
    Fragmented,
    Unknown,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::Healthy => "healthy",
            Verdict::Leaking => "leaking",
            Verdict::Hoarding => "hoarding",
            Verdict::Fragmented => "fragmented",
            Verdict::Unknown => "unknown",
        }
    }
}

/// Resident memory at one moment, bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Split {
    rss: u64,
    live: u64,
    rounding: u64,
    free: u64,
    file: u64,
}

/// Survivors of one site at that moment.
#[derive(Clone, Copy, Debug, Default)]
struct Survivors {
    count: u64,
    bytes: u64,
    /// Pages on which these are the only blocks.
    pinned: u64,
}

/// What glibc's malloc takes for a request: a word before it, and units of 16.
fn chunk(size: u64) -> u64 {
    if size >= 128 << 10 {
        return (size + 16).next_multiple_of(PAGE);
    }
    (size + 8).next_multiple_of(16).max(32)
}

/// The blocks that live at `at`, by page and by site.
struct Pages {
    at: u64,
    survivors: HashMap<u32, Survivors>,
    /// Bytes of blocks on the page, and their site where they have one.
    pages: HashMap<u64, (u64, Option<u32>)>,
    rounding: u64,
}

impl Pages {
    fn new(at: u64) -> Self {
        Pages { at, survivors: HashMap::new(), pages: HashMap::new(), rounding: 0 }
    }

    fn see(&mut self, o: &Object) {
        if o.birth > self.at || o.death.is_some_and(|d| d <= self.at) {
            return;
        }
        let s = self.survivors.entry(o.stack).or_default();
        s.count += 1;
        s.bytes += o.size;
        self.rounding += chunk(o.size) - o.size;
        // A trace may claim any size: no more than a GiB of one block is laid on pages.
        let end = o.address.saturating_add(o.size.clamp(1, 1 << 30));
        let mut page = o.address / PAGE;
        while page * PAGE < end {
            let from = o.address.max(page * PAGE);
            let here = end.min((page + 1).saturating_mul(PAGE)) - from;
            let entry = self.pages.entry(page).or_insert((0, Some(o.stack)));
            entry.0 += here;
            if entry.1 != Some(o.stack) {
                entry.1 = None;
            }
            page += 1;
        }
    }

    /// Pages less than half full, which one site alone keeps.
    fn pin(&mut self) {
        for (used, site) in self.pages.values() {
            if let (true, Some(site)) = (*used < PAGE / 2, site) {
                self.survivors.entry(*site).or_default().pinned += 1;
            }
        }
    }
}

fn heading(text: &str, empty: bool) {
    if !empty {
        println!("\n{text}");
    }
}

struct Report {
    verdict: Verdict,
    sentence: String,
    split: Split,
    at: u64,
}

/// The samples while the program worked: its end, when all is freed, would hide what came before.
fn moments(trace: &Trace) -> Option<(usize, usize)> {
    let n = trace.samples.iter().filter(|s| s.rss > 0).count();
    (n >= 4).then(|| (n / 2, n - 1 - n / 20))
}

fn judge(trace: &Trace, a: &Analysis, pages: &Pages, names: &mut Symbolizer) -> Report {
    let Some((middle, late)) = moments(trace) else {
        let sentence = "the program ran for less than half a second: too short to tell".to_string();
        return Report { verdict: Verdict::Unknown, sentence, split: Split::default(), at: 0 };
    };
    let s: &Sample = &trace.samples[late];
    let kib = |n: u64| n * 1024;
    let live = a.series.get(late).map_or(0, |l| l.bytes);
    let before = a.series.get(middle).map_or(0, |l| l.bytes);
    let anonymous = kib(s.anonymous);
    let file = kib(s.rss).saturating_sub(anonymous);
    let start = trace.samples.first().map_or(0, |f| kib(f.anonymous).min(1 << 20));
    let held = anonymous.saturating_sub(start);
    let free = held.saturating_sub(live + pages.rounding);
    let split = Split { rss: kib(s.rss), live, rounding: pages.rounding, free, file };
    let sparse = pages.pages.len() as u64 * PAGE;
    let most = pages.survivors.iter().max_by_key(|(id, s)| (s.bytes, std::cmp::Reverse(**id)));
    let first = pages.survivors.iter().max_by_key(|(id, s)| (s.pinned, std::cmp::Reverse(**id)));
    let mut site = |found: Option<(&u32, &Survivors)>| match found {
        Some((id, _)) => names.label(&a.tree, *id),
        None => "no site".to_string(),
    };
    let grown = live.saturating_sub(before);
    let (verdict, sentence) =
        if grown > NOTABLE / 4 && grown > before / 5 {
            let text = format!(
            "leaking: live memory grew from {} to {} in the second half of the run; look first at \
                {}, which has {} alive",
            bytes(before), bytes(live), site(most), bytes(most.map_or(0, |m| m.1.bytes))
        );
            (Verdict::Leaking, text)
        } else if free > NOTABLE && free > live + pages.rounding {
            let spread = sparse.saturating_sub(live + pages.rounding);
            if spread > free / 2 {
                let text =
                    format!(
                "fragmented: {} live bytes are spread over {} of pages; survivors of {} alone \
                    keep {} nearly empty pages: \
                 give them an arena or slab of their own",
                bytes(live), bytes(sparse), site(first), count(first.map_or(0, |f| f.1.pinned))
            );
                (Verdict::Fragmented, text)
            } else {
                let text = format!(
                "hoarding: {} of {} resident is free inside the allocator, on whole pages without \
                    a live block; \
                 call malloc_trim after the peak, or lower M_TRIM_THRESHOLD",
                bytes(free), bytes(split.rss)
            );
                (Verdict::Hoarding, text)
            }
        } else {
            let text = format!(
                "healthy: {} of {} resident are live blocks, and live memory did not grow in the \
                second half of the run",
                percent(live + pages.rounding, held.max(live + pages.rounding)),
                bytes(held)
            );
            (Verdict::Healthy, text)
        };
    Report { verdict, sentence, split, at: s.stamp }
}

impl Memory {
    pub fn run(&self) -> Result<i32, Failure> {
        if self.kernel {
            return crate::kernel::run(self);
        }
        let file =
            self.file.as_ref().ok_or_else(|| Failure::Usage("a trace is wanted".to_string()))?;
        let at = {
            let trace = crate::open(file)?;
            moments(&trace).map_or(0, |(_, late)| trace.samples[late].stamp)
        };
        let mut pages = Pages::new(at);
        let Input { trace, analysis: a } = Input::read(file, |o| pages.see(o))?;
        pages.pin();
        let mut names = Symbolizer::new(self.symbols);
        let report = judge(&trace, &a, &pages, &mut names);
        if self.json {
            println!("{}", self.to_json(&a, &pages, &report, &mut names));
        } else {
            self.print(&trace, &a, &pages, &report, &mut names);
            crate::next(&format!("tenure export {} --collapsed", file.display()));
        }
        crate::damage(&trace, &a)?;
        Ok(i32::from(!matches!(report.verdict, Verdict::Healthy | Verdict::Unknown)))
    }

    fn ranked(&self, pages: &Pages, key: impl Fn(&Survivors) -> u64) -> Vec<(u32, Survivors)> {
        let mut all: Vec<(u32, Survivors)> =
            pages.survivors.iter().filter(|(_, s)| key(s) > 0).map(|(id, s)| (*id, *s)).collect();
        all.sort_by_key(|(id, s)| (std::cmp::Reverse(key(s)), *id));
        all.truncate(self.top);
        all
    }

    fn to_json(
        &self,
        a: &Analysis,
        pages: &Pages,
        r: &Report,
        names: &mut Symbolizer,
    ) -> serde_json::Value {
        let mut sites = |found: Vec<(u32, Survivors)>| -> Vec<serde_json::Value> {
            found
                .into_iter()
                .map(|(id, s)| {
                    let stack: Vec<String> =
                        a.tree.stack(id).map(|n| names.label(&a.tree, n)).collect();
                    json!({"count": s.count, "bytes": s.bytes, "pinned_pages": s.pinned,
                        "stack": stack})
                })
                .collect()
        };
        json!({"verdict": r.verdict.word(), "sentence": r.sentence, "rss_bytes": r.split.rss,
            "live_bytes": r.split.live, "rounding_bytes": r.split.rounding, "free_bytes": r.split.free,
            "file_bytes": r.split.file, "pages_with_live_blocks": pages.pages.len(),
            "survivors": sites(self.ranked(pages, |s| s.bytes)),
            "pinning": sites(self.ranked(pages, |s| s.pinned))})
    }

    fn print(
        &self,
        trace: &Trace,
        a: &Analysis,
        pages: &Pages,
        r: &Report,
        names: &mut Symbolizer,
    ) {
        let rss: Vec<u64> = trace.samples.iter().map(|s| s.rss * 1024).collect();
        let live: Vec<u64> = a.series.iter().map(|l| l.bytes).collect();
        println!(
            "RSS   {}  {} at most",
            sparkline(&rss, 60),
            bytes(rss.iter().copied().max().unwrap_or(0))
        );
        println!("live  {}  {} at most", sparkline(&live, 60), bytes(a.peak.bytes));
        if r.verdict != Verdict::Unknown {
            println!("\nresident memory {} after the start", time(trace.ns(r.at)));
            for (name, value) in [
                ("live blocks", r.split.live),
                ("rounding of their sizes (glibc's classes)", r.split.rounding),
                ("free inside the allocator, and other anonymous memory", r.split.free),
                ("files and code", r.split.file),
                ("all", r.split.rss),
            ] {
                println!("  {:>10}  {name}", bytes(value));
            }
        }
        let found = self.ranked(pages, |s| s.bytes);
        heading("blocks alive then, by site", found.is_empty());
        for (id, s) in found {
            println!(
                "  {:>10} in {:>9} blocks  {}",
                bytes(s.bytes),
                count(s.count),
                names.label(&a.tree, id)
            );
        }
        let found = self.ranked(pages, |s| s.pinned);
        heading(
            "sites whose survivors alone keep a page that is less than half full",
            found.is_empty(),
        );
        for (id, s) in found {
            println!("  {:>9} pages  {}", count(s.pinned), names.label(&a.tree, id));
        }
        let only = |s: &tenure_trace::analysis::Site| {
            if s.frees == 0 && s.count > 1 {
                s.live_bytes
            } else {
                0
            }
        };
        let growing = crate::stats::ranked(&a.sites, only, self.top);
        heading("sites that only grow", growing.is_empty());
        for id in growing {
            let s = &a.sites[id as usize];
            println!(
                "  {:>10} in {:>9} blocks  {}",
                bytes(s.live_bytes),
                count(s.count),
                names.label(&a.tree, id)
            );
        }
        println!("\n{}", r.sentence);
    }
}
