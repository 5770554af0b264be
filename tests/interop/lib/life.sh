# Sourced by ../run: one directory's life. Kafka formats it, runs, is stopped, runs again, is killed; we read it, keep Kafka out of
# it and write into it; Kafka goes on with what we wrote; we read that. The cases build on each other, so after a failure the rest fails too.

life=
life_broken=

life_case() { # FUNCTION: runs one step, unless an earlier one failed
    if [ -n "$life_broken" ]; then
        why="not reached, $life_broken failed"
        return 1
    fi
    life=$work/life where=$work/life
    "$1" && return 0
    life_broken=$case_name
    return 1
}
life_kafka_holds() { life_case kafka_holds; }
life_read_stopped() { life_case read_stopped; }
life_read_killed() { life_case read_killed; }
life_we_hold() { life_case we_hold; }
life_write() { life_case write_and_continue; }
life_read_again() { life_case read_again; }
life_write_killed() { life_case write_killed; }

life_boot() { # NAME
    start_node "$1" "$life/server.properties"
    wait_active "$1" "$life/$1.log"
}

life_client() { # NAME OP...
    client "$life/$1.client" "127.0.0.1:$life_port" "${@:2}"
}

kafka_holds() {
    mkdir -p "$life"
    free_port && local c=$port
    free_port && life_port=$port
    # Small segments and frequent snapshots, so that a life of seconds has several of both.
    local small=(internal.metadata.log.segment.bytes=10000)
    [ "$line" != 4.0 ] || small=(metadata.log.segment.min.bytes=10000 metadata.log.segment.bytes=10000)
    properties 1 broker,controller "PLAINTEXT://127.0.0.1:$life_port,CONTROLLER://127.0.0.1:$c" "bootstrap:127.0.0.1:$c" "$life/data" \
        metadata.log.max.record.bytes.between.snapshots=6000 "${small[@]}" >"$life/server.properties"
    printf '%s\t' "$life/format.out" format -c "$life/server.properties" -t "$cluster_id" >"$life/format"
    echo --standalone >>"$life/format"
    driver storage "$life/format" 2>"$life/format.err"
    grep -q '^exit 0$' "$life/format.out" || { why="kafka-storage failed: $(tail -2 "$life/format.out")"; return 1; }
    life_boot first || return 1
    life_client first busy first 12 || return 1

    local code before
    before=$(cksum <"$life/data/meta.properties")
    "$interop_node" open "$life/data" >"$life/locked.out" 2>"$life/locked.err"
    code=$?
    [ $code -eq 4 ] || { why="our open of a running node's directory ended with status $code: $(tail -1 "$life/locked.err")"; return 1; }
    grep -q "$life/data" "$life/locked.err" || { why="the refusal does not name the directory: $(tail -1 "$life/locked.err")"; return 1; }
    # The same arguments again, and over an identity that somebody removed under the running node.
    "$kraftlog" format -c "$life/server.properties" -t "$cluster_id" --standalone >"$life/format-again.out" 2>"$life/format-again.err" &&
        { why="kraftlog format was not refused on a running node's directory"; return 1; }
    mv "$life/data/meta.properties" "$life/meta.properties"
    "$kraftlog" format -c "$life/server.properties" -t "$cluster_id" --standalone >"$life/format-anew.out" 2>"$life/format-anew.err"
    code=$?
    [ ! -e "$life/data/meta.properties" ] || code=0
    mv "$life/meta.properties" "$life/data/meta.properties"
    [ $code -ne 0 ] || { why="kraftlog format gave a running node's directory a new identity"; return 1; }
    [ "$before" = "$(cksum <"$life/data/meta.properties")" ] || { why="a refused command changed meta.properties"; return 1; }
    kill -0 "${node_pid[first]}" 2>/dev/null || { why="the node died meanwhile"; return 1; }
    said="open and format refused while Kafka runs ($(tail -1 "$life/locked.err" | sed "s#$life/##" | cut -c1-160))"
}

read_stopped() {
    life_client first-2 topic first-0 5 create second 3 || return 1
    no_faults "$life/first.log" && stop_node first || return 1
    copy_metadata "$life/data" "$life/stopped"
    same_dump "$life/stopped" && same_log "$life/stopped" || return 1
    said="$lines of dump equal; open agrees: $found"
}

read_killed() {
    life_boot second || return 1
    life_client second topic second 3 busy second 10 || return 1
    no_faults "$life/second.log" || return 1
    kill_node second
    copy_metadata "$life/data" "$life/killed"
    same_dump "$life/killed" && same_log "$life/killed" || return 1
    said="$lines of dump equal; open agrees: $found"
}

we_hold() {
    # A controller takes the lock before it opens the log. A combined node runs its controller half on the log first and takes the
    # lock with its broker half, so it is refused only after it has written: nothing that we could prevent.
    sed 's/^process.roles=.*/process.roles=controller/; s#^listeners=.*,#listeners=#' "$life/server.properties" >"$life/controller.properties"
    hold_directory "$life/data" "$life/hold.out" || { where=$life/hold.out; return 1; }
    local i message before
    before=$(log_and_vote)
    start_node refused "$life/controller.properties"
    wait_log refused "$life/refused.log" 'Failed to acquire lock on file .lock in|Kafka Server started' 60 || return 1
    grep -q 'Kafka Server started' "$life/refused.log" && { why="Kafka started on a directory that we hold open"; return 1; }
    for ((i = 0; i < 150; i++)); do
        kill -0 "${node_pid[refused]}" 2>/dev/null || break
        sleep 0.2
    done
    kill -0 "${node_pid[refused]}" 2>/dev/null && { why="Kafka saw the lock but went on"; return 1; }
    wait "${node_pid[refused]}" 2>/dev/null
    unset 'node_pid[refused]'
    [ "$before" = "$(log_and_vote)" ] || { why="Kafka wrote into a directory that we hold open"; return 1; }
    release_directory || { why="our own close failed: $(tail -1 "$life/hold.out")"; where=$life/hold.out; return 1; }
    message=$(grep -m1 -oE 'Failed to acquire lock.*' "$life/refused.log" | sed "s#$life/##")
    said="Kafka refused to start: $message"
}

