//! `demo`: the whole life of a controller's storage in one directory, with a kill in the middle.
//!
//! Every step checks what it did; the exit status is 0 only if every check held. Steps are told as
//! they end, figures included; `--output json` gives one object at the end instead.

use crate::args::{DemoArgs, DemoChildArgs};
use crate::demo::workload::{Ack, Appended, RECORDS_PER_APPEND};
use crate::demo::{kill, node, state, workload};
use crate::exit::{Exit, Failure, chain, next_step};
use crate::output::{Output, say};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kraftlog::{DirError, Epoch, OpenError, Voter};
use kraftlog_codecs::names::{META_PROPERTIES, METADATA_PARTITION_DIR, temporary_name};
use kraftlog_io::{BackendChoice, ThreadRt};
use serde_json::{Value, json};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// An error of any layer; the engine's are looked for to choose the exit status.
type AnyError = Box<dyn Error + Send + Sync>;

pub(crate) fn run(args: &DemoArgs, out: &mut Output) -> Result<Exit, Failure> {
    let io = |text: String| Failure::new(Exit::IO, "IoError", text);
    let temporary;
    let mut made = false;
    let dir: PathBuf = match &args.dir {
        Some(dir) => {
            made = empty_dir(dir)?;
            dir.clone()
        }
        None => {
            temporary = tempfile::Builder::new()
                .prefix("kraftlog-demo-")
                .tempdir()
                .map_err(|e| io(format!("could not make a temporary directory: {e}")))?;
            temporary.path().to_path_buf()
        }
    };
    let mut story = Story { out, steps: Vec::new(), failed: 0 };
    let told = tell(args, &dir, &mut story);
    let (steps, failed) = (story.steps, story.failed);
    if let Err(error) = told {
        let failure = Failure::new(exit_of(&*error), "DemoFailed", chain(&*error)).with(next_step(&*error));
        if args.dir.is_none() {
            return Err(failure);
        }
        // Without a formatted node there is nothing to look at, and the directory was empty.
        if steps.is_empty() {
            clear(&dir, made);
            return Err(failure);
        }
        return Err(failure.with([format!("the files are in {}", dir.display())]));
    }
    out.object(&json!({
        "ok": failed == 0,
        "directory": dir,
        "kept": args.dir.is_some(),
        "steps": steps,
    }))?;
    if failed > 0 {
        return Err(Failure::new(Exit::FINDINGS, "ChecksFailed", format!("{failed} check(s) did not hold")));
    }
    out.line("")?;
    out.line("Every check held.")?;
    if args.dir.is_some() {
        out.line(format_args!("The directory stays: try `kraftlog dump {}`.", dir.display()))?;
    }
    Ok(Exit::SOUND)
}

/// The part that gets killed; see `demo/kill.rs`.
pub(crate) fn run_child(args: &DemoChildArgs) -> Result<Exit, Failure> {
    let voter = voter_of(args)?;
    match kill::be_killed(&args.dir, Epoch(args.epoch), &voter, args.tasks) {
        Ok(()) => Ok(Exit::SOUND),
        Err(error) => Err(Failure::new(exit_of(&*error), "DemoFailed", chain(&*error))),
    }
}

fn voter_of(args: &DemoChildArgs) -> Result<Voter, Failure> {
    let directory_id = args.directory_id.parse().map_err(|e| Failure::new(Exit::USAGE, "UsageError", e))?;
    Ok(Voter {
        id: 1,
        directory_id,
        endpoints: vec![kraftlog::Endpoint {
            name: "CONTROLLER".to_owned(),
            host: "localhost".to_owned(),
            port: 9093,
            ..kraftlog::Endpoint::default()
        }],
        kraft_version_max: 1,
        ..Voter::default()
    })
}

/// Leaves a directory as the demo found it: empty, or not there at all if it `made` it.
fn clear(dir: &Path, made: bool) {
    let _ = std::fs::remove_dir_all(dir.join(METADATA_PARTITION_DIR));
    for name in [META_PROPERTIES.to_owned(), temporary_name(META_PROPERTIES)] {
        let _ = std::fs::remove_file(dir.join(name));
    }
    if made {
        // Only an empty directory goes.
        let _ = std::fs::remove_dir(dir);
    }
}

/// Makes the directory if it is missing, and says whether it did; one with content is somebody's.
fn empty_dir(dir: &Path) -> Result<bool, Failure> {
    let io = |e: std::io::Error| {
        Failure::new(Exit::IO, "IoError", format!("could not use the directory {}: {e}", dir.display()))
            .with(next_step(&e))
    };
    match std::fs::read_dir(dir) {
        Ok(mut entries) => match entries.next() {
            None => Ok(false),
            Some(_) => Err(Failure::new(
                Exit::REFUSED,
                "DirectoryHasData",
                format!("{} is not empty; the demo works in an empty directory only", dir.display()),
            )),
        },
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            std::fs::create_dir_all(dir).map(|()| true).map_err(io)
        }
        Err(e) => Err(io(e)),
    }
}

