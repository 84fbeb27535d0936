#!/bin/bash
# SPDX-License-Identifier: MIT
# In the guest: what sg3-utils say about the logical unit through Linux' SCSI stack.  Every tool must
# understand the answer; transcripts go to /host/transcripts, for eyes.
. /host/.vmlab/lib.sh
. /host/lib.sh

mkdir -p /host/transcripts
failures=0 steps=0
UNIT_ATTENTION=6 # the status of sg3-utils for it
# tool NAME STATUS COMMAND...: its output must come with that exit status of sg3-utils (0 good, 5 invalid
# field, 9 invalid operation code, 14 miscompare, 24 reservation conflict).
tool() {
	local name=$1 want=$2 got=0 out=/host/transcripts/$1.txt
	shift 2
	steps=$((steps + 1))
	echo "\$ $*" >"$out"
	timeout 120 "$@" >>"$out" 2>&1 || got=$?
	if [ "$got" -eq $UNIT_ATTENTION ]; then # the doing of the other nexus: told once
		got=0
		timeout 120 "$@" >>"$out" 2>&1 || got=$?
	fi
	echo "status $got" >>"$out"
	if [ "$got" -ne "$want" ]; then
		log "NOT OK $name: status $got, expected $want: $(tail -n 4 "$out" | tr '\n' '|')"
		failures=$((failures + 1))
	fi
}
# shows NAME PATTERN: the tool's output must hold it.
shows() {
	grep -qE -- "$2" "/host/transcripts/$1.txt" && return
	log "NOT OK $1: nothing like '$2' in its output"
	failures=$((failures + 1))
}
shows_not() {
	grep -qE -- "$2" "/host/transcripts/$1.txt" || return 0
	log "NOT OK $1: '$2' in its output"
	failures=$((failures + 1))
}

attach
mapfile -t disks < <(multipathd show paths raw format %d)
a=/dev/${disks[0]} b=/dev/${disks[1]}
log "paths $a and $b"
lsscsi -t -s -p
lsscsi -U

# Inquiry and vital product data
tool inq 0 sg_inq "$a"
shows inq 'Vendor identification: SANLAB'
tool inq-versions 0 sg_inq -d "$a"
tool inq-hex 0 sg_inq -HHH "$a"
tool vpd-all 0 sg_vpd -a -l "$a"
shows_not vpd-all 'fetching VPD page failed|malformed|too short|unexpected'
tool vpd-all-hex 0 sg_vpd -a -HHH "$a"
for page in sv sn di bl bdc lbpv; do
	tool "vpd-$page" 0 sg_vpd -p $page -l "$a"
done
tool vpd-di-b 0 sg_vpd -p di -l "$b"
shows vpd-lbpv 'Unmap command supported \(LBPU\): 1'
# The unit's own designators are the same on both paths, the port's differ.
for path in a b; do
	sg_vpd -p di_lu "${!path}" >/tmp/lu.$path
	sg_vpd -p di_port "${!path}" >/tmp/port.$path
done
cmp /tmp/lu.a /tmp/lu.b || { log 'NOT OK vpd: the paths name the unit differently'; failures=$((failures + 1)); }
! cmp -s /tmp/port.a /tmp/port.b || { log 'NOT OK vpd: both paths name the same port'; failures=$((failures + 1)); }
tool vpd-invalid 5 sg_vpd -p 0xfe --force "$a"

# Capacity, units, modes
tool readcap16 0 sg_readcap -16 "$a"
shows readcap16 'lbpme=1'
tool readcap10 0 sg_readcap "$a"
tool luns 0 sg_luns "$a"
tool luns-all 0 sg_luns -s 2 "$a"
tool luns-wellknown 0 sg_luns -s 1 "$a"
tool tur 0 sg_turs "$a"
tool requests 0 sg_requests "$a"
tool lba-status 0 sg_get_lba_status "$a"
tool lba-status-32 0 sg_get_lba_status -m 256 -l 1000 "$a"
tool modes 0 sg_modes -a "$a"
tool modes-6 0 sg_modes -6 -a "$a"
tool modes-changeable 0 sg_modes -c 1 -a "$a"
tool modes-default 0 sg_modes -c 2 -a "$a"
tool modes-longlba 0 sg_modes -L -a "$a"
tool logs-list 0 sg_logs -a "$a"
tool start 0 sg_start --start "$a"
tool sync 0 sg_sync "$a"
tool verify 0 sg_verify --lba=0 --count=128 "$a"
tool rtpg 0 sg_rtpg -d "$a"
tool rtpg-extended 0 sg_rtpg -e -d "$a"
shows rtpg 'target port group asymmetric access state'
tool rtpg-b 0 sg_rtpg -d "$b"

