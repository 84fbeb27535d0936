/* SPDX-License-Identifier: MIT
 *
 * What an iSCSI path says of its end, where it connects to, and how soon it notices silence.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/initiator/rig.h"

enum { MANY = 32, ASYNC_MESSAGE = 0x32 };

static void expect_lost_by(struct rig *rig, unsigned downs, enum path_detect by, const char *why)
{
	rig_expect_down(rig, downs, why);
	if (rig->owner.path->lost_by != by)
		fail_msg("lost by %s, not %s: '%s'", path_detect_names[rig->owner.path->lost_by],
			 path_detect_names[by], rig->owner.why);
}

static void submit_many(struct rig *rig, struct owner_io *oios, enum io_op op)
{
	static uint8_t data[MANY][8 * PEER_BLOCK_BYTES];

	for (unsigned i = 0; i < MANY; i++)
		owner_submit(&rig->owner, &oios[i], op, i * 8, 8, data[i]);
}

static void every_kind_has_a_name(void **unused)
{
	for (unsigned i = 0; i < PATH_DETECT_COUNT; i++)
		assert_non_null(path_detect_names[i]);
	assert_null(path_detect_names[PATH_DETECT_COUNT]);
}

/* A write that meets a connection reset meanwhile: libiscsi takes the error from the socket. */
static void reset_met_by_a_write(void **unused)
{
	static struct owner_io oios[MANY];
	struct rig rig;

	rig_open(&rig);
	rig_up(&rig);
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_NONE);
	peer_drop(&rig.peer, true);
	memset(oios, 0, sizeof oios);
	submit_many(&rig, oios, IO_WRITE);
	expect_lost_by(&rig, 1, PATH_DETECT_RESET, "");
	rig_close(&rig);
}

static void refused_logins_are_named(void **unused)
{
	static const struct {
		uint16_t status;
		bool user;
		const char *why;
	} cases[] = {
	    {0x0201, true, "CHAP authentication failed: the target does not accept"},
	    {0x0201, false, "CHAP authentication failed: the target wants a user"},
	    {0x0202, false, "not authorized"},
	    {0x0203, false, "no such target"},
	    {0x0301, false, "unavailable"},
	    {0x0302, false, "out of resources"},
	    {0x020a, false, "login refused: "},
	};
	struct rig rig;

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		rig_open(&rig);
		rig.peer.login_status = cases[i].status;
		rig.config.user = cases[i].user ? "joe" : NULL;
		rig.config.password = "twelve-letters";
		rig_make_path(&rig);
		rig_connect(&rig);
		expect_lost_by(&rig, 1, PATH_DETECT_LOGIN, cases[i].why);
		rig_close(&rig);
	}
}

/* tgt reinstates a session only at the end of the security stage, which libiscsi has only with a
 * user: a login after the first has one, unless the target takes offence. */
static bool note_stages(struct peer *peer, const struct peer_pdu *pdu)
{
	unsigned *stages = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) == PEER_LOGIN)
		*stages |= 1U << (pdu->bhs[1] >> 2 & 3);
	return false;
}

/* As a target that hears of CHAP and demands it. */
static bool refuse_security(struct peer *peer, const struct peer_pdu *pdu)
{
	note_stages(peer, pdu);
	peer->login_status =
	    (pdu->bhs[0] & 0x3f) == PEER_LOGIN && !(pdu->bhs[1] >> 2 & 3) ? 0x0201 : 0;
	return false;
}

static void logins_again_have_a_security_stage(void **unused)
{
	enum { SECURITY = 1, OPERATIONAL = 2 };
	unsigned stages = 0;
	struct rig rig;

	rig_open(&rig);
	rig.peer.script = note_stages;
	rig.peer.script_arg = &stages;
	rig_up(&rig);
	assert_int_equal(stages, OPERATIONAL);
	path_disconnect(rig.owner.path);
	rig_up(&rig);
	assert_int_equal(stages, SECURITY | OPERATIONAL);
	assert_int_equal(rig.peer.connections, 2);
	/* It goes on in the plain way, and stays with it. */
	path_disconnect(rig.owner.path);
	rig.peer.script = refuse_security;
	rig_up(&rig);
	assert_int_equal(rig.peer.connections, 4);
	assert_string_equal(rig.owner.path->redirected_to, "");
	path_disconnect(rig.owner.path);
	stages = 0;
	rig_up(&rig);
	assert_int_equal(stages, OPERATIONAL);
	assert_int_equal(rig.peer.connections, 5);
	assert_int_equal(rig.owner.downs, 0);
	rig_close(&rig);
}

static void async_message(struct peer *peer, uint8_t event)
{
	uint8_t request[PEER_BHS_BYTES] = {0}, bhs[PEER_BHS_BYTES];

	memset(request + 16, 0xff, 4);		       /* ITT */
	put_be32(request + 24, peer->max_cmd_sn - 63); /* ExpCmdSN stays */
	request[0] = 0x40;
	peer_header(peer, request, ASYNC_MESSAGE, bhs);
	bhs[36] = event;
	put_be16(bhs + 42, 3); /* seconds */
	peer_send(peer, bhs, NULL, 0);
}

