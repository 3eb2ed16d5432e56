//! The vectors of the specification, and what damage to them must do.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::PathBuf;

use tenure_trace::{format, EndReason, Part, Trace};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec/vectors/trace")
}

fn image() -> Vec<u8> {
    fs::read(folder().join("small.trace")).unwrap()
}

/// A trace from bytes; None where the header is refused.
fn open(name: &str, bytes: &[u8]) -> Option<Trace> {
    let path = std::env::temp_dir().join(format!("tenure-{}-{name}", std::process::id()));
    let mut file =
        File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    Trace::from_file(file).ok()
}

fn decoded(trace: &Trace) -> (String, bool) {
    let mut events = Vec::new();
    let (tree, damage) = trace.read(|e| events.push(*e));
    let mut text = String::new();
    for e in &events {
        let _ = write!(text, "{} thread {} {}", e.stamp, e.thread, format::name(e.op));
        match e.part {
            Part::Free => write!(text, " {:#x}", e.pointer).unwrap(),
            Part::ReallocOut => write!(text, " out {:#x}", e.pointer).unwrap(),
            _ => {
                let align = if e.align_log2 == 0 { 0 } else { 1u64 << e.align_log2 };
                let _ = write!(text, " {:#x} size {} align {align} stack", e.pointer, e.size);
                for n in tree.stack(e.stack) {
                    let _ = write!(text, " {:#x}", tree.nodes[n as usize].address);
                }
            }
        }
        if let Some(cost) = e.cost {
            let _ = write!(text, " took {cost}");
        }
        text.push('\n');
    }
    for (at, thread, name) in &tree.marks {
        let _ = writeln!(text, "mark {at} thread {thread} {name}");
    }
    for m in &tree.modules {
        let id: String = m.build_id.iter().map(|b| format!("{b:02x}")).collect();
        let _ =
            writeln!(text, "module {:#x} {:#x} bias {:#x} {id} {}", m.start, m.end, m.bias, m.path);
    }
    (text, damage.is_some())
}

#[test]
fn small_decodes_to_its_text() {
    let trace = open("small", &image()).unwrap();
    assert_eq!(trace.damage, None);
    assert_eq!(trace.end.unwrap().reason, EndReason::Exited);
    assert_eq!(trace.arguments(), ["a\nb", "back\\slash"]);
    assert_eq!(trace.ns_per_stamp, 5.0);
    let wanted = fs::read_to_string(folder().join("small.txt")).unwrap();
    assert_eq!(decoded(&trace), (wanted, false));
}

/// Offsets at which blocks begin.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let mut at = format::FILE_HEADER as usize;
    let mut all = Vec::new();
    while at + format::BLOCK_HEADER < bytes.len() {
        all.push(at);
        at += format::BLOCK_HEADER
            + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
    }
    all
}

#[test]
fn cut_at_every_byte_gives_the_whole_blocks_before() {
    let bytes = image();
    let starts = starts(&bytes);
    for size in 0..bytes.len() {
        let Some(trace) = open("cut", &bytes[..size]) else {
            assert!(size < format::FILE_HEADER as usize, "{size}");
            continue;
        };
        let damage = trace.damage.as_ref().expect("cut traces are damaged");
        assert_eq!(damage.what, "truncated", "{size}");
        // An end block without the last 16 bytes is not whole, either.
        let next = starts.iter().rposition(|s| *s <= size).unwrap_or(0);
        assert_eq!(damage.offset as usize, starts[next], "{size}");
        assert_eq!(trace.samples.len(), [0, 0, 1, 1, 1, 2][next], "{size}");
        let lines = decoded(&trace).0.lines().count();
        assert!(lines <= 9, "{size}");
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let bytes = image();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        if let Some(trace) = open("flip", &damaged) {
            assert!(trace.damage.is_some(), "bit {bit}");
        }
    }
}

/// Contents that make no sense behind a checksum that is right: refused, and no panic.
#[test]
fn hostile_contents_are_refused() {
    let bytes = image();
    let starts = starts(&bytes);
    let (from, to) = (starts[2] + format::BLOCK_HEADER, starts[3]);
    let mut refused = 0;
    for at in from..to {
        for value in [0x00, 0x3f, 0x7f, 0xff] {
            let mut hostile = bytes.clone();
            hostile[at] = value;
            let sum = crc32c::crc32c(&hostile[starts[2]..starts[2] + 36]);
            let sum = crc32c::crc32c_append(sum, &hostile[from..to]);
            hostile[starts[2] + 36..from].copy_from_slice(&sum.to_le_bytes());
            let trace = open("hostile", &hostile).unwrap();
            assert_eq!(trace.damage, None);
            refused += usize::from(decoded(&trace).1);
        }
    }
    assert!(refused > 50, "{refused}");
}
