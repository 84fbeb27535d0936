#!/bin/bash
# SPDX-License-Identifier: MIT
# CHAP and access rules against clients that others wrote, and our own initiator: right and wrong
# passwords, the target that proves itself, discovery, volumes that are not for everybody; a secrets
# file that others can read keeps the target from starting; no secret appears anywhere.
. "$(dirname "$0")/lib.sh"

require iscsi-ls
require iscsi-inq
require qemu-io

port=$(free_port)
other=iqn.2026-11.test.sanlab:func:other
ours=iqn.2026-11.test.sanlab:func:ours
secrets=$WORK/secrets
cat >"$secrets" <<'END'
# user secret
exchange mailboxes-on-disk
sql tables-and-rows-1
array the-group-itself
END
chmod 600 "$secrets"
cat >"$WORK/lab.yaml" <<END
name: locked
group:
  style: lun
  portal: 127.0.0.1:$port
  pools:
    - name: default
      members:
        - {name: m1, drives: {count: 2, size: 1GiB}, raid: raid0}
  volumes:
    - {name: db1, size: 64MiB}
    - {name: db2, size: 64MiB}
    - {name: db3, size: 64MiB}
  chap: {secrets: $secrets, discovery: true, mutual-user: array}
  access:
    - {volumes: [db1], users: [exchange]}
    - {volumes: [db2], initiators: ["iqn.*:ours"], addresses: [127.0.0.0/8]}
    - {volumes: [db3], addresses: [192.0.2.0/24]}
END
control=$WORK/control
start_target "$WORK/lab.yaml" --control "$control"

iqn=iqn.2026-11.test.sanlab:locked
at=127.0.0.1:$port/$iqn
right=exchange%mailboxes-on-disk

opens() { iscsi-inq -i "$1" "$2" >"$WORK/inq" 2>&1; }
refused() { # STATUS_TEXT COMMAND...
	local want=$1
	shift
	! "$@" || fail "let in: $*"
	grep -qi "$want" "$WORK/inq" || fail "not '$want': $(cat "$WORK/inq")"
}
opens "$other" "iscsi://$right@$at/0" || fail "CHAP login: $(cat "$WORK/inq")"
refused 'authentication failure' opens "$other" "iscsi://$at/0"
refused 'authentication failure' opens "$other" "iscsi://exchange%mailboxes-on-disc@$at/0"
refused 'authentication failure' opens "$other" "iscsi://nobody%mailboxes-on-disk@$at/0"
refused 'authentication failure' opens "$other" "iscsi://sql%tables-and-rows-1@$at/0"

# The target proves who it is, and a wrong target would be noticed.
mutual="target_user=array&target_password"
opens "$other" "iscsi://$right@$at/0?$mutual=the-group-itself" || fail "mutual CHAP: $(cat "$WORK/inq")"
! opens "$other" "iscsi://$right@$at/0?$mutual=another-group-12" || fail "a wrong target was believed"

# Logical units: db1 by user, db2 by name, db3 by an address that nobody has.
lacks() { ! opens "$1" "$2" && grep -qi 'logical.unit.not.supported\|UNIT_NOT_SUPPORTED\|failed' "$WORK/inq"; }
lacks "$other" "iscsi://$right@$at/1" || fail "db2 is open to another initiator: $(cat "$WORK/inq")"
opens "$ours" "iscsi://sql%tables-and-rows-1@$at/1" || fail "db2: $(cat "$WORK/inq")"
lacks "$ours" "iscsi://$right@$at/2" || fail "db3 is open: $(cat "$WORK/inq")"
list=$(iscsi-ls -i "$ours" -s "iscsi://$right@127.0.0.1:$port") || fail "iscsi-ls: $list"
[ "$(grep -c 'Lun:' <<<"$list")" -eq 2 ] || fail "iscsi-ls -s shows not two LUNs: $list"
! iscsi-ls -i "$ours" "iscsi://127.0.0.1:$port" >/dev/null 2>&1 || fail "discovery without CHAP"

# Our own initiator and QEMU.
"$SANLAB" bench "iscsi://$right@$at/0" --bs 4k --qd 4 --time 1s >"$WORK/bench" 2>&1 ||
	fail "sanlab bench: $(cat "$WORK/bench")"
! "$SANLAB" bench "iscsi://exchange%wrong-password-1@$at/0" --time 1s >"$WORK/bench" 2>&1 ||
	fail "sanlab bench got in with a wrong password"
qemu-io -f raw -c 'write -P 0x5a 1M 64k' -c 'read -P 0x5a 1M 64k' "iscsi://$right@$at/0" \
	>"$WORK/qemu-io" 2>&1 || fail "qemu-io: $(cat "$WORK/qemu-io")"
! grep -q 'verification failed' "$WORK/qemu-io" || fail "qemu-io read other data"

# A portal that drains says so, and lets nobody new in: there is no other portal.
"$SANLAB" ctl "$control" portal-drain "portal=127.0.0.1:$port" limit=1s >/dev/null || fail "portal-drain"
"$SANLAB" ctl "$control" status --json >"$WORK/status" || fail "status"
grep -q '"draining"' "$WORK/status" || fail "the portal does not drain: $(cat "$WORK/status")"
! opens "$other" "iscsi://$right@$at/0" || fail "a draining portal let somebody in"
"$SANLAB" ctl "$control" portal-up "portal=127.0.0.1:$port" >/dev/null || fail "portal-up"
opens "$other" "iscsi://$right@$at/0" || fail "after portal-up: $(cat "$WORK/inq")"

"$SANLAB" check "$WORK/lab.yaml" >"$WORK/effective" || fail "sanlab check"
! grep -l 'mailboxes\|tables-and\|group-itself' "$WORK/effective" "$WORK/status" "$WORK/target.out" \
	"$WORK/target.err" || fail "a secret got out"
stop_target

# A file that others can read, one that is wrong, one that is not there; users without CHAP.
status=0
chmod 644 "$secrets"
"$SANLAB" target "$WORK/lab.yaml" >"$WORK/out" 2>&1 </dev/null || status=$?
[ "$status" -eq 3 ] || fail "a readable secrets file: exit $status"
grep -q 'chmod 0600' "$WORK/out" || fail "no remedy: $(cat "$WORK/out")"
chmod 600 "$secrets"
echo lonely >>"$secrets"
status=0
"$SANLAB" target "$WORK/lab.yaml" >"$WORK/out" 2>&1 </dev/null || status=$?
[ "$status" -eq 2 ] || fail "a wrong line: exit $status"
grep -q "$secrets:5" "$WORK/out" || fail "which line: $(cat "$WORK/out")"
rm "$secrets"
status=0
"$SANLAB" target "$WORK/lab.yaml" >"$WORK/out" 2>&1 </dev/null || status=$?
[ "$status" -eq 3 ] || fail "no secrets file: exit $status"
status=0
sed -i 's/  chap: .*/  chap: {discovery: true}/; s/db3\], addr/db4], addr/; s/192.0.2.0/192.0.2.300/' "$WORK/lab.yaml"
"$SANLAB" check "$WORK/lab.yaml" >"$WORK/out" 2>&1 || status=$?
[ "$status" -eq 2 ] || fail "a wrong lab: exit $status"
for word in "known by CHAP alone" "unknown volume 'db4'" "192.0.2.300/24" "needs a file of secrets"; do
	grep -q "$word" "$WORK/out" || fail "not reported: $word: $(cat "$WORK/out")"
done
