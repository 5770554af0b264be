//! Exit status, and errors on their way to it.
//!
//! `kafka-storage`'s own five commands end with 0 or 1, as Kafka's do; the others with the statuses
//! below. A reader that closed the pipe has what it wanted: that is success.

use std::fmt;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

/// How the process ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// Everything is sound.
    pub(crate) const SOUND: Exit = Exit(0);
    /// Something was found, or refused by one of kafka-storage's commands.
    pub(crate) const FINDINGS: Exit = Exit(1);
    /// The command line makes no sense.
    pub(crate) const USAGE: Exit = Exit(2);
    /// An I/O operation failed.
    pub(crate) const IO: Exit = Exit(3);
    /// A running node has the directory.
    pub(crate) const LOCKED: Exit = Exit(4);
    /// Refused as unsafe.
    pub(crate) const REFUSED: Exit = Exit(5);
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.0)
    }
}

/// Why a command stopped: one sentence, lines with what else helps, and the status.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Printed as it is, so that a sentence of Kafka's stays one.
    pub(crate) sentence: String,
    /// Printed below, one a line.
    pub(crate) details: Vec<String>,
    /// How the process ends.
    pub(crate) exit: Exit,
    /// Short name for programs, printed with `--output json`.
    pub(crate) name: &'static str,
}

impl Failure {
    /// A failure with no more than a sentence.
    pub(crate) fn new(exit: Exit, name: &'static str, sentence: impl fmt::Display) -> Failure {
        Failure { sentence: sentence.to_string(), details: Vec::new(), exit, name }
    }

    /// One that carries a chain of causes, which become part of the sentence.
    pub(crate) fn of(exit: Exit, name: &'static str, error: &dyn std::error::Error) -> Failure {
        Failure::new(exit, name, chain(error))
    }

    /// Adds lines with what else helps.
    pub(crate) fn with(mut self, details: impl IntoIterator<Item = String>) -> Failure {
        self.details.extend(details);
        self
    }
}

impl From<io::Error> for Failure {
    /// Of writing to standard output: everything else has a path and is made otherwise.
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Exit::SOUND, "ClosedPipe", ""),
            _ => Failure::new(Exit::IO, "IoError", format!("could not write to standard output: {error}")),
        }
    }
}

/// What to do about an error of the operating system, if one is among the causes.
pub(crate) fn next_step(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        let shared = error.downcast_ref::<Arc<io::Error>>().map(AsRef::as_ref);
        if let Some(cause) = shared.or_else(|| error.downcast_ref::<io::Error>()) {
            return advice(cause).map(str::to_owned);
        }
        next = error.source();
    }
    None
}

fn advice(cause: &io::Error) -> Option<&'static str> {
    match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            Some("free some space there, or raise the limit, and run it again")
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("mount that file system for writing, or name another directory")
        }
        io::ErrorKind::PermissionDenied => Some("run it as the user that owns the directory"),
        io::ErrorKind::NotADirectory => {
            Some("move the file that stands there away, or name another directory")
        }
        _ => None,
    }
}

/// An error and its causes in one line, without saying anything twice.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}
