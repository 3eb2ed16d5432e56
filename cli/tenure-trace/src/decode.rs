//! Events of one block.

use crate::format::{self, Class};
use crate::merge::{Module, Streams};

/// A realloc is two parts: the old block ends with the call's beginning, the new one starts with its
/// end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Alloc,
    Free,
    ReallocOut,
    ReallocIn,
    Map,
    Unmap,
}

#[derive(Clone, Copy, Debug)]
pub struct Event {
    pub op: u8,
    pub part: Part,
    pub align_log2: u8,
    pub thread: u32,
    /// Of the merged tree; 0 is the root.
    pub stack: u32,
    /// Ticks that the real call took, of one event in 64.
    pub cost: Option<u32>,
    pub stamp: u64,
    pub pointer: u64,
    /// The old block of a realloc's second part.
    pub old: u64,
    pub size: u64,
}

pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, String> {
        let b = *self.bytes.get(self.at).ok_or("an event is cut off")?;
        self.at += 1;
        Ok(b)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, String> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        loop {
            let b = self.byte()?;
            if shift > 63 {
                return Err("a number is too long".to_string());
            }
            value |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                return Ok(value);
            }
            shift += 7;
        }
    }

    #[inline]
    fn signed(&mut self) -> Result<u64, String> {
        let v = self.varint()?;
        Ok((v >> 1) ^ (v & 1).wrapping_neg())
    }

    fn slice(&mut self, length: u64, most: u64) -> Result<&[u8], String> {
        if length > most || length > (self.bytes.len() - self.at) as u64 {
            return Err("a text is too long".to_string());
        }
        let from = self.at;
        self.at += length as usize;
        Ok(&self.bytes[from..self.at])
    }
}

/// What an event's fields are differences from.
struct Last {
    stamp: u64,
    pointer: u64,
    stack: u64,
    address: u64,
    thread: u32,
}

/// Decodes the block into `out`; nodes, modules and marks go to `streams`.
pub(crate) fn block(
    bytes: &[u8],
    stream: usize,
    streams: &mut Streams,
    out: &mut Vec<Event>,
) -> Result<(), String> {
    let mut c = Cursor { bytes, at: 0 };
    if c.byte()? != format::THREAD {
        return Err("a block of events does not begin with its thread".to_string());
    }
    let thread = u32::try_from(c.varint()?).map_err(|_| "a thread number is too large")?;
    let mut last = Last { stamp: c.varint()?, pointer: 0, stack: 0, address: 0, thread };
    if c.varint()? != streams.nodes_of(stream) {
        return Err("nodes are missing".to_string());
    }
    streams.thread(thread);
    while c.at < bytes.len() {
        let tag = c.byte()?;
        let op = tag & 0x3f;
        match format::class(op) {
            Some(class) => event(&mut c, tag, class, &mut last, stream, streams, out)?,
            None => other(&mut c, op, &mut last, stream, streams)?,
        }
    }
    Ok(())
}

fn stamp(c: &mut Cursor, last: &mut Last) -> Result<u64, String> {
    last.stamp = last.stamp.checked_add(c.varint()?).ok_or("a stamp is too large")?;
    Ok(last.stamp)
}

#[inline]
fn stack(c: &mut Cursor, last: &mut Last, stream: usize, streams: &Streams) -> Result<u32, String> {
    last.stack = last.stack.wrapping_add(c.signed()?);
    streams.merged(stream, last.stack)
}

#[inline]
fn event(
    c: &mut Cursor,
    tag: u8,
    class: Class,
    last: &mut Last,
    stream: usize,
    streams: &Streams,
    out: &mut Vec<Event>,
) -> Result<(), String> {
    let shift = if tag & format::ODD != 0 { 0 } else { 4 };
    let mut e = Event {
        op: tag & 0x3f,
        part: Part::Free,
        align_log2: 0,
        thread: last.thread,
        stack: 0,
        cost: None,
        stamp: stamp(c, last)?,
        pointer: 0,
        old: 0,
        size: 0,
    };
    if class == Class::Realloc {
        let end = stamp(c, last)?;
        let old = last.pointer.wrapping_add(c.signed()? << shift);
        let new = old.wrapping_add(c.signed()? << shift);
        last.pointer = new;
        e.size = c.varint()?;
        e.stack = stack(c, last, stream, streams)?;
        let failed = new == 0 && e.size != 0;
        if old != 0 && !failed {
            out.push(Event { part: Part::ReallocOut, pointer: old, ..e });
        }
        e = Event { part: Part::ReallocIn, pointer: new, old, stamp: end, ..e };
    } else {
        e.pointer = last.pointer.wrapping_add(c.signed()? << shift);
        last.pointer = e.pointer;
        match class {
            Class::Alloc | Class::AlignedAlloc | Class::Map => {
                e.part = if class == Class::Map { Part::Map } else { Part::Alloc };
                e.size = c.varint()?;
                e.stack = stack(c, last, stream, streams)?;
                if class == Class::AlignedAlloc {
                    e.align_log2 = c.byte()?;
                    if e.align_log2 > 63 {
                        return Err("an alignment is too large".to_string());
                    }
                }
            }
            Class::Unmap => {
                e.part = Part::Unmap;
                e.size = c.varint()?;
            }
            _ => {}
        }
    }
    if tag & format::TIMED != 0 {
        e.cost = Some(c.varint()?.min(u64::from(u32::MAX)) as u32);
    }
    out.push(e);
    Ok(())
}

fn other(
    c: &mut Cursor,
    op: u8,
    last: &mut Last,
    stream: usize,
    streams: &mut Streams,
) -> Result<(), String> {
    match op {
        format::NODE => {
            let back = c.varint()?;
            last.address = last.address.wrapping_add(c.signed()?);
            streams.add_node(stream, back, last.address, last.stamp)
        }
        format::MODULE => {
            let from = stamp(c, last)?;
            let (start, size, bias) = (c.varint()?, c.varint()?, c.varint()?);
            let length = c.varint()?;
            let build_id = c.slice(length, 64)?.to_vec();
            let length = c.varint()?;
            let path = String::from_utf8_lossy(c.slice(length, 4096)?).into_owned();
            let end = start.checked_add(size).ok_or("a module is too large")?;
            streams.add_module(Module { start, end, bias, build_id, path, from, to: u64::MAX });
            Ok(())
        }
        format::UNLOAD => {
            let at = stamp(c, last)?;
            let start = c.varint()?;
            streams.unload(start, at);
            Ok(())
        }
        format::THREAD_END => stamp(c, last).map(|_| ()),
        format::MARK => {
            let at = stamp(c, last)?;
            let length = c.varint()?;
            let name = String::from_utf8_lossy(c.slice(length, 255)?).into_owned();
            streams.mark(at, last.thread, name);
            Ok(())
        }
        _ => Err(format!("unknown event {op}")),
    }
}
