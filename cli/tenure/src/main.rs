//! The command `tenure`. A result goes to stdout, everything else to stderr.

mod diff;
mod export;
mod kernel;
mod memory;
mod record;
mod stats;
mod symbols;
mod text;

use std::os::unix::process::CommandExt;
use std::path::Path;

use clap::{CommandFactory, Parser};
use tenure_trace::analysis::{Analysis, Object};
use tenure_trace::Trace;

/// Shows what a program does with its memory.
#[derive(Parser, Debug)]
#[command(name = "tenure", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    /// Run a program and record every allocation
    Record(record::Record),
    /// Show what is in a trace
    Stats(stats::Stats),
    /// Say whether resident memory is live, leaked, hoarded or fragmented
    Memory(memory::Memory),
    /// Write a trace for another tool
    Export(export::Export),
    /// Compare two traces by site
    Diff(diff::Diff),
    /// Show Tenure's allocators of a running process, by tenure-top
    #[command(disable_help_flag = true)]
    Top {
        /// Arguments of tenure-top
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Print what a shell needs to complete these commands
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder
    Man {
        /// The folder
        folder: std::path::PathBuf,
    },
}

/// Exit status 2 for what the caller got wrong, 3 for input that cannot be read.
pub enum Failure {
    Usage(String),
    Damaged(String),
}

/// A trace and its sums.
pub struct Input {
    pub trace: Trace,
    pub analysis: Analysis,
}

impl Input {
    pub fn read(path: &Path, ended: impl FnMut(&Object)) -> Result<Input, Failure> {
        let trace = open(path)?;
        let analysis = Analysis::of(&trace, ended);
        Ok(Input { trace, analysis })
    }
}

pub fn open(path: &Path) -> Result<Trace, Failure> {
    Trace::open(path).map_err(|e| {
        let text = format!("{}: {e}", path.display());
        match e {
            tenure_trace::Error::Io(_) => Failure::Usage(text),
            tenure_trace::Error::NotATrace(_) => Failure::Damaged(text),
        }
    })
}

/// Says what is damaged, after what could be read was shown.
pub fn damage(trace: &Trace, a: &Analysis) -> Result<i32, Failure> {
    match &a.damage {
        None => Ok(0),
        Some(d) => Err(Failure::Damaged(format!(
            "{d} of {} bytes; the trace is read up to there, {} of the program's time",
            trace.bytes,
            text::time(trace.ns(a.last))
        ))),
    }
}

/// The last line of a command names the one that a user would type next.
pub fn next(command: &str) {
    eprintln!("next: {command}");
}

/// tenure-top beside this program, or on the PATH.
fn top(arguments: &[std::ffi::OsString]) -> Result<i32, Failure> {
    let beside =
        std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("tenure-top")));
    let program = beside.filter(|p| p.is_file()).unwrap_or_else(|| "tenure-top".into());
    let error = std::process::Command::new(&program).args(arguments).exec();
    Err(Failure::Usage(format!("{}: {error}; `make install` installs it", program.display())))
}

extern "C" {
    fn signal(number: i32, handler: usize) -> usize;
}

fn main() {
    // A reader that has seen enough, as head, ends this program quietly.
    unsafe { signal(13, 0) };
    let result = match Cli::parse().command {
        Command::Record(c) => c.run(),
        Command::Stats(c) => c.run(),
        Command::Memory(c) => c.run(),
        Command::Export(c) => c.run(),
        Command::Diff(c) => c.run(),
        Command::Top { arguments } => top(&arguments),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "tenure", &mut std::io::stdout());
            Ok(0)
        }
        Command::Man { folder } => clap_mangen::generate_to(Cli::command(), &folder)
            .map(|()| 0)
            .map_err(|e| Failure::Usage(format!("{}: {e}", folder.display()))),
    };
    let status = match result {
        Ok(status) => status,
        Err(Failure::Usage(why)) => {
            eprintln!("tenure: {why}");
            2
        }
        Err(Failure::Damaged(why)) => {
            eprintln!("tenure: {why}");
            3
        }
    };
    std::process::exit(status);
}
