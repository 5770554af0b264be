# Sourced by ../run: jars, the driver that holds Kafka's classes, ports, starting and stopping nodes by their pid.

# Small and quick to start; a round trip lives for seconds. `-Duser.language`: Kafka formats file names in the default locale.
jvm=(-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Duser.language=en)
declare -A node_pid=()
ports_taken=" "

fetch_kafka() { # sets classpath; the driver is compiled once for each release and state of its sources
    local jars=$here/target/jars/$version stamp driver tmp f
    if [ ! -f "$jars/.complete" ]; then
        rm -rf "$jars"
        mvn -q -B -f "$here/pom.xml" "-Dkafka.version=$version" "-DoutputDirectory=$jars" dependency:copy-dependencies >&2 ||
            { echo "cannot fetch Kafka $version with Maven" >&2; return 1; }
        touch "$jars/.complete"
    fi
    stamp=$(cat "$here"/driver/*.java "$here"/compat/* | cksum | tr -d ' ')
    driver=$here/target/driver/$version-$stamp
    if [ ! -d "$driver" ]; then
        tmp=$driver.$$
        mkdir -p "$tmp/src" "$tmp/classes"
        cp "$here"/driver/*.java "$tmp/src/"
        case $line in
            4.0) cp "$here/compat/Compat-4.0.java" "$tmp/src/Compat.java" ;;
            *) cp "$here/compat/Compat-4.4.java" "$tmp/src/Compat.java" ;;
        esac
        if [ -f "$here/compat/$line.sed" ]; then
            for f in "$tmp"/src/*.java; do
                sed -f "$here/compat/$line.sed" "$f" >"$f.new" && mv "$f.new" "$f"
            done
        fi
        javac -nowarn -Xlint:none -encoding UTF-8 -cp "$jars/*" -d "$tmp/classes" "$tmp"/src/*.java >&2 ||
            { rm -rf "$tmp"; echo "cannot compile the driver for Kafka $version" >&2; return 1; }
        mv "$tmp" "$driver" 2>/dev/null || rm -rf "$tmp"
    fi
    classpath="$driver/classes:$jars/*"
}

write_log_config() {
    local name level target
    for name in server tool; do
        case $name in server) level=INFO target=SYSTEM_OUT ;; *) level=ERROR target=SYSTEM_ERR ;; esac
        cat >"$work/$name.log4j.properties" <<END
status = error
rootLogger.level = $level
rootLogger.appenderRefs = out
rootLogger.appenderRef.out.ref = OUT
appender.out.type = Console
appender.out.name = OUT
appender.out.target = $target
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c)%n
END
    done
}

driver() { # COMMAND...: Kafka's classes
    java "${jvm[@]}" -Xmx1g "-Dlog4j2.configurationFile=$work/tool.log4j.properties" -cp "$classpath" Driver "$@"
}

free_port() { # sets port: one of a private range on which nothing listens and that this run has not taken
    local i
    for ((i = 0; i < 500; i++)); do
        port=$((23000 + RANDOM % 1000))
        case $ports_taken in *" $port "*) continue ;; esac
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null && continue
        ports_taken="$ports_taken$port "
        return 0
    done
    echo "no free port in 23000 to 23999" >&2
    return 1
}

properties() { # ID ROLES LISTENERS VOTERS|bootstrap:SERVERS LOG_DIRS [LINE]...: a server.properties on standard output
    local id=$1 roles=$2 listeners=$3 voters=$4 dirs=$5
    shift 5
    echo "process.roles=$roles"
    echo "node.id=$id"
    echo "controller.listener.names=CONTROLLER"
    echo "listeners=$listeners"
    echo "log.dirs=$dirs"
    case $voters in
        bootstrap:*) echo "controller.quorum.bootstrap.servers=${voters#bootstrap:}" ;;
        *) echo "controller.quorum.voters=$voters" ;;
    esac
    echo "offsets.topic.replication.factor=1"
    echo "log.index.size.max.bytes=4096"
    echo "broker.session.timeout.ms=6000"
    # A broker on a busy machine may take longer than the minute it is given to find its controllers.
    echo "initial.broker.registration.timeout.ms=300000"
    printf '%s\n' "$@"
}

start_node() { # NAME PROPERTIES: its log is NAME.log beside PROPERTIES
    local log
    log=$(dirname "$2")/$1.log
    : >"$log"
    java "${jvm[@]}" "-Dlog4j2.configurationFile=$work/server.log4j.properties" -cp "$classpath" kafka.Kafka "$2" >>"$log" 2>&1 </dev/null &
    node_pid[$1]=$!
    where=$log
}

wait_log() { # NAME LOG PATTERN SECONDS: sets why
    local i
    for ((i = 0; i < $4 * 5; i++)); do
        grep -qE "$3" "$2" 2>/dev/null && return 0
        if ! kill -0 "${node_pid[$1]}" 2>/dev/null; then
            grep -qE "$3" "$2" && return 0
            why="node $1 ended before '$3': $(last_error "$2")"
            return 1
        fi
        sleep 0.2
    done
    why="node $1 did not reach '$3' in $4 s: $(last_error "$2")"
    return 1
}

wait_started() { # NAME LOG
    wait_log "$1" "$2" 'Kafka Server started' 90
}

wait_active() { # NAME LOG
    wait_log "$1" "$2" 'QuorumController id=[0-9]+\] Activated periodic tasks' 90 && wait_started "$1" "$2"
}

last_error() { # LOG: the last lines that look like a cause
    grep -E ' (ERROR|FATAL) |^Exception|^Caused by|Exception:' "$1" | tail -3 | cut -c1-400 | tr '\n' '|'
}

no_faults() { # LOG: Kafka survives some faults, a round trip does not
    if grep -qE 'fatal fault|Encountered (fatal|nonFatal|metadata loading|metadata publishing|quorum controller) fault' "$1"; then
        why="faults in Kafka's log: $(last_error "$1")"
        return 1
    fi
}

stop_node() { # NAME: in order
    local pid=${node_pid[$1]:-} i code
    [ -n "$pid" ] || return 0
    kill "$pid" 2>/dev/null
    for ((i = 0; i < 300; i++)); do
        if ! kill -0 "$pid" 2>/dev/null; then
            wait "$pid" 2>/dev/null
            code=$?
            unset "node_pid[$1]"
            [ "$code" -eq 143 ] || [ "$code" -eq 0 ] && return 0
            why="node $1 stopped with status $code"
            return 1
        fi
        sleep 0.2
    done
    kill_node "$1"
    why="node $1 did not stop in 60 s"
    return 1
}

kill_node() { # NAME: kill -9
    local pid=${node_pid[$1]:-}
    [ -n "$pid" ] || return 0
    kill -9 "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
    unset "node_pid[$1]"
}

stop_all() { # what is left after a failure or an interrupt: only what this run started
    local name
    for name in "${!node_pid[@]}"; do kill_node "$name"; done
    release_directory
}
