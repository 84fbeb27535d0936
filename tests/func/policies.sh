#!/bin/bash
# SPDX-License-Identifier: MIT
# Every path policy carries a verified load over real sockets, on the paths it is meant to use; and
# EqualLogic's session limits open fewer of them.
. "$(dirname "$0")/lib.sh"
require jq

members=group.pools.default.members
cat >"$WORK/lab.yaml" <<END
name: policies
group:
  portal: 127.0.0.1:3260
  pools:
    - name: default
      members:
        - {name: m1, drives: {count: 2, size: 512MiB}, raid: raid10, timing: none, portals: [127.0.0.1:3261, 127.0.0.1:3262]}
        - {name: m2, drives: {count: 2, size: 512MiB}, raid: raid10, timing: none, portals: [127.0.0.1:3263, 127.0.0.1:3264]}
  volumes: [{name: db1, size: 64MiB, thin: false}, {name: db2, size: 64MiB, thin: false}]
hosts:
  - name: h1
    volumes: [db1, db2]
    mpio: {preferred-path: 3, primary-paths: [1, 2], weights: [5, 1, 1, 9], throughput: [1, 2, 3, 0]}
workload: {type: exchange, mailboxes: 2000, iops-per-mailbox: 0.2, prefill: 4MiB, log-size: 8MiB}
run: {warmup: 0s, duration: 500ms, interval: 250ms}
expect: [{data-mismatches: 0}, {io-errors: 0}, {achieved-iops: ">= 20%"}]
END

run() { # SET...: a run's paths as lines "VOLUME INDEX IOS"
	local sets=() set
	for set in "$@" "group.portal=127.0.0.1:$(free_port)" \
		"$members.m1.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]" \
		"$members.m2.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]"; do
		sets+=(--set "$set")
	done
	rm -rf "$WORK/out"
	run_passes "$WORK/run.txt" "$WORK/lab.yaml" "${sets[@]}" --out "$WORK/out" ||
		fail "$*: $(cat "$WORK/run.txt")"
	jq -r '.paths[] | "\(.volume) \(.index) \(.ios)"' "$WORK/out/run.json" >"$WORK/paths" || fail "$*: no paths in run.json"
}
# HOW: `on`, these paths of each volume and no others; `in`, no others.
uses() { # POLICY HOW PATH...
	local policy=$1 how=$2 used
	shift 2
	used=$(awk '$3 { print $2 }' "$WORK/paths" | sort -un)
	if grep -vxqF "$(printf '%s\n' "$@")" <<<"$used" || { [ "$how" = on ] && [ "$(wc -l <<<"$used")" -ne $# ]; }; then
		fail "$policy uses the paths $(tr '\n' ' ' <<<"$used"), not $*: $(cat "$WORK/paths")"
	fi
}

while read -r policy how paths; do
	run "hosts.h1.mpio.policy=$policy"
	# shellcheck disable=SC2086
	uses "$policy" "$how" $paths
done <<END
round-robin on 0 1 2 3
failover-only on 3
round-robin-subset on 1 2
least-queue-depth on 0 1 2 3
weighted-paths on 1 2
least-blocks on 0 1 2 3
service-time in 0 1 2
historical-service-time on 0 1 2 3
slice-aware on 0 1 2 3
END

run "hosts.h1.mpio={sessions-per-slice: 1}"
[ "$(wc -l <"$WORK/paths")" -eq 4 ] || fail "not two sessions a volume: $(cat "$WORK/paths")"
