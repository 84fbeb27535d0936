#!/bin/bash
# SPDX-License-Identifier: MIT
# The bytes of a dead path are held and delivered after the same block has been written anew: the old
# session must have ended by then.  Against our target and, where it may be started, Debian's tgtd.
. "$(dirname "$0")/lib.sh"

program=${LATE_WRITE:-$(dirname "$SANLAB")/tests/late/late_write}
[ -x "$program" ] || fail "there is no $program"

start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)"
timeout 100 "$program" "$TARGET_PORTAL" iqn.2026-11.test.sanlab:raw 0 || fail "our target"

[ -x /usr/sbin/tgtd ] && [ "$(id -u)" -eq 0 ] || {
	echo "not against tgtd: it is not installed, or this is not root"
	exit 0
}
start_tgtd "$WORK/disk" 16M
timeout 100 "$program" "127.0.0.1:$TGT_PORT" "$TGT_IQN" 1 || fail "tgtd"
