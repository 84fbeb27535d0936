/* SPDX-License-Identifier: MIT
 *
 * The fault timeline: faults of paths, repeated and random ones, and what each of them hits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "tests/unit/lab/lab_text.h"

static const char foreign_lab[] =
    "name: foreign\n"
    "seed: 3\n"
    "hosts:\n"
    "- name: h1\n"
    "  luns:\n"
    "  - name: l1\n"
    "    urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/1', 'iscsi://10.0.0.2/iqn.2026-11.test:x/1',\n"
    "           'iscsi://10.0.0.3/iqn.2026-11.test:x/1', 'iscsi://10.0.0.4/iqn.2026-11.test:x/1']\n"
    "  - name: l2\n"
    "    urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/2', 'iscsi://10.0.0.2/iqn.2026-11.test:x/2']\n"
    "workload: {type: raw, rate: 100}\n"
    "run: {duration: 100s}\n";

static struct lab *load(const char *text, const char *faults)
{
	const char *sets[] = {faults, NULL};
	char *errors = NULL;
	struct lab *lab = load_text(text, sets, &errors);

	if (!lab)
		fail_msg("--set %s: %s", faults, errors);
	free(errors);
	return lab;
}

static void places_are_resolved(void **state)
{
	struct lab *lab = load(
	    small_lab, "faults=[{at: 1s, black-hole: {host: h1, path: 2, above: 1500}, for: 1s}, "
		       "{at: 2s, half-open: {portal: '127.0.0.1:3262'}, for: 1s}, "
		       "{at: 3s, path-hold: {member: m1}, for: 1s}, {at: 4s, black-hole: {host: "
		       "h2}, for: 1s}, "
		       "{at: 5s, path-slow: {delay: 5ms, jitter: 1ms, loss: 2%}, for: 1s}, "
		       "{at: 6s, session-reset: {host: h1, path: 0, volume: db2}}]");
	const struct fault_config *faults = lab->faults.items;

	assert_true(faults[0].has_path);
	assert_string_equal(faults[0].portal.text, "127.0.0.1:3263");
	assert_int_equal(faults[0].above_bytes, 1500);
	assert_false(faults[1].has_path);
	assert_string_equal(faults[1].portal.text, "127.0.0.1:3262");
	assert_string_equal(faults[2].member, "m1");
	assert_string_equal(faults[3].host, "h2");
	assert_false(faults[3].portal.set);
	assert_int_equal(faults[4].delay_ns, 5 * NS_PER_MS);
	assert_true(faults[4].loss == 0.02);
	assert_null(faults[4].host);
	assert_string_equal(faults[5].volume, "db2");
	for (int i = 0; i < 6; i++)
		assert_true(fault_needs_relay(lab, &faults[i], NULL));
	lab_free(lab);
}

struct hit {
	const char *faults;
	/* which of h1/db1's three paths, h1/db2's, h2/db3's; small_lab */
	const char *db1, *db2, *db3;
};

static const struct hit hits[] = {
    {"black-hole: {host: h1, path: 2}", "2", "2", ""},
    {"session-reset: {host: h1, path: 1, volume: db2}", "", "1", ""},
    {"path-down: {host: h1, path: 0}", "0", "0", ""},
    {"portal-down: {portal: '127.0.0.1:3261'}", "0", "0", "0"},
    {"half-open: {portal: '127.0.0.1:3263'}", "2", "2", "2"},
    {"half-open: {member: m1}", "01", "01", "01"},
    {"half-open: {host: h2}", "", "", "012"},
    {"half-open: {}", "012", "012", "012"},
    {"all-paths-down: {host: h1}", "012", "012", ""},
    {"member-offline: {member: m2}", "2", "2", "2"},
    {"controller-failover: {member: m1}", "01", "01", "01"},
    {"link-down: {member: m1, port: 1}", "1", "1", "1"},
    {"drive-fail: {member: m1, drive: 0}", "", "", ""},
    {"scrub: {member: m1}", "", "", ""},
};

