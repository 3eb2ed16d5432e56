//! Reads the traces that `tenure record` writes. A file is checked block by block before anything in
//! it is used; what follows the first damage is not read.

pub mod analysis;
mod decode;
pub mod format;
mod merge;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub use decode::{Event, Part};
pub use merge::{Module, Node, Tree};

/// The trace cannot be read at all.
#[derive(Debug)]
pub enum Error {
    Io(io::Error),
    /// The file is not a trace, or of another version.
    NotATrace(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(e) => write!(f, "{e}"),
            Error::NotATrace(why) => write!(f, "{why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(e: io::Error) -> Self {
        Error::Io(e)
    }
}

/// Where reading stopped before the end of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The first byte that does not belong to a whole block.
    pub offset: u64,
    pub what: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at {}", self.what, self.offset)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub offset: u64,
    pub packed: u32,
    pub raw: u32,
    pub stream: u32,
    pub kind: u8,
    pub codec: u8,
}

/// A reading of the process, ten times a second. KiB, except for stamps and ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    pub stamp: u64,
    pub ns: u64,
    pub rss: u64,
    pub pss: u64,
    pub anonymous: u64,
    pub shared_clean: u64,
    pub private_clean: u64,
    pub swap: u64,
    pub waits: u64,
    pub wait_ticks: u64,
    pub cpu_ns: u64,
    pub recording_ticks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    Exited,
    /// The process got another program by exec.
    Replaced,
    DiskFull,
}

#[derive(Clone, Copy, Debug)]
pub struct End {
    pub reason: EndReason,
    pub waits: u64,
    pub wait_ticks: u64,
    pub missed: u64,
}

/// A trace whose blocks have been checked.
pub struct Trace {
    file: File,
    pub(crate) blocks: Vec<Block>,
    /// Lines of the first block: key and value.
    pub run: Vec<(String, String)>,
    pub samples: Vec<Sample>,
    pub end: Option<End>,
    pub damage: Option<Damage>,
    pub bytes: u64,
    /// ns in one stamp.
    pub ns_per_stamp: f64,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Reads what is there of `size` bytes at `offset`.
fn read_some(file: &File, offset: u64, size: usize, into: &mut Vec<u8>) -> io::Result<()> {
    into.resize(size, 0);
    let mut have = 0;
    while have < size {
        let got = file.read_at(&mut into[have..], offset + have as u64)?;
        if got == 0 {
            break;
        }
        have += got;
    }
    into.truncate(have);
    Ok(())
}

fn check_file_header(head: &[u8]) -> Result<(), Error> {
    let no = |why: &str| Err(Error::NotATrace(why.to_string()));
    if head.len() < FILE_HEADER || &head[..8] != format::MAGIC {
        return no("this is not a trace of `tenure record`");
    }
    if crc32c::crc32c(&head[..12]) != u32_at(head, 12) {
        return no("the header of the trace is damaged");
    }
    match u32_at(head, 8) {
        format::VERSION => Ok(()),
        other => no(&format!(
            "the trace has version {other}; this program reads version {}",
            format::VERSION
        )),
    }
}

const FILE_HEADER: usize = format::FILE_HEADER as usize;

impl Trace {
    pub fn open(path: &Path) -> Result<Trace, Error> {
        Trace::from_file(File::open(path)?)
    }

    pub fn from_file(file: File) -> Result<Trace, Error> {
        let bytes = file.metadata()?.len();
        let mut head = Vec::new();
        read_some(&file, 0, FILE_HEADER, &mut head)?;
        check_file_header(&head)?;
        let mut trace = Trace {
            file,
            blocks: Vec::new(),
            run: Vec::new(),
            samples: Vec::new(),
            end: None,
            damage: None,
            bytes,
            ns_per_stamp: 1.0,
        };
        trace.scan()?;
        trace.calibrate();
        Ok(trace)
    }

    /// Checks every block, and stops at the first that is not whole.
    fn scan(&mut self) -> Result<(), Error> {
        let mut offset = format::FILE_HEADER;
        let mut buffer = Vec::new();
        let mut raw = Vec::new();
        loop {
            match self.scan_block(offset, &mut buffer, &mut raw)? {
                Ok(Some(next)) => offset = next,
                Ok(None) => return Ok(()),
                Err(what) => {
                    self.damage = Some(Damage { offset, what });
                    return Ok(());
                }
            }
        }
    }

