#!/bin/bash
# SPDX-License-Identifier: MIT
# The course of a day, of both engines: a day of four minutes in virtual time.  The load is that of the
# hours it is in, the plan is what the day asks for, and it is met.
. "$(dirname "$0")/lib.sh"

run() { # LAB DIR ARGS...
	local lab=$1 dir=$2 status=0
	shift 2
	"$SANLAB" run --virtual --quiet "$LABS/$lab" --out "$dir" --set virtual.network=none \
		--set run.duration=4m --set run.warmup=0s --set run.interval=10s "$@" >"$dir.log" 2>&1 || status=$?
	[ "$status" -eq 0 ] || fail "$lab: exit status $status: $(cat "$dir.log" "$dir/summary.txt")"
}
load='type: exchange, profile: exchange-2013, mailboxes: 1000, messages: 250'
day='day: {shape: office, length: 4m}'
run quickstart.yaml "$WORK/streams" --set "workload={$load, $day}" --set 'expect=[{io-errors: 0}]'
run exchange-ese.yaml "$WORK/ese" --set "workload={$load, $day, engine: ese, loop: open, initial-size: 64MiB,
	cache-min: 4MiB, cache-max: 16MiB, warm-up: {cache: 0%}}"

require python3
python3 - "$WORK/streams" "$WORK/ese" <<'END' || fail 'the load does not follow the day'
import json, sys
for directory in sys.argv[1:]:
    run = json.load(open(directory + '/run.json'))
    samples = run['samples']
    ios = [sum(s['ios'][i] for j, s in enumerate(samples['streams'])
               if run['streams'][j]['name'] in ('db-read', 'db-write'))
           for i in range(samples['count']) if samples['measured'][i]]
    # A sample is an hour.
    night, day = sum(ios[1:4]) / 3, sum(ios[9:12]) / 3
    if len(ios) < 23 or not day > 8 * night:
        sys.exit(f'{directory}: {night} by night, {day} by day: {ios}')
    mean = run['achieved']['transactional_iops'] / 168
    if not 0.35 < mean < 0.46:
        sys.exit(f'{directory}: {mean} of the busiest hour on average, not 0.41')
END
