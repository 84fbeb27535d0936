#!/bin/bash
# SPDX-License-Identifier: MIT
# The server of an Exchange database and the target below it are killed (SIGKILL) at random moments, again
# and again: soft recovery from checkpoint and log leaves every durable commit, loses lazy ones only within
# their bound, and every page is as its checksum and the flush map say.
#
#   KILLS=100 SEED=7 exchange_killed.sh     more of them, another load
#   STORES=DIR exchange_killed.sh           where the store is made
. "$(dirname "$0")/lib.sh"

kills=${KILLS:-8} seed=${SEED:-$RANDOM}
[ -n "${STORES-}" ] || STORES=$([ -w /dev/shm ] && echo /dev/shm || echo "$WORK")
stores=$(mktemp -d "$STORES/sanlab-ese-killed.XXXXXX") || fail "no directory in $STORES"
on_exit rm -rf "$stores"
program=${ESE_KILLED:-$(dirname "$SANLAB")/tests/killed/ese_killed}
[ -x "$program" ] || fail "there is no $program"
port=$(free_port)
cat >"$WORK/lab.yaml" <<-END
	name: killed
	group:
	  style: lun
	  portal: 127.0.0.1:$port
	  volumes:
	    - {name: db1, pool: default, size: 64MiB, thin: true}
	  pools:
	    - name: default
	      members:
	        - name: m1
	          drives: {model: sas-15k-600, count: 5, size: 96MiB}
	          raid: raid5
	          chunk: 64KiB
	          cache: {size: 2MiB}
	          store: {file: $stores/m1}
	hosts:
	  - name: mbx1
	    stack: direct
	    mpio: {no-path: queue, reconnect-min: 50ms, reconnect-max: 200ms}
	    volumes: [db1]
END
"$SANLAB" check "$WORK/lab.yaml" >"$WORK/check" 2>&1 || fail "$(cat "$WORK/check")"
echo "seed $seed"
"$program" "$SANLAB" "$WORK/lab.yaml" "$WORK/control" "$kills" "$seed" 2>"$WORK/log" ||
	fail "seed $seed: $(tail -n 20 "$WORK/log")"
