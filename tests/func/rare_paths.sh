#!/bin/bash
# SPDX-License-Identifier: MIT
# The work of clients.sh again through the target's rare paths: digests wherever they are offered, reads
# and writes of a few bytes, tiny data segments, and all of it at once.  And a knob that is misspelt
# is no knob.
. "$(dirname "$0")/lib.sh"

require iscsi-ls
require qemu-img
require qemu-io

if SANLAB_TEST_SMALL_MRDSL=12 "$SANLAB" target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)" \
	>"$WORK/out" 2>"$WORK/err" </dev/null; then
	fail "a knob out of range is taken"
fi
grep -q 'SANLAB_TEST_SMALL_MRDSL' "$WORK/err" || fail "the knob is not named: $(cat "$WORK/err")"

# MIB is how much qemu-img carries each way: a byte a call is slow.
rerun() { # MIB KNOB=VALUE...
	local mib=$1 log=$WORK/rerun.log
	shift
	if ! env "$@" CLIENTS_IMAGE_MIB="$mib" bash "$TESTS/func/clients.sh" >"$log" 2>&1; then
		cat "$log" >&2
		fail "clients.sh with $*"
	fi
	echo "ok with $*"
}

rerun 16 SANLAB_TEST_DIGESTS=1
rerun 8 SANLAB_TEST_SMALL_MRDSL=512
rerun 1 SANLAB_TEST_SPLIT_READS=1
rerun 4 SANLAB_TEST_SMALL_WRITES=61
rerun 1 SANLAB_TEST_SPLIT_READS=47 SANLAB_TEST_SMALL_WRITES=1001 SANLAB_TEST_SMALL_MRDSL=516 \
	SANLAB_TEST_DIGESTS=1
