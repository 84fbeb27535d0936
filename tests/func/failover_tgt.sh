#!/bin/bash
# SPDX-License-Identifier: MIT
# scripts/labs/failover-your-array.yaml against somebody else's target: Debian's tgtd under RST, a black
# hole, a hung peer and a slow path, none of which it knows of.  Then writes that arrive late there.
. "$(dirname "$0")/lib.sh"

require tgtd
require tgtadm
[ "$(id -u)" -eq 0 ] || skip "tgtd needs root"

start_tgtd "$WORK/disk" 256M
url=iscsi://127.0.0.1:$TGT_PORT/$TGT_IQN/1
lab=$LABS/failover-your-array.yaml

# Limits of time are not judged here: sanitizers, and a machine that does other things.
passes() { # OUT ARGS...
	local out=$1 status=0
	shift
	timeout 120 "$SANLAB" run "$lab" --set "hosts.h1.luns.lun0.urls=[$url, $url]" --out "$out" "$@" \
		>"$out.txt" 2>&1 || status=$?
	[ "$status" -ne 0 ] || return 0
	[ "$status" -eq 1 ] && grep -q '^  FAIL ' "$out.txt" &&
		! grep '^  FAIL ' "$out.txt" | grep -Eqv 'longest gap|longest of|achieved .* of'
}
losses_by() { grep '"t":"failover"' "$1/events.jsonl" | grep -c '"milestone":"lost"'; }

passes "$WORK/out" --set run.duration=13s --set 'faults=[
	{at: 1s, path-reset: {host: h1, path: 0}},
	{at: 3s, black-hole: {host: h1, path: 1}, for: 3s},
	{at: 8s, half-open: {host: h1, path: 0}, for: 2s},
	{at: 11500ms, path-slow: {host: h1, path: 1, delay: 5ms, jitter: 2ms, loss: 0.5%}, for: 1s}]' ||
	fail "failover against tgtd: $(cat "$WORK/out.txt")"
[ "$(losses_by "$WORK/out")" -ge 3 ] || fail "not three paths were lost: $(cat "$WORK/out.txt")"
grep -q 'found by keep-alive' "$WORK/out.txt" || fail "no silence was found: $(cat "$WORK/out.txt")"

# A path's writes arrive 3 s late, when the same blocks have been written anew: with the fence nothing is
# lost, without it newer writes are, or this would prove nothing.
# (The path logs in again only after that: a login makes tgtd end the old session, late writes and all.)
late=(--set run.duration=7s --set workload.span=2MiB --set workload.rate=1000 --set hosts.h1.mpio.reconnect-min=4s
	--set hosts.h1.mpio.reconnect-max=4s
	--set 'faults=[{at: 1s, path-hold: {host: h1, path: 0}, for: 3s}]'
	--set 'expect=[{data-mismatches: 0}, {io-errors: 0}]')
passes "$WORK/late" "${late[@]}" || fail "late writes at tgtd: $(cat "$WORK/late.txt")"
[ "$(losses_by "$WORK/late")" -ge 1 ] || fail "no path was lost: $(cat "$WORK/late.txt")"
passes "$WORK/unfenced" "${late[@]}" --set hosts.h1.mpio.fence=none &&
	fail "without a fence nothing was lost: $(cat "$WORK/unfenced.txt")"
grep -q '^  FAIL  [1-9][0-9]* of [0-9]* pages read held wrong data' "$WORK/unfenced.txt" ||
	fail "another failure: $(cat "$WORK/unfenced.txt")"
