# SPDX-License-Identifier: MIT
# Helpers of the functional tests (and of scripts/bench-*).  Sourced.
#
# A test is a script that exits 0 (passed), 77 (skipped, reason on its last line) or else (failed).
# $SANLAB is the program under test.  Conditions are waited for with a deadline, ports are free ones,
# and every process started here is ended by its id when the script leaves.
# shellcheck shell=bash

set -u
TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LABS=$(cd "$TESTS/../scripts/labs" && pwd)
SANLAB=${SANLAB:-$TESTS/../build/sanlab}
WORK=$(mktemp -d "${TMPDIR:-/tmp}/sanlab-test.XXXXXX")
TARGET_PID= TARGET_PORTAL=

exit_actions=()
on_exit() { # COMMAND...: runs when the script leaves, last one first
	exit_actions+=("$(printf '%q ' "$@")")
}
leave() {
	local status=$? i
	trap - EXIT
	for ((i = ${#exit_actions[@]} - 1; i >= 0; i--)); do
		eval "${exit_actions[i]}" >/dev/null 2>&1 || true
	done
	rm -rf "$WORK"
	exit "$status"
}
trap leave EXIT
trap 'exit 143' INT TERM

fail() {
	printf 'FAIL: %s\n' "$*" >&2
	exit 1
}
skip() {
	printf 'skipped: %s\n' "$*"
	exit 77
}
require() { # COMMAND
	command -v "$1" >/dev/null || skip "$1 is not installed"
}

wait_for() { # SECONDS COMMAND...: polls until the command succeeds
	local deadline=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$deadline" ] || return 1
		sleep 0.05
	done
}

port_listens() { # PORT: in the kernel's table, without connecting
	local hex
	hex=$(printf ':%04X' "$1")
	awk -v hex="$hex" '$4 == "0A" && substr($2, length($2) - 4) == hex { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6 2>/dev/null
}
# Below the ephemeral range, so that no outgoing connection takes a port between choice and use; a
# subshell's choice is remembered in a file.
free_port() {
	local port
	while :; do
		port=$((10000 + RANDOM % 20000))
		grep -qx "$port" "$WORK/ports" 2>/dev/null && continue
		port_listens "$port" && continue
		echo "$port" >>"$WORK/ports"
		echo "$port"
		return
	done
}

end_process() { # PID: asks, waits up to 10 s, then insists
	kill "$1" 2>/dev/null || return 0
	wait_for 10 process_gone "$1" || kill -9 "$1"
	wait "$1" 2>/dev/null || true
}
process_gone() { ! kill -0 "$1" 2>/dev/null || [ "$(awk '{print $3}' "/proc/$1/stat" 2>/dev/null)" = Z ]; }

start_target() { # LAB ARGS...: sets TARGET_PID, TARGET_PORTAL (the first portal)
	"$SANLAB" target "$@" >"$WORK/target.out" 2>"$WORK/target.err" &
	TARGET_PID=$!
	on_exit end_process "$TARGET_PID"
	wait_for 20 target_ready || fail "the target is not ready: $(cat "$WORK/target.err")"
	TARGET_PORTAL=$(awk '{ print $4; exit }' "$WORK/target.out")
}
target_ready() { grep -q '^ready' "$WORK/target.out"; }
stop_target() { # the target must leave in order
	kill "$TARGET_PID"
	wait_for 20 process_gone "$TARGET_PID" || fail "the target does not stop"
	wait "$TARGET_PID" || fail "the target left with $?: $(cat "$WORK/target.err")"
}

# Runs a lab and wants it to pass.  Averages of latency are excused: these tests check what happens,
# not how fast, with sanitizers and on machines that do other things at the same time.
run_passes() { # LOG ARGS...
	local log=$1 status=0
	shift
	"$SANLAB" run "$@" >"$log" 2>&1 || status=$?
	[ "$status" -ne 0 ] || return 0
	[ "$status" -eq 1 ] && grep -q '^  FAIL  average .* latency' "$log" &&
		! grep '^  FAIL ' "$log" | grep -qv '^  FAIL  average .* latency'
}

# Five free ports for scripts/labs/quickstart.yaml, as --set arguments in PORT_SETS.
quickstart_ports() {
	local members=group.pools.default.members
	GROUP_PORT=$(free_port) M1_PORT_A=$(free_port) M1_PORT_B=$(free_port)
	M2_PORT_A=$(free_port) M2_PORT_B=$(free_port)
	PORT_SETS=(--set "group.portal=127.0.0.1:$GROUP_PORT"
		--set "$members.m1.portals=[127.0.0.1:$M1_PORT_A, 127.0.0.1:$M1_PORT_B]"
		--set "$members.m2.portals=[127.0.0.1:$M2_PORT_A, 127.0.0.1:$M2_PORT_B]")
}

# Debian's tgtd with one LUN (1) on FILE; sets TGT_PORT, TGT_IQN.  Its control number is its own.
start_tgtd() { # FILE SIZE
	local control=$((1000 + RANDOM % 20000)) pid
	TGT_PORT=$(free_port) TGT_IQN=iqn.2026-11.test.peer:tgt
	truncate -s "$2" "$1"
	tgtd -f -C "$control" --iscsi "portal=127.0.0.1:$TGT_PORT" >"$WORK/tgtd.log" 2>&1 &
	pid=$!
	on_exit end_tgtd "$control" "$pid"
	wait_for 10 tgtadm -C "$control" --op show --mode system || fail "tgtd: $(cat "$WORK/tgtd.log")"
	tgtadm -C "$control" --lld iscsi --op new --mode target --tid 1 -T "$TGT_IQN" &&
		tgtadm -C "$control" --lld iscsi --op new --mode logicalunit --tid 1 --lun 1 -b "$1" &&
		tgtadm -C "$control" --lld iscsi --op bind --mode target --tid 1 -I ALL ||
		fail "tgtadm failed: $(cat "$WORK/tgtd.log")"
}
# tgtd ends when it has no target left.
end_tgtd() {
	tgtadm -C "$1" --op delete --mode target --tid 1 --force
	tgtadm -C "$1" --op delete --mode system
	wait_for 5 process_gone "$2" || kill -9 "$2"
}
