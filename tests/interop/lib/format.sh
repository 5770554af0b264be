# Sourced by ../run: `kraftlog format` beside kafka-storage format, and real nodes that start on what we formatted. 4.4.0 only:
# a freshly formatted directory of its layout is for that release and later ones.

cluster_id=Q3Bu0TqZTxKyZfXkL9b2Hg
three_voters=1@127.0.0.1:9091,2@127.0.0.1:9092,3@127.0.0.1:9093
three_controllers=1@127.0.0.1:9091:MkU3OEVBNTcwNTJENDM2Qg,2@127.0.0.1:9092:ZTVjNmE4ZDktN2YxMC00Yg,3@127.0.0.1:9093:cGxhaW4tZGlyZWN0b3J5LQ
scram_alice='SCRAM-SHA-256=[name=alice,salt=MTIzNDU2Nzg5MDEyMzQ1Ng==,iterations=4096,password=alice-secret]'
scram_bob='SCRAM-SHA-512=[name=bob,salt=c2FsdHNhbHQ=,saltedpassword=mT0yyUUxnlJaC99HXgRTSYlbuqa4FSGtJCJfTMvjYCE=,iterations=8192]'
format_modes=(
    standalone standalone-advertised standalone-r-3.9 standalone-r-4.0 initial-controllers initial-controllers-of-others
    no-initial-controllers static-voters static-voters-r-3.3 broker broker-two-dirs combined-two-dirs metadata-log-dir
    features kraft-version scram ignore-formatted
)

format_arguments() { # MODE: sets config (lines, @ for the root of the log dirs), arguments, and random: the voter whose directory id is drawn
    local controller=(1 controller CONTROLLER://127.0.0.1:9091)
    local combined=(1 broker,controller PLAINTEXT://127.0.0.1:9094,CONTROLLER://127.0.0.1:9091)
    local broker=(4 broker PLAINTEXT://127.0.0.1:9094)
    local dynamic=bootstrap:127.0.0.1:9091
    config=("${controller[@]}" $dynamic @/data) arguments=(--standalone) random=1 first=()
    case $1 in
        standalone) ;;
        standalone-advertised) config+=(advertised.listeners=CONTROLLER://controller-1.example:19091) ;;
        standalone-r-3.9) arguments+=(--release-version 3.9) ;;
        standalone-r-4.0) arguments+=(-r 4.0 -f eligible.leader.replicas.version=1) ;;
        initial-controllers) arguments=(--initial-controllers "$three_controllers") random=- ;;
        initial-controllers-of-others) arguments=(-I "${three_controllers#*,}") random=- ;;
        no-initial-controllers) arguments=(--no-initial-controllers) random=- ;;
        static-voters) config[3]=$three_voters arguments=() random=- ;;
        static-voters-r-3.3) config[3]=$three_voters arguments=(-r 3.3) random=- ;;
        broker) config=("${broker[@]}" $dynamic @/data) arguments=() random=- ;;
        broker-two-dirs) config=("${broker[@]}" $dynamic @/data-a,@/data-b) arguments=() random=- ;;
        combined-two-dirs) config=("${combined[@]}" $dynamic @/data-a,@/data-b) ;;
        metadata-log-dir) config=("${combined[@]}" $dynamic @/data-a,@/data-b metadata.log.dir=@/meta) ;;
        features) arguments+=(--feature group.version=0 --feature transaction.version=1) ;;
        kraft-version) arguments=(--no-initial-controllers --feature kraft.version=1) random=- ;;
        scram) arguments+=(--add-scram "$scram_alice" --add-scram "$scram_bob") ;;
        ignore-formatted) config=("${combined[@]}" $dynamic @/data-a,@/data-b) arguments+=(--ignore-formatted) first=("${combined[@]}" $dynamic @/data-b) ;;
    esac
}