log_and_vote() { # checksums of what must not change under our open handle
    cat "$life"/data/__cluster_metadata-0/*.log "$life"/data/__cluster_metadata-0/{quorum-state,leader-epoch-checkpoint} | cksum
}

our_write() { # TOPIC [--abort]: sets topic, snapshot, written_end, written_epoch
    local directory code out=$life/write-$1.json
    directory=$(sed -n 's/^directory\.id=//p' "$life/data/meta.properties")
    where=$life/write-$1.err
    # In a subshell, which takes the word that a shell says of an aborted program.
    ("$interop_node" write "$life/data" --node 1 --directory "$directory" --topic "$@"; exit $?) >"$out" 2>"$where"
    code=$?
    local expected=0
    [ "${2:-}" != --abort ] || expected=134
    [ "$code" -eq "$expected" ] || { why="our write ended with status $code: $(tail -1 "$where")"; return 1; }
    topic=$(sed -n 's/.*"topicId":"\([^"]*\)".*/\1/p' "$out")
    written_end=$(sed -n 's/.*"endOffset":\([0-9]*\).*/\1/p' "$out")
    written_epoch=$(sed -n 's/.*"epochEntry":"\([^"]*\)".*/\1/p' "$out")
    snapshot=$(sed -n 's/.*"snapshot":"\([^"]*\)".*/\1/p' "$out")
    [ -n "$topic" ] && [ -n "$written_end" ] && [ -n "$written_epoch" ] && [ -n "$snapshot" ] && return 0
    why="our write said: $(cat "$out")"
    return 1
}

write_and_continue() {
    our_write ours || return 1

    # The state that Kafka's classes read from our snapshot and the log behind it is the state they read from the log without it.
    copy_metadata "$life/data" "$life/with"
    copy_metadata "$life/data" "$life/without"
    rm -f "$life/without/__cluster_metadata-0/$snapshot.checkpoint"
    [ -f "$life/with/__cluster_metadata-0/$snapshot.checkpoint" ] || { why="our snapshot $snapshot is not there"; return 1; }
    driver image "$life/with" >"$life/with.image" 2>"$life/with.err" || { why="Kafka cannot replay what we wrote: $(tail -1 "$life/with.err")"; where=$life/with.err; return 1; }
    driver image "$life/without" >"$life/without.image" 2>"$life/without.err" || { why="Kafka cannot replay the log: $(tail -1 "$life/without.err")"; where=$life/without.err; return 1; }
    diff "$life/with.image" "$life/without.image" >"$life/image.diff" || { why="our snapshot is not the state of the log: $(head -2 "$life/image.diff" | cut -c1-200 | tr '\n' ' ')"; where=$life/image.diff; return 1; }
    same_dump "$life/with" || return 1

    life_boot third || return 1
    grep -q "$snapshot" "$life/third.log" || { why="Kafka did not load our snapshot $snapshot"; return 1; }
    life_client third topic ours 2 topic ours-after 2 topic-config ours retention.ms 123456789 \
        topic first-0 5 topic second-0 5 create after-us 3 broker-config log.cleaner.threads 2 || return 1
    grep -q "\"topic\":\"ours\",\"id\":\"$topic\"" "$life/third.client" || { why="Kafka shows another topic id than ours, $topic"; where=$life/third.client; return 1; }
    no_faults "$life/third.log" && stop_node third || return 1
    said="Kafka loaded our snapshot $snapshot, describes the topics we wrote, wrote on behind our end $written_end"
}

read_again() {
    copy_metadata "$life/data" "$life/again"
    same_dump "$life/again" && same_log "$life/again" || return 1
    local end
    end=$(sed -n 's/.*"endOffset":\([0-9]*\),.*/\1/p' "$life/again.load.json")
    [ "$end" -gt "$written_end" ] || { why="the log ends at $end, we had written up to $written_end"; return 1; }
    case ",$(epochs_of "$life/again.load.json")" in
        *",$written_epoch,"*) ;;
        *) why="our epoch '$written_epoch' is not among $(epochs_of "$life/again.load.json")"; return 1 ;;
    esac
    said="$lines of dump equal; open agrees: $found"
}

write_killed() { # Kafka has been in the directory since our last open; ours ends without any close, with space reserved behind the log
    ulimit -c 0
    our_write killed --abort || return 1
    life_boot fourth || return 1
    grep -q "$snapshot" "$life/fourth.log" || { why="Kafka did not load our snapshot $snapshot"; return 1; }
    life_client fourth topic killed 2 topic killed-after 2 topic ours 2 topic after-us 3 create after-kill 1 || return 1
    grep -q "\"topic\":\"killed\",\"id\":\"$topic\"" "$life/fourth.client" || { why="Kafka shows another topic id than ours, $topic"; where=$life/fourth.client; return 1; }
    no_faults "$life/fourth.log" && stop_node fourth || return 1
    copy_metadata "$life/data" "$life/last"
    same_dump "$life/last" && same_log "$life/last" || return 1
    said="nothing that we acknowledged before the kill is missing up to $written_end; $lines of dump equal; open agrees: $found"
}
