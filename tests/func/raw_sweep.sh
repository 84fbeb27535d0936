#!/bin/bash
# SPDX-License-Identifier: MIT
# A sweep gives a curve: run.json, curve.csv, the terminal, report.html, and expectations of steps.
. "$(dirname "$0")/lib.sh"

LAB=$LABS/raw-sweep.yaml
"$SANLAB" run --virtual "$LAB" --out "$WORK/one" >"$WORK/one.log" 2>&1 || fail "the sweep: $(cat "$WORK/one.log")"
grep -q 'Latency over throughput' "$WORK/one.log" || fail "no table: $(cat "$WORK/one.log")"
grep -q 'id="curve"' "$WORK/one/report.html" || fail "no chart in report.html"
python3 - "$WORK/one" <<-'END' || fail "run.json or curve.csv is wrong"
	import csv, json, sys
	curve = json.load(open(sys.argv[1] + "/run.json"))["curve"]
	assert curve["by"] == "queue-depth"
	steps = curve["steps"]
	assert [step["level"] for step in steps] == [1, 2, 4, 8, 16, 32, 64]
	pairs = list(zip(steps, steps[1:]))
	assert all(after["iops"] > before["iops"] for before, after in pairs), "deeper queues let drives choose"
	assert all(after["mean_ns"] > before["mean_ns"] for before, after in pairs), "and I/Os wait"
	share = sum(s["reads"]["ios"] for s in steps) / sum(s["ios"] for s in steps)
	assert abs(share - 0.7) < 0.01, share
	mean = sum(s["bytes"] for s in steps) / sum(s["ios"] for s in steps)
	assert abs(mean / (0.6 * 8192 + 0.4 * 65536) - 1) < 0.02, mean
	rows = list(csv.DictReader(open(sys.argv[1] + "/curve.csv")))
	assert len(rows) == 7 and rows[3]["depth"] == "8", rows[3]
	assert int(rows[3]["p99_ns"]) == steps[3]["p99_ns"]
END

# A finished run has its curve still.
"$SANLAB" report "$WORK/one" >"$WORK/again.log" || fail "it cannot be read again"
grep -q 'Latency over throughput' "$WORK/again.log" || fail "the curve is lost"

# Rates, in real time and verified, without modelled drives.
quickstart_ports
"$SANLAB" run "$LAB" "${PORT_SETS[@]:0:2}" --out "$WORK/rates" --set "group.pools.default.members.array.portals=[127.0.0.1:$M1_PORT_A]" \
	--set group.pools.default.members.array.timing=none --set group.pools.default.members.array.store=memory \
	--set group.volumes.lun1.size=64MiB --set workload.content=verified --set workload.sweep.depths=[] \
	--set 'workload.sweep.rates=[100, 300]' --set workload.sweep.settle=500ms --set workload.sweep.time=1s --set run.warmup=0s \
	--set 'expect=[{io-errors: 0}, {data-mismatches: 0}, {p50-latency: "< 1s", step: 300, stream: write}]' \
	>"$WORK/rates.log" 2>&1 || fail "rates: $(cat "$WORK/rates.log")"
python3 - "$WORK/rates" <<-'END' || fail "the rates are wrong: $(cat "$WORK/rates.log")"
	import json, sys
	run = json.load(open(sys.argv[1] + "/run.json"))
	steps = run["curve"]["steps"]
	assert [step["level"] for step in steps] == [100, 300]
	assert run["data_check"]["pages_read_back"] > 0
END

# What does not fit is refused; a step's limit that is broken fails.
status=0
"$SANLAB" run --virtual --quiet "$LAB" --out "$WORK/limit" --set 'expect=[{p99-latency: "< 1us", step: 8}]' || status=$?
[ "$status" -eq 1 ] || fail "a broken limit of a step gives $status"
grep -q 'p99-latency of step 8' "$WORK/limit/summary.txt" || fail "$(cat "$WORK/limit/summary.txt")"
for set in 'workload.sweep.rates=[10]' 'workload.block-sizes={8KiB: 60%}' 'workload.block-sizes={8KiB: 60%, 1000: 40%}' \
	'workload.rate=5' 'expect=[{io-errors: 0, step: 3}]'; do
	"$SANLAB" check "$LAB" --set "$set" >"$WORK/check.log" 2>&1 && fail "$set is taken"
	grep -q 'raw-sweep.yaml\|--set' "$WORK/check.log" || fail "$set: $(cat "$WORK/check.log")"
done
exit 0
