#!/bin/bash
# SPDX-License-Identifier: MIT
# Somebody else's initiator under a fault timeline: `sanlab target --out` waits for its first I/O, plays
# the faults, and tells what the target saw.  Here `sanlab bench` stands for it, and then a client that
# has nothing of ours (iscsi-perf of libiscsi, when it is installed).
. "$(dirname "$0")/lib.sh"

first=$(free_port) second=$(free_port)
cat >"$WORK/lab.yaml" <<END
name: watched
group:
  style: lun
  portal: 127.0.0.1:$first
  pools:
    - name: default
      members:
        - {name: m1, drives: {model: sas-15k-600, count: 2, size: 64MiB}, raid: raid0,
           portals: [127.0.0.1:$second], store: memory, timing: none}
  volumes:
    - {name: vol0, pool: default, size: 64MiB}
workload: {type: foreign, wait: 60s, pause: 300ms}
run: {warmup: 200ms, duration: 3s}
faults:
  - {at: 500ms, portal-down: {portal: "127.0.0.1:$second"}, for: 1s}
expect:
  - {max-io-gap: "<= 20s"}
END
url() { echo "iscsi://127.0.0.1:$1/iqn.2026-11.test.sanlab:watched/0"; }
ready() { grep -q '^ready' "$WORK/watch.txt"; }
watch_begins() { # the run, with ARGS; sets WATCHER
	"$SANLAB" "$@" >"$WORK/watch.txt" 2>&1 &
	WATCHER=$!
	on_exit end_process "$WATCHER"
	wait_for 30 ready || fail "the target is not ready: $(cat "$WORK/watch.txt")"
}

# Our own client with two paths: one dies and comes back, and the report says so.
watch_begins target "$WORK/lab.yaml" --out "$WORK/out" --control "$WORK/control"
"$SANLAB" bench "$(url "$first")" "$(url "$second")" --qd 2 --time 8s >"$WORK/bench.txt" 2>&1 &
client=$!
on_exit end_process "$client"
logged_in() { "$SANLAB" ctl "$WORK/control" sessions | jq -e '.sessions | length >= 1'; }
wait_for 10 logged_in || fail "ctl does not tell the sessions: $("$SANLAB" ctl "$WORK/control" sessions 2>&1)"
wait "$WATCHER" || fail "the watched run left with $?: $(cat "$WORK/watch.txt")"
end_process "$client"
for sight in "login at 127.0.0.1:$first" "portal-down begins: 127.0.0.1:$second" \
	"ended at 127.0.0.1:$second: reset by the target" 'longest time without I/O as the target saw it'; do
	tr -s ' \n' '  ' <"$WORK/watch.txt" | grep -qF "$sight" || fail "'$sight' is not told: $(cat "$WORK/watch.txt")"
done
jq -e '.observed.devices[0] | .ios > 0 and (.paths | length) == 2' "$WORK/out/run.json" >/dev/null ||
	fail "run.json has no device with two paths: $(jq .observed "$WORK/out/run.json")"
"$SANLAB" report "$WORK/out" >"$WORK/again.txt" || fail "the report of a watched run cannot be rendered again"

# A client of somebody else's, through `sanlab run`; one path, no fault on it.
if command -v iscsi-perf >/dev/null; then
	watch_begins run "$WORK/lab.yaml" --set "faults=[]"
	iscsi-perf -i iqn.2026-11.test.peer:perf -t 8 "$(url "$first")" >"$WORK/perf.txt" 2>&1 &
	client=$!
	on_exit end_process "$client"
	wait "$WATCHER" || fail "the watched run left with $?: $(cat "$WORK/watch.txt")"
	end_process "$client"
	grep -q 'seen perf watched login' "$WORK/watch.txt" || fail "iscsi-perf was not seen: $(cat "$WORK/watch.txt")"
fi

# Nobody comes: said in time, and no success.
status=0
"$SANLAB" target "$WORK/lab.yaml" --out "$WORK/none" --set workload.wait=1s >"$WORK/none.txt" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "without any initiator: exit $status, not 1: $(cat "$WORK/none.txt")"

# It needs a group to come to.
printf 'name: x\nhosts: [{name: h, luns: [{name: v, urls: ["%s"]}]}]\nworkload: {type: foreign}\n' "$(url "$first")" >"$WORK/bad.yaml"
status=0
"$SANLAB" run "$WORK/bad.yaml" >"$WORK/bad.txt" 2>&1 || status=$?
[ "$status" -eq 2 ] && grep -q '^hint' "$WORK/bad.txt" || fail "hosts with a foreign workload: exit $status: $(cat "$WORK/bad.txt")"
