#!/bin/bash
# SPDX-License-Identifier: MIT
# Labs that `sanlab import` and `sanlab size` print can be run; what has no meaning here is told apart
# from them, by line; wrong input is refused.
. "$(dirname "$0")/lib.sh"

xml=$TESTS/golden/JetstressConfig.xml
run() { # LAB DIR
	local status=0
	"$SANLAB" run --virtual --quiet "$1" --out "$2" --set run.duration=20s --set run.interval=5s \
		--set workload.cache-min=1MiB --set workload.cache-max=4MiB \
		--set 'workload.tuning={transient: 3, stable: 5}' >"$2.log" 2>&1 || status=$?
	[ "$status" -le 1 ] && grep -q '^  PASS  .* I/Os failed' "$2/summary.txt" ||
		fail "$1: exit status $status: $(cat "$2.log" "$2/summary.txt")"
}

"$SANLAB" import "$xml" >"$WORK/imported.yaml" 2>"$WORK/notes" || fail 'the import fails'
grep -q "^$xml:32: TestDesignInfo/OutputPath: has no meaning here: " "$WORK/notes" ||
	fail "no note with its line: $(cat "$WORK/notes")"
"$SANLAB" check --quiet "$WORK/imported.yaml" || fail 'the imported lab is refused'
run "$WORK/imported.yaml" "$WORK/imported"
reports=("$WORK"/imported/Performance_*.html)
[ ${#reports[@]} -eq 1 ] && [ -s "${reports[0]}" ] || fail 'no report of the imported test'
# Two logs on each of two volumes: every database has its own figures.
[ "$(grep -c '<td class="grid_row_header">Instance1\.[1-4]</td>' "${reports[0]}")" -ge 20 ] ||
	fail 'databases are missing in the report'

"$SANLAB" size --mailboxes 2000 --quota 1GiB --messages 250 --servers 2 >"$WORK/sized.yaml" ||
	fail 'the sizing fails'
grep -q '^#   IOPS per mailbox *0\.168$' "$WORK/sized.yaml" || fail 'not the IOPS of 250 messages'
run "$WORK/sized.yaml" "$WORK/sized"

refused() { # WORDS ARGS...
	local words=$1 status=0
	shift
	"$SANLAB" "$@" >"$WORK/out" 2>"$WORK/err" || status=$?
	[ "$status" -eq 2 ] && [ ! -s "$WORK/out" ] && grep -q "$words" "$WORK/err" ||
		fail "sanlab $*: exit status $status: $(cat "$WORK/err")"
}
printf '<!DOCTYPE c [<!ENTITY a SYSTEM "/etc/hostname">]>\n<configuration>&a;</configuration>' >"$WORK/evil.xml"
refused 'evil.xml:1: it declares a document type' import "$WORK/evil.xml"
refused 'cannot read it: No such file' import "$WORK/none.xml"
refused 'did you mean exchange-2013' size --mailboxes 1 --quota 1GiB --profile exchange-2031
refused 'mailboxes and their quota are needed' size --mailboxes 10