/* Async Messages 1 (log out) to 4 (negotiate again); what is in flight comes back at once. */
static void the_target_asks(void **unused)
{
	static struct owner_io oios[MANY];
	struct rig rig;

	for (uint8_t event = 1; event <= 4; event++) {
		rig_open(&rig);
		rig_up(&rig);
		rig.peer.mute_io = true;
		memset(oios, 0, sizeof oios);
		submit_many(&rig, oios, IO_READ);
		rig_expect(&rig, &rig.peer.reads, MANY);
		async_message(&rig.peer, event);
		expect_lost_by(&rig, 1, PATH_DETECT_ASKED, "asked to log out");
		assert_int_equal(rig.owner.lost, MANY);
		rig_close(&rig);
	}
	/* Idle, it leaves in order. */
	rig_open(&rig);
	rig_up(&rig);
	async_message(&rig.peer, 1);
	expect_lost_by(&rig, 1, PATH_DETECT_ASKED, "asked to log out");
	rig_expect(&rig, &rig.peer.logouts, 1);
	rig_close(&rig);
	rig_open(&rig);
	rig_up(&rig);
	async_message(&rig.peer, 0); /* of the SCSI layer: nothing to do with the session */
	memset(oios, 0, sizeof oios);
	submit_many(&rig, oios, IO_READ);
	rig_expect(&rig, &rig.owner.ok, MANY);
	assert_int_equal(rig.owner.downs, 0);
	path_disconnect(rig.owner.path);
	assert_int_equal(rig.owner.path->lost_by, PATH_DETECT_ASKED);
	rig_close(&rig);
}

struct detour {
	char last[64]; /* portal dialled */
	unsigned calls;
	const char *first, *second;
};

static const char *through_a_detour(void *arg, const char *portal)
{
	struct detour *detour = arg;

	snprintf(detour->last, sizeof detour->last, "%s", portal);
	detour->calls++;
	return strcmp(portal, "192.0.2.1:3260") == 0 ? detour->first : detour->second;
}

/* The relay's place: names stay those of the portal, also after a redirection. */
static void dials_where_it_is_told(void **unused)
{
	struct rig rig;
	struct peer second;
	struct detour detour = {0};

	rig_open(&rig);
	peer_open(&second, rig.loop);
	detour.first = second.portal;
	detour.second = rig.peer.portal;
	rig.config.portal = "192.0.2.1:3260"; /* nobody's */
	rig.config.dial = through_a_detour;
	rig.config.dial_arg = &detour;
	rig_up(&rig);
	assert_string_equal(detour.last, "192.0.2.1:3260");
	assert_string_equal(rig.owner.path->config.portal, "192.0.2.1:3260");
	assert_int_equal(second.logins, 1);
	peer_drop(&second, true);
	expect_lost_by(&rig, 1, PATH_DETECT_RESET, "");
	second.redirect_to = "192.0.2.2:3260";
	rig_connect(&rig);
	rig_expect(&rig, &rig.owner.ups, 2);
	assert_int_equal(detour.calls, 3);
	assert_string_equal(detour.last, "192.0.2.2:3260");
	assert_string_equal(rig.owner.path->redirected_to, "192.0.2.2:3260");
	assert_int_equal(rig.peer.logins, 1);
	peer_close(&second);
	rig_close(&rig);
}

/* The defaults: a target that falls silent, with commands in flight or without, is given up 1.2 s
 * after its last word.  Reported, not asserted, where the machine may be slow: late is no error,
 * early is. */
static void silence_is_noticed(void **unused)
{
	static struct owner_io oios[MANY];
	struct rig rig;

	for (unsigned busy = 0; busy < 2; busy++) {
		uint64_t silence;

		rig_open(&rig);
		rig_up(&rig);
		rig.peer.mute_all = true;
		memset(oios, 0, sizeof oios);
		if (busy)
			submit_many(&rig, oios, IO_WRITE);
		expect_lost_by(&rig, 1, PATH_DETECT_KEEPALIVE, "2 keep-alives unanswered");
		silence = loop_now_ns(rig.loop) - rig.owner.path->heard_ns;
		assert_true(silence >= 1200 * NS_PER_MS);
		print_message("# silence noticed after %u ms\n", (unsigned)(silence / NS_PER_MS));
		rig_close(&rig);
	}
}

/* Answers that come, however slowly, keep a path alive although its NOPs stay unanswered. */
static bool slow_but_alive(struct peer *peer, const struct peer_pdu *pdu)
{
	struct rig *rig = peer->script_arg;

	if ((pdu->bhs[0] & 0x3f) != PEER_NOP_OUT)
		return false;
	async_message(peer, 0); /* any PDU will do */
	return rig->owner.downs == 0;
}

static void busy_but_alive_is_kept(void **unused)
{
	struct rig rig;

	rig_open(&rig);
	rig.config.keepalive_ns = 10 * NS_PER_MS;
	rig.peer.script = slow_but_alive;
	rig_up(&rig);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t heard = rig.owner.path->heard_ns;

		while (rig.owner.path->heard_ns == heard && rig.owner.downs == 0)
			assert_int_equal(loop_turn(rig.loop, true), 0);
	}
	assert_int_equal(rig.owner.downs, 0);
	rig_close(&rig);
}

/* More misses, more patience. */
static void misses_are_configured(void **unused)
{
	struct rig rig;

	rig_open(&rig);
	rig.config.keepalive_ns = 10 * NS_PER_MS;
	rig.config.keepalive_misses = 7;
	rig_up(&rig);
	rig.peer.mute_all = true;
	expect_lost_by(&rig, 1, PATH_DETECT_KEEPALIVE, "7 keep-alives unanswered");
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kind_has_a_name),
	    cmocka_unit_test(reset_met_by_a_write),
	    cmocka_unit_test(refused_logins_are_named),
	    cmocka_unit_test(the_target_asks),
	    cmocka_unit_test(logins_again_have_a_security_stage),
	    cmocka_unit_test(dials_where_it_is_told),
	    cmocka_unit_test(silence_is_noticed),
	    cmocka_unit_test(busy_but_alive_is_kept),
	    cmocka_unit_test(misses_are_configured),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
