#!/bin/bash
# SPDX-License-Identifier: MIT
# A controller of an ALUA array dies under load and returns: no error, no mismatch, the survivor takes
# the volumes over, and they go back.  Then by hand: what status and the commands say.
. "$(dirname "$0")/lib.sh"

member=group.pools.default.members.array
ports=(--set "group.portal=127.0.0.1:$(free_port)"
	--set "$member.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]")
run_passes "$WORK/run.txt" "$LABS/controller-failover.yaml" "${ports[@]}" --out "$WORK/out" \
	--set run.duration=10s --set run.warmup=1s --set workload.prefill=8MiB --set workload.mailboxes=500 \
	--set 'faults=[{at: 1s, controller-failover: {controller: 0}, for: 4s}]' ||
	fail "the run failed: $(cat "$WORK/run.txt")"
[ "$(grep -c '"t":"fault"' "$WORK/out/events.jsonl")" -eq 2 ] || fail "not two fault events"
grep '"t":"fault"' "$WORK/out/events.jsonl" | grep -q '"controller":0' || fail "the event does not name the controller"
grep -q 'controller-failover' "$WORK/out/report.html" || fail "the report has no marker"

control=$WORK/control
start_target "$LABS/array-faults.yaml" --control "$control" --set "faults=[]" --set "group.portal=127.0.0.1:$(free_port)" \
	--set "group.controllers.failover=300ms" \
	--set "group.pools.default.members.m1.portals=[127.0.0.1:$(free_port)]" \
	--set "group.pools.default.members.m2.portals=[127.0.0.1:$(free_port)]"
ctl() { "$SANLAB" ctl "$control" "$@"; }
says() { ctl status | grep -Eq "$1"; }
refused() { # WORDS...: exit 2 and a reason
	local status=0
	ctl "$@" >"$WORK/refused" 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "ctl $*: exit $status, not 2: $(cat "$WORK/refused")"
}

says 'everything is well' || fail "status: $(ctl status)"
ctl controller-fail member=m1 >/dev/null || fail "controller-fail"
says '^m1 +failing-over' || fail "m1 does not fail over: $(ctl status)"
wait_for 5 says '^m1 +healthy .* 0 failed, 1 active' || fail "m1 was not taken over: $(ctl status)"
refused controller-fail member=m1 controller=0
refused controller-fail
refused controller-fail member=m1 controller=7
ctl controller-return member=m1 >/dev/null || fail "controller-return"
says '^m1 .* 0 passive, 1 active' || fail "controller 0 is not the passive one: $(ctl status)"

# Both controllers away: offline, and back with the first one.
ctl controller-fail member=m1 controller=0 >/dev/null && ctl controller-fail member=m1 >/dev/null
says '^m1 +offline' || fail "m1 is not offline: $(ctl status)"
says 'member m1 offline, portal 127.0.0.1:[0-9]+ silent' || fail "the first line does not say so: $(ctl status | head -1)"
ctl controller-return member=m1 controller=1 >/dev/null
wait_for 5 says '^m1 +healthy' || fail "m1 does not come back: $(ctl status)"

# A lost link keeps its portal as long as the partner port is there.
ctl link-down member=m2 controller=0 port=0 >/dev/null
says ' silent' && fail "one lost link silences a portal"
ctl link-down member=m2 controller=1 port=0 >/dev/null
says 'm2 +silent' || fail "two lost links do not: $(ctl status)"
ctl link-up member=m2 controller=1 port=0 >/dev/null
says 'm2 +silent' && fail "the portal does not come back"

ctl member-offline member=m2 >/dev/null
says '^m2 +offline' || fail "m2 is not offline"
refused member-offline member=m2
ctl member-online member=m2 >/dev/null
says '^m2 +healthy' || fail "m2 is not back: $(ctl status)"

refused nonsense
grep -q 'drive-fail' "$WORK/refused" || fail "the commands are not named: $(cat "$WORK/refused")"
"$SANLAB" ctl --help | grep -q 'controller-fail ' || fail "help does not tell the commands"
ctl status --json | python3 -m json.tool >/dev/null || fail "status --json is no JSON"
stop_target

# A path that logs in while its port has no access stands by; the other one works alone.
start_target "$LABS/failover-alua-storm.yaml" --control "$control" --set "faults=[]" \
	--set "group.portal=127.0.0.1:$(free_port)" \
	--set "$member.portals=[127.0.0.1:$(free_port), 127.0.0.1:$(free_port)]"
ctl alua-set volume=v1 group=1 state=unavailable >/dev/null || fail "alua-set"
read -r first second < <(awk '{ print $5, $6; exit }' "$WORK/target.out")
iqn=iqn.2026-11.test.sanlab:failover-alua-storm
status=0 # 1: a path is not up
"$SANLAB" bench "iscsi://$first/$iqn/0" "iscsi://$second/$iqn/0" --time 500ms >"$WORK/bench" 2>&1 || status=$?
[ "$status" -eq 1 ] || fail "bench with a path in standby: exit $status: $(cat "$WORK/bench")"
grep -Eq '^path 0 .* standby +0 I/Os' "$WORK/bench" || fail "path 0 does not stand by: $(cat "$WORK/bench")"
grep -Eq ' 0 errors' "$WORK/bench" || fail "errors: $(cat "$WORK/bench")"
stop_target
