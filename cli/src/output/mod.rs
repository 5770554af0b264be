//! Where results go: data on standard output, talk on standard error.

pub(crate) mod kafka_text;

use crate::exit::Failure;
use clap::ValueEnum;
use serde::Serialize;
use std::fmt;
use std::io::{self, Write};

/// How the result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text.
    #[value(alias = "text")]
    Human,
    /// JSON, one object, or one a line where there are many.
    Json,
}

/// Standard output of one command.
pub(crate) struct Output {
    format: OutputFormat,
    out: io::BufWriter<io::Stdout>,
}

impl Output {
    /// Output in one of the formats.
    pub(crate) fn new(format: OutputFormat) -> Output {
        Output { format, out: io::BufWriter::new(io::stdout()) }
    }

    /// True if programs read it.
    pub(crate) fn is_json(&self) -> bool {
        self.format == OutputFormat::Json
    }

    /// Prints a line for people; nothing if programs read.
    pub(crate) fn line(&mut self, text: impl fmt::Display) -> Result<(), Failure> {
        if !self.is_json() {
            writeln!(self.out, "{text}")?;
        }
        Ok(())
    }

    /// Prints an object for programs; nothing if people read.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<(), Failure> {
        if self.is_json() {
            serde_json::to_writer(&mut self.out, object).map_err(io::Error::from)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Hands over what is printed so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }
}

/// Prints a line of talk on standard error. A closed one is no reason to stop.
pub(crate) fn say(text: impl fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
