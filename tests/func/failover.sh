#!/bin/bash
# SPDX-License-Identifier: MIT
# Every scripts/labs/failover-*.yaml passes, four at a time: no error, no mismatch, and its faults were
# carried out.  Figures of time are told, not judged: this runs with sanitizers, beside other things.
#
#   ONLY="reset mtu" REPEAT=50 FIRST=1 failover.sh      some of them, so many times, with these seeds; medians
#   STRICT=1                                            the labs' limits of time count as well
. "$(dirname "$0")/lib.sh"

repeat=${REPEAT:-1} first=${FIRST:-1} at_once=${AT_ONCE:-4} strict=${STRICT:-}
all='reset black-hole member controller flaps no-path target-crash alua-storm half-open late-writes mtu digest random'
read -ra names <<<"${ONLY:-$all}"

# The ports of a lab, as free ones, and its store: in `sets`.
port_sets() { # LAB
	local members=group.pools.default.members
	sets=(--set "group.portal=127.0.0.1:$(free_port)")
	case $1 in
	controller | alua-storm)
		sets+=(--set "$members.array.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]")
		;;
	*)
		sets+=(--set "$members.m1.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]")
		[ "$1" = target-crash ] ||
			sets+=(--set "$members.m2.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]")
		;;
	esac
	[ "$1" != target-crash ] || sets+=(--set "$members.m1.store.file=$WORK/store-$RANDOM$RANDOM")
}

# One line a run: the largest gap, the longest failover and failback in ms, or why it failed.
figures() { # OUT
	python3 - "$1/run.json" <<-'END'
		import json, sys
		run = json.load(open(sys.argv[1]))
		gap = max(s["max_gap_ns"] for s in run["streams"])
		def longest(start, ends):
		    times = [0]
		    for f in run["failovers"]:
		        end = next((f[e] for e in ends if f.get(e)), None)
		        if f.get(start) and end:
		            times.append(max(0, end - f[start]))
		    return max(times)
		over = longest("fault_ns", ["first_success_ns"])
		back = longest("fault_end_ns", ["first_io_ns", "up_again_ns"])
		print("%.1f %.1f %.1f %d" % (gap / 1e6, over / 1e6, back / 1e6, len(run["failovers"])))
	END
}

# What must hold whatever the machine is doing: all but limits of time.
is_about_time() { grep -E '^  FAIL ' "$1" | grep -Eqv 'average .* latency|longest gap|longest of|-latency at worst|achieved .* of'; }

run_lab() { # LAB NUMBER
	local name=$1 out=$WORK/$1-$2 status=0
	timeout 120 "$SANLAB" run "$LABS/failover-$name.yaml" "${sets[@]}" --out "$out" --quiet \
		--seed "$2" >"$out.log" 2>&1 || status=$?
	cp "$out/summary.txt" "$out.txt" 2>/dev/null || true
	if [ "$status" -eq 1 ] && [ -z "$strict" ] && [ -s "$out.txt" ] && ! is_about_time "$out.txt"; then
		status=0
	fi
	if [ "$status" -ne 0 ]; then
		echo "failed $name: exit $status (seed $2)" >>"$WORK/failed"
		cat "$out.log" "$out.txt" >>"$WORK/failed.log" 2>/dev/null
		cp "$out/events.jsonl" "$WORK/events-$name-$2" 2>/dev/null
	else
		figures "$out" >>"$WORK/figures-$name"
		grep -q '"t":"fault"' "$out/events.jsonl" || echo "failed $name: no fault" >>"$WORK/failed"
	fi
	rm -rf "$out"
}

median() { sort -g | awk '{ v[NR] = $1 } END { if (NR) print v[int((NR + 1) / 2)] }'; }

: >"$WORK/failed"
for ((number = first; number < first + repeat; number++)); do
	for name in "${names[@]}"; do
		while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
		port_sets "$name" # here: ports that are chosen at the same time could be the same
		run_lab "$name" "$number" &
	done
done
wait

# A test of the test: without the fence the late writes of that lab destroy newer ones.
unfenced() {
	local status=0
	port_sets late-writes
	timeout 120 "$SANLAB" run "$LABS/failover-late-writes.yaml" "${sets[@]}" --set hosts.h1.mpio.fence=none \
		>"$WORK/unfenced" 2>&1 || status=$?
	[ "$status" -eq 1 ] && grep -q '^  FAIL  [1-9][0-9]* of [0-9]* pages read held wrong data' "$WORK/unfenced"
}
[ -n "${ONLY-}" ] || unfenced || fail "without a fence nothing was lost: $(cat "$WORK/unfenced")"

# What a quiet machine is to reach; told, not judged.
declare -A goal=([reset]='100' [black-hole]='2000' [target-crash]='2000')
printf '%-14s %5s %12s %6s %14s %14s %8s\n' lab runs 'max gap ms' goal 'failover ms' 'failback ms' losses
for name in "${names[@]}"; do
	[ -f "$WORK/figures-$name" ] || continue
	column() { cut -d' ' -f"$1" "$WORK/figures-$name" | median; }
	printf '%-14s %5d %12s %6s %14s %14s %8s\n' "$name" "$(wc -l <"$WORK/figures-$name")" \
		"$(column 1)" "${goal[$name]:--}" "$(column 2)" "$(column 3)" "$(column 4)"
done
[ "$repeat" -eq 1 ] || echo "medians; machine: $(nproc) CPUs, load $(cut -d' ' -f1-3 /proc/loadavg)"
[ ! -s "$WORK/failed" ] || fail "$(cat "$WORK/failed" "$WORK/failed.log")"
