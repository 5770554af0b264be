//! Runs a command where io_uring cannot be had.
//!
//! ```text
//! without-uring eperm|enosys|enomem|silent|silent-links|memlock COMMAND [ARGUMENT..]
//! ```
//!
//! Exit code: the command's; 125 if this machine cannot put up the obstacle, 127 if the command does not
//! start, 2 for usage.

use kraftlog_tests::without_uring::{Obstacle, exec};
use std::io::ErrorKind;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let obstacle = args.next().and_then(|name| Obstacle::named(name.to_str()?));
    let (Some(obstacle), Some(program)) = (obstacle, args.next()) else {
        let names = Obstacle::ALL.map(Obstacle::name).join("|");
        eprintln!("usage: without-uring {names} COMMAND [ARGUMENT..]");
        return ExitCode::from(2);
    };
    match exec(obstacle, Command::new(&program).args(args)) {
        Ok(never) => match never {},
        Err(error) if error.kind() == ErrorKind::Unsupported => {
            eprintln!("not run: {error}");
            ExitCode::from(125)
        }
        Err(error) => {
            eprintln!("could not run {}: {error}", program.display());
            ExitCode::from(127)
        }
    }
}