/// Tells the steps as they end.
struct Story<'a> {
    out: &'a mut Output,
    steps: Vec<Value>,
    failed: usize,
}

impl Story<'_> {
    /// A step is done: its name, what to say, what programs get, and what must hold.
    fn step(
        &mut self,
        name: &str,
        text: String,
        mut figures: Value,
        checks: &[(&str, bool)],
    ) -> Result<(), AnyError> {
        let number = self.steps.len() + 1;
        self.out.line(format_args!("{number:>2}. {text}")).map_err(|f| f.sentence)?;
        for (check, holds) in checks {
            let mark = if *holds { "ok" } else { "FAILED" };
            self.out.line(format_args!("    {mark}: {check}")).map_err(|f| f.sentence)?;
            self.failed += usize::from(!holds);
        }
        self.out.flush().map_err(|f| f.sentence)?;
        let checks: Vec<Value> =
            checks.iter().map(|(check, holds)| json!({ "check": check, "holds": holds })).collect();
        if let Value::Object(figures) = &mut figures {
            figures.insert("name".to_owned(), name.into());
            figures.insert("text".to_owned(), text.into());
            figures.insert("checks".to_owned(), checks.into());
        }
        self.steps.push(figures);
        Ok(())
    }
}

fn tell(args: &DemoArgs, dir: &Path, story: &mut Story<'_>) -> Result<(), AnyError> {
    let (machine, _) = ThreadRt::open(dir, BackendChoice::Portable)?;
    let formatted = node::format(dir, &*machine)?;
    let voter = formatted.voter;
    story.step(
        "format",
        format!(
            "formatted {} as controller 1, the only voter of cluster {}, metadata.version {}",
            dir.display(),
            formatted.cluster_id,
            formatted.metadata_version
        ),
        json!({ "clusterId": formatted.cluster_id, "directoryId": voter.directory_id.to_string() }),
        &[("meta.properties is there", dir.join("meta.properties").is_file())],
    )?;

    let (log, report) = node::open(dir)?;
    story.step(
        "open",
        format!("opened its metadata log on the {} back end", report.backend),
        json!({ "backend": report.backend.backend, "reason": report.backend.reason }),
        &[("the log is empty", log.end_offset().0 == 0)],
    )?;

    let epoch = Epoch(1);
    node::lead(&log, epoch, &voter)?;
    let message = node::bootstrap(&log, epoch, dir)?;
    story.step(
        "lead",
        format!(
            "became leader of epoch 1, wrote the leader change and the bootstrap transaction ({message})"
        ),
        json!({ "epoch": 1, "endOffset": log.end_offset().0 }),
        &[("both are durable", log.durable_end() == log.end_offset() && log.end_offset().0 > 1)],
    )?;

    let done = append(args, &log, epoch)?;
    let metrics = log.metrics();
    let (groups, batches) = (metrics.groups_committed(), metrics.batches_appended());
    let seconds = done.took.as_secs_f64();
    let records = done.acks.len() as u64 * RECORDS_PER_APPEND;
    story.step(
        "append",
        format!(
            "{} tasks appended {records} records in {} batches in {seconds:.2} s: {:.0} records/s, {:.1} batches a \
             sync; an append took {} (median), {} (99 %)",
            args.tasks,
            done.acks.len(),
            records as f64 / seconds,
            batches as f64 / groups.max(1) as f64,
            millis(done.per_mille(500)),
            millis(done.per_mille(990)),
        ),
        json!({
            "tasks": args.tasks,
            "records": records,
            "batches": done.acks.len(),
            "seconds": seconds,
            "syncs": groups,
            "appendMedianMs": done.per_mille(500).as_secs_f64() * 1e3,
            "append99Ms": done.per_mille(990).as_secs_f64() * 1e3,
        }),
        &[
            ("every append was acknowledged once, at an offset of its own", distinct(&done.acks)),
            ("all that is acknowledged is below the durable end", below(&done.acks, log.durable_end().0)),
        ],
    )?;

    let begun = machine.monotonic();
    let (frozen, counts) = state::freeze(&log, epoch)?;
    let took = machine.monotonic().saturating_sub(begun);
    story.step(
        "freeze",
        format!(
            "froze a checkpoint of {} topics and {} partitions at offset {}: {} bytes in {}",
            counts.topics,
            counts.partitions,
            frozen.id.end_offset,
            frozen.bytes,
            millis(took)
        ),
        json!({ "id": frozen.id.to_string(), "bytes": frozen.bytes, "records": counts.records() }),
        &[("it has every topic that was appended", counts.topics == done.acks.len() as u64)],
    )?;
    let clean = node::close(log)?;

    let mut acks = done.acks;
    let killed = kill::run_and_kill(dir, Epoch(2), &voter, args.tasks, acks_before_kill(acks.len()))?;
    story.step(
        "kill",
        format!(
            "closed it; a child process opened it, led epoch 2 and was killed with SIGKILL in the middle of its \
             appends, {} of them acknowledged",
            killed.acks.len()
        ),
        json!({ "acknowledged": killed.acks.len(), "closedClean": clean }),
        &[("the log was left clean before", clean)],
    )?;
    acks.extend(&killed.acks);

    let begun = machine.monotonic();
    let (log, report) = node::open(dir)?;
    let took = machine.monotonic().saturating_sub(begun);
    let cut = report.torn_tail.as_ref().map_or(0, |cut| cut.bytes);
    let missing = workload::missing(&log, &acks)?;
    story.step(
        "recover",
        format!(
            "opened it again in {}: {} of {} acknowledged appends are there, byte for byte; {} cut, {} written again",
            millis(took),
            acks.len() as u64 - missing,
            acks.len(),
            bytes(cut),
            bytes(report.rewritten_bytes),
        ),
        json!({
            "openMs": took.as_secs_f64() * 1e3,
            "acknowledged": acks.len(),
            "missing": missing,
            "tornBytes": cut,
            "rewrittenBytes": report.rewritten_bytes,
            "endOffset": log.end_offset().0,
        }),
        &[
            ("nothing acknowledged is gone", missing == 0),
            ("the child's epoch is the log's last", log.last_epoch() == Epoch(2)),
        ],
    )?;

    node::lead(&log, Epoch(3), &voter)?;
    let begun = machine.monotonic();
    let (counts, from) = state::load(&log)?;
    let took = machine.monotonic().saturating_sub(begun);
    story.step(
        "load",
        format!(
            "led epoch 3 and loaded the state, checkpoint first: {} topics, {} partitions in {}",
            counts.topics,
            counts.partitions,
            millis(took)
        ),
        json!({ "topics": counts.topics, "partitions": counts.partitions, "ms": took.as_secs_f64() * 1e3 }),
        &[
            ("it began with the checkpoint", from == Some(frozen.id)),
            ("it has at least every acknowledged topic", counts.topics >= acks.len() as u64),
            ("every topic has its eight partitions", counts.partitions == counts.topics * 8),
        ],
    )?;

    let end = log.end_offset();
    node::close(log)?;
    let (log, report) = node::open(dir)?;
    story.step(
        "close",
        format!("closed it and opened it once more, reading {} batch(es) only", report.batches),
        json!({ "batchesRead": report.batches, "endOffset": log.end_offset().0 }),
        &[("it ends where it ended", log.end_offset() == end)],
    )?;
    node::close(log)?;
    Ok(())
}

