//! `tenure export`: a trace for other tools.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde_json::json;
use tenure_trace::analysis::{Analysis, Site};
use tenure_trace::Trace;

use crate::symbols::{hex, Symbolizer, Symbols};
use crate::{Failure, Input};

#[derive(clap::Args, Debug)]
pub struct Export {
    /// The trace
    pub file: PathBuf,
    #[command(flatten)]
    pub format: Format,
    /// Figure of collapsed stacks and speedscope
    #[arg(long, value_enum, default_value_t = Figure::Bytes)]
    pub figure: Figure,
    /// Write there instead of to stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Where names come from
    #[arg(long, value_enum, default_value_t = Symbols::Files)]
    pub symbols: Symbols,
}

#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Format {
    /// A profile for `go tool pprof`
    #[arg(long)]
    pub pprof: bool,
    /// A line for each stack, for flame graphs (inferno, flamegraph.pl)
    #[arg(long)]
    pub collapsed: bool,
    /// JSON for speedscope
    #[arg(long)]
    pub speedscope: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Figure {
    /// Bytes allocated
    Bytes,
    /// Blocks allocated
    Count,
    /// Bytes alive at the end
    Live,
    /// The largest sum of live bytes of the site
    Peak,
}

impl Figure {
    fn of(self, s: &Site) -> u64 {
        match self {
            Figure::Bytes => s.bytes,
            Figure::Count => s.count,
            Figure::Live => s.live_bytes,
            Figure::Peak => s.peak_bytes,
        }
    }
}

/// Function names from the outermost frame inwards.
fn path(a: &Analysis, names: &mut Symbolizer, id: u32) -> Vec<String> {
    let mut frames: Vec<String> = a
        .tree
        .stack(id)
        .flat_map(|n| {
            names.frames(&a.tree, n).iter().map(|f| f.function.clone()).collect::<Vec<_>>()
        })
        .collect();
    frames.reverse();
    frames
}

impl Export {
    pub fn run(&self) -> Result<i32, Failure> {
        let Input { trace, analysis: a } = Input::read(&self.file, |_| {})?;
        let mut names = Symbolizer::new(self.symbols);
        let mut out: Box<dyn Write> = match &self.output {
            Some(path) => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true).mode(0o600);
                Box::new(BufWriter::new(
                    options.open(path).map_err(|e| failed(&path.display(), &e))?,
                ))
            }
            None => Box::new(BufWriter::new(std::io::stdout())),
        };
        let written = if self.format.pprof {
            out.write_all(&pprof(&trace, &a, &mut names))
        } else if self.format.collapsed {
            self.collapsed(&a, &mut names, &mut out)
        } else {
            self.speedscope(&a, &mut names, &mut out)
        };
        written.and_then(|()| out.flush()).map_err(|e| failed(&"output", &e))?;
        crate::next(&format!("tenure diff {} OTHER", self.file.display()));
        crate::damage(&trace, &a)
    }

    fn collapsed(
        &self,
        a: &Analysis,
        names: &mut Symbolizer,
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        for (id, site) in a.sites.iter().enumerate() {
            let value = self.figure.of(site);
            if value > 0 {
                let frames =
                    path(a, names, id as u32).join("\u{1}").replace(';', ":").replace('\u{1}', ";");
                writeln!(out, "{} {value}", if frames.is_empty() { "unknown" } else { &frames })?;
            }
        }
        Ok(())
    }

    fn speedscope(
        &self,
        a: &Analysis,
        names: &mut Symbolizer,
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        let (mut frames, mut known) = (Vec::new(), HashMap::new());
        let (mut samples, mut weights) = (Vec::new(), Vec::new());
        for (id, site) in a.sites.iter().enumerate() {
            let value = self.figure.of(site);
            if value == 0 {
                continue;
            }
            let stack: Vec<usize> = path(a, names, id as u32)
                .into_iter()
                .map(|name| {
                    *known.entry(name.clone()).or_insert_with(|| {
                        frames.push(json!({ "name": name }));
                        frames.len() - 1
                    })
                })
                .collect();
            samples.push(stack);
            weights.push(value);
        }
        let unit = if self.figure == Figure::Count { "none" } else { "bytes" };
        let all: u64 = weights.iter().sum();
        let document = json!({"$schema": "https://www.speedscope.app/file-format-schema.json",
            "exporter": "tenure", "shared": {"frames": frames}, "profiles": [{"type": "sampled",
            "name": "allocations", "unit": unit, "startValue": 0, "endValue": all, "samples": samples,
            "weights": weights}]});
        writeln!(out, "{document}")
    }
}

