#!/bin/bash
# SPDX-License-Identifier: MIT
# Hostile peers: two thousand connections that send nothing, half a header or garbage do not keep a
# good peer from logging in; a thousand sessions that do nothing cost little memory and no time.
# The figures are printed; limits are generous, since they depend on the machine.
. "$(dirname "$0")/lib.sh"

PEERS=$(dirname "$SANLAB")/tests/hostile/hostile_peers
[ -x "$PEERS" ] || fail "$PEERS is not built"
CROWD=${HOSTILE_CROWD:-2000} IDLE=${HOSTILE_IDLE:-1000}
files=$(ulimit -Hn)
[ "$files" = unlimited ] || [ "$files" -gt $((CROWD + 100)) ] || skip "only $files descriptors are allowed"

port=$(free_port)
iqn=iqn.2026-11.test.sanlab:raw
start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$port"

rss_kib() { awk '$1 == "VmRSS:" { print $2 }' "/proc/$TARGET_PID/status"; }
cpu_ticks() { awk '{ print $14 + $15 }' "/proc/$TARGET_PID/stat"; }
sanitized() { ldd "$SANLAB" | grep -q libasan; }

"$PEERS" crowd 127.0.0.1 "$port" "$iqn" "$CROWD" 40 || fail "a good peer was kept out"

before=$(rss_kib)
mkfifo "$WORK/hold"
"$PEERS" idle 127.0.0.1 "$port" "$iqn" "$IDLE" <"$WORK/hold" >"$WORK/idle" &
idle_pid=$!
on_exit end_process "$idle_pid"
exec 9>"$WORK/hold"
idle_ready() { grep -q '^ready' "$WORK/idle" || process_gone "$idle_pid"; }
wait_for 60 idle_ready || fail "the idle sessions do not begin"
grep -q '^ready' "$WORK/idle" || fail "idle sessions: $(cat "$WORK/idle")"
after=$(rss_kib)

ticks=$(cpu_ticks) # over a while: that is what is measured
sleep 5
ticks=$(($(cpu_ticks) - ticks))
each=$(((after - before) * 10 / IDLE))
echo "$IDLE idle sessions: $((each / 10)).$((each % 10)) KiB each, $((ticks * 100 / $(getconf CLK_TCK) / 5)) % CPU"
if sanitized; then
	echo 'memory is not judged in a build with sanitizers'
else
	[ $((each / 10)) -lt 32 ] || fail "an idle session takes $((each / 10)) KiB"
fi
[ $((ticks * 100 / $(getconf CLK_TCK) / 5)) -lt 20 ] || fail "the idle target is busy"

exec 9>&-
wait "$idle_pid" || fail "the idle sessions ended badly"
stop_target
