//! `tenure memory --kernel`: which caches of the kernel's slab allocator a command stresses.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::memory::Memory;
use crate::text::{bytes, count};
use crate::Failure;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cache {
    active: i64,
    total: i64,
    size: i64,
    slabs: i64,
    pages_per_slab: i64,
}

const PAGE: i64 = 4096;

/// Lines of /proc/slabinfo, version 2.1.
fn parse(text: &str) -> BTreeMap<String, Cache> {
    text.lines()
        .filter(|l| !l.starts_with('#') && !l.starts_with("slabinfo"))
        .filter_map(|l| {
            let w: Vec<&str> = l.split_whitespace().collect();
            let n = |i: usize| w.get(i).and_then(|v| v.parse::<i64>().ok());
            let slabs = w.iter().position(|v| *v == "slabdata").and_then(|i| n(i + 2))?;
            let cache =
                Cache { active: n(1)?, total: n(2)?, size: n(3)?, slabs, pages_per_slab: n(5)? };
            Some((w[0].to_string(), cache))
        })
        .collect()
}

fn read() -> Result<BTreeMap<String, Cache>, Failure> {
    match fs::read_to_string("/proc/slabinfo") {
        Ok(text) => Ok(parse(&text)),
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(Failure::Usage(
            "/proc/slabinfo is for root: run this with sudo; without root, `grep -i slab \
                /proc/meminfo` before and \
             after gives the sum"
                .to_string(),
        )),
        Err(e) => Err(Failure::Usage(format!(
            "/proc/slabinfo: {e}; where it is missing (a container, gVisor), look at `Slab` in \
                /proc/meminfo or at \
             slab in the cgroup's memory.stat"
        ))),
    }
}

fn meaning(cache: &str) -> &'static str {
    match cache {
        "dentry" => "path look-ups and open files",
        "filp" => "open files",
        "inode_cache" | "proc_inode_cache" | "shmem_inode_cache" | "ext4_inode_cache"
        | "xfs_inode" | "btrfs_inode" | "ovl_inode" | "sock_inode_cache" => {
            "inodes: files, sockets, entries of /proc"
        }
        "TCP" | "TCPv6" | "UDP" | "UDPv6" | "UNIX" | "request_sock_TCP" => "sockets",
        "vm_area_struct" | "vma_lock" => "mappings of address space",
        "anon_vma" | "anon_vma_chain" => "anonymous mappings",
        "task_struct" | "thread_stack" | "signal_cache" | "sighand_cache" | "files_cache"
        | "mm_struct" => "threads and processes",
        "radix_tree_node" => "the page cache's index",
        "buffer_head" => "blocks of files",
        "skbuff_head_cache" | "skbuff_fclone_cache" | "skbuff_small_head" => "packets",
        "pid" => "process numbers",
        "cred_jar" => "credentials",
        "eventpoll_epi" | "eventpoll_pwq" => "descriptors in epoll",
        name if name.starts_with("kmalloc") => "kernel blocks without a cache of their own",
        _ => "",
    }
}

fn change(a: &BTreeMap<String, Cache>, b: &BTreeMap<String, Cache>) -> BTreeMap<String, Cache> {
    b.iter()
        .map(|(name, now)| {
            let old = a.get(name).copied().unwrap_or_default();
            let d = Cache {
                active: now.active - old.active,
                total: now.total - old.total,
                size: now.size,
                slabs: now.slabs - old.slabs,
                pages_per_slab: now.pages_per_slab,
            };
            (name.clone(), d)
        })
        .collect()
}

/// For each cache the reading with the most active objects: what a command takes is often given back
/// when it ends.
fn keep_most(most: &mut BTreeMap<String, Cache>, now: BTreeMap<String, Cache>) {
    for (name, cache) in now {
        let best = most.entry(name).or_insert(cache);
        if cache.active > best.active {
            *best = cache;
        }
    }
}

fn knobs(cache: &str) -> String {
    let value = |knob: &str| {
        let text = fs::read_to_string(format!("/sys/kernel/slab/{cache}/{knob}")).ok()?;
        Some(format!("{knob} {}", text.split_whitespace().next()?))
    };
    let found: Vec<String> =
        ["cpu_partial", "min_partial"].iter().filter_map(|k| value(k)).collect();
    found.join(", ")
}

