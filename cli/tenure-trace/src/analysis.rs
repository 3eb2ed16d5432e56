//! One pass over the events: blocks are paired with their ends, and summed by site.

use crate::merge::{Fast, Tree};
use crate::{Damage, Event, Part, Trace};

/// A block from its allocation to its end, or to the end of the trace.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    pub address: u64,
    pub size: u64,
    pub birth: u64,
    pub death: Option<u64>,
    pub stack: u32,
    pub thread: u32,
    pub free_thread: u32,
    pub op: u8,
    pub align_log2: u8,
}

/// Sums over the blocks of one stack, the node of its innermost frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    pub count: u64,
    pub bytes: u64,
    pub frees: u64,
    pub live_count: u64,
    pub live_bytes: u64,
    pub peak_bytes: u64,
    /// Freed before the same thread allocated again.
    pub temporary: u64,
    /// Freed by another thread.
    pub crossed: u64,
    /// Sum over the freed blocks.
    pub lifetime_stamps: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Live {
    pub stamp: u64,
    pub bytes: u64,
    pub count: u64,
}

#[derive(Default)]
pub struct Analysis {
    pub tree: Tree,
    pub damage: Option<Damage>,
    pub sites: Vec<Site>,
    pub by_op: Vec<u64>,
    pub events: u64,
    pub allocs: u64,
    pub bytes: u64,
    pub frees: u64,
    pub failed: u64,
    pub live: Live,
    pub peak: Live,
    pub first: u64,
    pub last: u64,
    /// Allocations by the bits of their size.
    pub sizes: Vec<u64>,
    pub same_thread: u64,
    pub cross_thread: u64,
    pub temporary: u64,
    /// Frees of blocks whose allocation is not in the trace.
    pub unknown_frees: u64,
    /// Blocks whose address was handed out again without a free in the trace.
    pub lost: u64,
    pub timed: u64,
    pub timed_ticks: u64,
    pub mapped_bytes: u64,
    pub mapped_peak: u64,
    /// Live bytes at each sample of the trace.
    pub series: Vec<Live>,
}

/// A call that seems to take longer was interrupted: one such sample would count 64 times.
const MOST_TICKS: u32 = 1 << 18;

struct Pass<'a, F: FnMut(&Object)> {
    a: Analysis,
    live: Fast<u64, Object>,
    maps: Fast<u64, u64>,
    newest: Fast<u32, u64>,
    stamps: std::slice::Iter<'a, u64>,
    next_sample: u64,
    ended: F,
}

impl<F: FnMut(&Object)> Pass<'_, F> {
    fn site(&mut self, stack: u32) -> &mut Site {
        let at = stack as usize;
        if at >= self.a.sites.len() {
            self.a.sites.resize((at + 1).max(2 * self.a.sites.len()), Site::default());
        }
        &mut self.a.sites[at]
    }

    fn alloc(&mut self, e: &Event) {
        self.a.allocs += 1;
        self.a.by_op[e.op as usize] += 1;
        if e.pointer == 0 {
            self.a.failed += u64::from(e.size != 0);
            return;
        }
        self.a.bytes += e.size;
        self.a.sizes[(64 - e.size.leading_zeros()) as usize] += 1;
        let o = Object {
            address: e.pointer,
            size: e.size,
            birth: e.stamp,
            death: None,
            stack: e.stack,
            thread: e.thread,
            free_thread: 0,
            op: e.op,
            align_log2: e.align_log2,
        };
        if let Some(old) = self.live.insert(e.pointer, o) {
            self.a.lost += 1;
            self.end(old, e.stamp, 0);
        }
        self.newest.insert(e.thread, e.pointer);
        let site = self.site(e.stack);
        site.count += 1;
        site.bytes += e.size;
        site.live_count += 1;
        site.live_bytes += e.size;
        site.peak_bytes = site.peak_bytes.max(site.live_bytes);
        self.a.live.bytes += e.size;
        self.a.live.count += 1;
        if self.a.live.bytes > self.a.peak.bytes {
            self.a.peak = Live { stamp: e.stamp, ..self.a.live };
        }
    }

    fn free(&mut self, e: &Event) {
        let Some(old) = self.live.remove(&e.pointer) else {
            self.a.unknown_frees += 1;
            return;
        };
        let same = old.thread == e.thread;
        let temporary =
            same && e.part == Part::Free && self.newest.get(&e.thread) == Some(&e.pointer);
        self.a.same_thread += u64::from(same);
        self.a.cross_thread += u64::from(!same);
        self.a.temporary += u64::from(temporary);
        let site = self.site(old.stack);
        site.crossed += u64::from(!same);
        site.temporary += u64::from(temporary);
        self.end(old, e.stamp, e.thread);
    }

    fn end(&mut self, mut o: Object, at: u64, thread: u32) {
        o.death = Some(at);
        o.free_thread = thread;
        self.a.live.bytes -= o.size;
        self.a.live.count -= 1;
        let site = self.site(o.stack);
        site.frees += 1;
        site.live_count -= 1;
        site.live_bytes -= o.size;
        site.lifetime_stamps = site.lifetime_stamps.saturating_add(at.saturating_sub(o.birth));
        (self.ended)(&o);
    }

    fn visit(&mut self, e: &Event) {
        while e.stamp > self.next_sample {
            self.a.series.push(Live { stamp: self.next_sample, ..self.a.live });
            self.next_sample = self.stamps.next().copied().unwrap_or(u64::MAX);
        }
        self.a.last = self.a.last.max(e.stamp);
        self.a.events += u64::from(e.part != Part::ReallocOut);
        if let Some(cost) = e.cost.filter(|_| e.part != Part::ReallocOut) {
            self.a.timed += 1;
            self.a.timed_ticks += u64::from(cost.min(MOST_TICKS));
        }
        match e.part {
            Part::Alloc | Part::ReallocIn => self.alloc(e),
            Part::Free => {
                self.a.by_op[e.op as usize] += 1;
                self.a.frees += 1;
                self.free(e);
            }
            Part::ReallocOut => self.free(e),
            Part::Map => {
                self.a.by_op[e.op as usize] += 1;
                self.a.mapped_bytes +=
                    e.size - self.maps.insert(e.pointer, e.size).unwrap_or(0).min(e.size);
                self.a.mapped_peak = self.a.mapped_peak.max(self.a.mapped_bytes);
            }
            Part::Unmap => {
                self.a.by_op[e.op as usize] += 1;
                let size = self.maps.remove(&e.pointer).unwrap_or(0);
                self.a.mapped_bytes -= size.min(self.a.mapped_bytes);
            }
        }
    }
}

