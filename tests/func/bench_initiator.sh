#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts/bench-initiator runs through and its answer is whole; how fast it is does not matter here.
# $SANLAB_BOUND may name the source of an upper-bound responder; else sanlab's own target answers.
. "$(dirname "$0")/lib.sh"
for program in iscsi-perf jq; do require "$program"; done
[ -x "$(dirname "$SANLAB")/tests/bench/mpio_cost" ] || skip 'mpio_cost is not built'

bound=()
[ -z "${SANLAB_BOUND:-}" ] || bound=(--bound "$SANLAB_BOUND")
"$TESTS/../scripts/bench-initiator" --rounds 1 --seconds 0.3 --threads 1,64 --json "${bound[@]}" \
	>"$WORK/result.json" 2>"$WORK/err" || fail "it left with $?: $(cat "$WORK/err")"
jq -e '
	def of(row): [.results[] | select(.row == row)];
	.schema == "sanlab/bench-initiator/1" and .rounds == 1 and .cores >= 1
	and (of("one") | length == 2 and all(.iops > 0) and (.[1].ratio > 0))
	and (of("paths") | length == 2 and all(.iops > 0) and (.[1].goal == 0.95))
	and (of("threads") | length == 2 and (.[0].iops > 0))
	and (of("cost") | length >= 2 and all(.ns != null))' "$WORK/result.json" >/dev/null ||
	fail "not the answer: $(cat "$WORK/result.json")"

# Two threads have sessions of their own, and all I/O of both is counted.
start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)"
url=iscsi://$TARGET_PORTAL/iqn.2026-11.test.sanlab:raw/0
"$SANLAB" bench "$url" "$url" --threads 2 --qd 4 --time 300ms --json >"$WORK/bench.json" ||
	fail "bench with two threads: exit $?"
jq -e '.threads == 2 and (.paths | length == 4 and all(.ios > 0 and .losses == 0 and .state == "up"))
	and .errors == 0 and .ios > 0 and (([.paths[].ios] | add) >= .ios)' "$WORK/bench.json" >/dev/null ||
	fail "two threads: $(cat "$WORK/bench.json")"
stop_target
