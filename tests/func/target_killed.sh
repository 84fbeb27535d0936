#!/bin/bash
# SPDX-License-Identifier: MIT
# Targets on file stores are killed under load (SIGKILL), again and again, while drives fail and return:
# each answered write is there after each start, an unanswered one is old or new, whole; in the end
# redundancy fits everywhere.  Two labs, so that every level with redundancy has its turn.
#
#   KILLS=200 SEED=7 target_killed.sh      more of them, another load
#   STORES=DIR target_killed.sh            where the stores are made
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-8} seed=${SEED:-$RANDOM}
control=$WORK/control
# In memory where there is such a place: more writes a second, and a kill does not tell the difference.
[ -n "${STORES-}" ] || STORES=$([ -w /dev/shm ] && echo /dev/shm || echo "$WORK")
stores=$(mktemp -d "$STORES/sanlab-killed.XXXXXX") || fail "no directory in $STORES"
on_exit rm -rf "$stores"
program=${TARGET_KILLED:-$(dirname "$SANLAB")/tests/killed/target_killed}
[ -x "$program" ] || fail "there is no $program"

member() { # NAME RAID DRIVES SPARES [KEY: VALUE]...
	cat <<-END
		        - name: $1
		          drives: {model: sas-15k-600, count: $3, spares: $4, size: 96MiB}
		          raid: $2
		          chunk: 64KiB
		          spare-delay: 100ms
		          rebuild-rate: 64MiB
		          store: {file: $place/$1}
	END
	shift 4
	[ $# -eq 0 ] || printf '          %s\n' "$@"
}
lab() { # NAME: its members follow
	cat <<-END
		name: $1
		group:
		  style: lun
		  portal: 127.0.0.1:$port
		  volumes:
		    - {name: v, pool: default, size: 90MiB, thin: true}
		  pools:
		    - name: default
		      members:
	END
}
single_parity() {
	lab single
	member m1 raid5 5 1 'cache: {size: 2MiB}'
	member m2 raid10 5 1 'checksums: false'
	member m3 raid50 7 1 'cache: {size: 4MiB}'
}
double_parity() {
	lab double
	member m1 raid6 7 1 'cache: {size: 2MiB}'
	member m2 adapt 12 0 'cache: {size: 4MiB}'
	member m3 raid60 9 1
}

# Everything is read once: what does not fit would be repaired, and counted.
scrub_of() { # MEMBER KEY
	"$SANLAB" ctl "$control" status --json | awk -v member="\"$1\"," -v key="\"$2\":" '
		$1 == "\"member\":" { here = $2 == member }
		here && $1 == "\"scrub\":" { inside = 1 }
		here && inside && $1 == key { gsub(/,/, "", $2); print $2; inside = 0 }'
}
scrubbed() { [ "$(scrub_of "$1" completed)" -ge 1 ]; }
scrub_all() { # LAB
	local member key checked=0
	for member in m1 m2 m3; do
		"$SANLAB" ctl "$control" rebuild-rate "member=$member" rate=0 >/dev/null || fail "rebuild-rate $member"
		"$SANLAB" ctl "$control" scrub-start "member=$member" >/dev/null || fail "scrub-start $member"
	done
	for member in m1 m2 m3; do
		wait_for 120 scrubbed "$member" || fail "$1: the scrub of $member does not end"
		for key in units_repaired units_inconsistent units_lost; do
			[ "$(scrub_of "$member" "$key")" = 0 ] ||
				fail "seed $seed: $1: scrub of $member: $key $(scrub_of "$member" "$key")"
		done
		checked=$((checked + $(scrub_of "$member" units_checked)))
	done
	[ "$checked" -gt 0 ] || fail "$1: nothing was checked" # one that was drained has nothing
}

echo "seed $seed"
for lab in single double; do
	port=$(free_port) place=$stores/$lab
	mkdir "$place"
	"${lab}_parity" >"$WORK/$lab.yaml"
	pid=$("$program" "$SANLAB" "$WORK/$lab.yaml" "$control" "127.0.0.1:$port" \
		"iqn.2026-11.test.sanlab:$lab" 90 $((kills / 2)) "$seed" 2>"$WORK/log") ||
		fail "seed $seed: $lab: $(tail -n 30 "$WORK/log")"
	on_exit end_process "$pid"
	echo "$lab parity: $(grep 'all there$' "$WORK/log")"
	scrub_all "$lab"
	end_process "$pid"
	rm -rf "$place"
done
