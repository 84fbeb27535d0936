#!/bin/bash
# SPDX-License-Identifier: MIT
# In the guest: a file system on a dm-multipath map, discards on the way and by fstrim, a check of the
# file system.  Space that it gives back leaves the volume, as the target's status tells.
. /host/.vmlab/lib.sh
. /host/lib.sh

attach
disk=$(basename "$(readlink -f "$MAP")")
for queue in /sys/block/sd[a-z]/queue "/sys/block/$disk/queue"; do
	echo "$queue: $(cd "$queue" && grep -H . discard_granularity discard_max_bytes write_zeroes_max_bytes \
		write_same_max_bytes logical_block_size physical_block_size minimum_io_size optimal_io_size \
		max_sectors_kb write_cache fua rotational 2>/dev/null | tr '\n' ' ')"
done
grep -H . /sys/class/scsi_disk/*/{provisioning_mode,thin_provisioning,zeroing_mode,cache_type,FUA,protection_type}
[ "$(cat "/sys/block/$disk/queue/discard_max_bytes")" -gt 0 ] || die 'the map takes no discards'

# A file of pages of the volume (15 MiB) and then some; pages that it only touches stay.
size=160 slack=60
pattern() { yes "sanlab thin provisioning $1" | head -c ${size}M; }
# Byte for byte, from the volume and not from the page cache; in small reads, since the VM's emulated
# network stalls on large ones.
same() { # FILE NUMBER
	dd if="$1" bs=64k iflag=direct status=none | cmp - <(pattern "$2") || die 'read other data than was written'
}
zeros() { dd if="$MAP" bs=64k count=256 iflag=direct status=none | cmp -n $((16 << 20)) - /dev/zero; }
settle() { # OPERATOR MIB: the space that the target has given to the volume
	wait_for 30 eval "[ \"\$(allocated_mib)\" $1 $2 ]" || die "allocated $(allocated_mib) MiB, expected $1 $2"
}

log "before: $(allocated_mib) MiB"
mkfs.ext4 -q "$MAP" || die mkfs.ext4
made=$(allocated_mib)
log "after mkfs.ext4: $made MiB"
mkdir -p /mnt
mount -o discard "$MAP" /mnt || die mount

log 'a file, read back past the page cache'
pattern 1 >/mnt/one || die write
sync
same /mnt/one 1
full=$(allocated_mib)
log "with a file of $size MiB: $full MiB"
[ "$full" -ge $((made + size - 15)) ] || die "only $full MiB are allocated"

log 'removed: the mount option discards'
rm /mnt/one
sync
settle -le $((made + slack))
online=$(allocated_mib)
log "after rm: $online MiB"

log 'without the mount option, then fstrim'
mount -o remount,nodiscard /mnt || die remount
pattern 2 >/mnt/two || die write
sync
rm /mnt/two
sync
again=$(allocated_mib)
[ "$again" -ge $((made + size - 15)) ] || die "only $again MiB are allocated, without any discard"
fstrim -v /mnt || die fstrim
settle -le $((made + slack))
trimmed=$(allocated_mib)
log "before fstrim $again MiB, after $trimmed MiB"

log 'what was trimmed reads as zeros, what was not is whole'
pattern 3 >/mnt/three || die write
fstrim -v /mnt || die fstrim
umount /mnt
fsck.ext4 -f -n "$MAP" || die fsck.ext4
mount "$MAP" /mnt || die mount
same /mnt/three 3
umount /mnt

log 'the whole device: zeros written, then discarded'
blkdiscard -z -o 0 -l $((32 << 20)) "$MAP" || die 'blkdiscard -z'
zeros || die 'not zero after blkdiscard -z'
blkdiscard "$MAP" || die blkdiscard
settle -eq 0
log "after blkdiscard: $(allocated_mib) MiB"
zeros || die 'not zero after blkdiscard'

fact "allocated MiB: mkfs $made, file $full, rm $online, file $again, fstrim $trimmed, blkdiscard 0"
detach
no_kernel_complaints
log 'PASS thin'
