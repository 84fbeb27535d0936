#!/bin/bash
# SPDX-License-Identifier: MIT
# In the guest: CHAP with open-iscsi, one way and mutual, for discovery and for normal sessions, with
# every digest; without it, or with wrong secrets, nothing is found and nobody gets in.
#   $CHAP_USER, $CHAP_SECRET: the initiator's; $TARGET_USER, $TARGET_SECRET: the target's
. /host/.vmlab/lib.sh
. /host/lib.sh

conf=/etc/iscsi/iscsid.conf
portal=127.0.0.1:${VMLAB_PORTS%% *}
IFACE=default logins=0 refusals=0
# iscsiadm's exit statuses; the last one is the initiator's own refusal.
NOTHING_FOUND=21 AUTH_FAILED=24 FATAL_LOGIN=19

nat_portals || die nat_portals
start_iscsid 5 5 30 || die iscsid
cp $conf /tmp/iscsid.conf

# secrets PREFIX USER SECRET [TARGET-USER TARGET-SECRET]: lines for iscsid.conf
secrets() {
	echo "$1.auth.authmethod = CHAP"
	echo "$1.auth.username = $2"
	echo "$1.auth.password = $3"
	[ $# -le 3 ] || echo "$1.auth.username_in = $4"
	[ $# -le 3 ] || echo "$1.auth.password_in = $5"
}
discover() { # SECRETS...: as above; as $IFACE, which tells the initiator's name
	cp /tmp/iscsid.conf $conf
	[ $# -eq 0 ] || secrets discovery.sendtargets "$@" >>$conf
	rm -rf /etc/iscsi/{nodes,send_targets}
	timeout 60 iscsiadm -m discovery -t sendtargets -p "$portal" -I "$IFACE"
}
found() { # WHAT SECRETS...
	local what=$1
	shift
	[ "$(discover "$@" | grep -c " $IQN$")" = 2 ] || die "$what: the target is not found at two portals"
	logins=$((logins + 1))
	log "ok $what"
}
not_found() { # STATUS WHAT SECRETS...
	local want=$1 what=$2 got=0
	shift 2
	discover "$@" || got=$?
	[ $got -eq "$want" ] || die "$what: iscsiadm left with $got"
	refusals=$((refusals + 1))
	log "ok $what"
}

login() { # DIGESTS SECRETS...: both portals
	local digests=$1
	shift
	discover "$CHAP_USER" "$CHAP_SECRET" || die 'discovery before the login'
	if [ $# -gt 0 ]; then
		secrets node.session "$@"
		echo "node.session.auth.chap_algs = $digests"
	fi | sed 's/ = /\t/' | while IFS=$'\t' read -r name value; do
		iscsiadm -m node -T "$IQN" -o update -n "$name" -v "$value" || exit
	done || die "cannot set the secrets"
	timeout 90 iscsiadm -m node -T "$IQN" --login
}
logged_in() { # WHAT DIGESTS SECRETS...
	local what=$1
	shift
	login "$@" || die "$what: iscsiadm left with $?"
	[ "$(iscsiadm -m session | grep -c "$IQN")" = 2 ] || die "$what: not two sessions"
	wait_for 20 test -b /dev/sda || die "$what: no disk"
	dd if=/dev/sda of=/dev/null bs=64k count=16 iflag=direct status=none || die "$what: cannot read"
	iscsiadm -m node -T "$IQN" -u >/dev/null || die "$what: cannot log out"
	wait_for 20 test ! -e /dev/sda || die "$what: the disk stays"
	logins=$((logins + 1))
	log "ok $what"
}
refused() { # STATUS WHAT DIGESTS SECRETS...
	local want=$1 what=$2 got=0
	shift 2
	login "$@" || got=$?
	[ $got -eq "$want" ] || die "$what: iscsiadm left with $got"
	! iscsiadm -m session 2>/dev/null || die "$what: there is a session"
	refusals=$((refusals + 1))
	log "ok $what"
}

all=SHA3-256,SHA256,SHA1,MD5
wrong=not-the-secret-at-all

not_found $AUTH_FAILED 'discovery without CHAP is refused'
not_found $AUTH_FAILED 'discovery with a wrong secret is refused' "$CHAP_USER" $wrong
not_found $AUTH_FAILED 'discovery as somebody unknown is refused' nobody "$CHAP_SECRET"
found 'discovery with CHAP' "$CHAP_USER" "$CHAP_SECRET"
found 'discovery with mutual CHAP' "$CHAP_USER" "$CHAP_SECRET" "$TARGET_USER" "$TARGET_SECRET"

refused $AUTH_FAILED 'a login without CHAP is refused' $all
refused $AUTH_FAILED 'a login with a wrong secret is refused' $all "$CHAP_USER" $wrong
refused $AUTH_FAILED 'a login as somebody unknown is refused' $all nobody "$CHAP_SECRET"
for digest in MD5 SHA1 SHA256 SHA3-256; do
	logged_in "a login with CHAP and $digest" $digest "$CHAP_USER" "$CHAP_SECRET"
	logged_in "a login with mutual CHAP and $digest" $digest "$CHAP_USER" "$CHAP_SECRET" \
		"$TARGET_USER" "$TARGET_SECRET"
done
logged_in 'a login with a choice of digests' $all "$CHAP_USER" "$CHAP_SECRET" "$TARGET_USER" "$TARGET_SECRET"
refused $FATAL_LOGIN 'the initiator refuses a target with a wrong secret' $all "$CHAP_USER" "$CHAP_SECRET" \
	"$TARGET_USER" $wrong

log 'The access rule names initiators like this one; another one may authenticate, and sees nothing.'
iscsiadm -m iface -I other -o new || die 'cannot make an interface'
iscsiadm -m iface -I other -o update -n iface.initiatorname -v iqn.2026-01.test.other:guest ||
	die 'cannot name an initiator'
IFACE=other
not_found $NOTHING_FOUND 'another initiator finds nothing' "$CHAP_USER" "$CHAP_SECRET"
IFACE=default
discover "$CHAP_USER" "$CHAP_SECRET" || die 'discovery for the other initiator'
iscsiadm -m node -T "$IQN" -p "$portal" -I other -o new || die 'cannot make a record'
secrets node.session "$CHAP_USER" "$CHAP_SECRET" | sed 's/ = /\t/' | while IFS=$'\t' read -r name value; do
	iscsiadm -m node -T "$IQN" -I other -o update -n "$name" -v "$value"
done
got=0
iscsiadm -m node -T "$IQN" -p "$portal" -I other --login || got=$?
[ $got -eq $AUTH_FAILED ] || die "the login of another initiator: iscsiadm left with $got"
refusals=$((refusals + 1))
log 'ok the login of another initiator is refused'

fact "$logins accepted with MD5, SHA1, SHA256, SHA3-256, one way and mutual; $refusals refused"
no_kernel_complaints 'detected conn error'
log 'PASS chap'
