/* SPDX-License-Identifier: MIT
 *
 * Text requests of the full feature phase: SendTargets, and the few keys that may still be told.
 *
 * SendTargets lists, for each target, the addresses a login should use: where a group portal
 * redirects logins that is the group's address alone, as EqualLogic groups answer, so that the
 * array keeps the choice of path; without one, every portal.  Portals that are down or drain are
 * left out (a group portal that is down is no way in, then the members are listed); only when all
 * are down, all are listed.
 *
 * An answer longer than the initiator takes in one PDU is sent in parts: C set, a tag, and the
 * next part for an empty request with that tag.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "target/iscsi/conn.h"

enum { TEXT_IN_MAX_BYTES = 8192, ADDRESS_LINE_BYTES = 128 };

void iscsi_text_clear(struct iscsi_conn *conn)
{
	struct iscsi_text_state *text = &conn->text;

	free(text->in);
	free(text->out);
	*text = (struct iscsi_text_state){.ttt = ISCSI_NO_TAG};
}

/* ---- SendTargets ---- */

enum portal_choice { CHOOSE_GROUP, CHOOSE_UP, CHOOSE_ALL };

static bool portal_chosen(const struct iscsi_portal *portal, enum portal_choice choice)
{
	switch (choice) {
	case CHOOSE_GROUP:
		return portal->config.redirects && !portal->down && !portal->draining;
	case CHOOSE_UP:
		return !portal->config.redirects && !portal->down && !portal->draining;
	case CHOOSE_ALL:
		break;
	}
	return true;
}

static enum portal_choice portal_choose(const struct iscsi_server *server)
{
	for (enum portal_choice choice = CHOOSE_GROUP; choice < CHOOSE_ALL; choice++) {
		for (size_t i = 0; i < server->portal_count; i++) {
			if (portal_chosen(server->portals[i], choice))
				return choice;
		}
	}
	return CHOOSE_ALL;
}

/* A discovery session without authentication sees what some user could reach: the login decides. */
static bool is_visible(const struct iscsi_conn *conn, const struct scsi_target *target)
{
	struct access_peer peer = iscsi_conn_peer(conn);

	return iscsi_access_check(conn->server->security.access, target, &peer) == ACCESS_ALLOWED;
}

static void target_add(const struct iscsi_conn *conn, const struct scsi_target *target,
		       struct iscsi_text *out)
{
	const struct iscsi_server *server = conn->server;
	enum portal_choice choice = portal_choose(server);

	iscsi_text_add(out, "TargetName", scsi_target_name(target));
	for (size_t i = 0; i < server->portal_count; i++) {
		const struct iscsi_portal *portal = server->portals[i];
		char address[ADDRESS_LINE_BYTES], line[ADDRESS_LINE_BYTES + 8];

		if (!portal_chosen(portal, choice))
			continue;
		iscsi_portal_address(portal, conn->local_host, address, sizeof address);
		snprintf(line, sizeof line, "%s,%u", address, portal->config.group_tag);
		iscsi_text_add(out, "TargetAddress", line);
	}
}

/* Appends the answer to SendTargets=ASKED; false: the value is not one for this session. */
static bool send_targets(const struct iscsi_conn *conn, const char *asked, struct iscsi_text *out)
{
	const struct iscsi_server *server = conn->server;
	const struct scsi_target *own = conn->session->target;
	char name[ISCSI_NAME_BYTES];

	if (own) {
		if (asked[0] == '\0' || (iscsi_name_normalise(asked, name) == 0 &&
					 strcmp(name, scsi_target_name(own)) == 0))
			target_add(conn, own, out);
		else
			return false;
		return true;
	}
	if (strcmp(asked, "All") == 0) {
		for (size_t i = 0; i < server->target_count; i++) {
			if (is_visible(conn, server->targets[i]))
				target_add(conn, server->targets[i], out);
		}
		return true;
	}
	if (iscsi_name_normalise(asked, name) < 0)
		return false;
	own = iscsi_server_find_target(server, name);
	if (own && is_visible(conn, own))
		target_add(conn, own, out);
	return true;
}

/* ---- the request ---- */

/* Room for everything: what SendTargets can need, and an answer to each key. */
static size_t answer_bound(const struct iscsi_server *server)
{
	size_t bytes = 64 * KIB;

	bytes += server->target_count *
		 (ISCSI_NAME_BYTES + 16 +
		  server->portal_count * (ADDRESS_LINE_BYTES + sizeof "TargetAddress=,65535"));
	return MIN_OF(bytes, ISCSI_SENDTARGETS_MAX);
}