fn append(args: &DemoArgs, log: &kraftlog::MetadataLog, epoch: Epoch) -> Result<Appended, AnyError> {
    let appends = args.records.div_ceil(RECORDS_PER_APPEND);
    let share = |task| appends / args.tasks + u64::from(task < appends % args.tasks);
    let bar = progress_bar(appends * RECORDS_PER_APPEND);
    // One lock for all tasks would be felt; the bar is told of every hundredth.
    let pending = Mutex::new(0u64);
    let done = workload::append(log, epoch, args.tasks, share, &|_| {
        let mut pending = pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *pending += 1;
        if *pending == 100 {
            *pending = 0;
            bar.inc(100 * RECORDS_PER_APPEND);
        }
        true
    });
    bar.finish_and_clear();
    done
}

/// On a terminal only, and without colours: `NO_COLOR` has nothing to turn off.
fn progress_bar(len: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("    appending {bar:40} {human_pos}/{human_len} records, {per_sec}") {
        Ok(style) => bar.with_style(style),
        Err(error) => {
            say(format_args!("note: {error}"));
            bar
        }
    }
}

/// Early enough to be quick, late enough that many groups were synced.
fn acks_before_kill(appended: usize) -> usize {
    (appended / 5).clamp(100, 5_000)
}

fn distinct(acks: &[Ack]) -> bool {
    acks.windows(2).all(|pair| matches!(pair, [a, b] if a.offset < b.offset))
}

fn below(acks: &[Ack], durable_end: i64) -> bool {
    acks.last().is_some_and(|ack| ack.offset < durable_end)
}

fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn bytes(count: u64) -> String {
    match count {
        0 => "nothing".to_owned(),
        1 => "1 byte".to_owned(),
        count => format!("{count} bytes"),
    }
}

/// 4 for a directory in use, 5 for a refusal, 3 for everything of the disk.
fn exit_of(error: &(dyn Error + 'static)) -> Exit {
    use kraftlog::ErrorKind as Kind;
    let kind = match (error.downcast_ref::<DirError>(), error.downcast_ref::<OpenError>()) {
        (Some(error), _) => error.kind(),
        (_, Some(error)) => error.kind(),
        _ => return Exit::IO,
    };
    match kind {
        Kind::Locked => Exit::LOCKED,
        Kind::Refused | Kind::Corrupt => Exit::REFUSED,
        _ => Exit::IO,
    }
}
