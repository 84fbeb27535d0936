#!/bin/bash
# SPDX-License-Identifier: MIT
# How runs end and where they write: a hang-up ends one in order, an answer that cannot be written is
# no success, and a directory belongs to one run at a time.
. "$(dirname "$0")/lib.sh"

short=(--set run.warmup=1s --set run.duration=60s --set workload.mailboxes=500 --set workload.prefill=8MiB)
events() { grep -c '"t":"interval"' "$1/events.jsonl" 2>/dev/null; }
has_samples() { [ "$(events "$1")" -ge 2 ]; }

# Old results go when a run begins, other files stay.
mkdir -p "$WORK/out"
echo old >"$WORK/out/latency-older.hgrm"
echo old >"$WORK/out/summary.txt"
echo mine >"$WORK/out/notes.txt"
quickstart_ports
"$SANLAB" run "$LABS/quickstart.yaml" "${PORT_SETS[@]}" "${short[@]}" --out "$WORK/out" >"$WORK/first.txt" 2>&1 &
run=$!
on_exit end_process "$run"
wait_for 30 has_samples "$WORK/out" || fail "the run does not begin: $(cat "$WORK/first.txt")"
[ ! -e "$WORK/out/latency-older.hgrm" ] || fail "a result of an earlier run is still there"
[ ! -e "$WORK/out/summary.txt" ] || fail "the summary of an earlier run is still there"
grep -q mine "$WORK/out/notes.txt" || fail "a file that is no result is gone"

# A second run into the same directory is refused, and the first one named.
status=0
"$SANLAB" run "$LABS/quickstart.yaml" --out "$WORK/out" >"$WORK/second.txt" 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "a second run into the directory: exit $status, not 3: $(cat "$WORK/second.txt")"
grep -q "process $run" "$WORK/second.txt" || fail "the holder is not named: $(cat "$WORK/second.txt")"
status=0
"$SANLAB" report "$WORK/out" >"$WORK/second.txt" 2>&1 || status=$?
[ "$status" -eq 3 ] || fail "a report of a run that goes on: exit $status, not 3: $(cat "$WORK/second.txt")"

# SIGHUP ends in order: report written, the target gone.
target=$(pgrep -P "$run" | head -n 1)
kill -HUP "$run"
status=0
wait "$run" || status=$?
[ "$status" -eq 1 ] || fail "after SIGHUP: exit $status, not 1: $(tail -5 "$WORK/first.txt")"
for file in run.json summary.txt junit.xml report.html; do
	[ -s "$WORK/out/$file" ] || fail "after SIGHUP there is no $file"
done
grep -q 'SIGHUP' "$WORK/out/run.json" || grep -q 'stopped early' "$WORK/out/summary.txt" ||
	fail "the report does not say that the run was stopped: $(head -20 "$WORK/out/summary.txt")"
[ -z "$target" ] || process_gone "$target" || fail "the target of the run is still there"
ls -a "$WORK/out" | grep -q '\.lock' && fail "a lock file was left: $(ls -a "$WORK/out")"

# A second signal aborts at once, also with I/O in flight that nobody answers.
has_fault() { grep -q '"t":"fault"' "$WORK/abort/events.jsonl"; }
members=group.pools.default.members
"$SANLAB" run "$LABS/failover-black-hole.yaml" --set "group.portal=127.0.0.1:$(free_port)" \
	--set "$members.m1.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]" \
	--set "$members.m2.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]" \
	--set 'faults=[{at: 500ms, black-hole: {host: h1}}]' --out "$WORK/abort" >"$WORK/abort.txt" 2>&1 &
run=$!
on_exit end_process "$run"
wait_for 30 has_fault || fail "the fault does not begin: $(cat "$WORK/abort.txt")"
stopping() { grep -q '"t":"interrupt"' "$WORK/abort/events.jsonl"; }
kill -INT "$run"
wait_for 10 stopping || fail "the first signal does nothing: $(cat "$WORK/abort.txt")"
kill -INT "$run"
status=0
wait "$run" || status=$?
[ "$status" -eq 1 ] && grep -q aborted "$WORK/abort.txt" ||
	fail "after a second signal: exit $status, not 1: $(cat "$WORK/abort.txt")"

# ... and `sanlab target`.
start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)"
kill -HUP "$TARGET_PID"
wait_for 20 process_gone "$TARGET_PID" || fail "the target does not end on SIGHUP"
wait "$TARGET_PID" || fail "after SIGHUP the target left with $?"

# Standard output that takes nothing.
for words in "--version" "--help" "check $LABS/raw.yaml" "check --reference"; do
	status=0
	# shellcheck disable=SC2086
	"$SANLAB" $words >/dev/full 2>"$WORK/err" || status=$?
	[ "$status" -eq 3 ] || fail "sanlab $words > /dev/full: exit $status, not 3"
	grep -q 'standard output' "$WORK/err" || fail "sanlab $words > /dev/full says: $(cat "$WORK/err")"
done

# What run would refuse, check refuses: sizes against the volume.
status=0
"$SANLAB" check "$LABS/quickstart.yaml" --set workload.prefill=4GiB >"$WORK/out.txt" 2>"$WORK/err" || status=$?
[ "$status" -eq 2 ] || fail "check of a prefill larger than the volume: exit $status"
grep -q 'quickstart.yaml:[0-9]*:[0-9]*: volume db1' "$WORK/err" || fail "no place is named: $(cat "$WORK/err")"
