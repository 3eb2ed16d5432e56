//! `tenure record`: runs a program under the recorder.

use std::collections::HashSet;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tenure_trace::Trace;

use crate::symbols::printable;
use crate::text::count;
use crate::Failure;

#[derive(clap::Args, Debug)]
pub struct Record {
    /// File of the trace; one that is there is kept as FILE.1
    #[arg(short, long, value_name = "FILE", default_value = "tenure.trace")]
    pub output: PathBuf,
    /// Frames to walk at most for a stack that the thread has not met
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=256))]
    pub depth: u32,
    /// Record children too, each in FILE.PID
    #[arg(long)]
    pub follow_fork: bool,
    /// Set a variable in the program's environment
    #[arg(long, value_name = "K=V")]
    pub env: Vec<String>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

const LIBRARY: &str = "libtenure-record.so";

extern "C" {
    fn flock(fd: i32, operation: i32) -> i32;
    fn access(path: *const std::ffi::c_char, mode: i32) -> i32;
    fn signal(number: i32, handler: usize) -> usize;
    fn kill(pid: i32, number: i32) -> i32;
    fn getpid() -> i32;
    fn geteuid() -> u32;
    fn getegid() -> u32;
    fn prctl(option: i32, value: u64) -> i32;
}

/// Beside the program, or where `make install` puts both.
fn library() -> Result<PathBuf, Failure> {
    if let Some(path) = std::env::var_os("TENURE_RECORDER") {
        return std::path::absolute(path).map_err(|e| Failure::Usage(e.to_string()));
    }
    let own = std::env::current_exe().map_err(|e| Failure::Usage(e.to_string()))?;
    let folder = own.parent().unwrap_or(Path::new("."));
    let places = [
        folder.join(LIBRARY),
        folder.join("../lib").join(LIBRARY),
        folder.join("../lib/x86_64-linux-gnu").join(LIBRARY),
        folder.join("../lib64").join(LIBRARY),
        folder.join("../../lib/trace").join(LIBRARY), // below build/, where both were built
    ];
    places.iter().find(|p| p.is_file()).and_then(|p| p.canonicalize().ok()).ok_or_else(|| {
        Failure::Usage(format!(
            "{LIBRARY} is not beside {}; `make lib` builds it in build/lib/trace, `make \
             install` installs \
             it; or set TENURE_RECORDER to its path",
            own.display()
        ))
    })
}

fn find_program(name: &OsStr) -> Result<PathBuf, Failure> {
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|p| p.is_file() && executable(p))
        .ok_or_else(|| {
            Failure::Usage(format!("{}: no such program on the PATH", name.to_string_lossy()))
        })
}

fn executable(path: &Path) -> bool {
    CString::new(path.as_os_str().as_bytes()).is_ok_and(|p| unsafe { access(p.as_ptr(), 1) == 0 })
}

/// What of an ELF file tells whether it can be recorded.
struct Elf {
    machine: u16,
    class: u8,
    interpreter: Option<String>,
}

fn read_elf(file: &mut File) -> std::io::Result<Option<Elf>> {
    let mut head = [0u8; 64];
    if file.read(&mut head)? < 64 || &head[..4] != b"\x7fELF" {
        return Ok(None);
    }
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let mut elf = Elf { machine: u16_at(18), class: head[4], interpreter: None };
    if elf.class != 2 {
        return Ok(Some(elf));
    }
    let table = u64::from_le_bytes(head[32..40].try_into().unwrap());
    for i in 0..u64::from(u16_at(56)) {
        let mut segment = [0u8; 56];
        file.seek(SeekFrom::Start(table.saturating_add(i * 56)))?;
        file.read_exact(&mut segment)?;
        if u32::from_le_bytes(segment[..4].try_into().unwrap()) == 3 {
            let at = u64::from_le_bytes(segment[8..16].try_into().unwrap());
            let size = u64::from_le_bytes(segment[32..40].try_into().unwrap()).min(4096);
            let mut name = vec![0; size as usize];
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut name)?;
            elf.interpreter =
                Some(String::from_utf8_lossy(&name).trim_end_matches('\0').to_string());
        }
    }
    Ok(Some(elf))
}

/// A program that the recorder cannot see into is refused before it runs.
fn check_program(path: &Path, scripts: u32) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::Usage(format!("{}: {why}", path.display())));
    let Ok(meta) = path.metadata() else { return refuse("no such file") };
    if meta.is_dir() || !executable(path) {
        return refuse("not executable");
    }
    let mode = meta.permissions().mode();
    let (user, group) = unsafe { (geteuid(), getegid()) };
    if (mode & 0o4000 != 0 && meta.uid() != user) || (mode & 0o2000 != 0 && meta.gid() != group) {
        return refuse(
            "setuid or setgid: the dynamic linker ignores LD_PRELOAD; record a copy without the bit",
        );
    }
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(_) => return Ok(()), // executable but not readable: the kernel decides
    };
    let elf = match read_elf(&mut file) {
        Ok(Some(elf)) => elf,
        Ok(None) => return check_script(path, &mut file, scripts),
        Err(e) => return refuse(&format!("damaged ELF file: {e}")),
    };
    if elf.class != 2 || elf.machine != 62 {
        return refuse("built for another architecture; the recorder is for x86-64");
    }
    match elf.interpreter {
        None => refuse(
            "statically linked: LD_PRELOAD has no effect on it (most Go programs are static, too; \
                their heap is not malloc's)",
        ),
        Some(name) if name.contains("musl") => {
            refuse("linked with musl; the recorder is built for glibc and cannot be loaded into it")
        }
        Some(_) => Ok(()),
    }
}

