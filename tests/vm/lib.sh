# SPDX-License-Identifier: MIT
# Helpers of the guest scripts that scripts/vm-initiator runs in the VM lab.  Sourced after the
# lab's own lib.sh (log, die, wait_for, nat_portals, start_iscsid, start_multipathd ...).
# shellcheck shell=bash

MAP=/dev/mapper/mpatha

# What the table of results shows beside the step.
fact() { echo "fact: $*"; }

# ctl COMMAND...: `sanlab ctl` against the target, which runs on the host; prints the answer.  The
# host looks for the request in the share.
ctl() {
	rm -f /host/.vmlab/ctl.answer
	echo "$*" >/host/.vmlab/ctl.tmp
	mv /host/.vmlab/ctl.tmp /host/.vmlab/ctl.request
	wait_for 20 test -e /host/.vmlab/ctl.answer || die "no answer to ctl $*"
	cat /host/.vmlab/ctl.answer
}
allocated_mib() { # of the first volume
	ctl status --json | python3 -c '
import json, sys
print(json.load(sys.stdin)["volumes"][0]["allocated_bytes"] >> 20)'
}

# Discovery through the target's own addresses, login at every portal, one map over all $PATHS (2) paths.
attach() {
	start_udev
	nat_portals || die nat_portals
	start_iscsid 5 5 30 || die iscsid
	# mpathpersist wants to know the host's key beforehand.
	sed 's/^defaults {/&\n    reservation_key 0x5a17ab/' /host/multipath.conf >/tmp/multipath.conf
	start_multipathd /tmp/multipath.conf || die multipathd
	iscsiadm -m discovery -t sendtargets -p "127.0.0.1:${VMLAB_PORTS%% *}" || die discovery
	iscsiadm -m node -T "$IQN" --login || die login
	wait_for 90 paths_active || { multipath -v3 -ll; die "not ${PATHS:-2} active paths"; }
	wait_for 30 test -b $MAP || die "no $MAP"
	multipath -ll
}
paths_active() { [ "$(multipathd show paths raw format '%d %t' | grep -c active)" = "${PATHS:-2}" ]; }
detach() {
	multipath -F
	iscsiadm -m node -u
}

# Kernel messages about storage that no healthy target causes.  The BIOS bug is a timer that a busy
# machine emulates too slowly.
kernel_complaints() {
	dmesg | grep -v 'MP-BIOS bug' | grep -iE 'I/O error|medium error|hardware error|illegal request|sense key|hung task|blocked for more|call trace|BUG:|WARNING:|invalid (field|command)|unknown partition|protocol error|detected conn error|iscsi.*(fail|err)|sd.*(fail|unsupported|assuming)' |
		grep -vE "${1:-^$}"
}
no_kernel_complaints() { # [PATTERN of those that are expected]
	kernel_complaints "$@" && die 'the kernel complains'
	log 'no complaint of the kernel'
}
