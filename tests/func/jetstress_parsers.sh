#!/bin/bash
# SPDX-License-Identifier: MIT
# Reports in Jetstress' layout are read as scripts read Jetstress' own: by line (as xExchange's
# PowerShell does), by searching for a cell (grep), by place of sections, rows and cells (as parsers of
# the HTML do).  What they find is what run.json holds.
. "$(dirname "$0")/lib.sh"

lab=$LABS/exchange-ese.yaml
out=$WORK/out
run() { # DIR ARGS...: two servers with two small databases each
	local dir=$1 status=0
	shift
	"$SANLAB" run "$lab" --set workload.initial-size=16MiB --out "$dir" "$@" >"$dir.log" 2>&1 || status=$?
	[ "$status" -le 1 ] || fail "$*: exit status $status: $(cat "$dir.log")"
}

# The value that stands alone on the line after the one with LABEL: from the first '>' to the last '<'.
next_line() { # FILE LABEL
	awk -v label="<td class=\"grid_row_header\">$2</td>" '
		found { sub(/^[^>]*>/, ""); sub(/<[^<]*$/, ""); print; exit }
		index($0, label) { found = 1 }' "$1"
}

quickstart_ports
run "$out" "${PORT_SETS[@]}" --set run.warmup=1s --set run.duration=5s
reports=("$out"/Performance*.html)
[ ${#reports[@]} -eq 2 ] || fail "not one report a server: ${reports[*]}"
for report in "${reports[@]}"; do
	[[ ${report##*/} =~ ^Performance(_[0-9]+){6}_mbx[12]\.html$ ]] || fail "bad name: $report"
	host=$(next_line "$report" 'Machine Name')
	result=$(next_line "$report" 'Overall Test Result')
	achieved=$(next_line "$report" 'Achieved Transactional I/O per Second')
	case $result in
	Pass) grep -q '<td class="success">Pass</td>' "$report" || fail "$report: no cell of class success" ;;
	Fail) ! grep -q '<td class="success">Pass</td>' "$report" || fail "$report: a failed test has passed" ;;
	*) fail "$report: overall result '$result'" ;;
	esac
	[ "$(next_line "$report" 'Database Files (Count)')" = 2 ] || fail "$report: not two database files"
	[ "$(next_line "$report" 'Insert Operations')" = 40% ] || fail "$report: not 40 % inserts"
	[[ $achieved =~ ^[0-9]+\.[0-9]{3}$ ]] || fail "$report: achieved '$achieved'"
	echo "$host $result $achieved" >>"$WORK/by-line"
done
awk '$1 == "mbx1" || $1 == "mbx2" { n++ } END { exit n != 2 }' "$WORK/by-line" || fail "hosts: $(cat "$WORK/by-line")"

# Every line of the log begins with the instant.
[ -s "$out/jetstress.log" ] || fail 'no jetstress.log'
if grep -nvE '^[0-9]{1,2}/[0-9]{1,2}/[0-9]{4} [0-9]{1,2}:[0-9]{2}:[0-9]{2} [AP]M -- .' "$out/jetstress.log"; then
	fail 'a line of the log has another form'
fi
grep -q -- '-- .*Database cache settings: (minimum: ' "$out/jetstress.log" || fail 'the log tells no cache settings'

# The other tests in virtual time.
run "$WORK/backup" --virtual --set workload.test=database-backup
run "$WORK/recovery" --virtual --set virtual.network=none --set workload.test=soft-recovery \
	--set workload.recovery.files=8

require python3
python3 - "$out" "$WORK/backup" "$WORK/recovery" "$WORK/by-line" <<'END' || fail 'figures differ'
import glob, html.parser, json, sys

class Sections(html.parser.HTMLParser):
    """fieldsets -> rows -> texts of cells (td only, as parsers of such pages take them)"""
    def __init__(self, file):
        super().__init__()
        self.sections, self.titles, self.cell, self.title = [], [], None, None
        self.feed(open(file, encoding='utf-8').read())
    def handle_starttag(self, tag, attributes):
        if tag == 'fieldset': self.sections.append([])
        elif tag == 'legend': self.title = ''
        elif tag == 'tr': self.sections[-1].append([])
        elif tag == 'td': self.cell = ''
    def handle_endtag(self, tag):
        if tag == 'td' and self.cell is not None:
            self.sections[-1][-1].append(self.cell.strip()); self.cell = None
        elif tag == 'legend': self.titles.append(self.title); self.title = None
    def handle_data(self, data):
        if self.cell is not None: self.cell += data
        if self.title is not None: self.title += data

def near(what, got, want, slack=0.0006):
    if abs(got - want) > slack + 1e-9 * abs(want):
        sys.exit(f'{what}: {got}, run.json has {want}')

def load(directory):
    run = json.load(open(directory + '/run.json'))
    seconds = (run['window']['end_ns'] - run['window']['start_ns']) / 1e9
    return run, seconds

def pages(directory, kind):
    for file in sorted(glob.glob(f'{directory}/{kind}*.html')):
        page = Sections(file)
        host = next(r[1] for s in page.sections for r in s if r and r[0] == 'Machine Name')
        yield page, host

run, seconds = load(sys.argv[1])
order = ['Test Summary', 'Database Sizing and Throughput', 'Jetstress System Parameters',
         'Database Configuration', 'Transactional I/O Performance',
         'Background Database Maintenance I/O Performance', 'Log Replication I/O Performance',
         'Total I/O Performance', 'Host System Performance', 'Test Log']
by_line = {l.split()[0]: float(l.split()[2]) for l in open(sys.argv[4])}
streams = {(s['host'], s['volume'], s['name']): s for s in run['streams']}
for page, host in pages(sys.argv[1], 'Performance'):
    server = next(s for s in run['exchange']['servers'] if s['host'] == host)
    if page.titles[:len(order)] != order: sys.exit(f'sections: {page.titles}')
    # The fourth row of the second section is the size at the end.
    near('final size', float(page.sections[1][3][1]), sum(d['final_bytes'] for d in server['databases']))
    rows = page.sections[4][1:]
    if len(rows) != len(server['databases']): sys.exit('rows of the transactional table')
    iops = 0
    for row, database in zip(rows, server['databases']):
        cells = [float(c) for c in row[1:]]
        if row[0] != database['name'] or len(cells) != 12: sys.exit(f'row {row}')
        def stream(kind): return streams[host, database['volume'], kind]
        def mean(kind): return stream(kind)['response']['sum_ns'] / max(1, stream(kind)['response']['count']) / 1e6
        for at, kind in ((0, 'db-read'), (1, 'db-write'), (7, 'log-write')):
            near(f'latency of {kind}', cells[at], mean(kind))
        for at, kind in ((2, 'db-read'), (3, 'db-write'), (9, 'log-write')):
            near(f'rate of {kind}', cells[at], stream(kind)['ios'] / seconds)
        for at, kind in ((4, 'db-read'), (5, 'db-write'), (11, 'log-write')):
            near(f'size of {kind}', cells[at], stream(kind)['io_bytes'] / max(1, stream(kind)['ios']))
        if cells[6] or cells[8] or cells[10]: sys.exit('log reads are not transactional')
        iops += (stream('db-read')['ios'] + stream('db-write')['ios']) / seconds
    near('achieved, by line', by_line[host], iops)
    if not iops: sys.exit('no I/O at all')
    maintenance = page.sections[5][1:]
    near('maintenance', sum(float(r[1]) for r in maintenance),
         sum(streams[host, d['volume'], 'bdm-read']['ios'] for d in server['databases']) / seconds, 0.002)

# A backup's first section: after the head and a row a database, the means, then the sums; the
# fourth cell is MB/s.
run, seconds = load(sys.argv[2])
for page, host in pages(sys.argv[2], 'DatabaseBackup'):
    server = next(s for s in run['exchange']['servers'] if s['host'] == host)
    rates = [d['backup']['bytes_per_s'] / 2**20 for d in server['databases']]
    near('MB/s a database', float(page.sections[0][1 + len(rates)][3]), sum(rates) / len(rates), 0.006)
    near('MB/s a server', float(page.sections[0][2 + len(rates)][3]), sum(rates), 0.006)
    if not sum(rates) > 0: sys.exit('a backup that read nothing')

# A recovery's: the last row's second cell by its third is the time to play one log.
run, seconds = load(sys.argv[3])
for page, host in pages(sys.argv[3], 'SoftRecovery'):
    server = next(s for s in run['exchange']['servers'] if s['host'] == host)
    played = [d['recovery'] for d in server['databases']]
    row = page.sections[0][2 + len(played)]
    near('time a log', float(row[1]) / float(row[2]),
         sum(p['seconds'] for p in played) / sum(p['files'] for p in played), 0.001)
END

# Rendered again they are the same, and all runs together make one summary.
cp "${reports[0]}" "$WORK/before.html"
"$SANLAB" report "$out" >/dev/null || [ $? -eq 1 ] || fail 'cannot render the run again'
cmp -s "${reports[0]}" "$WORK/before.html" || fail "${reports[0]##*/} differs when rendered again"
"$SANLAB" report --esrp "$out" "$WORK/backup" "$WORK/recovery" --out "$WORK/esrp" >"$WORK/esrp.log" ||
	[ $? -eq 1 ] || fail 'no summary of several runs'
grep -q 'mbx2  *DatabaseBackup' "$WORK/esrp.log" || fail "the summary lacks a server: $(cat "$WORK/esrp.log")"
! grep -q 'MB read.*not tested' "$WORK/esrp/esrp.txt" && [ -s "$WORK/esrp/esrp.html" ] || fail 'no esrp.html'
