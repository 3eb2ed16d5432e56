//! Numbers of the format; spec/trace.md says what they mean.

pub const MAGIC: &[u8; 8] = b"TENURETR";
pub const VERSION: u32 = 1;
pub const FILE_HEADER: u64 = 16;
pub const BLOCK_MAGIC: u32 = 0x4b4c_4254;
pub const BLOCK_HEADER: usize = 40;
pub const BLOCK_BYTES: usize = 65536;
pub const END_ENTRY: usize = 32;
pub const END_HEAD: usize = 40;
pub const TRAILER: usize = 16;

pub const RUN: u8 = 1;
pub const EVENTS: u8 = 2;
pub const SAMPLE: u8 = 3;
pub const END: u8 = 4;

pub const TIMED: u8 = 0x40;
pub const ODD: u8 = 0x80;

pub const MMAP: u8 = 56;
pub const MUNMAP: u8 = 57;
pub const NODE: u8 = 58;
pub const MODULE: u8 = 59;
pub const UNLOAD: u8 = 60;
pub const THREAD: u8 = 61;
pub const THREAD_END: u8 = 62;
pub const MARK: u8 = 63;

/// What an entry point does with memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Alloc,
    AlignedAlloc,
    Realloc,
    Free,
    Map,
    Unmap,
}

pub fn class(op: u8) -> Option<Class> {
    Some(match op {
        1 | 2 | 10..=13 | 40 | 41 | 43 | 46 | 47 => Class::Alloc,
        5..=9 | 14..=17 | 44 => Class::AlignedAlloc,
        3 | 4 | 42 | 48 => Class::Realloc,
        20..=34 | 45 | 49 => Class::Free,
        MMAP => Class::Map,
        MUNMAP => Class::Unmap,
        _ => return None,
    })
}

pub fn name(op: u8) -> &'static str {
    const NAMES: [&str; 18] = [
        "",
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "aligned_alloc",
        "posix_memalign",
        "memalign",
        "valloc",
        "pvalloc",
        "new",
        "new[]",
        "new nothrow",
        "new[] nothrow",
        "new aligned",
        "new[] aligned",
        "new aligned nothrow",
        "new[] aligned nothrow",
    ];
    const FREES: [&str; 15] = [
        "free",
        "free_sized",
        "free_aligned_sized",
        "delete",
        "delete[]",
        "delete sized",
        "delete[] sized",
        "delete aligned",
        "delete[] aligned",
        "delete sized aligned",
        "delete[] sized aligned",
        "delete nothrow",
        "delete[] nothrow",
        "delete aligned nothrow",
        "delete[] aligned nothrow",
    ];
    const OTHERS: [&str; 10] = [
        "mi_malloc",
        "mi_calloc",
        "mi_realloc",
        "mi_zalloc",
        "mi_malloc_aligned",
        "mi_free",
        "je_malloc",
        "je_calloc",
        "je_realloc",
        "je_free",
    ];
    match op {
        1..=17 => NAMES[op as usize],
        20..=34 => FREES[op as usize - 20],
        40..=49 => OTHERS[op as usize - 40],
        MMAP => "mmap",
        MUNMAP => "munmap",
        _ => "unknown",
    }
}