    /// The offset after the block, None after the end block, or what is wrong.
    fn scan_block(
        &mut self,
        offset: u64,
        buffer: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<Result<Option<u64>, String>, Error> {
        let truncated = Ok(Err("truncated".to_string()));
        read_some(&self.file, offset, format::BLOCK_HEADER, buffer)?;
        if buffer.len() < format::BLOCK_HEADER {
            return truncated;
        }
        let packed = u32_at(buffer, 4) as usize;
        let raw_size = u32_at(buffer, 8) as usize;
        let [kind, codec] = [buffer[24], buffer[25]];
        let sum = u32_at(buffer, 36);
        let largest = match kind {
            format::END => format::END_HEAD + format::END_ENTRY * self.blocks.len(),
            _ => format::BLOCK_BYTES,
        };
        let fixed = u32_at(buffer, 0) == format::BLOCK_MAGIC
            && u64_at(buffer, 16) == self.blocks.len() as u64
            && buffer[26..36].iter().all(|b| *b == 0)
            && raw_size <= largest
            && packed <= raw_size
            && (codec == 1 || (codec == 0 && packed == raw_size));
        if !fixed || !(format::RUN..=format::END).contains(&kind) {
            return Ok(Err("damaged block header".to_string()));
        }
        let block = Block {
            offset,
            packed: packed as u32,
            raw: raw_size as u32,
            stream: u32_at(buffer, 12),
            kind,
            codec,
        };
        let head_sum = crc32c::crc32c(&buffer[..36]);
        read_some(&self.file, offset + format::BLOCK_HEADER as u64, packed, buffer)?;
        if buffer.len() < packed {
            return truncated;
        }
        if crc32c::crc32c_append(head_sum, buffer) != sum {
            return Ok(Err("damaged block".to_string()));
        }
        if kind != format::EVENTS {
            if let Err(what) = unpack(&block, buffer, raw).and_then(|()| self.take(&block, raw)) {
                return Ok(Err(what));
            }
        }
        let next = offset + (format::BLOCK_HEADER + packed) as u64;
        if kind != format::END {
            self.blocks.push(block);
            return Ok(Ok(Some(next)));
        }
        read_some(&self.file, next, format::TRAILER + 1, buffer)?;
        if buffer.len() < format::TRAILER {
            self.end = None;
            return truncated;
        }
        if u64_at(buffer, 0) != offset
            || &buffer[8..16] != format::MAGIC
            || buffer.len() > format::TRAILER
        {
            self.end = None;
            return Ok(Err("damaged end of the file".to_string()));
        }
        Ok(Ok(None))
    }

    /// What the blocks hold that are not events.
    fn take(&mut self, block: &Block, raw: &[u8]) -> Result<(), String> {
        match block.kind {
            format::RUN => self.run.extend(run_lines(raw)),
            format::SAMPLE => self.samples.push(sample(raw)?),
            _ => self.end = Some(self.end_block(raw)?),
        }
        Ok(())
    }

    fn end_block(&self, raw: &[u8]) -> Result<End, String> {
        if raw.len() != format::END_HEAD + format::END_ENTRY * self.blocks.len()
            || u64_at(raw, 32) != self.blocks.len() as u64
        {
            return Err("the index does not fit the blocks".to_string());
        }
        for (i, block) in self.blocks.iter().enumerate() {
            let at = format::END_HEAD + i * format::END_ENTRY;
            if u64_at(raw, at) != block.offset || u32_at(raw, at + 24) != block.stream {
                return Err("the index does not fit the blocks".to_string());
            }
        }
        let reason = match u64_at(raw, 0) {
            0 => EndReason::Exited,
            1 => EndReason::Replaced,
            2 => EndReason::DiskFull,
            _ => return Err("unknown reason of the end".to_string()),
        };
        Ok(End {
            reason,
            waits: u64_at(raw, 8),
            wait_ticks: u64_at(raw, 16),
            missed: u64_at(raw, 24),
        })
    }

    /// Stamps become ns by the first and the last sample.
    fn calibrate(&mut self) {
        if let (Some(a), Some(b)) = (self.samples.first(), self.samples.last()) {
            if b.stamp > a.stamp && b.ns > a.ns {
                self.ns_per_stamp = (b.ns - a.ns) as f64 / (b.stamp - a.stamp) as f64;
            }
        }
    }

    pub fn value(&self, key: &str) -> Option<&str> {
        self.run.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The command line.
    pub fn arguments(&self) -> Vec<&str> {
        self.run.iter().filter(|(k, _)| k == "argument").map(|(_, v)| v.as_str()).collect()
    }

    pub fn ns(&self, stamps: u64) -> u64 {
        (stamps as f64 * self.ns_per_stamp) as u64
    }

    pub(crate) fn events_of(
        &self,
        block: &Block,
        packed: &mut Vec<u8>,
        raw: &mut Vec<u8>,
    ) -> Result<(), String> {
        read_some(
            &self.file,
            block.offset + format::BLOCK_HEADER as u64,
            block.packed as usize,
            packed,
        )
        .map_err(|e| e.to_string())?;
        unpack(block, packed, raw)
    }
}

/// The bytes of a block as they were before packing; exactly as many as its header says.
fn unpack(block: &Block, packed: &[u8], raw: &mut Vec<u8>) -> Result<(), String> {
    raw.clear();
    if block.codec == 0 {
        raw.extend_from_slice(packed);
        return Ok(());
    }
    raw.resize(block.raw as usize, 0);
    match zstd::bulk::decompress_to_buffer(packed, raw.as_mut_slice()) {
        Ok(size) if size == block.raw as usize => Ok(()),
        _ => Err("a block does not unpack".to_string()),
    }
}

fn run_lines(raw: &[u8]) -> Vec<(String, String)> {
    String::from_utf8_lossy(raw)
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.to_string(), unescape(value)))
        .collect()
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => out.push(if rest.next() == Some('n') { '\n' } else { '\\' }),
            c => out.push(c),
        }
    }
    out
}

fn sample(raw: &[u8]) -> Result<Sample, String> {
    if raw.len() != 96 {
        return Err("a sample of another size".to_string());
    }
    let w = |i: usize| u64_at(raw, 8 * i);
    Ok(Sample {
        stamp: w(0),
        ns: w(1),
        rss: w(2),
        pss: w(3),
        anonymous: w(4),
        shared_clean: w(5),
        private_clean: w(6),
        swap: w(7),
        waits: w(8),
        wait_ticks: w(9),
        cpu_ns: w(10),
        recording_ticks: w(11),
    })
}
