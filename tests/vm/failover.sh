#!/bin/bash
# SPDX-License-Identifier: MIT
# In the guest: dm-multipath over all portals, a verified load at a fixed rate for $RUN seconds while the
# target on the host plays a fault timeline; then every path is back.
#   $PATHS: how many; $GROUPING: multibus, or group_by_prio where access is asymmetric
. /host/.vmlab/lib.sh
. /host/lib.sh

sed -i "s/path_grouping_policy .*/path_grouping_policy $GROUPING\n    detect_prio yes/" /host/multipath.conf
attach
disk=$(basename "$(readlink -f "$MAP")")

# What systemd's units and udev do not touch: the map itself, past the page cache.
fio --name=load --filename="$MAP" --direct=1 --ioengine=libaio --iodepth=8 --rw=randwrite --bs=16k \
	--size=$((RUN * 50 * 16))k --rate_iops=,50 --rate_process=linear --verify=crc32c --verify_fatal=1 \
	--write_iops_log=/tmp/load --log_avg_msec=0 --output-format=json --output=/tmp/load.json ||
	{ dmesg | tail -n 30; die 'fio found an error'; }
python3 - <<'END'
import json
text = open('/tmp/load.json').read()
job = json.loads(text[text.index('{'):])['jobs'][0]
rows = (line.split(',') for line in open('/tmp/load_iops.1.log'))
times = sorted(int(row[0]) for row in rows if row[2].strip() == '1')
gap = max(b - a for a, b in zip(times, times[1:])) / 1000
print('fact: error=%d, %d writes verified, longest gap between writes %.1f s' %
      (job['error'], job['read']['total_ios'], gap))
assert job['error'] == 0 and job['read']['total_ios'] >= job['write']['total_ios']
END
[ $? -eq 0 ] || die 'fio did not verify what it wrote'
wait_for 60 paths_active || { multipath -ll; die "not all $PATHS paths came back"; }
fact "all $PATHS paths are back"
[ "$(dmsetup info -c --noheadings -o suspended "$disk" 2>/dev/null)" != Suspended ] || die 'the map is suspended'
detach
