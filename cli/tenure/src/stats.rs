//! `tenure stats`: what is in a trace.

use std::path::PathBuf;

use serde_json::{json, Value};
use tenure_trace::analysis::{Analysis, Site};
use tenure_trace::{format, EndReason, Trace};

use crate::symbols::{printable, Symbolizer, Symbols};
use crate::text::{bytes, count, percent, sparkline, time};
use crate::{Failure, Input};

#[derive(clap::Args, Debug)]
pub struct Stats {
    /// The trace
    pub file: PathBuf,
    /// Sites to show of each kind
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Frames to show of each site
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub frames: usize,
    /// Where names come from
    #[arg(long, value_enum, default_value_t = Symbols::Files)]
    pub symbols: Symbols,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Sites by one figure, largest first.
pub fn ranked(sites: &[Site], key: impl Fn(&Site) -> u64, top: usize) -> Vec<u32> {
    let mut order: Vec<u32> =
        (0..sites.len() as u32).filter(|i| key(&sites[*i as usize]) > 0).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(key(&sites[*i as usize])), *i));
    order.truncate(top);
    order
}

fn shares(a: &Analysis, most: u64) -> u64 {
    let bits = (64 - most.leading_zeros()) as usize;
    a.sizes[..bits].iter().sum()
}

fn site_json(a: &Analysis, names: &mut Symbolizer, id: u32, trace: &Trace) -> Value {
    let s = &a.sites[id as usize];
    let stack: Vec<String> = a.tree.stack(id).map(|n| names.label(&a.tree, n)).collect();
    json!({"count": s.count, "bytes": s.bytes, "live_count": s.live_count, "live_bytes": s.live_bytes,
        "peak_bytes": s.peak_bytes, "temporary": s.temporary, "cross_thread_frees": s.crossed,
        "mean_lifetime_ns": trace.ns(s.lifetime_stamps.checked_div(s.frees).unwrap_or(0)),
        "stack": stack})
}

fn end_text(trace: &Trace) -> String {
    match trace.end.map(|e| e.reason) {
        Some(EndReason::Exited) => "complete".to_string(),
        Some(EndReason::Replaced) => "complete; the process then ran another program".to_string(),
        Some(EndReason::DiskFull) => "cut off: the disk was full".to_string(),
        None => "no end".to_string(),
    }
}

impl Stats {
    pub fn run(&self) -> Result<i32, Failure> {
        let Input { trace, analysis: a } = Input::read(&self.file, |_| {})?;
        let mut names = Symbolizer::new(self.symbols);
        if self.json {
            println!("{}", self.to_json(&trace, &a, &mut names));
        } else {
            self.print(&trace, &a, &mut names);
            names.hint();
            crate::next(&format!("tenure memory {}", self.file.display()));
        }
        crate::damage(&trace, &a)
    }

    fn to_json(&self, trace: &Trace, a: &Analysis, names: &mut Symbolizer) -> Value {
        let kinds: serde_json::Map<String, Value> = (0..64u8)
            .filter(|op| a.by_op[*op as usize] > 0)
            .map(|op| (format::name(op).to_string(), json!(a.by_op[op as usize])))
            .collect();
        let mut top = |key: fn(&Site) -> u64| -> Vec<Value> {
            ranked(&a.sites, key, self.top)
                .into_iter()
                .map(|id| site_json(a, names, id, trace))
                .collect()
        };
        json!({"program": trace.value("program"), "arguments": trace.arguments(),
            "end": end_text(trace), "duration_ns": trace.ns(a.last),
            "threads": a.tree.threads.len(), "events": a.events, "kinds": kinds,
            "allocations": a.allocs, "bytes": a.bytes, "frees": a.frees, "failed": a.failed,
            "peak_live_bytes": a.peak.bytes, "live_bytes_at_end": a.live.bytes,
            "live_blocks_at_end": a.live.count,
            "peak_rss_bytes": trace.samples.iter().map(|s| s.rss * 1024).max(),
            "cpu_ns": trace.samples.last().map(|s| s.cpu_ns),
            "allocator_share": a.allocator_share(trace),
            "same_thread_frees": a.same_thread, "cross_thread_frees": a.cross_thread,
            "temporary": a.temporary, "unknown_frees": a.unknown_frees, "lost": a.lost,
            "missed": trace.end.map(|e| e.missed), "waits": trace.end.map(|e| e.waits),
            "file_bytes": trace.bytes,
            "marks": a.tree.marks.iter().map(|(at, thread, name)|
                json!({"ns": trace.ns(*at), "thread": thread, "name": name})).collect::<Vec<_>>(),
            "top_by_bytes": top(|s| s.bytes), "top_by_count": top(|s| s.count)})
    }