fn failed(what: &dyn std::fmt::Display, e: &std::io::Error) -> Failure {
    Failure::Usage(format!("{what}: {e}"))
}

/// A message of Protocol Buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut inner = Message::default();
        values.into_iter().for_each(|v| inner.varint(v));
        self.bytes(field, &inner.0);
    }
}

/// The string table; number 0 is the empty string.
struct Strings(Vec<String>, HashMap<String, u64>);

impl Strings {
    fn id(&mut self, text: &str) -> u64 {
        if let Some(id) = self.1.get(text) {
            return *id;
        }
        let id = self.0.len() as u64;
        self.0.push(text.to_string());
        self.1.insert(text.to_string(), id);
        id
    }
}

/// Profile of profile.proto: alloc_objects, alloc_space, inuse_objects and inuse_space, as Go's heap
/// profile.
fn pprof(trace: &Trace, a: &Analysis, names: &mut Symbolizer) -> Vec<u8> {
    let mut strings = Strings(vec![String::new()], HashMap::from([(String::new(), 0)]));
    let mut out = Message::default();
    for (kind, unit) in [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ] {
        let mut m = Message::default();
        m.number(1, strings.id(kind));
        m.number(2, strings.id(unit));
        out.bytes(1, &m.0);
    }
    for (id, s) in a.sites.iter().enumerate().filter(|(_, s)| s.count > 0) {
        let mut m = Message::default();
        m.packed(1, a.tree.stack(id as u32).map(u64::from));
        m.packed(2, [s.count, s.bytes, s.live_count, s.live_bytes]);
        out.bytes(2, &m.0);
    }
    for (i, module) in a.tree.modules.iter().enumerate() {
        let mut m = Message::default();
        m.number(1, i as u64 + 1);
        m.number(2, module.start);
        m.number(3, module.end);
        m.number(5, strings.id(&module.path));
        m.number(6, strings.id(&hex(&module.build_id)));
        m.number(7, 1);
        m.number(8, 1);
        out.bytes(3, &m.0);
    }
    let mut functions: HashMap<(u64, u64), u64> = HashMap::new();
    for id in 1..a.tree.nodes.len() as u32 {
        let mut m = Message::default();
        m.number(1, u64::from(id));
        m.number(2, a.tree.module(id).map_or(0, |i| i as u64 + 1));
        m.number(3, a.tree.nodes[id as usize].address);
        for f in names.frames(&a.tree, id) {
            let key = (strings.id(&f.function), strings.id(&f.file));
            let next = functions.len() as u64 + 1;
            let mut line = Message::default();
            line.number(1, *functions.entry(key).or_insert(next));
            line.number(2, u64::from(f.line));
            m.bytes(4, &line.0);
        }
        out.bytes(4, &m.0);
    }
    for ((name, file), id) in &functions {
        let mut m = Message::default();
        m.number(1, *id);
        m.number(2, *name);
        m.number(3, *name);
        m.number(4, *file);
        out.bytes(5, &m.0);
    }
    let default_type = strings.id("alloc_space");
    strings.0.iter().for_each(|s| out.bytes(6, s.as_bytes()));
    out.number(9, trace.value("wall_ns").and_then(|v| v.parse().ok()).unwrap_or(0));
    out.number(10, trace.ns(a.last));
    out.number(14, default_type);
    out.0
}
