#!/bin/bash
# SPDX-License-Identifier: MIT
# `sanlab run --virtual`: the lab unchanged, all reports and exit codes, equal seeds give equal files.
. "$(dirname "$0")/lib.sh"

LAB=$LABS/quickstart.yaml
run() { # DIR ARGS...
	local dir=$1
	shift
	"$SANLAB" run --virtual --quiet "$LAB" --out "$WORK/$dir" --set run.duration=5s "$@"
}

run one || fail "the quick start fails in virtual time: $(cat "$WORK/one/summary.txt")"
for file in run.json events.jsonl summary.txt junit.xml report.html metrics.prom config.effective.yaml; do
	[ -s "$WORK/one/$file" ] || fail "there is no $file"
done
run two || fail "the second run fails"
for file in "$WORK"/one/*; do
	cmp -s "$file" "$WORK/two/${file##*/}" || fail "${file##*/} differs between equal runs"
done
run other --seed 43 || fail "another seed fails"
cmp -s "$WORK/one/events.jsonl" "$WORK/other/events.jsonl" && fail "the seed changes nothing"
python3 - "$WORK" <<-'END' || fail "run.json is not what was wanted"
	import json, sys
	run = json.load(open(sys.argv[1] + "/one/run.json"))
	assert run["environment"]["clock"] == "virtual", run["environment"]
	assert len(run["paths"]) == 20, len(run["paths"])
	assert run["target"]["members"], "the target tells its status"
	ids = [verdict["id"] for verdict in run["verdicts"]]
	assert "target-ledger" in ids, ids
END

# A minute with modelled drives and without a network: no paths, equal loads.
members=group.pools.default.members
modelled=(--set virtual.network=none --set run.duration=1m --set "$members.m1.timing=modelled"
	--set "$members.m2.timing=modelled" --set 'expect=[{io-errors: 0}, {data-mismatches: 0}]')
run bare "${modelled[@]}" || fail "without a network: $(cat "$WORK/bare/summary.txt")"
run bare2 "${modelled[@]}" || fail "without a network, again"
cmp -s "$WORK/bare/run.json" "$WORK/bare2/run.json" || fail "run.json differs without a network"
python3 - "$WORK" <<-'END' || fail "run.json without a network is not what was wanted"
	import json, sys
	run = json.load(open(sys.argv[1] + "/bare/run.json"))
	assert run["paths"] == [], run["paths"]
	reads = [s for s in run["streams"] if s["name"] == "db-read"]
	assert all(s["response"]["mean_ns"] > 1e6 for s in reads), "drives take their time"
END

# Exit codes.
status=0
run slow --set 'expect=[{p50-latency: "< 1us"}]' || status=$?
[ "$status" -eq 1 ] || fail "a failed expectation gives $status"
grep -q '<failure' "$WORK/slow/junit.xml" || fail "junit.xml has no failure"
refused() { # WORDS ARGS...
	local words=$1
	shift
	status=0
	"$SANLAB" run --virtual "$@" >"$WORK/out" 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "$words: exit status $status"
	grep -q "$words" "$WORK/out" || fail "no word of '$words': $(cat "$WORK/out")"
}
path='faults=[{at: 1s, path-down: {host: mbx1, path: 2}, for: 1s}]'
refused 'no fault path-down without a network' "$LAB" --set virtual.network=none --set "$path"
refused 'no fault target-crash' "$LAB" --set 'faults=[{at: 1s, target-crash: {}, for: 1s}]' \
	--set "$members.m1.store={file: $WORK/m1}" --set "$members.m2.store={file: $WORK/m2}"
refused "only arrays of the lab's own" "$LABS/existing-target.yaml"

# The same fault over links, and one of the array without.
run path --set "$path" --set 'expect=[{io-errors: 0}]' || fail "a path goes down: $(cat "$WORK/path/summary.txt")"
grep -q '"milestone": *"lost"' "$WORK/path/events.jsonl" || fail "no path was lost"
run drive --set virtual.network=none --set 'expect=[{io-errors: 0}]' \
	--set 'faults=[{at: 1s, drive-fail: {member: m1, drive: 1}, for: 1s}]' ||
	fail "a drive fails: $(cat "$WORK/drive/summary.txt")"

# The first SIGINT ends in order.
"$SANLAB" run --virtual --quiet "$LAB" --out "$WORK/int" --set run.duration=24h &
pid=$!
on_exit end_process "$pid"
wait_for 60 grep -q '"phase": *"window"' "$WORK/int/events.jsonl" || fail "the long run does not begin"
kill -INT "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -le 1 ] || fail "an interrupted run gives $status"
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["interrupted"]' "$WORK/int/run.json" ||
	fail "the interrupted run has left no results"
