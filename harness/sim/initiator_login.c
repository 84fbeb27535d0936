/* SPDX-License-Identifier: MIT
 *
 * The login of a simulated session: one request straight in the operational stage, with the
 * parameters libiscsi asks for, and what the answer settles.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sim/initiator.h"

enum { DEFAULT_SEND_BYTES = 8192, FIRST_BURST_BYTES = 64 * 1024 };

static uint32_t add_key(char *text, uint32_t at, const char *key, const char *value)
{
	return at + (uint32_t)snprintf(text + at, 1024 - at, "%s=%s", key, value) + 1;
}

void sim_login_send(struct sim_conn *conn)
{
	static const char *const settled[][2] = {
	    {"SessionType", "Normal"},
	    {"HeaderDigest", "None"},
	    {"DataDigest", "None"},
	    {"ErrorRecoveryLevel", "0"},
	    {"MaxConnections", "1"},
	    {"InitialR2T", "Yes"},
	    {"ImmediateData", "Yes"},
	    {"FirstBurstLength", "65536"},
	    {"MaxBurstLength", "262144"},
	    {"MaxOutstandingR2T", "1"},
	    {"MaxRecvDataSegmentLength", "262144"},
	    {"DefaultTime2Wait", "0"},
	    {"DefaultTime2Retain", "0"},
	};
	uint8_t bhs[BHS_BYTES];
	char text[1024];
	struct iovec iov = {text, 0};
	uint32_t at = 0;

	at = add_key(text, at, "InitiatorName", conn->initiator);
	at = add_key(text, at, "TargetName", conn->target);
	for (size_t i = 0; i < ARRAY_SIZE(settled); i++)
		at = add_key(text, at, settled[i][0], settled[i][1]);
	iov.iov_len = at;
	sim_bhs_begin(bhs, OP_LOGIN | OP_IMMEDIATE,
		      FLAG_TRANSIT | STAGE_OPERATIONAL << 2 | STAGE_FULL_FEATURE);
	memcpy(bhs + BHS_ISID, conn->isid, sizeof conn->isid);
	put_be32(bhs + BHS_CMD_SN, conn->cmd_sn);
	sim_conn_send(conn, bhs, &iov, 1, 0, at);
}

/* The value of KEY in the answer, or NULL. */
static const char *value_of(const uint8_t *data, uint32_t bytes, const char *key)
{
	size_t size = strlen(key);

	while (bytes > 0) {
		const char *pair = (const char *)data;
		uint32_t length = (uint32_t)strnlen(pair, bytes);

		if (length == bytes)
			return NULL; /* not terminated */
		if (strncmp(pair, key, size) == 0 && pair[size] == '=')
			return pair + size + 1;
		data += length + 1;
		bytes -= length + 1;
	}
	return NULL;
}

static uint32_t number(const uint8_t *data, uint32_t bytes, const char *key, uint32_t preset)
{
	const char *value = value_of(data, bytes, key);

	return value ? (uint32_t)strtoul(value, NULL, 0) : preset;
}

void sim_login_answered(struct sim_conn *conn, const uint8_t *bhs, const uint8_t *data,
			uint32_t bytes)
{
	unsigned status = get_be16(bhs + BHS_STATUS_CLASS);
	const char *value;

	if (bhs_opcode(bhs) != OP_LOGIN_RESPONSE) {
		sim_conn_lose(conn, PATH_DETECT_PROTOCOL, "protocol error during login");
		return;
	}
	if (status != LOGIN_SUCCESS) {
		sim_conn_lose(conn, PATH_DETECT_LOGIN, "login refused, status %04x", status);
		return;
	}
	if ((bhs[BHS_FLAGS] & 0x83) != (FLAG_TRANSIT | STAGE_FULL_FEATURE)) {
		sim_conn_lose(conn, PATH_DETECT_LOGIN, "the target wants to negotiate further");
		return;
	}
	conn->state = SIM_CONN_FULL;
	conn->exp_stat_sn = get_be32(bhs + BHS_STAT_SN) + 1;
	conn->max_cmd_sn = get_be32(bhs + BHS_MAX_CMD_SN);
	conn->max_send_bytes = number(data, bytes, "MaxRecvDataSegmentLength", DEFAULT_SEND_BYTES);
	conn->first_burst_bytes = number(data, bytes, "FirstBurstLength", FIRST_BURST_BYTES);
	value = value_of(data, bytes, "ImmediateData");
	conn->immediate_data = !value || strcmp(value, "Yes") == 0;
	conn->ops->up(conn->arg);
}