# Explicit ALUA: one group, non-optimized and back; the other nexus is told, and Linux takes it.
access_states() { # STATE: the kernel has it for both paths
	local disk
	for disk in "${disks[@]}"; do
		grep -qx "$1" "/sys/block/$disk/device/access_state" || return
	done
}
taken() {
	wait_for 30 access_states "$1" && return
	log "NOT OK alua: not $1 for the kernel: $(cat /sys/block/sd*/device/access_state | tr '\n' ' ')"
	failures=$((failures + 1))
}
taken active/optimized
tool stpg 0 sg_stpg --tp=1 --state=an "$a"
tool rtpg-non-optimized 0 sg_rtpg -d "$b"
shows rtpg-non-optimized 'active/non optimized'
taken active/non-optimized
tool stpg-back 0 sg_stpg --tp=1 --state=ao "$a"
tool rtpg-optimized 0 sg_rtpg -d "$b"
shows rtpg-optimized 'active/optimized'
taken active/optimized
tool stpg-unknown-group 0 sg_stpg --tp=77 --state=ao "$a" # and says so
shows stpg-unknown-group 'Illegal request'

# Supported operation codes and task management functions
tool opcodes 0 sg_opcodes "$a"
shows opcodes '^ *2a .*Write\(10\)'
shows opcodes '^ *04 .*Format [Uu]nit'
shows opcodes '^ *1d .*Send [Dd]iagnostic'
tool opcodes-timeouts 0 sg_opcodes -R "$a"
tool opcodes-hex 0 sg_opcodes -HH "$a"
for code in 0x00 0x12 0x28 0x2a 0x42 0x89 0x93 0x9e,0x10 0x9e,0x12 0xa3,0x0a 0xa3,0x0c 0xa3,0x0d 0x5e,0x00 0x5f,0x00; do
	tool "opcode-$code" 0 sg_opcodes -o "$code" "$a"
done
tool opcode-none 0 sg_opcodes -o 0xff "$a"
tool tmfs 0 sg_opcodes -t "$a"

# Data: written, compared, unmapped.  The map is not used meanwhile.
dd if=/dev/urandom of=/tmp/data bs=64k count=1 status=none
tool write 0 sg_dd if=/tmp/data of="$a" bs=512 seek=0 count=128 blk_sgio=1 cdbsz=16
tool read-b 0 sg_dd if="$b" of=/tmp/back bs=512 skip=0 count=128 blk_sgio=1
cmp -n 65536 /tmp/data /tmp/back || { log 'NOT OK data: other data came back over the other path'; failures=$((failures + 1)); }
tool lba-status-written 0 sg_get_lba_status -l 0 "$a"
shows lba-status-written 'mapped'
tool write-same 0 sg_write_same --10 --in=/tmp/data --lba=256 --num=64 --xferlen=512 "$a"
tool write-same-16 0 sg_write_same --16 --unmap --lba=256 --num=64 --xferlen=512 "$a"
tool write-same-ndob 0 sg_write_same --ndob --lba=256 --num=64 "$a"
tool unmap 0 sg_unmap --force --lba=0 --num=128 "$a"
tool compare-and-write-miss 14 sg_compare_and_write --in=/tmp/data --lba=0 --num=1 "$a"
dd if=/tmp/data of=/tmp/caw bs=512 count=1 status=none
dd if=/dev/zero of=/tmp/zero bs=512 count=1 status=none
cat /tmp/zero /tmp/caw >/tmp/caw-pair
tool compare-and-write 0 sg_compare_and_write --in=/tmp/caw-pair --lba=0 --num=1 "$a"
tool write-verify 0 sg_write_verify --16 --in=/tmp/data --lba=1024 --num=128 "$a"
tool verify-data 0 sg_verify --16 --in=/tmp/data --ndo=65536 --lba=1024 --count=128 "$a"
tool xcopy 0 sg_xcopy if="$a" of="$a" skip=1024 seek=4096 count=128 bs=512
tool verify-xcopy 0 sg_verify --16 --in=/tmp/data --ndo=65536 --lba=4096 --count=128 "$b"
tool referrals 0 sg_referrals "$a"
tool sanitize 0 sg_sanitize --block --quick --wait "$a"
tool lba-status-sanitized 0 sg_get_lba_status "$a"
tool self-test 0 sg_senddiag --test "$a"
tool self-test-extended 5 sg_senddiag --selftest=2 "$a"
tool write-before-format 0 sg_dd if=/tmp/data of="$a" bs=512 seek=0 count=128 blk_sgio=1 cdbsz=16
tool format 0 sg_format --format --quick --wait "$a"
tool lba-status-formatted 0 sg_get_lba_status -l 0 "$b"
shows_not lba-status-formatted ' mapped'
tool reset-lun 0 sg_reset -d "$a"
tool tur-after-reset 0 sg_turs -n 3 "$a"

