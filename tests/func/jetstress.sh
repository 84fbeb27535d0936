#!/bin/bash
# SPDX-License-Identifier: MIT
# Jetstress' tests on the database engine: each kind passes, fails by its criteria, and says why.
. "$(dirname "$0")/lib.sh"

cat >"$WORK/lab.yaml" <<'END'
name: jetstress
seed: 7
virtual: {network: none}
group:
  style: lun
  portal: 127.0.0.1:3260
  pools:
    - name: default
      members:
        - name: m1
          drives: {model: sas-15k-600, count: 4}
          raid: raid10
          portals: [127.0.0.1:3261]
          store: memory
  volumes:
    - {name: db1, size: 256MiB}
    - {name: db2, size: 256MiB}
hosts:
  - {name: mbx1, volumes: [db1, db2]}
workload:
  type: exchange
  engine: ese
  mailboxes: 500
  copies: 1
  sessions: 3
  initial-size: 64MiB
  cache-min: 1MiB
  cache-max: 12MiB
  tuning: {transient: 5, stable: 20}
run: {warmup: 1s, duration: 90s}
expect: [{data-mismatches: 0}, {io-errors: 0}]
END

run() { # DIR ARGS...
	local dir=$1
	shift
	"$SANLAB" run --virtual --quiet "$WORK/lab.yaml" --out "$WORK/$dir" "$@"
}
passes() {
	run "$@" || fail "$1: $(cat "$WORK/$1/summary.txt")"
}
fails() { # DIR TEXT ARGS...
	local dir=$1 text=$2 status=0
	shift 2
	run "$dir" "$@" || status=$?
	[ "$status" -eq 1 ] || fail "$dir: left with $status"
	tr -s ' \n' ' ' <"$WORK/$dir/summary.txt" | grep -qF "$text" ||
		fail "$dir does not say '$text': $(cat "$WORK/$dir/summary.txt")"
}
holds() { # DIR PYTHON: with run, test (run["exchange"]), server, log (its lines) and ids of verdicts
	python3 - "$WORK/$1/run.json" "$2" <<-'END' || fail "$1: $2"
		import json, sys
		run = json.load(open(sys.argv[1]))
		test = run["exchange"]
		server = test["servers"][0]
		log = [line["text"] for line in test["log"]]
		ids = [verdict["id"] for verdict in run["verdicts"]]
		window = (run["window"]["end_ns"] - run["window"]["start_ns"]) / 1e9
		exec(sys.argv[2])
	END
}

# Performance: the sessions are given; samples of 15 s.
passes performance
holds performance 'assert test["test"] == "performance" and test["error"] is None, test
assert test["tuning"]["result"] == "not run" and server["sessions"] == 3
assert run["samples"]["measured"].count(True) == 6, run["samples"]["measured"]
assert set(run["samples"]["length_ns"][-6:]) == {15 * 10**9}
assert server["achieved_iops"] >= server["target_iops"] == 84, server
assert server["transactions"] == sum(db["transactions"] for db in server["databases"]) > 1000
assert abs(server["databases"][0]["transactions"] - server["databases"][1]["transactions"]) <= 1
assert test["warm_up"]["met"] and test["warm_up"]["cache_bytes"] >= 0.9 * 24 * 2**20, test["warm_up"]
assert test["checksum"]["pages"] > 100 and test["checksum"]["bad"] == 0, test["checksum"]
assert all(id in ids for id in ("achieved-iops", "page-fault-stalls", "db-read-latency mbx1/db1",
    "db-read-maximum mbx1/db2", "log-write-maximum mbx1/db1", "checksum", "log-checksum")), ids
assert any(line.startswith("JetInterop batch transaction stats: ") for line in log), log
names = [counter["name"] for counter in server["host_counters"]]
assert names == ["Database Page Fault Stalls/sec"], names'

# The same with automatic tuning, and with the rate of the target held.
passes tuned --set workload.sessions=auto --set workload.tuning.start=1 --set run.duration=30s
holds tuned 'cycles = test["tuning"]["cycles"]
assert test["tuning"]["result"] == "succeeded" and len(cycles) > 1, test["tuning"]
assert cycles[0]["sessions"] == 1 and cycles[0]["verdict"] == "too few I/Os"
assert cycles[-1]["verdict"] == "accepted" and cycles[-1]["sessions"] == server["sessions"]
assert [cycle["next_sessions"] for cycle in cycles[:-1]] == [cycle["sessions"] for cycle in cycles[1:]]
assert "Automatic tuning succeeded." in log, log'
passes open --set workload.loop=open --set workload.sessions=auto --set run.duration=4m
holds open 'assert server["loop"] == "open" and server["sessions"] == 0
assert abs(server["achieved_iops"] / 84 - 1) < 0.05, server["achieved_iops"]'

# Each criterion fails by itself.
fails slow 'average database read latency of mbx1/db1 50.0 us (limit 20.0 us)' \
	--set workload.thresholds.avg-db-read=20us
fails short '(limit 95 %)' --set workload.mailboxes=100000
fails untuned 'automatic tuning of mbx1 failed' --set workload.sessions=auto \
	--set workload.thresholds.avg-log-write=20us
holds untuned 'assert window == 0 and test["tuning"]["result"] == "failed"
assert "tuning" in ids and "achieved-iops" not in ids, ids
assert test["error"] in run["error"]["message"]'
fails cold 'prerequisites were not attained' --set workload.loop=open --set workload.sessions=auto \
	--set workload.mailboxes=1 --set workload.warm-up.limit=10s

# A test of more than six hours is a stress test.
passes stress --set run.duration=7h --set workload.loop=open --set workload.sessions=auto \
	--set workload.mailboxes=10 --set workload.bdm=false
holds stress 'assert test["test"] == "stress" and test["thresholds"]["max_db_read_ns"] == 200 * 10**6
assert test["checksum"]["bad"] == 0'

# Backup and recovery end by themselves, whatever the duration.
passes backup --set workload.test=database-backup
holds backup 'assert test["test"] == "database-backup" and window < 90, window
for db in server["databases"]:
    assert db["backup"]["bytes"] == 64 * 2**20 - 2 * 32768, db
    assert db["backup"]["bytes_per_s"] > 0
assert "backup" in ids and "achieved-iops" not in ids, ids'
passes recovery --set workload.test=soft-recovery --set workload.recovery.files=8
holds recovery 'assert test["test"] == "soft-recovery" and window < 90, window
for db in server["databases"]:
    assert db["recovery"]["files"] >= 7.9 and db["recovery"]["seconds_per_file"] > 0, db
assert "soft-recovery" in ids and test["checksum"]["bad"] == 0'
run refused --set workload.test=soft-recovery --set workload.recovery.files=100 \
	--set workload.log-files=64 2>"$WORK/refused.txt" && fail "a log that is too small is taken"
grep -q "'log-files' must be at least" "$WORK/refused.txt" || fail "$(cat "$WORK/refused.txt")"
