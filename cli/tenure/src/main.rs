//! The command `tenure`. A result goes to stdout, everything else to stderr.

mod record;
mod stats;
mod symbols;
mod text;

use std::path::Path;

use clap::Parser;
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

fn main() {
    let result = match Cli::parse().command {
        Command::Record(c) => c.run(),
        Command::Stats(c) => c.run(),
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
