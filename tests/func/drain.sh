#!/bin/bash
# SPDX-License-Identifier: MIT
# A member portal drains under load: the initiator is asked to log out, comes back, is sent to another
# portal, and not one I/O fails.
. "$(dirname "$0")/lib.sh"

quickstart_ports
control=$WORK/control
start_target "$LABS/quickstart.yaml" "${PORT_SETS[@]}" --control "$control"

iqn=iqn.2026-11.test.sanlab:quickstart:db1
portal=127.0.0.1:$M1_PORT_A
now() { # KEY: a counter or the state of the portal
	"$SANLAB" ctl "$control" status --json |
		awk -v portal="\"$portal\"" -v key="\"$1\":" \
			'$1 == "\"portal\":" { here = index($2, portal) } here && $1 == key { gsub(/[",]/, "", $2); print $2; exit }'
}
is_busy() { [ "$(now reads)" -gt 100 ]; }
is_empty() { [ "$(now connections_now)" -eq 0 ]; }
was_redirected() { [ "$(now redirects)" -ge 1 ]; }

"$SANLAB" bench "iscsi://$portal/$iqn/0" "iscsi://127.0.0.1:$M2_PORT_A/$iqn/0" --qd 8 --time 8s --json \
	>"$WORK/bench" 2>"$WORK/bench.err" &
bench=$!
on_exit end_process "$bench"
wait_for 20 is_busy || fail "no load at $portal: $(cat "$WORK/bench.err")"
"$SANLAB" ctl "$control" portal-drain "portal=$portal" limit=3s | grep -q '"asked": 1' || fail "nobody was asked"
[ "$(now state)" = draining ] || fail "the portal is $(now state)"
wait_for 10 is_empty || fail "a connection stays at the drained portal"
wait_for 10 was_redirected || fail "the initiator did not come back, or was not redirected"
wait "$bench" || fail "the benchmark failed: $(cat "$WORK/bench.err" "$WORK/bench")"
grep -Eq '"errors": *0[,}]?$' "$WORK/bench" || fail "errors: $(cat "$WORK/bench")"
"$SANLAB" ctl "$control" portal-up "portal=$portal" >/dev/null || fail "portal-up"
[ "$(now state)" = up ] || fail "the portal is $(now state) after portal-up"
stop_target
