#!/bin/bash
# SPDX-License-Identifier: MIT
# Our initiator against somebody else's target: `sanlab bench` and a run whose lab has no group work
# against Debian's tgtd.
. "$(dirname "$0")/lib.sh"

require tgtd
require tgtadm
[ "$(id -u)" -eq 0 ] || skip "tgtd needs root"

start_tgtd "$WORK/disk" 256M
url=iscsi://127.0.0.1:$TGT_PORT/$TGT_IQN/1

"$SANLAB" bench "$url" --op read --bs 4k --qd 32 --time 1s --json >"$WORK/bench.json" ||
	fail "bench against tgtd: exit $?"
grep -q '"iops"' "$WORK/bench.json" || fail "no figure: $(cat "$WORK/bench.json")"
"$SANLAB" bench "$url" "$url" --op rw --bs 32k --qd 8 --time 1s >"$WORK/bench.txt" ||
	fail "bench over two paths: exit $?"

run_passes "$WORK/run.txt" "$LABS/existing-target.yaml" --set "hosts.0.luns.0.urls=[$url, $url]" \
	--set run.warmup=1s --set run.duration=4s --out "$WORK/out" ||
	fail "run against tgtd: $(cat "$WORK/run.txt")"
grep -q PASS "$WORK/run.txt" || fail "no PASS"
