#!/bin/bash
# SPDX-License-Identifier: MIT
# Clients that others wrote work against the quick start's target: libiscsi's tools and QEMU's
# iscsi:// driver; what qemu-img writes onto a volume comes back byte for byte.
. "$(dirname "$0")/lib.sh"

require iscsi-ls
require iscsi-inq
require iscsi-readcapacity16
require iscsi-perf
require qemu-img
require qemu-io

quickstart_ports
start_target "$LABS/quickstart.yaml" "${PORT_SETS[@]}"

portal=127.0.0.1:$GROUP_PORT
iqn=iqn.2026-11.test.sanlab:quickstart
list=$(iscsi-ls -s "iscsi://$portal") || fail "iscsi-ls -s failed"
for db in db1 db2 db3 db4 db5; do
	grep -q "Target:$iqn:$db " <<<"$list" || fail "iscsi-ls does not list $db: $list"
done
[ "$(grep -c 'Lun:0' <<<"$list")" -eq 5 ] || fail "iscsi-ls -s shows no LUN of some target: $list"

url=iscsi://$portal/$iqn:db1/0
iscsi-inq "$url" | grep -q 'Vendor:SANLAB' || fail "iscsi-inq: no vendor"
for page in 0 128 131 176 177 178; do
	iscsi-inq -e 1 -c "$page" "$url" >/dev/null || fail "iscsi-inq: VPD page $page"
done
iscsi-readcapacity16 "$url" | grep -q 'Total size:1073741824' || fail "iscsi-readcapacity16"
timeout 20 iscsi-perf -m 32 -b 8 -r -t 2 "$url" >"$WORK/perf" 2>&1 || fail "iscsi-perf: $(cat "$WORK/perf")"

head -c $((${CLIENTS_IMAGE_MIB:-48} << 20)) /dev/urandom >"$WORK/image"
truncate -s 1G "$WORK/image"
qemu-img convert -n -f raw -O raw "$WORK/image" "$url" || fail "qemu-img convert onto the volume"
# Back through a member portal, not the group's: another path to the same volume.
qemu-img convert -f raw -O raw "iscsi://127.0.0.1:$M2_PORT_A/$iqn:db1/0" "$WORK/back" ||
	fail "qemu-img convert from the volume"
cmp "$WORK/image" "$WORK/back" || fail "what came back differs"

qemu-io -f raw -c 'write -P 0xa5 1M 256k' -c 'read -P 0xa5 1M 256k' -c 'discard 2M 1M' -c flush \
	"iscsi://$portal/$iqn:db2/0" >"$WORK/qemu-io" || fail "qemu-io"
! grep -q 'verification failed' "$WORK/qemu-io" || fail "qemu-io read other data"

stop_target