format_all() { # both formatters over all modes; one JVM does Kafka's half
    local mode side dir script=$work/format/storage pairs=$work/format/pairs
    mkdir -p "$work/format"
    : >"$script"
    : >"$pairs"
    for mode in "${format_modes[@]}"; do
        format_arguments "$mode"
        dir=$work/format/$mode
        mkdir -p "$dir/kafka" "$dir/ours"
        for side in kafka ours; do
            properties "${config[@]//@\//$dir/$side/}" >"$dir/$side.properties"
            [ ${#first[@]} -eq 0 ] || properties "${first[@]//@\//$dir/$side/}" >"$dir/$side.first.properties"
        done
        if [ ${#first[@]} -gt 0 ]; then
            (IFS=$'\t'; echo "$dir/kafka.first.out"$'\t'"format"$'\t'-c$'\t'"$dir/kafka.first.properties"$'\t'-t$'\t'"$cluster_id"$'\t'--standalone) >>"$script"
            "$kraftlog" format -c "$dir/ours.first.properties" -t "$cluster_id" --standalone >"$dir/ours.first.out" 2>"$dir/ours.first.err"
        fi
        (IFS=$'\t'; set -- "$dir/kafka.out" format -c "$dir/kafka.properties" -t "$cluster_id" ${arguments[@]+"${arguments[@]}"}; echo "$*") >>"$script"
        "$kraftlog" format -c "$dir/ours.properties" -t "$cluster_id" ${arguments[@]+"${arguments[@]}"} >"$dir/ours.out" 2>"$dir/ours.err"
        echo "exit $?" >>"$dir/ours.out"
        printf '%s\t%s\t%s\t%s\n' "$mode" "$dir/kafka" "$dir/ours" "$random" >>"$pairs"
    done
    driver storage "$script" 2>"$work/format/storage.err"
    driver same-format "$pairs" >"$work/format/results" 2>"$work/format/results.err"
}

format_same() { # the case's own name ends in the mode
    local mode=${case_name#format/} dir
    dir=$work/format/$mode where=$work/format/$mode
    local result
    result=$(sed -n "s/^$mode\t//p" "$work/format/results")
    grep -q '^exit 0$' "$dir/ours.out" || { why="kraftlog format failed: $(head -3 "$dir/ours.err" | tr '\n' ' ')"; return 1; }
    grep -q '^exit 0$' "$dir/kafka.out" || { why="kafka-storage failed: $(tail -2 "$dir/kafka.out" | tr '\n' ' ')"; return 1; }
    [ "$result" = same ] || { why=${result:-"not compared: $(tail -1 "$work/format/results.err")"}; return 1; }
    # The order of the lines for several directories is a hash order. Kafka prints salts and keys, we never do.
    diff <(sed -E "s#$dir/kafka/#DIR/#g; s/(salt|storedKey|serverKey)=\[[^]]*\]/\1=(redacted)/g" "$dir/kafka.out" | sort) <(sed "s#$dir/ours/#DIR/#g" "$dir/ours.out" | sort) >"$dir/output.diff" ||
        { why="the output differs: $(head -3 "$dir/output.diff" | cut -c1-300 | tr '\n' ' ')"; return 1; }
    said="names, modes, bytes and output are Kafka's"
}

our_format() { # PROPERTIES ARGUMENT...
    "$kraftlog" format -c "$1" -t "$cluster_id" "${@:2}" >"$1.format.out" 2>"$1.format.err" && return 0
    why="kraftlog format failed: $(head -3 "$1.format.err" | tr '\n' ' ')"
    where=$1.format.err
    return 1
}

client() { # OUT BOOTSTRAP OP...
    driver client "${@:2}" >"$1" 2>&1 && return 0
    why="client: $(grep -v '^\[' "$1" | tail -1 | cut -c1-400)"
    where=$1
    return 1
}

activation() { # LOG: how the controller became active
    grep -oE 'Performing controller activation\..*' "$1" | tail -1 | sed 's/ from bootstrap source.*//; s/ from the .*//; s/ (org.apache.*//; s/Performing controller activation. //'
}

boot_standalone() { # a controller alone; dynamic quorum
    local dir=$work/boot-standalone
    mkdir -p "$dir"
    free_port && local p=$port
    properties 1 controller "CONTROLLER://127.0.0.1:$p" "bootstrap:127.0.0.1:$p" "$dir/data" >"$dir/server.properties"
    our_format "$dir/server.properties" --standalone || return 1
    start_node standalone "$dir/server.properties"
    wait_active standalone "$dir/standalone.log" || return 1
    client "$dir/client.out" "controller:127.0.0.1:$p" voters 1 broker-config log.cleaner.threads 3 feature metadata.version 33 || return 1
    no_faults "$dir/standalone.log" && stop_node standalone || return 1
    said="controller active, config written and read back; $(activation "$dir/standalone.log")"
}

boot_static() { # kraft.version 0, the oldest metadata.version that 4.x starts on; below 3.7 only brokers answer clients
    local dir=$work/boot-static
    mkdir -p "$dir"
    free_port && local c=$port
    free_port && local b=$port
    properties 1 broker,controller "PLAINTEXT://127.0.0.1:$b,CONTROLLER://127.0.0.1:$c" "1@127.0.0.1:$c" "$dir/data" >"$dir/server.properties"
    our_format "$dir/server.properties" --release-version 3.3 || return 1
    start_node static "$dir/server.properties"
    wait_active static "$dir/static.log" || return 1
    client "$dir/client.out" "127.0.0.1:$b" voters 1 create interop 2 feature metadata.version 7 || return 1
    no_faults "$dir/static.log" && stop_node static || return 1
    said="active at metadata.version 7, topic created through a client; $(activation "$dir/static.log")"
}

boot_combined() { # several log dirs, features, SCRAM
    local dir=$work/boot-combined
    mkdir -p "$dir"
    free_port && local c=$port
    free_port && local b=$port
    properties 1 broker,controller "PLAINTEXT://127.0.0.1:$b,CONTROLLER://127.0.0.1:$c" "bootstrap:127.0.0.1:$c" "$dir/data-a,$dir/data-b" >"$dir/server.properties"
    our_format "$dir/server.properties" --standalone --release-version 4.2 --feature group.version=1 --feature transaction.version=1 \
        --add-scram "$scram_alice" --add-scram "$scram_bob" || return 1
    start_node combined "$dir/server.properties"
    wait_active combined "$dir/combined.log" || return 1
    client "$dir/client.out" "127.0.0.1:$b" create interop 4 feature metadata.version 29 feature transaction.version 1 \
        scram alice SCRAM-SHA-256 4096 scram bob SCRAM-SHA-512 8192 broker-config log.cleaner.threads 2 || return 1
    no_faults "$dir/combined.log" && stop_node combined || return 1
    said="topic created through a client, features and SCRAM credentials as formatted; $(activation "$dir/combined.log")"
}

boot_quorum() { # three initial controllers, a controller without initial controllers, a broker with two log dirs
    local dir=$work/boot-quorum id ids=(0) servers= initial= b
    mkdir -p "$dir"
    for id in 1 2 3 4; do free_port && ids[id]=$port; done
    free_port && b=$port
    servers=127.0.0.1:${ids[1]},127.0.0.1:${ids[2]},127.0.0.1:${ids[3]}
    for id in 1 2 3; do initial=$initial${initial:+,}$id@127.0.0.1:${ids[id]}:$("$kraftlog" random-uuid); done
    for id in 1 2 3 4; do
        properties $id controller "CONTROLLER://127.0.0.1:${ids[id]}" "bootstrap:$servers" "$dir/$id" >"$dir/$id.properties"
    done
    properties 5 broker "PLAINTEXT://127.0.0.1:$b" "bootstrap:$servers" "$dir/5-a,$dir/5-b" >"$dir/5.properties"
    for id in 1 2 3; do our_format "$dir/$id.properties" --initial-controllers "$initial" || return 1; done
    our_format "$dir/4.properties" --no-initial-controllers || return 1
    our_format "$dir/5.properties" || return 1
    for id in 1 2 3 4 5; do start_node quorum-$id "$dir/$id.properties"; done
    for id in 1 2 3 4 5; do wait_started quorum-$id "$dir/quorum-$id.log" || { where=$dir/quorum-$id.log; return 1; }; done
    client "$dir/client.out" "127.0.0.1:$b" voters 1,2,3 create interop 3 || return 1
    for id in 1 2 3 4 5; do no_faults "$dir/quorum-$id.log" || { where=$dir/quorum-$id.log; return 1; }; done
    stop_node quorum-5 || return 1
    for id in 1 2 3 4; do kill "${node_pid[quorum-$id]}"; done
    for id in 1 2 3 4; do stop_node quorum-$id || { where=$dir/quorum-$id.log; return 1; }; done
    grep -q 'Activated periodic tasks' "$dir"/quorum-[123].log || { why="no voter became active"; where=$dir; return 1; }
    said="three voters elected a leader, an observer controller and a broker with two log dirs joined, topic created through a client"
}