static void check_hits(const struct lab *lab, const struct fault_config *fault, const char *host,
		       const char *volume, const char *expected)
{
	struct lab_path paths[LAB_MAX_PATHS];
	char got[8] = "";
	int count = lab_paths_of(lab, lab_find_host(lab, host), volume, paths);
	size_t used = 0;

	assert_int_equal(count, 3);
	for (unsigned i = 0; i < 3; i++)
		if (lab_fault_hits(lab, fault, host, volume, i, paths[i].portal))
			got[used++] = (char)('0' + i);
	if (strcmp(got, expected) != 0)
		fail_msg("%s on %s/%s: hits '%s', not '%s'", fault_kind_names[fault->kind], host,
			 volume, got, expected);
}

static void it_is_known_what_is_hit(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(hits); i++) {
		char set[200];
		struct lab *lab;

		snprintf(set, sizeof set, "faults=[{at: 1s, %s}]", hits[i].faults);
		lab = load(small_lab, set);
		check_hits(lab, lab->faults.items, "h1", "db1", hits[i].db1);
		check_hits(lab, lab->faults.items, "h1", "db2", hits[i].db2);
		check_hits(lab, lab->faults.items, "h2", "db3", hits[i].db3);
		lab_free(lab);
	}
}

/* The target refuses everybody at a portal: one host's paths alone go down in the network. */
static void a_host_goes_down_alone(void **state)
{
	struct lab *lab =
	    load(small_lab, "faults=[{at: 1s, path-down: {host: h1, path: 0}, for: 1s}, "
			    "{at: 3s, all-paths-down: {host: h2}, for: 1s}, "
			    "{at: 5s, all-paths-down: {}, for: 1s}, "
			    "{at: 7s, path-reset: {host: h1, path: 0}}]");
	const struct fault_config *faults = lab->faults.items;

	assert_true(fault_needs_relay(lab, &faults[0], NULL));
	assert_true(fault_needs_relay(lab, &faults[1], NULL));
	assert_false(fault_needs_relay(lab, &faults[2], NULL));
	assert_false(fault_needs_relay(lab, &faults[3], NULL));
	lab->hosts.count = 1;
	assert_false(fault_needs_relay(lab, &faults[0], NULL));
	lab->hosts.count = 2;
	lab_free(lab);
}

/* Somebody else's target: what the lab's own would do is the relay's. */
static void faults_of_paths_need_no_group(void **state)
{
	struct lab *lab =
	    load(foreign_lab, "faults=[{at: 1s, path-reset: {host: h1, path: 3}}, "
			      "{at: 2s, path-down: {host: h1, path: 1, volume: l2}, for: 1s}, "
			      "{at: 4s, all-paths-down: {}, for: 1s}, "
			      "{at: 6s, black-hole: {portal: '10.0.0.2:3260'}, for: 1s}]");
	const struct fault_config *faults = lab->faults.items;
	const char *url = "iscsi://10.0.0.1/iqn.2026-11.test:x/1";

	for (int i = 0; i < 4; i++)
		assert_true(fault_needs_relay(lab, &faults[i], url));
	assert_false(fault_needs_relay(lab, &faults[0], NULL));
	assert_string_equal(faults[0].portal.text, "10.0.0.4:3260");
	assert_true(lab_fault_hits(lab, &faults[1], "h1", "l1", 1, "10.0.0.2:3260"));
	assert_true(lab_fault_hits(lab, &faults[1], "h1", "l2", 1, "10.0.0.2:3260"));
	/* The same portal once more, as another path. */
	assert_false(lab_fault_hits(lab, &faults[1], "h1", "l2", 2, "10.0.0.2:3260"));
	lab_free(lab);
}