/* Answers the complete text IN.  False: it is no text, or the answer has no room. */
static bool text_answer(struct iscsi_conn *conn, char *in, size_t in_bytes, struct iscsi_text *out)
{
	struct iscsi_negotiation negotiation;
	const char *end = in + in_bytes;
	char *cursor = in, *key, *value;
	int r;

	iscsi_negotiation_init(&negotiation);
	negotiation.params = conn->params;
	while ((r = iscsi_text_next(&cursor, end, &key, &value)) > 0) {
		negotiation.send_targets_asked = false;
		if (iscsi_params_offer(&negotiation, STAGE_FULL_FEATURE, key, value, out) < 0)
			iscsi_text_add(out, key, "Reject");
		if (negotiation.send_targets_asked && !send_targets(conn, value, out))
			iscsi_text_add(out, key, "Reject");
	}
	if (r < 0 || out->overflow)
		return false;
	conn->params.max_send_bytes = negotiation.params.max_send_bytes;
	return true;
}

/* Sends the next part of the answer. */
static void text_send(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_text_state *text = &conn->text;
	size_t left = text->out_bytes - text->out_sent;
	uint32_t bytes = (uint32_t)MIN_OF(left, conn->params.max_send_bytes);
	struct iscsi_tx_item *item = iscsi_conn_item(conn);
	/* F must not be set in answer to a request without it. */
	bool more = bytes < left || !bhs_final(bhs);

	if (!item)
		return;
	if (bytes > 0)
		item->buf = buf_new(conn->server->pool, bytes);
	item->bhs[BHS_OPCODE] = OP_TEXT_RESPONSE;
	item->bhs[BHS_FLAGS] = bytes < left ? FLAG_CONTINUE : more ? 0 : FLAG_FINAL;
	memcpy(item->bhs + BHS_LUN, bhs + BHS_LUN, 8);
	put_be32(item->bhs + BHS_ITT, bhs_itt(bhs));
	if (item->buf) {
		memcpy(item->buf->data, text->out + text->out_sent, bytes);
		item->data = item->buf->data;
		item->data_bytes = bytes;
		text->out_sent += bytes;
	} else if (bytes > 0) {
		more = true; /* no buffer just now: the initiator asks again */
		item->bhs[BHS_FLAGS] = FLAG_CONTINUE;
	}
	if (more)
		text->ttt = iscsi_conn_tag(conn);
	else
		iscsi_text_clear(conn);
	put_be32(item->bhs + BHS_TTT, text->ttt);
	iscsi_conn_push(conn, item, true);
}

/* C was set: more text is to come. */
static void text_ask_more(struct iscsi_conn *conn, const uint8_t *bhs)
{
	struct iscsi_tx_item *item = iscsi_conn_item(conn);

	if (!item)
		return;
	conn->text.ttt = iscsi_conn_tag(conn);
	item->bhs[BHS_OPCODE] = OP_TEXT_RESPONSE;
	memcpy(item->bhs + BHS_LUN, bhs + BHS_LUN, 8);
	put_be32(item->bhs + BHS_ITT, bhs_itt(bhs));
	put_be32(item->bhs + BHS_TTT, conn->text.ttt);
	iscsi_conn_push(conn, item, true);
}

static bool text_collect(struct iscsi_text_state *text, const struct buf *data, uint32_t bytes)
{
	if (bytes > TEXT_IN_MAX_BYTES - text->in_bytes)
		return false;
	if (!text->in)
		text->in = malloc(TEXT_IN_MAX_BYTES + 1);
	if (!text->in)
		return false;
	if (data)
		memcpy(text->in + text->in_bytes, data->data, bytes);
	text->in_bytes += bytes;
	return true;
}

/* The request is complete: makes the answer. */
static bool text_complete(struct iscsi_conn *conn)
{
	struct iscsi_text_state *text = &conn->text;
	struct iscsi_text out = {.size = answer_bound(conn->server)};

	out.data = malloc(out.size);
	if (!out.data)
		return false;
	if (!text_answer(conn, text->in, text->in_bytes, &out)) {
		free(out.data);
		return false;
	}
	free(text->in);
	text->in = NULL;
	text->in_bytes = 0;
	text->out = out.data;
	text->out_bytes = out.bytes;
	text->out_sent = 0;
	return true;
}

void iscsi_text_request(struct iscsi_conn *conn, const uint8_t *bhs, struct buf *data)
{
	struct iscsi_text_state *text = &conn->text;
	uint32_t ttt = bhs_ttt(bhs);
	bool more = bhs[BHS_FLAGS] & FLAG_CONTINUE;

	if (ttt == ISCSI_NO_TAG)
		iscsi_text_clear(conn); /* a new exchange ends an old one */
	else if (ttt != text->ttt)
		goto reject;
	if (bhs_itt(bhs) == ISCSI_NO_TAG || (more && bhs_final(bhs)))
		goto reject;
	if (text->out && text->out_sent < text->out_bytes) {
		if (bhs_data_bytes(bhs) > 0)
			goto reject;
		text_send(conn, bhs);
		return;
	}
	free(text->out);
	text->out = NULL;
	if (!text_collect(text, data, bhs_data_bytes(bhs)))
		goto reject;
	if (more) {
		text_ask_more(conn, bhs);
		return;
	}
	if (!text_complete(conn))
		goto reject;
	text_send(conn, bhs);
	return;
reject:
	iscsi_text_clear(conn);
	iscsi_conn_reject(conn, bhs, REJECT_PROTOCOL_ERROR);
}
