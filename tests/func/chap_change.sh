#!/bin/bash
# SPDX-License-Identifier: MIT
# The target's CHAP secret for a host changes under load: sessions stay, but a path that has to log in again
# is refused until the old secret is back; nothing fails meanwhile.
. "$(dirname "$0")/lib.sh"

(umask 077 && printf 'exchange a-secret-of-20-bytes\n' >"$WORK/secrets")
cat >"$WORK/lab.yaml" <<END
name: chap-change
group:
  style: lun
  portal: 127.0.0.1:$(free_port)
  chap: {secrets: $WORK/secrets}
  pools:
    - {name: default, members: [{name: m1, drives: {count: 2}, raid: raid0, portals: [127.0.0.1:$(free_port)]}]}
  volumes: [{name: v1, size: 64MiB}]
hosts:
  - {name: h1, chap-user: exchange, volumes: [v1], mpio: {reconnect-max: 500ms}}
workload: {type: raw, op: rw, rate: 200, block-size: 8KiB}
run: {warmup: 200ms, duration: 5s}
faults:
  - {at: 500ms, chap-secret: {user: exchange}, for: 2s}
  - {at: 1s, path-reset: {host: h1, path: 1}}
expect: [{data-mismatches: 0}, {io-errors: 0}]
END
status=0
"$SANLAB" run "$WORK/lab.yaml" --out "$WORK/out" >"$WORK/out.txt" 2>&1 || status=$?
if [ "$status" -eq 1 ]; then
	grep '^  FAIL ' "$WORK/out.txt" | grep -qv 'achieved .* of' && fail "$(cat "$WORK/out.txt")"
elif [ "$status" -ne 0 ]; then
	fail "exit $status: $(cat "$WORK/out.txt")"
fi
# The login in between is refused, one after the old secret is back succeeds.
python3 - "$WORK/out/events.jsonl" <<'END' || fail "$(grep '"t":"path"' "$WORK/out/events.jsonl")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
back = next(e["at_ns"] for e in events if e["t"] == "fault" and e["fault"] == "chap-secret" and not e["begin"])
paths = [e for e in events if e["t"] == "path" and e["path"] == 1]
assert any(e["to"] == "down" and e["from"] == "connecting" and e["at_ns"] < back for e in paths), "not refused"
assert not any(e["to"] == "up" and e["at_ns"] < back for e in paths), "let in with the old secret"
assert any(e["to"] == "up" and e["at_ns"] >= back for e in paths), "not back"
END
grep -rq 'a-secret-of-20-bytes' "$WORK/out" "$WORK/out.txt" && fail "the secret is in the reports"
exit 0