static void check_times(const struct lab *lab, const uint64_t *at_ms, size_t count)
{
	assert_int_equal(lab->timeline_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(lab->timeline[i].at_ns, at_ms[i] * NS_PER_MS);
}

static void entries_repeat(void **state)
{
	struct lab *lab =
	    load(foreign_lab, "faults=[{at: 5s, path-down: {host: h1, path: 0}, "
			      "for: 1s, every: 2s, times: 3}, "
			      "{at: 98s, path-reset: {host: h1, path: 1}, every: 800ms}, "
			      "{at: 6s, path-reset: {host: h1, path: 2}}]");
	static const uint64_t at_ms[] = {5000, 6000, 7000, 9000, 98000, 98800, 99600};

	check_times(lab, at_ms, ARRAY_SIZE(at_ms));
	assert_int_equal(lab->timeline[2].for_ns, NS_PER_S);
	assert_int_equal(lab->timeline[2].fault->kind, FAULT_PATH_DOWN);
	assert_int_equal(lab->timeline[1].fault->path, 2);
	lab_free(lab);
}

#define RANDOM                                                                                    \
	"faults=[{at: 10s, random: {of: [path-reset, black-hole, half-open], times: 50, within: " \
	"50s, shortest: 200ms, longest: 3s}}]"

/* At no time are all paths of a volume hit, nor one portal twice. */
static void check_spared(const struct lab *lab)
{
	for (size_t i = 0; i < lab->timeline_count; i++) {
		const struct fault_event *one = &lab->timeline[i];

		for (size_t k = i + 1; k < lab->timeline_count; k++) {
			const struct fault_event *next = &lab->timeline[k];
			bool same = !strcmp(one->fault->portal.text, next->fault->portal.text);
			/* l2 has two paths: they are never down together. */
			bool pair =
			    one->fault->portal.port &&
			    strstr("10.0.0.1:3260 10.0.0.2:3260", one->fault->portal.text) &&
			    strstr("10.0.0.1:3260 10.0.0.2:3260", next->fault->portal.text);

			if (one->at_ns + one->for_ns >= next->at_ns && (same || pair))
				fail_msg("faults %zu and %zu overlap on %s and %s", i, k,
					 one->fault->portal.text, next->fault->portal.text);
		}
	}
}

static void random_ones_come_from_the_seed(void **state)
{
	struct lab *lab = load(foreign_lab, RANDOM), *again = load(foreign_lab, RANDOM), *other;
	unsigned kinds = 0, portals = 0, differing = 0;
	char *errors = NULL;

	assert_in_range(lab->timeline_count, 30, 50);
	assert_int_equal(lab->timeline_count, again->timeline_count);
	for (size_t i = 0; i < lab->timeline_count; i++) {
		const struct fault_event *one = &lab->timeline[i], *two = &again->timeline[i];

		assert_int_equal(one->at_ns, two->at_ns);
		assert_int_equal(one->for_ns, two->for_ns);
		assert_int_equal(one->fault->kind, two->fault->kind);
		assert_string_equal(one->fault->portal.text, two->fault->portal.text);
		assert_in_range(one->at_ns, 10 * NS_PER_S, 60 * NS_PER_S);
		assert_int_equal(one->for_ns == 0, one->fault->kind == FAULT_PATH_RESET);
		if (one->for_ns)
			assert_in_range(one->for_ns, 200 * NS_PER_MS, 3 * NS_PER_S);
		kinds |= 1U << one->fault->kind;
		portals |= 1U << (one->fault->portal.text[7] - '0');
	}
	assert_int_equal(kinds,
			 1U << FAULT_PATH_RESET | 1U << FAULT_BLACK_HOLE | 1U << FAULT_HALF_OPEN);
	assert_int_equal(portals, 0x1e);
	check_spared(lab);
	other = load_text(foreign_lab, (const char *const[]){RANDOM, "seed=4", NULL}, &errors);
	assert_non_null(other);
	for (size_t i = 0; i < MIN_OF(lab->timeline_count, other->timeline_count); i++)
		differing += lab->timeline[i].at_ns != other->timeline[i].at_ns;
	assert_true(differing > 20);
	check_spared(other);
	free(errors);
	lab_free(lab);
	lab_free(again);
	lab_free(other);
}

static const struct {
	const char *text, *set, *expected;
} errors[] = {
    {foreign_lab, "faults=[{at: 1s, target-crash: {}, for: 1s}]",
     "'target-crash' needs a group: the lab's own target carries it out; faults of paths work "
     "against any target"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {portal: '10.0.0.9:3260'}, for: 1s}]",
     "neither the group nor a member has portal 10.0.0.9:3260"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {path: 1}, for: 1s}]",
     "a path is a host's: name the host"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {host: h1, volume: v9}, for: 1s}]",
     "a volume only tells whose paths are counted: name host and path"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {host: h1, portal: '10.0.0.1:3260'}, for: 1s}]",
     "'black-hole' names its paths in more than one way; write host and path, or portal, or "
     "member"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {above: 100}}]",
     "'above' is 100; it must be from 576B to 64KiB"},
    {foreign_lab, "faults=[{at: 1s, path-slow: {host: h1}}]",
     "a slow path needs some delay, jitter or loss"},
    {foreign_lab, "faults=[{at: 1s, digest-corruption: {host: h1}}]",
     "nobody would notice: host 'h1' uses no digests; give it mpio: {header-digest: true}"},
    {foreign_lab, "faults=[{at: 1s, session-reset: {host: h1, path: 1}, for: 1s}]",
     "'session-reset' is an instant and takes no 'for'"},
    {foreign_lab, "faults=[{at: 1s, session-reset: {host: h1, path: 1}, times: 2}]",
     "'times' needs 'every'"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {}, every: 2s}]",
     "a fault that comes again must end: it needs a 'for'"},
    {foreign_lab, "faults=[{at: 1s, black-hole: {}, for: 2s, every: 2s}]",
     "'for' is not shorter than 'every': the fault would never end"},
    {foreign_lab, "faults=[{at: 1s, random: {of: [black-hole], times: 1, within: 1s}, for: 1s}]",
     "'random' has a schedule of its own: no 'for', 'every' or 'times' beside it"},
    {foreign_lab, "faults=[{at: 1s, random: {of: [scrub], times: 1, within: 1s}}]",
     "'scrub' is no fault that can be random; allowed: path-reset, path-down, session-reset, "
     "half-open, black-hole, path-hold"},
    {foreign_lab, "faults=[{at: 1s, random: {of: [], times: 1, within: 1s}}]",
     "'of' names no kind of fault"},
    {foreign_lab,
     "faults=[{at: 1s, random: {of: [path-down], times: 1, within: 1s, shortest: 2s}}]",
     "'shortest' is longer than 'longest'"},
    {foreign_lab, "faults=[{at: 1s, random: {of: [black-hole], times: 9, within: 1s, leave: 64}}]",
     "no random fault comes about: 'leave' spares every path, or they begin after the window"},
    {foreign_lab, "faults=[{at: 1s, path-reset: {host: h1, path: 0}, every: 1ms}]",
     "more than 10000 faults in one run"},
    {preset_lab, "faults=[{at: 1s, black-hole: {member: m1}, for: 1s}]",
     "'black-hole' is a fault of hosts' paths, and the lab has no hosts; for initiators of others: "
     "portal-silent, portal-down, ..."},
    {small_lab, "faults=[{at: 1s, target-crash: {}, for: 1s}]",
     "member 'm1' loses its data with the target; give it store: {file: DIR}"},
    {small_lab, "faults=[{at: 1s, alua-flip: {}}]",
     "'alua-flip' is for style lun: portals of style equallogic are alike"},
    {small_lab, "faults=[{at: 1s, chap-secret: {user: u}}]",
     "the group has no CHAP secrets to change"},
    {small_lab, "hosts.h1.chap-user=u",
     "'chap-user' is one of group.chap.secrets, and there are none"},
};

