#!/bin/bash
# SPDX-License-Identifier: MIT
# The main job, shortened: passes, leaves every result, spreads the I/O evenly over the four paths,
# and the target's own counters agree with the initiator's ledger.
. "$(dirname "$0")/lib.sh"

quickstart_ports
out=$WORK/out
run_passes "$WORK/summary" "$LABS/quickstart.yaml" "${PORT_SETS[@]}" \
	--set run.warmup=1s --set run.duration=6s --out "$out" ||
	fail "run failed: $(cat "$WORK/summary")"
for file in run.json events.jsonl summary.txt junit.xml report.html metrics.prom config.effective.yaml; do
	[ -s "$out/$file" ] || fail "no $file"
done
grep -q PASS "$WORK/summary" || fail "the summary does not say PASS"
"$SANLAB" check "$out/config.effective.yaml" >/dev/null || fail "the effective configuration does not load"

for path in 0 1 2 3; do
	share=$(awk -v path="$path" '/^sanlab_path_ios_total/ && index($0, "path=\"" path "\"") { n += $NF }
		/^sanlab_path_ios_total/ { all += $NF } END { printf "%.2f", all ? 100 * n / all : 0 }' "$out/metrics.prom")
	awk -v s="$share" 'BEGIN { exit !(s >= 24 && s <= 26) }' || fail "path $path carries $share %, not 25 +- 1 %"
done
grep -q 'ledger' "$out/junit.xml" || fail "no verdict compares ledger and target"
status=0 # 1: the run's own verdict
"$SANLAB" report "$out" >/dev/null || status=$?
[ "$status" -le 1 ] || fail "the run cannot be rendered again: exit $status"