impl Analysis {
    /// Sums over the whole trace. `ended` sees each block when it ends; those that live to the end
    /// of the trace come last, in no order.
    pub fn of<F: FnMut(&Object)>(trace: &Trace, ended: F) -> Analysis {
        Analysis::watched(trace, ended, |_| {})
    }

    /// The same; `watch` sees every event before it is counted.
    pub fn watched<F: FnMut(&Object), W: FnMut(&Event)>(
        trace: &Trace,
        ended: F,
        mut watch: W,
    ) -> Analysis {
        let stamps: Vec<u64> = trace.samples.iter().map(|s| s.stamp).collect();
        let mut stamps = stamps.iter();
        let next_sample = stamps.next().copied().unwrap_or(u64::MAX);
        let a = Analysis {
            sizes: vec![0; 65],
            by_op: vec![0; 64],
            first: u64::MAX,
            ..Analysis::default()
        };
        let mut pass = Pass {
            a,
            live: Fast::default(),
            maps: Fast::default(),
            newest: Fast::default(),
            stamps,
            next_sample,
            ended,
        };
        let (tree, damage) = trace.read(|e| {
            watch(e);
            pass.visit(e);
        });
        let Pass { mut a, live, stamps, next_sample, mut ended, .. } = pass;
        for stamp in std::iter::once(next_sample).chain(stamps.copied()).filter(|s| *s != u64::MAX)
        {
            a.series.push(Live { stamp, ..a.live });
        }
        live.values().for_each(&mut ended);
        a.sites.resize(tree.nodes.len(), Site::default());
        a.last = trace.samples.last().map_or(a.last, |s| s.stamp.max(a.last));
        a.first = 0;
        a.tree = tree;
        a.damage = trace.damage.clone().or(damage);
        a
    }

    /// Part of the CPU time that the allocator took, from the timed events, with the recorder's own
    /// time taken off; None where there is too little to tell.
    pub fn allocator_share(&self, trace: &Trace) -> Option<f64> {
        let last = trace.samples.last()?;
        let ns_per_tick = trace.ns_per_stamp
            / f64::from(1 << trace.value("tick_shift")?.parse::<u32>().ok()?.min(32));
        let one_in = trace.value("timed_one_in")?.parse::<f64>().ok()?;
        let own = last.recording_ticks as f64 * one_in * ns_per_tick;
        let cpu = last.cpu_ns as f64 - own;
        let spent = self.timed_ticks as f64 * one_in * ns_per_tick;
        (self.timed >= 100 && cpu > 0.0).then(|| (spent / cpu).min(1.0))
    }
}
