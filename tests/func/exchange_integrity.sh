#!/bin/bash
# SPDX-License-Identifier: MIT
# What happens to a database between two runs behind everybody's back, in the files of its only drive, is
# found by the next run and has its name: a flipped bit, an older version of a page, a page of elsewhere, a
# torn one, one of another creation.  A run on what nobody has touched reports nothing.
. "$(dirname "$0")/lib.sh"

require python3
port=$(free_port)
store=$WORK/store
cat >"$WORK/lab.yaml" <<-END
	name: integrity
	seed: 5
	group:
	  style: lun
	  portal: 127.0.0.1:$port
	  pools:
	    - name: default
	      members:
	        - {name: m1, drives: {model: sas-15k-600, count: 2, spares: 0, size: 96MiB}, raid: raid0, checksums: false, store: {file: $store}}
	  volumes:
	    - {name: db1, pool: default, size: 96MiB, thin: true}
	hosts:
	  - {name: mbx1, volumes: [db1]}
	workload: {type: exchange, engine: ese, mailboxes: 20, sessions: 4, initial-size: 16MiB, cache-min: 2MiB, cache-max: 4MiB, log-files: 16, checkpoint-depth: 4MiB}
	run: {warmup: 300ms, duration: 2s}
	expect:
	  - {data-mismatches: 0}
END

run() { # NAME ARGS...: leaves kind=count of what was found in $WORK/NAME.found
	local out=$WORK/$1 status=0
	shift
	"$SANLAB" run "$WORK/lab.yaml" --out "$out" "$@" >"$out.log" 2>&1 || status=$?
	[ "$status" -le 1 ] || fail "${out##*/}: exit status $status: $(cat "$out.log")"
	python3 - "$out/run.json" >"$out.found" <<-'PY' || fail "${out##*/}: no such run.json"
		import json, sys
		run = json.load(open(sys.argv[1]))
		for kind, count in sorted(run["data_check"]["mismatches"]["by_kind"].items()):
		    if count:
		        print(kind)
	PY
}
found() { # NAME KIND...
	local name=$1
	shift
	[ "$(xargs <"$WORK/$name.found")" = "$*" ] || fail "$name: found '$(xargs <"$WORK/$name.found")' instead of '$*'"
}

run first
found first
cp -a --sparse=always "$store" "$WORK/first.store" || fail 'no copy of the store'
run again --set workload.databases=new
found again
cp -a --sparse=always "$store" "$WORK/again.store" || fail 'no copy of the store'
run honest
found honest

# Pages in the drives' files: told by magic, place, and a flush number in each of their units.
python3 - "$WORK" "$store"/*.drive <<'PY' || fail 'cannot meddle'
import re, sys
work, files = sys.argv[1], sys.argv[2:]
PAGE, UNIT = 32768, 4096
creation, flush, number, level = slice(8, 24), 28, slice(32, 40), 29
def pages(path):
    data = open(path, "rb").read()
    for hit in re.finditer(rb"ESEP", data):
        at = hit.start() - 4
        page = data[at:at + PAGE] if at % UNIT == 0 else b""
        if len(page) == PAGE and page[level] == 0 and all(page[(i + 1) * UNIT - 1] == page[flush] for i in range(8)):
            yield at, page
def put(path, at, what):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(what)
def of(store):
    return {page[number]: page for f in files for _, page in pages(f.replace("/store/", "/" + store + "/"))}
first, again = of("first.store"), of("again.store")
now = [(f, at, page) for f in files for at, page in pages(f)]
changed = [entry for entry in now if again.get(entry[2][number], entry[2])[flush] != entry[2][flush]]
victims = [entry for entry in now if entry[2][number] in first and entry not in changed[:1]][:6]
assert changed and len(victims) == 6 and all(first[v[2][number]][creation] != v[2][creation] for v in victims)
f, at, page = changed[0]
put(f, at, again[page[number]])  # stale
f, at, page = victims[0]
put(f, at, first[page[number]])  # foreign
f, at, page = victims[1]
put(f, at + 9000, bytes([page[9000] ^ 1]))  # corrupt
f, at, page = victims[2]
put(f, at + 5 * UNIT, bytes(3 * UNIT))  # torn
f, at, page = victims[3]
put(f, at, victims[4][2])  # misdirected
f, at, page = victims[5]
put(f, at, bytes(PAGE))  # never written
PY
run meddled
found meddled corrupt foreign misdirected never-written stale torn
grep -q '^FAIL' "$WORK/meddled.log" || fail 'the run has passed'