    fn print(&self, trace: &Trace, a: &Analysis, names: &mut Symbolizer) {
        let command: Vec<String> = trace.arguments().into_iter().map(printable).collect();
        println!("program     {}", command.join(" "));
        println!(
            "recorded    {} of {}, {}",
            time(trace.ns(a.last)),
            bytes(trace.bytes),
            end_text(trace)
        );
        println!("threads     {}", a.tree.threads.len());
        println!(
            "events      {} ({:.1} bytes each in the file)",
            count(a.events),
            trace.bytes as f64 / a.events.max(1) as f64
        );
        let mut kinds: Vec<u8> = (0..64).filter(|op| a.by_op[*op as usize] > 0).collect();
        kinds.sort_by_key(|op| std::cmp::Reverse(a.by_op[*op as usize]));
        for op in kinds {
            println!("  {:>14}  {}", count(a.by_op[op as usize]), format::name(op));
        }
        println!("allocated   {} in {} blocks", bytes(a.bytes), count(a.allocs - a.failed));
        println!(
            "live        {} at most, {} in {} blocks at the end",
            bytes(a.peak.bytes),
            bytes(a.live.bytes),
            count(a.live.count)
        );
        println!(
            "  live  {}",
            sparkline(&a.series.iter().map(|l| l.bytes).collect::<Vec<_>>(), 60)
        );
        let rss: Vec<u64> = trace.samples.iter().map(|s| s.rss * 1024).collect();
        println!(
            "  RSS   {}  {} at most",
            sparkline(&rss, 60),
            bytes(rss.iter().copied().max().unwrap_or(0))
        );
        match a.allocator_share(trace) {
            Some(share) => println!("allocator   {:.1} % of the CPU time", 100.0 * share),
            None => println!("allocator   share of the CPU time unknown: too few events"),
        }
        let done = a.allocs - a.failed;
        println!(
            "sizes       up to 63 bytes {}, up to 1023 bytes {}",
            percent(shares(a, 63), done),
            percent(shares(a, 1023), done)
        );
        let paired = a.same_thread + a.cross_thread;
        println!(
            "freed       on the same thread {}, on another {}; before the next allocation {}",
            percent(a.same_thread, paired),
            percent(a.cross_thread, paired),
            percent(a.temporary, done)
        );
        if a.unknown_frees + a.lost + trace.end.map_or(0, |e| e.missed) > 0 {
            println!(
                "not paired  {} frees of blocks unknown to the trace, {} blocks whose free is \
                    missing, {} missed",
                count(a.unknown_frees),
                count(a.lost),
                count(trace.end.map_or(0, |e| e.missed))
            );
        }
        if let Some(end) = trace.end.filter(|e| e.waits > 0) {
            println!("waited      {} times for the packer", count(end.waits));
        }
        self.print_sites("bytes", a, names, |s| s.bytes);
        self.print_sites("count", a, names, |s| s.count);
    }

    fn print_sites(&self, by: &str, a: &Analysis, names: &mut Symbolizer, key: fn(&Site) -> u64) {
        println!("\ntop sites by {by}");
        for id in ranked(&a.sites, key, self.top) {
            let s = &a.sites[id as usize];
            println!(
                "  {:>10} in {:>11} blocks, {} live at the end",
                bytes(s.bytes),
                count(s.count),
                bytes(s.live_bytes)
            );
            let depth = a.tree.stack(id).count();
            if depth > self.frames {
                println!("      (innermost {} of {depth} frames)", self.frames);
            }
            for node in a.tree.stack(id).take(self.frames) {
                println!("      {}", names.label(&a.tree, node));
            }
        }
    }
}
