//! Names of code addresses, with inlined frames, from the files that the trace names and from debug
//! files with the same build-id.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::Object;
use tenure_trace::{Module, Tree};

/// Files are opened only with this said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Symbols {
    /// Read names from the program's files and their debug files
    Files,
    /// Open nothing that the trace names: addresses only
    None,
}

#[derive(Clone, Debug, Default)]
pub struct Frame {
    pub function: String,
    pub file: String,
    pub line: u32,
}

pub struct Symbolizer {
    mode: Symbols,
    loaders: HashMap<usize, Option<Loader>>,
    frames: HashMap<u32, Vec<Frame>>,
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Control characters would reach the terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

fn build_id_of(path: &Path) -> Option<Vec<u8>> {
    let bytes = std::fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    file.build_id().ok().flatten().map(<[u8]>::to_vec)
}

/// The file itself is used only if it still has the build-id that was recorded.
fn candidates(m: &Module) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    let id = hex(&m.build_id);
    if id.len() > 4 {
        paths.push(PathBuf::from(format!(
            "/usr/lib/debug/.build-id/{}/{}.debug",
            &id[..2],
            &id[2..]
        )));
        if let Some(cache) = std::env::var_os("DEBUGINFOD_CACHE_PATH") {
            paths.push(Path::new(&cache).join(&id).join("debuginfo"));
        }
    }
    paths.push(PathBuf::from(&m.path));
    paths.retain(|p| {
        p.is_file() && (m.build_id.is_empty() || build_id_of(p).as_ref() == Some(&m.build_id))
    });
    paths
}

impl Symbolizer {
    pub fn new(mode: Symbols) -> Self {
        Symbolizer { mode, loaders: HashMap::new(), frames: HashMap::new() }
    }

    /// The frames of one node, innermost first; at least one.
    pub fn frames(&mut self, tree: &Tree, id: u32) -> &[Frame] {
        if !self.frames.contains_key(&id) {
            let found = self.find(tree, id);
            self.frames.insert(id, found);
        }
        &self.frames[&id]
    }

    fn find(&mut self, tree: &Tree, id: u32) -> Vec<Frame> {
        let address = tree.nodes[id as usize].address;
        let Some(at) = tree.module(id) else {
            return vec![Frame { function: format!("{address:#x}"), ..Frame::default() }];
        };
        let module = &tree.modules[at];
        // The address is that of the instruction after the call.
        let probe = address.wrapping_sub(module.bias).wrapping_sub(1);
        let name = Path::new(&module.path)
            .file_name()
            .map_or(String::new(), |n| printable(&n.to_string_lossy()));
        let unnamed =
            vec![Frame { function: format!("{name}+{:#x}", probe + 1), file: name, line: 0 }];
        if self.mode == Symbols::None {
            return unnamed;
        }
        let loader = self
            .loaders
            .entry(at)
            .or_insert_with(|| candidates(module).iter().find_map(|p| Loader::new(p).ok()));
        loader.as_ref().and_then(|l| named(l, probe)).unwrap_or(unnamed)
    }

    /// Says once how names come where files had none.
    pub fn hint(&self) {
        let unnamed =
            self.frames.values().flatten().any(|f| f.line == 0 && f.function.contains("+0x"));
        if unnamed && self.mode == Symbols::Files {
            eprintln!(
                "names such as ls+0x1234 are of files without symbols: install their -dbgsym packages, \
                 or set DEBUGINFOD_CACHE_PATH"
            );
        }
    }

    /// Function and line of the innermost frame.
    pub fn label(&mut self, tree: &Tree, id: u32) -> String {
        let f = &self.frames(tree, id)[0];
        match f.line {
            0 => f.function.clone(),
            line => format!("{} ({}:{line})", f.function, f.file.rsplit('/').next().unwrap_or("")),
        }
    }
}

fn named(loader: &Loader, probe: u64) -> Option<Vec<Frame>> {
    let mut out = Vec::new();
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(f)) = frames.next() {
            let Some(function) = f.function else { continue };
            let (file, line) = f.location.map_or((String::new(), 0), |l| {
                (printable(l.file.unwrap_or("")), l.line.unwrap_or(0))
            });
            let name = function.demangle().map_or_else(|_| String::new(), |n| printable(&n));
            out.push(Frame { function: name, file, line });
        }
    }
    if out.is_empty() {
        let symbol = loader.find_symbol(probe)?;
        let name = addr2line::demangle_auto(symbol.into(), None);
        out.push(Frame { function: printable(&name), ..Frame::default() });
    }
    Some(out)
}