# Persistent reservations: two nexuses, write exclusive for registrants
tool pr-caps 0 sg_persist -i -c "$a"
tool pr-keys-none 0 sg_persist -i -k "$a"
tool pr-reservation-none 0 sg_persist -i -r "$a"
tool pr-register-a 0 sg_persist -o -G -S 0xa1 "$a"
tool pr-keys-a 0 sg_persist -i -k "$a"
shows pr-keys-a '0xa1'
tool pr-reserve 0 sg_persist -o -R -K 0xa1 -T 5 "$a"
tool pr-reservation 0 sg_persist -i -r "$b"
shows pr-reservation 'Key=0xa1'
shows pr-reservation 'Write Exclusive, registrants only'
tool pr-write-conflict 24 sg_write_same --10 --in=/tmp/data --lba=256 --num=8 --xferlen=512 "$b"
tool pr-read-allowed 0 sg_dd if="$b" of=/dev/null bs=512 count=8 blk_sgio=1
tool pr-register-b 0 sg_persist -o -G -S 0xb2 "$b"
tool pr-write-registered 0 sg_write_same --10 --in=/tmp/data --lba=256 --num=8 --xferlen=512 "$b"
tool pr-full-status 0 sg_persist -i -s "$a"
shows pr-full-status 'iqn\.2026-01\.test\.vmlab:guest'
tool pr-release 0 sg_persist -o -L -K 0xa1 -T 5 "$a"
tool pr-reservation-released 0 sg_persist -i -r "$a"
shows pr-reservation-released 'there is NO reservation held'
tool pr-reserve-exclusive 0 sg_persist -o -R -K 0xa1 -T 3 "$a"
tool pr-read-conflict 24 sg_verify --lba=0 --count=8 "$b"
tool pr-preempt 0 sg_persist -o -P -K 0xb2 -S 0xa1 -T 3 "$b"
tool pr-keys-preempted 0 sg_persist -i -k "$b"
tool pr-clear 0 sg_persist -o -C -K 0xb2 "$b"
tool pr-keys-cleared 0 sg_persist -i -k "$b"
shows pr-keys-cleared 'NO registered'

# The same through dm-multipath: one key for the host, on both paths.
key=0x5a17ab
tool mp-register 0 mpathpersist --out --register --param-sark=$key "$MAP"
tool mp-keys 0 mpathpersist --in --read-keys "$MAP"
shows mp-keys "$key"
[ "$(sg_persist -i -k "$a" | grep -c "$key")" = 2 ] || { log 'NOT OK mp: not two keys'; failures=$((failures + 1)); }
tool mp-reserve 0 mpathpersist --out --reserve --param-rk=$key --prout-type=5 "$MAP"
tool mp-reservation 0 mpathpersist --in --read-reservation "$MAP"
shows mp-reservation "$key"
tool mp-write 0 dd if=/dev/zero of="$MAP" bs=64k count=16 oflag=direct
tool mp-release 0 mpathpersist --out --release --param-rk=$key --prout-type=5 "$MAP"
tool mp-clear 0 mpathpersist --out --clear --param-rk=$key "$MAP"

dmesg >/host/transcripts/dmesg.txt
kernel_complaints | tail -n 20
multipath -ll
fact "$((steps)) tools ran, $failures findings"
detach
[ "$failures" -eq 0 ] || die "$failures findings"
log 'PASS scsi'
