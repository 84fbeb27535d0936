#!/bin/bash
# SPDX-License-Identifier: MIT
# Five thin volumes of 1 TB over 24 drives in memory: the target is ready at once and small; its memory
# grows with what is written and shrinks with UNMAP.  Times are told, only memory can fail.
. "$(dirname "$0")/lib.sh"
require qemu-io

port=$(free_port)
cat >"$WORK/lab.yaml" <<END
name: large
group:
  style: lun
  portal: 127.0.0.1:$port
  pools:
    - name: default
      members:
        - {name: m1, drives: {model: sas-15k-600, count: 24, spares: 2}, raid: raid50, store: memory}
  volumes:
$(for i in 1 2 3 4 5; do echo "    - {name: db$i, size: 1000000000000B, thin: true}"; done)
END
start_ns=$(date +%s%N)
start_target "$WORK/lab.yaml"
ready_ns=$(date +%s%N)
resident() { awk '$1 == "VmRSS:" { print int($2 / 1024) }' "/proc/$TARGET_PID/status"; }
url=iscsi://127.0.0.1:$port/iqn.2026-11.test.sanlab:large/0
io() { qemu-io -f raw "$@" "$url" >"$WORK/io" 2>&1 || fail "qemu-io: $(cat "$WORK/io")"; }

empty=$(resident)
echo "ready in $(((ready_ns - start_ns) / 1000000)) ms, $empty MiB resident"
[ "$empty" -lt 200 ] || fail "$empty MiB resident before anything is written"

at_each() { # COMMAND SIZE: at distant places, in all 480 MiB
	local places=(0 15 30 60 120 240 480 900) at commands=()
	for at in "${places[@]}"; do commands+=(-c "$1 ${at}G 60M"); done
	io "${@:2}" "${commands[@]}"
}
at_each 'write -P 7'
full=$(resident)
echo "$((full - empty)) MiB more after 480 MiB were written"
# Parity, and the buffers of the requests, come on top.
[ $((full - empty)) -ge 450 ] && [ $((full - empty)) -lt 1200 ] || fail "$((full - empty)) MiB for 480 MiB"

at_each discard -d unmap
left=$(resident)
echo "$((left - empty)) MiB more after UNMAP"
[ $((full - left)) -ge 400 ] || fail "only $((full - left)) MiB came back"
io -c 'read -P 0 240G 4M'
stop_target
