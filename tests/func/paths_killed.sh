#!/bin/bash
# SPDX-License-Identifier: MIT
# One path killed by a TCP reset from the target costs no error and no mismatch, and the report names
# time and path; with all paths killed the run ends by itself, exit 1, documents complete.
. "$(dirname "$0")/lib.sh"

short=(--set run.warmup=1s --set run.duration=6s --set workload.mailboxes=2000)

quickstart_ports
run_passes "$WORK/one.txt" "$LABS/quickstart.yaml" "${PORT_SETS[@]}" "${short[@]}" \
	--set 'faults=[{at: 2s, path-down: {host: mbx1, path: 2}, for: 2s}]' \
	--out "$WORK/one" || fail "one path killed: $(cat "$WORK/one.txt")"
grep -q "127.0.0.1:$M2_PORT_A" "$WORK/one.txt" || fail "the summary does not name the path"
grep '"t":"fault"' "$WORK/one/events.jsonl" >/dev/null || fail "no fault event"
grep '"t":"path"' "$WORK/one/events.jsonl" | grep -q "127.0.0.1:$M2_PORT_A" || fail "no path event names the portal"
grep -q 'reissued' "$WORK/one/run.json" || fail "run.json has no re-issue counts"

quickstart_ports
status=0
timeout 120 "$SANLAB" run "$LABS/quickstart.yaml" "${PORT_SETS[@]}" "${short[@]}" \
	--set hosts.mbx1.mpio.no-path=1s \
	--set 'faults=[{at: 2s, all-paths-down: {host: mbx1}}]' \
	--out "$WORK/all" >"$WORK/all.txt" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "all paths killed: exit $status, not 1: $(tail -20 "$WORK/all.txt")"
tail -c 3 "$WORK/all/run.json" | grep -q '}' || fail "run.json is not closed"
"$SANLAB" report "$WORK/all" >/dev/null
[ $? -eq 1 ] || fail "run.json of the failed run does not load"
tail -n 1 "$WORK/all/events.jsonl" | grep -q '"t":"end"' || fail "no end event"
