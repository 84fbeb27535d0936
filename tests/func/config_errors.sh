#!/bin/bash
# SPDX-License-Identifier: MIT
# Bad configurations and occupied ports: every error at once with its place, nothing started, the
# right exit status.
. "$(dirname "$0")/lib.sh"

cat >"$WORK/bad.yaml" <<'EOF'
name: bad
group:
  style: equallogic
  portal: 127.0.0.1:3260
  pools:
    - name: default
      members:
        - name: m1
          drives: {model: sas-15k-600, count: 7}
          raid: raid10
          protals: [127.0.0.1:3261]
          portals: [127.0.0.1:3261]
        - name: m2
          drives: {model: sas-15k-600, count: 8}
          raid: raid10
          portals: [127.0.0.1:3261]
  volumes:
    - {name: db1, pool: defualt, size: 1GiB}
    - {name: db2, pool: default, size: 1GIGA}
EOF
status=0
"$SANLAB" target "$WORK/bad.yaml" >"$WORK/out" 2>"$WORK/err" || status=$?
[ "$status" -eq 2 ] || fail "exit $status, not 2"
[ ! -s "$WORK/out" ] || fail "something was started: $(cat "$WORK/out")"
expect_line() { # LINE WORD
	grep -E "bad\.yaml:$1:[0-9]+:" "$WORK/err" | grep -q -- "$2" ||
		fail "no error about '$2' in line $1: $(cat "$WORK/err")"
}
expect_line 11 protals
expect_line 19 1GIGA
expect_line 18 defualt
expect_line 16 127.0.0.1:3261
expect_line 9 raid10
[ "$(grep -cE 'bad\.yaml:[0-9]+:[0-9]+:' "$WORK/err")" -eq 5 ] || fail "not five errors: $(cat "$WORK/err")"

start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)"
taken=$TARGET_PORTAL
status=0
"$SANLAB" target "$LABS/raw.yaml" --set "group.portal=$taken" >"$WORK/out" 2>"$WORK/err" || status=$?
[ "$status" -eq 3 ] || fail "port in use: exit $status, not 3"
grep -q "$taken" "$WORK/err" || fail "the port is not named: $(cat "$WORK/err")"
grep -q "$TARGET_PID" "$WORK/err" || fail "the holder is not named: $(cat "$WORK/err")"
[ ! -s "$WORK/out" ] || fail "the second target said ready"
stop_target

# A control socket's place that is an ordinary file is refused, and the file stays.
echo precious >"$WORK/notes"
status=0
"$SANLAB" target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)" --control "$WORK/notes" \
	>"$WORK/out" 2>"$WORK/err" </dev/null || status=$?
[ "$status" -eq 3 ] || fail "control socket on a file: exit $status, not 3"
grep -q precious "$WORK/notes" || fail "the file in the control socket's place is gone"

for words in "" "nonsense" "run" "run $WORK/none.yaml" "check --frobnicate $LABS/raw.yaml"; do
	status=0
	# shellcheck disable=SC2086
	"$SANLAB" $words >/dev/null 2>&1 || status=$?
	[ "$status" -eq 2 ] || fail "sanlab $words: exit $status, not 2"
done

# A benchmark that cannot be meant is refused before anything is contacted.
for words in "--bs 0" "--bs 1000" "--bs 32m" "--qd 0" "--qd 100000" "--threads 0" "--threads 65" "--time 0s"; do
	status=0
	# shellcheck disable=SC2086
	"$SANLAB" bench iscsi://127.0.0.1:9/iqn.x/0 --op read $words >"$WORK/out" 2>"$WORK/err" || status=$?
	[ "$status" -eq 2 ] || fail "bench $words: exit $status, not 2: $(cat "$WORK/err")"
done

# One of two paths that is not there makes the figure the answer to another question: exit 1.
start_target "$LABS/raw.yaml" --set "group.portal=127.0.0.1:$(free_port)"
url=iscsi://$TARGET_PORTAL/iqn.2026-11.test.sanlab:raw/0
status=0
"$SANLAB" bench "$url" "iscsi://127.0.0.1:$(free_port)/iqn.2026-11.test.sanlab:raw/0" --op read --bs 4k --qd 4 \
	--time 1s >"$WORK/out" 2>"$WORK/err" || status=$?
[ "$status" -eq 1 ] || fail "bench with a missing path: exit $status, not 1: $(cat "$WORK/err")"
stop_target
