# Sourced by ../run: our own two programs.

hold_pid=

build_kraftlog() { # sets kraftlog and interop_node; KRAFTLOG_BIN and INTEROP_NODE_BIN name ready ones
    kraftlog=${KRAFTLOG_BIN:-} interop_node=${INTEROP_NODE_BIN:-}
    [ -n "$kraftlog" ] && [ -n "$interop_node" ] && return 0
    (cd "$root" && cargo build --release -p kraftlog-cli -p kraftlog-tests >&2) || return 1
    local target=${CARGO_TARGET_DIR:-target}
    case $target in /*) ;; *) target=$root/$target ;; esac
    kraftlog=${kraftlog:-$target/release/kraftlog}
    interop_node=${interop_node:-$target/release/interop-node}
}

hold_directory() { # DIR OUT: opens DIR and keeps it open until release_directory
    # The holder ends when its standard input does, so it cannot outlive this run.
    mkfifo "$2.in"
    "$interop_node" hold "$1" <"$2.in" >"$2" 2>&1 &
    hold_pid=$!
    exec {hold_in}>"$2.in"
    local i
    for ((i = 0; i < 100; i++)); do
        grep -q '"held"' "$2" 2>/dev/null && return 0
        kill -0 "$hold_pid" 2>/dev/null || break
        sleep 0.1
    done
    why="our own open failed: $(tail -1 "$2")"
    return 1
}

release_directory() {
    [ -n "$hold_pid" ] || return 0
    exec {hold_in}>&-
    wait "$hold_pid" 2>/dev/null
    local code=$?
    hold_pid=
    return "$code"
}

same_dump() { # DIR: our dump of every log and checkpoint in DIR/__cluster_metadata-0 is Kafka's, line by line; sets lines
    local part=$1/__cluster_metadata-0 files
    files=("$part"/*.log "$part"/*.checkpoint)
    [ -e "${files[-1]}" ] || unset 'files[-1]'
    # A killed node may leave a torn tail: then both must call it damage.
    local kafka_code our_code
    driver dump "${files[@]}" >"$1.kafka.jsonl" 2>"$1.kafka.err"
    kafka_code=$?
    "$kraftlog" dump --output json "${files[@]}" >"$1.ours.jsonl" 2>"$1.ours.err"
    our_code=$?
    where=$1.ours.jsonl
    lines=$(driver same-lines "$1.kafka.jsonl" "$1.ours.jsonl") || { why="dump: $lines $(tail -1 "$1.ours.err")"; return 1; }
    [ "$kafka_code" -eq "$our_code" ] || { why="dump: Kafka's classes end with status $kafka_code, we with $our_code"; return 1; }
}

same_log() { # DIR: what our open finds in a copy of DIR is what Kafka's log class finds in another; sets found
    rm -rf "$1.copy"
    copy_metadata "$1" "$1.copy"
    driver load "$1" >"$1.load.json" 2>"$1.load.err" || { why="Kafka refuses: $(cat "$1.load.json")"; where=$1.load.json; return 1; }
    "$interop_node" open "$1.copy" >"$1.open.json" 2>"$1.open.err" || { why="our open failed: $(tail -1 "$1.open.err")"; where=$1.open.err; return 1; }
    found=$(driver same-log "$1.load.json" "$1.open.json") || { why="open: $found"; where=$1.open.json; return 1; }
    local epochs
    epochs=$(tail -n +3 "$1.copy/__cluster_metadata-0/leader-epoch-checkpoint" | tr '\n' ',')
    [ "$epochs" = "$(epochs_of "$1.load.json")" ] ||
        { why="epochs: Kafka $(epochs_of "$1.load.json"), our file $epochs"; where=$1.copy; return 1; }
}

epochs_of() { # LOAD: the list "epochs" of a `driver load` as EPOCH OFFSET,EPOCH OFFSET,
    sed -n 's/.*"epochs":\[\([^]]*\)\].*/\1,/p' "$1" | tr -d '"'
}

copy_metadata() { # FROM TO: meta.properties and the metadata partition, as the files stand
    mkdir -p "$2"
    cp -p "$1/meta.properties" "$2/"
    cp -rp "$1/__cluster_metadata-0" "$2/"
}