static void mistakes_are_told(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		const char *const sets[] = {errors[i].set, NULL};
		char *text = NULL, *found;

		lab_free(load_text(errors[i].text, sets, &text));
		found = strstr(text, errors[i].expected);
		if (!found || strcmp(found + strlen(errors[i].expected), "\n") != 0)
			fail_msg("--set %s: expected '%s', got '%s'", errors[i].set,
				 errors[i].expected, text);
		free(text);
	}
}

/* One mistake, one message: paths whose url is wrong are not missed in the faults as well. */
static void a_wrong_url_is_told_once(void **state)
{
	static const char *const sets[] = {"hosts.h1.luns.l1.urls=[nonsense]",
					   "faults=[{at: 1s, path-reset: {host: h1, path: 0}}]",
					   NULL};
	char *text = NULL;

	lab_free(load_text(foreign_lab, sets, &text));
	assert_non_null(strstr(text, "not an iSCSI URL"));
	assert_null(strstr(text, "has no path"));
	free(text);
}

/* db1 and its log on h1, the copy db1b on h2. */
static const char copies_lab[] =
    "name: copies\n"
    "hosts:\n"
    "- name: h1\n"
    "  luns: [{name: db1, urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/1']},\n"
    "         {name: log1, urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/2']}]\n"
    "- name: h2\n"
    "  luns: [{name: db1b, urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/3']},\n"
    "         {name: db2, urls: ['iscsi://10.0.0.1/iqn.2026-11.test:x/4']}]\n"
    "workload:\n"
    "  {type: exchange, engine: ese, mailboxes: 10,\n"
    "   placement: [{database: db1, log: log1}, {database: db1b, copy-of: db1}]}\n"
    "run: {duration: 100s}\n";

