/* SPDX-License-Identifier: MIT
 *
 * The common fixture.
 */
#include "tests/unit/iscsi/fixture.h"

#include <stdio.h>
#include <stdlib.h>

struct iscsi_portal *fixture_portal(struct fixture *fixture, const char *host, uint16_t port,
				    uint16_t tag, bool redirects)
{
	struct iscsi_portal_config config = {
	    .group_tag = tag, .target_port_group = 1, .redirects = redirects, .owner = "m1"};
	struct iscsi_portal *portal;

	snprintf(config.address.host, sizeof config.address.host, "%s", host);
	snprintf(config.address.text, sizeof config.address.text,
		 strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	config.address.port = port;
	config.address.set = true;
	assert_int_equal(iscsi_server_add_portal(fixture->server, &config, &portal), 0);
	return portal;
}

int fixture_setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof *fixture);

	assert_non_null(fixture);
	assert_int_equal(loop_new_virtual(0, &fixture->loop), 0);
	fixture->pool = buf_pool_new(256 * MIB);
	fixture->server = iscsi_server_new(fixture->loop, fixture->pool);
	assert_non_null(fixture->server);
	fixture->target = fake_target_new(fixture->pool, TARGET_NAME);
	assert_int_equal(iscsi_server_add_target(fixture->server, fixture->target), 0);
	fixture->portal = fixture_portal(fixture, "127.0.0.1", 3260, 1, false);
	pdu_client_init(&fixture->client, fixture->server);
	*state = fixture;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *fixture = *state;

	fake_hold(fixture->target, false);
	pdu_client_done(&fixture->client);
	iscsi_server_free(fixture->server);
	fake_target_free(fixture->target);
	assert_int_equal(buf_pool_in_use_bytes(fixture->pool), 0);
	buf_pool_free(fixture->pool);
	loop_free(fixture->loop);
	free(fixture);
	return 0;
}

void fixture_login(struct fixture *fixture, const char *extra, size_t extra_size)
{
	pdu_client_open(&fixture->client, fixture->portal);
	assert_int_equal(pdu_login(&fixture->client, TARGET_NAME, extra, extra_size), 0);
	fixture->client.header_digest = fixture->client.conn->params.header_digest;
	fixture->client.data_digest = fixture->client.conn->params.data_digest;
}

void fixture_pattern(uint8_t *to, size_t bytes, unsigned seed)
{
	for (size_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(i * 31 + (i >> 9) * 7 + seed);
}
