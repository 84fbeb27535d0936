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

member() { # NAME RAID DRIVES
	cat <<-END
		        - name: $1
		          drives: {model: sas-15k-600, count: $3, size: 96MiB}
		          raid: $2
		          chunk: 64KiB
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
$(member m1 raid5 4)
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

scrub_of() { # MEMBER KEY
	"$SANLAB" ctl "$control" scrub "member=$1" --json | sed -n "s/.*\"$2\": *\([^,}]*\).*/\1/p" | head -n 1
}
