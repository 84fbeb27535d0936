#!/bin/bash
# SPDX-License-Identifier: MIT
# In the guest: what Linux makes of volumes of other kinds, on one path to scripts/labs/conformance.yaml:
# block sizes, a write-protected volume, a removable one that is ejected and loaded.
. /host/.vmlab/lib.sh
. /host/lib.sh

start_udev
nat_portals || die nat_portals
start_iscsid 5 5 30 || die iscsid
portal=127.0.0.1:${VMLAB_PORTS%% *}
iscsiadm -m discovery -t sendtargets -p "$portal" || die discovery
iscsiadm -m node -T "$IQN" -p "$portal" --login || die login
disk() { ls "/sys/bus/scsi/devices/0:0:0:$1/block" 2>/dev/null; }
disk_there() { [ -n "$(disk 3)" ]; }
wait_for 60 disk_there || die 'no fourth disk'
udevadm settle -t 20
lsscsi -s

# has LUN ATTRIBUTE VALUE: of the disk, in sysfs
has() {
	local got
	got=$(cat "/sys/block/$(disk "$1")/$2")
	[ "$got" = "$3" ] || die "LUN $1: $2 is $got, expected $3"
}
has 0 queue/logical_block_size 512
has 0 queue/physical_block_size 4096
has 0 removable 0
has 0 ro 0
has 1 removable 1
has 2 ro 1
has 3 queue/logical_block_size 4096
has 3 queue/physical_block_size 4096
for lun in 0 1 2 3; do
	has $lun size $((256 << 11))
done

log 'a file system on 4 KiB blocks'
mkfs.ext4 -q "/dev/$(disk 3)" || die mkfs.ext4
mkdir -p /mnt
mount "/dev/$(disk 3)" /mnt || die mount
yes 'four kilobytes' | head -c 8M >/mnt/file
umount /mnt
fsck.ext4 -f -n "/dev/$(disk 3)" || die fsck.ext4

log 'a write to the protected volume'
dd if=/dev/zero of="/dev/$(disk 2)" bs=4k count=1 oflag=direct && die 'the protected volume was written'
dd if="/dev/$(disk 2)" of=/dev/null bs=4k count=1 iflag=direct || die 'the protected volume cannot be read'

log 'eject and load'
removable=/dev/$(disk 1)
dd if=/dev/zero of="$removable" bs=64k count=4 oflag=direct status=none || die 'write to the removable volume'
# While the block device is open, Linux prevents the removal; the generic device does not count as one.
sg_start --eject "$removable" && die 'ejected an open volume'
modprobe sg
generic=/dev/$(ls /sys/bus/scsi/devices/0:0:0:1/scsi_generic) || die 'no generic device'
# udev may still be looking at what was just closed.
wait_for 30 sg_start --eject "$generic" || die eject
sg_turs "$generic" && die 'ready without a medium'
dd if="$removable" of=/dev/null bs=4k count=1 iflag=direct && die 'read without a medium'
# Nor is it loaded while somebody who met the empty drive holds it.
wait_for 30 sg_start --load "$generic" || die load
wait_for 20 sg_turs "$generic" || die 'not ready after the load'
dd if="$removable" of=/dev/null bs=4k count=1 iflag=direct || die 'cannot read after the load'

iscsiadm -m node -u || die logout
fact '512e, 4Kn, write-protected and removable volumes as they should be'
no_kernel_complaints
log 'PASS kinds'
