#!/bin/bash
# SPDX-License-Identifier: MIT
# Traces in and out: the replay lab passes and is recorded; fio replays the recording, and we what fio
# recorded; every excerpt replays, plain and compressed; mistakes are told with their place.
. "$(dirname "$0")/lib.sh"
require jq

lab=$LABS/replay.yaml
traces=$TESTS/traces
cd "$WORK" || exit 1
virtual() { # LOG ARGS...: the lab in virtual time, its map left out
	local log=$1
	shift
	run_passes "$log" --virtual "$lab" --set run.verify=true "$@"
}
sent() { jq .replay.sent "$1/run.json"; }

# --- in real time, recorded
port() { free_port; }
member=group.pools.default.members.m1
run_passes summary "$lab" --set "group.portal=127.0.0.1:$(port)" \
	--set "$member.portals=[127.0.0.1:$(port), 127.0.0.1:$(port)]" --set run.duration=2s \
	--set expect.0.p99-lateness='<= 5s' --out out --record run.fio || fail "run failed: $(cat summary)"
[ "$(jq '.replay.lateness.ios > 100' out/run.json)" = true ] || fail "no lateness was told"
ios=$(sent out)
lines=$(grep -cE ' (read|write|sync|trim) ' run.fio)
[ "$ios" = "$lines" ] || fail "$ios I/Os were sent, $lines recorded"
grep -q 'I/Os were recorded' summary || fail "nothing is said of the recording"

# --- fio takes the recording
if command -v fio >/dev/null; then
	truncate -s 1G mbx1.db1 mbx1.db2 && truncate -s 256M mbx1.logs
	fio --name=r --ioengine=psync --read_iolog=run.fio --output-format=json --output=fio.json 2>fio.err ||
		fail "fio refuses the recording: $(cat fio.err)"
	[ ! -s fio.err ] || fail "fio complains of the recording: $(cat fio.err)"
	of_fio=$(jq '.jobs[0] | .read.total_ios + .write.total_ios + .sync.total_ios' fio.json)
	[ "$of_fio" = "$lines" ] || fail "fio did $of_fio of $lines I/Os"
	# ... and writes what we take
	fio --name=w --filename="$WORK/file" --ioengine=psync --rw=randrw --bs=4k --size=4m --io_size=1m --fsync=8 \
		--write_iolog=of.fio --output=/dev/null || fail "fio --write_iolog failed"
	fio --name=w --filename="$WORK/file" --ioengine=psync --rw=randwrite --bs=4k --size=1m --io_size=128k \
		--fdatasync=1 --write_iolog=of2.fio --output=/dev/null || fail "fio --write_iolog failed"
	for log in of.fio of2.fio; do
		virtual v.log --set "workload.traces=[$log]" --set workload.map=[] --set workload.whole=true \
			--set workload.loops=1 --out v || fail "cannot replay fio's own log: $(cat v.log)"
		lines=$(grep -cE ' (read|write|sync|datasync) ' "$log")
		[ "$(sent v)" = "$lines" ] || fail "$(sent v) of $lines I/Os of fio were replayed"
		[ "$(jq .replay.trace.malformed_lines v/run.json)" = 0 ] || fail "lines of fio are malformed"
	done
fi

# --- our own recording, and every excerpt
virtual v.log --set "workload.traces=[run.fio]" --set workload.map=[] --set workload.whole=true \
	--set workload.loops=1 --out v --record again.fio.gz || fail "cannot replay a recording: $(cat v.log)"
[ "$(sent v)" = "$ios" ] || fail "$(sent v) of $ios recorded I/Os were replayed"
[ "$(gunzip -c again.fio.gz | grep -cE ' (read|write|sync|trim) ')" = "$ios" ] || fail "the second recording differs"
for file in "$traces"/*; do
	gzip -c "$file" >excerpt.gz
	for trace in "$file" excerpt.gz; do
		virtual v.log --set "workload.traces=[$trace]" --set workload.map=[] --set workload.whole=true \
			--set workload.loops=20 --out v || fail "$file: $(cat v.log)"
		[ "$(jq '.replay.finished and .replay.passes == 20' v/run.json)" = true ] || fail "$file: not to its end"
	done
	sent v
done
for mode in afap dependency; do
	virtual v.log --set "workload.traces=[$traces/msr.csv]" --set workload.map=[] --set workload.whole=true \
		--set workload.loops=20 --set "workload.mode=$mode" --set expect=[] --out v || fail "$mode: $(cat v.log)"
	[ "$(sent v)" = 720 ] || fail "$mode: $(sent v) I/Os, not 720"
done

# --- mistakes
refused() { # WHAT SETS...
	local what=$1 status=0
	shift
	"$SANLAB" run --virtual "$lab" "$@" >err.log 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "$*: exit $status: $(cat err.log)"
	grep -qF -- "$what" err.log || fail "$*: not told '$what': $(cat err.log)"
}
printf '0,1,512,R,0.1\n0,2 448003,512,R,0.2\n' >bad.csv
refused "bad.csv:2: the LBA is '2 448003'" --set 'workload.traces=[bad.csv]' --set workload.max-bad-lines=0 \
	--set workload.map=[]
refused "cannot open trace 'nothing.csv'" --set 'workload.traces=[nothing.csv]'
refused 'mode: dependency needs to know when' --set "workload.traces=[$traces/spc.csv]" \
	--set workload.mode=dependency --set workload.map=[]
refused 'traces of format spc do not tell files' --set "workload.traces=[$traces/spc.csv]"
refused "no host has a volume 'db9'" --set 'workload.map=[{from: "*", to: [db9]}]'
refused "'whole' with loops: 0" --set workload.whole=true
refused 'would overwrite the trace' --set "workload.traces=[run.fio]" --set workload.map=[] --record run.fio
[ -s run.fio ] || fail "the trace was overwritten"
status=0
"$SANLAB" run --virtual "$lab" --record /nowhere/x.fio >err.log 2>&1 || status=$?
[ "$status" -eq 3 ] && grep -q 'cannot record into' err.log || fail "exit $status: $(cat err.log)"
