/* SPDX-License-Identifier: MIT
 *
 * Text keys (RFC 7143 sections 6.2 and 13): one table row a key with the rule by which the answer
 * follows from the offer.
 *
 * Pure: (negotiation, key, value) -> (negotiation, answer text).  The answers are "key=value"
 * strings with their NULs, appended to a bounded text.
 */
#ifndef SANLAB_TARGET_ISCSI_PARAMS_H
#define SANLAB_TARGET_ISCSI_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/iscsi/pdu.h"

enum {
	ISCSI_NAME_BYTES = 224, /* longest name with its NUL, RFC 7143 4.2.7.1 */
	ISCSI_KEY_MAX_BYTES = 63,
	ISCSI_VALUE_MAX_BYTES = 255,
	ISCSI_BINARY_MAX_BYTES = 2 + 2 * 1024, /* CHAP_C and CHAP_R: "0x" and 1024 bytes */
	ISCSI_DEFAULT_MRDSL = 8192,
	ISCSI_MRDSL = 262144,
	ISCSI_MAX_BURST = 1 << 20,
	ISCSI_FIRST_BURST = 262144,
	ISCSI_MAX_R2T = 8,
	ISCSI_MAX_SESSION_CONNECTIONS = 4,
};

/* Outgoing text.  `overflow` says that something did not fit. */
struct iscsi_text {
	char *data;
	size_t size;
	size_t bytes;
	bool overflow;
};

void iscsi_text_add(struct iscsi_text *text, const char *key, const char *value);
void iscsi_text_add_number(struct iscsi_text *text, const char *key, uint32_t value);

/* Splits NUL-separated "key=value" strings in place.  DATA[BYTES] must be writable: a last string
 * without its NUL gets one.  1: a pair; 0: the end; -EINVAL: no '=', or a key or value too long. */
int iscsi_text_next(char **cursor, const char *end, char **ret_key, char **ret_value);

/* What a connection and its session run with. */
struct iscsi_params {
	uint32_t header_digest; /* 0 None, 1 CRC32C */
	uint32_t data_digest;
	uint32_t max_send_bytes; /* the initiator's MaxRecvDataSegmentLength */
	uint32_t max_recv_bytes; /* ours, once declared */
	uint32_t max_burst_bytes;
	uint32_t first_burst_bytes;
	uint32_t initial_r2t;
	uint32_t immediate_data;
	uint32_t max_outstanding_r2t;
	uint32_t max_connections;
	uint32_t error_recovery_level;
	uint32_t time2wait;
	uint32_t time2retain;
	uint32_t pdu_in_order;
	uint32_t sequence_in_order;
};

struct iscsi_negotiation {
	struct iscsi_params params;
	uint64_t seen; /* keys the initiator has sent; bit = row of the table */
	bool discovery;
	bool joins;		  /* a session that is there: its parameters are settled */
	bool declared;		  /* our own declarations have been sent */
	bool first_burst_offered; /* its answer depends on other keys: see iscsi_params_close */
	uint32_t first_burst;
	char initiator_name[ISCSI_NAME_BYTES];
	char target_name[ISCSI_NAME_BYTES];
	char auth_methods[ISCSI_VALUE_MAX_BYTES + 1]; /* as offered; login.c chooses */
	char send_targets[ISCSI_VALUE_MAX_BYTES + 1]; /* full feature phase: see text.c */
	bool send_targets_asked;
};

void iscsi_negotiation_init(struct iscsi_negotiation *negotiation);

/* Takes the key NAME of the initiator in STAGE and appends the answer, if there is one, to OUT.
 * -EEXIST: the key came before; -EPROTO: it must not come in this stage; -EINVAL: a value that
 * makes the login senseless (names); -EOPNOTSUPP: no such session type. */
int iscsi_params_offer(struct iscsi_negotiation *negotiation, enum iscsi_stage stage,
		       const char *name, const char *value, struct iscsi_text *out);
/* All keys of one text have been taken: answers those that depend on others. */
void iscsi_params_close(struct iscsi_negotiation *negotiation, struct iscsi_text *out);
/* Declares our own values; once. */
void iscsi_params_declare(struct iscsi_negotiation *negotiation, struct iscsi_text *out);

/* Lower-cases NAME into OUT when it is an acceptable iSCSI name (iqn., eui., naa.). */
int iscsi_name_normalise(const char *name, char out[ISCSI_NAME_BYTES]);
/* Does the comma-separated LIST hold WORD? */
bool iscsi_list_has(const char *list, const char *word);

#endif