fn check_script(path: &Path, file: &mut File, scripts: u32) -> Result<(), Failure> {
    let mut head = [0u8; 256];
    let size = file.seek(SeekFrom::Start(0)).and_then(|_| file.read(&mut head)).unwrap_or(0);
    let line = head[..size].split(|b| *b == b'\n').next().unwrap_or(&[]);
    match line.strip_prefix(b"#!") {
        Some(rest) if scripts < 4 => {
            let text = String::from_utf8_lossy(rest);
            match text.split_whitespace().next() {
                Some(interpreter) => check_program(Path::new(interpreter), scripts + 1),
                None => Ok(()),
            }
        }
        _ => Err(Failure::Usage(format!("{}: neither a program nor a script", path.display()))),
    }
}

fn preload(library: &Path) -> OsString {
    let mut value = library.as_os_str().to_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        value.push(":");
        value.push(others);
    }
    value
}

/// Waits until the packer has written everything: it holds the file's lock until then.
fn wait_for_trace(path: &Path) {
    if let Ok(file) = File::open(path) {
        unsafe { flock(file.as_raw_fd(), 1) };
    }
}

/// FILE and FILE.NUMBER, with their inodes: a file that is renamed keeps its own.
fn files(output: &Path) -> Vec<(PathBuf, u64)> {
    let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(entries) = output.parent().unwrap_or(Path::new("/")).read_dir() else {
        return Vec::new();
    };
    let mut found: Vec<(PathBuf, u64)> = entries
        .flatten()
        .filter(|e| {
            let other = e.file_name().to_string_lossy().into_owned();
            let rest = other.strip_prefix(&name);
            let number = rest.and_then(|r| r.strip_prefix('.'));
            rest == Some("")
                || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
        .filter_map(|e| Some((e.path(), e.metadata().ok()?.ino())))
        .collect();
    found.sort();
    found
}

/// The path as a user would type it here.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// A program may have run others in its place, or have had children: the one with the most events is
/// the one to look at.
fn report(made: &[PathBuf], library: &Path) {
    made.iter().for_each(|path| wait_for_trace(path));
    let best = match made {
        [] => {
            eprintln!(
                "tenure: nothing was recorded; the program did not load {}",
                library.display()
            );
            return;
        }
        [one] => {
            eprintln!("tenure: recorded in {}", shown(one));
            one
        }
        several => {
            let mut counts = Vec::new();
            for path in several {
                let Ok(trace) = Trace::open(path) else { continue };
                let mut events = 0u64;
                trace.read(|_| events += 1);
                let program = printable(trace.value("program").unwrap_or("?"));
                eprintln!(
                    "tenure: recorded in {}: {program}, {} events",
                    shown(path),
                    count(events)
                );
                counts.push((events, path));
            }
            counts.iter().max_by_key(|(events, _)| *events).map_or(&several[0], |(_, path)| path)
        }
    };
    crate::next(&format!("tenure stats {}", shown(best)));
}

impl Record {
    pub fn run(self) -> Result<i32, Failure> {
        let library = library()?;
        let program = find_program(&self.command[0])?;
        check_program(&program, 0)?;
        let output =
            std::path::absolute(&self.output).map_err(|e| Failure::Usage(e.to_string()))?;
        let mut command = Command::new(&program);
        command.arg0(&self.command[0]).args(&self.command[1..]);
        for pair in &self.env {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| Failure::Usage(format!("--env {pair}: K=V is wanted")))?;
            command.env(key, value);
        }
        // This process may be recorded itself.
        command
            .env_remove("TENURE_RECORD_PID")
            .env_remove("TENURE_RECORD_FOLLOW")
            .env("LD_PRELOAD", preload(&library))
            .env("TENURE_TRACE", &output)
            .env("TENURE_RECORD_DEPTH", self.depth.to_string());
        if self.follow_fork {
            command.env("TENURE_RECORD_FOLLOW", "1");
        }
        let before: HashSet<u64> = files(&output).into_iter().map(|(_, inode)| inode).collect();
        // Ctrl-C is for the program; this process reports what was recorded until then.
        let (mut child, old) = {
            let ignore = 1;
            let child = command
                .spawn()
                .map_err(|e| Failure::Usage(format!("{}: {e}", program.display())))?;
            (child, unsafe { [signal(2, ignore), signal(3, ignore)] })
        };
        let status = child.wait().map_err(|e| Failure::Usage(e.to_string()))?;
        wait_for_trace(&output);
        let made: Vec<PathBuf> = files(&output)
            .into_iter()
            .filter(|(_, inode)| !before.contains(inode))
            .map(|(path, _)| path)
            .collect();
        report(&made, &library);
        if let Some(number) = status.signal() {
            // The same end as the program's, so that a shell says the same.
            unsafe {
                prctl(4, 0); // the core file is the program's
                signal(2, old[0]);
                signal(3, old[1]);
                signal(number, 0);
                kill(getpid(), number);
            }
            return Ok(128 + number);
        }
        Ok(status.code().unwrap_or(1))
    }
}
