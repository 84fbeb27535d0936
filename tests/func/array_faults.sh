#!/bin/bash
# SPDX-License-Identifier: MIT
# A drive with a spare fails under load, a controller dies, a drive gets slow, a scrub runs: no error, no
# mismatch, the rebuild finished; and the faults stand in events, report and status.
. "$(dirname "$0")/lib.sh"

quickstart_ports
run_passes "$WORK/run.txt" "$LABS/array-faults.yaml" "${PORT_SETS[@]}" --out "$WORK/out" \
	--set run.warmup=1s --set run.duration=12s --set workload.mailboxes=500 --set workload.prefill=16MiB \
	--set 'faults=[{at: 500ms, drive-fail: {member: m1, drive: 3}},
		{at: 4s, controller-failover: {member: m1}, for: 3s},
		{at: 5s, drive-slow: {member: m2, drive: 0, extra: 2ms}, for: 1s},
		{at: 5s, drive-latent: {member: m2, drive: 5, rate: 2%}, for: 1s},
		{at: 5s, battery-lost: {member: m2}, for: 2s}, {at: 8s, scrub: {member: m2}}]' \
	--set 'expect=[{data-mismatches: 0}, {io-errors: 0}, {rebuild: finished}, {scrub: finished}]' ||
	fail "the run failed: $(cat "$WORK/run.txt")"
grep -q 'PASS  rebuilds: 1 finished' "$WORK/run.txt" || fail "no verdict on the rebuild: $(cat "$WORK/run.txt")"
grep -q 'PASS  scrubs: 1 finished' "$WORK/run.txt" || fail "no verdict on the scrub: $(cat "$WORK/run.txt")"
for kind in drive-fail controller-failover drive-slow drive-latent battery-lost scrub; do
	grep '"t":"fault"' "$WORK/out/events.jsonl" | grep -q "\"fault\":\"$kind\"" || fail "no event of $kind"
	grep -q "$kind begins" "$WORK/out/report.html" || fail "no marker of $kind in the report"
done
grep '"fault":"drive-fail"' "$WORK/out/events.jsonl" | grep -q '"member":"m1".*"drive":3' ||
	fail "the event does not name the drive"
grep -q '"failure"' "$WORK/out/events.jsonl" && fail "a fault was not carried out: $(grep failure "$WORK/out/events.jsonl")"
python3 - "$WORK/out/run.json" <<'PY' || fail "the target's last status does not tell what happened"
import json, sys
members = {m["member"]: m for m in json.load(open(sys.argv[1]))["target"]["members"]}
drive = members["m1"]["drives"][3]
assert drive["state"] == "failed", drive["state"]
assert members["m1"]["raid_state"] == "healthy"
assert members["m1"]["failovers"] == 1
assert members["m2"]["scrub"]["completed"] == 1
PY

# The same by hand: what the administrator sees.
control=$WORK/control
quickstart_ports
start_target "$LABS/array-faults.yaml" "${PORT_SETS[@]}" --control "$control"
ctl() { "$SANLAB" ctl "$control" "$@"; }
says() { ctl status | grep -Eq "$1"; }
ctl drive-fail member=m2 drive=7 >/dev/null || fail "drive-fail"
says '^m2 +(degraded|rebuilding)' || fail "m2 is not degraded: $(ctl status)"
says '^  drive 7 +failed' || fail "the drive does not say failed: $(ctl status)"
wait_for 20 says '^m2 +healthy' || fail "no spare has taken over: $(ctl status)"
ctl drive-return member=m2 drive=7 >/dev/null || fail "drive-return"
wait_for 20 says '^  drive 7 +spare' || fail "the drive does not become a spare: $(ctl status)"
ctl drive-slow member=m1 drive=2 extra=5ms >/dev/null || fail "drive-slow"
says '^  drive 2 +online, slow' || fail "nobody sees that the drive is slow: $(ctl status)"
ctl drive-heal member=m1 drive=2 >/dev/null || fail "drive-heal"
says '^  drive 2 ' && fail "the drive is still slow"
ctl battery-lost member=m1 >/dev/null || fail "battery-lost"
says '^  cache +write-through \(battery lost\)' || fail "the cache does not write through: $(ctl status)"
ctl battery-ok member=m1 >/dev/null || fail "battery-ok"
says '^  cache +write-back,' || fail "the cache does not write back: $(ctl status)"
ctl controller-fail member=m1 controller=1 >/dev/null
says '^  cache +write-through \(mirror lost\)' || fail "without a mirror the cache does not write through: $(ctl status)"
ctl controller-return member=m1 >/dev/null
ctl scrub-start member=m1 >/dev/null || fail "scrub-start"
wait_for 20 says 'scrub +the last one' || fail "the scrub does not end: $(ctl status)"
for words in "drive-slow member=m1 drive=2 factor=0.5" "drive-latent member=m1 drive=1" \
	"drive-corrupt member=m1 drive=1 offset=9TiB" "drive-latent member=m1 drive=1 rate=200%"; do
	# shellcheck disable=SC2086
	ctl $words >"$WORK/refused" 2>&1 && fail "carried out: $words"
done
stop_target