static void copies_and_logs_must_be_there(void **state)
{
#define PLACED(rows) "workload.placement=[" rows "]", "lab.yaml:"
#define FAULT(fault) "faults=[{at: 1s, " fault "}]", "--set faults=[{at: 1s, " fault "}]: "
	static const struct {
		const char *set, *place, *expected;
	} cases[] = {
	    {PLACED("{database: nix}"), "placement: no host has a volume 'nix' (database)"},
	    {PLACED("{database: db1, log: nix}"), "placement: no host has a volume 'nix' (log)"},
	    {PLACED("{database: db1, log: db2}"),
	     "placement: host h1 has no volume db2 for the log of db1"},
	    {PLACED("{database: db1b, copy-of: nix}"),
	     "placement: no host has a volume 'nix' (copy-of)"},
	    {PLACED("{database: db1b, copy-of: db2}"),
	     "placement: db1b cannot be a copy of db2: both are volumes of host h2"},
	    {FAULT("copy-activate: {database: db2}"), "database db2 has no copy"},
	    {FAULT("copy-reseed: {database: db1, to: db2}"), "volume db2 holds no copy of db1"},
	    {FAULT("copy-reseed: {database: db1, to: db1}"), "volume db1 holds no copy of db1"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *sets[] = {cases[i].set, NULL};
		char *text = NULL;

		assert_null(load_text(copies_lab, sets, &text));
		if (strncmp(text, cases[i].place, strlen(cases[i].place)) != 0 ||
		    !strstr(text, cases[i].expected))
			fail_msg("--set %s: expected '%s', got '%s'", cases[i].set,
				 cases[i].expected, text);
		free(text);
	}
	/* Back again: then the copy is the active one. */
	lab_free(load(copies_lab, "faults=[{at: 1s, copy-activate: {database: db1}}, "
				  "{at: 9s, copy-activate: {database: db1b, to: db1}}]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(places_are_resolved),
	    cmocka_unit_test(it_is_known_what_is_hit),
	    cmocka_unit_test(a_host_goes_down_alone),
	    cmocka_unit_test(faults_of_paths_need_no_group),
	    cmocka_unit_test(entries_repeat),
	    cmocka_unit_test(random_ones_come_from_the_seed),
	    cmocka_unit_test(mistakes_are_told),
	    cmocka_unit_test(a_wrong_url_is_told_once),
	    cmocka_unit_test(copies_and_logs_must_be_there),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
