#!/bin/bash
# SPDX-License-Identifier: MIT
# A target on file stores is killed under load (SIGKILL), again and again: each answered write is there
# after each start, an unanswered one is old or new, whole; in the end redundancy fits everywhere.
#
#   KILLS=200 SEED=7 target_killed.sh      more of them, another load
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-10} seed=${SEED:-$RANDOM}
port=$(free_port) control=$WORK/control
program=${TARGET_KILLED:-$(dirname "$SANLAB")/tests/killed/target_killed}
[ -x "$program" ] || fail "there is no $program"

member() { # NAME RAID DRIVES [CACHE]
	cat <<-END
		        - name: $1
		          drives: {model: sas-15k-600, count: $3, size: 96MiB}
		          raid: $2
		          chunk: 64KiB
		          ${4:+cache: $4}
		          store: {file: $WORK/$1}
	END
}
cat >"$WORK/lab.yaml" <<END
name: killed
group:
  style: lun
  portal: 127.0.0.1:$port
  pools:
    - name: default
      members:
$(member m1 raid5 4 '{size: 2MiB}')
$(member m2 raid10 4)
  volumes:
    - {name: v, pool: default, size: 90MiB, thin: true}
END

echo "seed $seed"
pid=$("$program" "$SANLAB" "$WORK/lab.yaml" "$control" "127.0.0.1:$port" \
	iqn.2026-11.test.sanlab:killed 90 "$kills" "$seed" 2>"$WORK/log") ||
	fail "seed $seed: $(tail -n 30 "$WORK/log")"
on_exit end_process "$pid"
tail -n 1 "$WORK/log"

# Everything is read once: what does not fit would be repaired, and counted.
scrub_of() { # MEMBER KEY
	"$SANLAB" ctl "$control" status --json | awk -v member="\"$1\"," -v key="\"$2\":" '
		$1 == "\"member\":" { here = $2 == member }
		here && $1 == "\"scrub\":" { inside = 1 }
		here && inside && $1 == key { gsub(/,/, "", $2); print $2; inside = 0 }'
}
scrubbed() { [ "$(scrub_of "$1" completed)" -ge 1 ]; }
for member in m1 m2; do
	"$SANLAB" ctl "$control" scrub-start "member=$member" >/dev/null || fail "scrub-start $member"
	wait_for 60 scrubbed "$member" || fail "the scrub of $member does not end"
	for key in units_repaired units_inconsistent units_lost; do
		[ "$(scrub_of "$member" "$key")" = 0 ] ||
			fail "seed $seed: scrub of $member: $key $(scrub_of "$member" "$key")"
	done
	[ "$(scrub_of "$member" units_checked)" -gt 0 ] || fail "$member: nothing was checked"
done