fn signed(n: i64) -> String {
    format!("{}{}", if n < 0 { "-" } else { "+" }, count(n.unsigned_abs()))
}

/// The change of an idle interval, as long as the command but at most two seconds, is taken off.
fn watch_command(m: &Memory) -> Result<(BTreeMap<String, Cache>, i32), Failure> {
    let idle_before = read()?;
    std::thread::sleep(Duration::from_millis(500));
    let before = read()?;
    let idle = change(&idle_before, &before);
    let begun = Instant::now();
    let mut child = Command::new(&m.command[0])
        .args(&m.command[1..])
        .spawn()
        .map_err(|e| Failure::Usage(format!("{}: {e}", m.command[0].to_string_lossy())))?;
    let mut most = before.clone();
    let mut shown = Instant::now();
    let status = loop {
        let now = read()?;
        if let Some(name) =
            m.watch.as_ref().filter(|_| shown.elapsed() >= Duration::from_millis(500))
        {
            shown = Instant::now();
            let c =
                now.get(name).ok_or_else(|| Failure::Usage(format!("{name}: no such cache")))?;
            eprintln!(
                "{name}: {} active of {}, {} slabs",
                count(c.active as u64),
                count(c.total as u64),
                c.slabs
            );
        }
        keep_most(&mut most, now);
        if let Some(status) = child.try_wait().map_err(|e| Failure::Usage(e.to_string()))? {
            break status.code().unwrap_or(1);
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let factor = (begun.elapsed().as_secs_f64() / 0.5).min(4.0);
    let mut changed = change(&before, &most);
    for (name, c) in &mut changed {
        if let Some(i) = idle.get(name) {
            c.active -= (i.active as f64 * factor) as i64;
            c.total -= (i.total as f64 * factor) as i64;
            c.slabs -= (i.slabs as f64 * factor) as i64;
        }
    }
    Ok((changed, status))
}

pub fn run(m: &Memory) -> Result<i32, Failure> {
    if m.command.is_empty() {
        return Err(Failure::Usage("--kernel wants a command after `--`".to_string()));
    }
    let (changed, status) = watch_command(m)?;
    let mut rows: Vec<(&String, &Cache)> = changed.iter().filter(|(_, c)| c.active > 0).collect();
    rows.sort_by_key(|(name, c)| (std::cmp::Reverse(c.active * c.size), *name));
    rows.truncate(m.top);
    if m.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, c)| {
                json!({"cache": name, "active": c.active, "objects": c.total, "slabs": c.slabs,
                    "bytes": c.active * c.size, "slab_bytes": c.slabs * c.pages_per_slab * PAGE,
                    "object_bytes": c.size, "holds": meaning(name)})
            })
            .collect();
        println!("{}", json!({"command_status": status, "caches": rows}));
        return Ok(0);
    }
    println!(
        "{:<24} {:>11} {:>11} {:>8} {:>11}  holds",
        "cache", "active", "objects", "slabs", "bytes"
    );
    for (name, c) in rows {
        println!(
            "{name:<24} {:>11} {:>11} {:>8} {:>11}  {}  {}",
            signed(c.active),
            signed(c.total),
            signed(c.slabs),
            bytes((c.active * c.size) as u64),
            meaning(name),
            knobs(name)
        );
    }
    if status != 0 {
        eprintln!("tenure: the command ended with status {status}");
    }
    crate::next("slabtop, for all caches of the machine");
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_slabinfo() {
        let text = "slabinfo - version: 2.1\n# name <active_objs>\n\
            filp  1000 1024 256 16 1 : tunables 0 0 0 : slabdata 64 64 0\nbroken line\n";
        let all = parse(text);
        let wanted = Cache { active: 1000, total: 1024, size: 256, slabs: 64, pages_per_slab: 1 };
        assert_eq!(all.get("filp"), Some(&wanted));
        assert_eq!(all.len(), 1);
    }
}
