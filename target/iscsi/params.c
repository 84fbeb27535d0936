/* SPDX-License-Identifier: MIT
 *
 * The key table and the rules behind it (RFC 7143 6.2, 13; RFC 3720 for the marker keys).
 */
#include "target/iscsi/params.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/knob.h"

enum key_rule {
	RULE_DIGEST,	  /* list: the first of the initiator's that we can do */
	RULE_OR,	  /* boolean */
	RULE_AND,	  /* boolean */
	RULE_MIN,	  /* number, the smaller counts */
	RULE_MAX,	  /* number, the larger counts */
	RULE_FIRST_BURST, /* RULE_MIN, answered when all other keys of the text are known */
	RULE_DECLARED,	  /* number the initiator tells; no answer */
	RULE_INITIATOR_NAME,
	RULE_TARGET_NAME,
	RULE_SESSION_TYPE,
	RULE_AUTH, /* list kept for login.c */
	RULE_SEND_TARGETS,
	RULE_TASK_REPORTING,
	RULE_IGNORED, /* declared, of no use to us */
	RULE_NO,      /* always No */
	RULE_REJECT,  /* always Reject: obsolete, or the target's to send */
};

enum {
	IN_SECURITY = 1 << 0,
	IN_OPERATIONAL = 1 << 1,
	IN_FULL = 1 << 2,
	IN_LOGIN = IN_SECURITY | IN_OPERATIONAL,
};

struct key {
	const char *name;
	enum key_rule rule;
	unsigned stages;
	bool no_discovery; /* Irrelevant in a discovery session */
	uint32_t min, max; /* of the offer */
	uint32_t ours;
	size_t offset; /* in struct iscsi_params */
	bool leading;  /* of the leading connection alone: Irrelevant on those that join */
};

#define AT(field)   offsetof(struct iscsi_params, field)
#define MAX_LENGTH  0xffffff /* data segment lengths have 24 bits */
#define MAX_SECONDS 3600

static const struct key keys[] = {
    {"InitiatorName", RULE_INITIATOR_NAME, IN_LOGIN},
    {"TargetName", RULE_TARGET_NAME, IN_LOGIN},
    {"SessionType", RULE_SESSION_TYPE, IN_LOGIN},
    {"InitiatorAlias", RULE_IGNORED, IN_LOGIN | IN_FULL},
    {"AuthMethod", RULE_AUTH, IN_SECURITY},
    {"HeaderDigest", RULE_DIGEST, IN_OPERATIONAL, .offset = AT(header_digest)},
    {"DataDigest", RULE_DIGEST, IN_OPERATIONAL, .offset = AT(data_digest)},
    {"MaxRecvDataSegmentLength", RULE_DECLARED, IN_OPERATIONAL | IN_FULL, false, 512, MAX_LENGTH, 0,
     AT(max_send_bytes)},
    {"MaxConnections", RULE_MIN, IN_OPERATIONAL, true, 1, 65535, ISCSI_MAX_SESSION_CONNECTIONS,
     AT(max_connections), .leading = true},
    {"InitialR2T", RULE_OR, IN_OPERATIONAL, true, .ours = 0, .offset = AT(initial_r2t),
     .leading = true},
    {"ImmediateData", RULE_AND, IN_OPERATIONAL, true, .ours = 1, .offset = AT(immediate_data),
     .leading = true},
    {"MaxBurstLength", RULE_MIN, IN_OPERATIONAL, true, 512, MAX_LENGTH, ISCSI_MAX_BURST,
     AT(max_burst_bytes), .leading = true},
    {"FirstBurstLength", RULE_FIRST_BURST, IN_OPERATIONAL, true, 512, MAX_LENGTH, ISCSI_FIRST_BURST,
     AT(first_burst_bytes), .leading = true},
    {"MaxOutstandingR2T", RULE_MIN, IN_OPERATIONAL, true, 1, 65535, ISCSI_MAX_R2T,
     AT(max_outstanding_r2t), .leading = true},
    {"DefaultTime2Wait", RULE_MAX, IN_OPERATIONAL, false, 0, MAX_SECONDS, 0, AT(time2wait),
     .leading = true},
    {"DefaultTime2Retain", RULE_MIN, IN_OPERATIONAL, false, 0, MAX_SECONDS, 0, AT(time2retain),
     .leading = true},
    {"ErrorRecoveryLevel", RULE_MIN, IN_OPERATIONAL, false, 0, 2, 0, AT(error_recovery_level),
     .leading = true},
    {"DataPDUInOrder", RULE_OR, IN_OPERATIONAL, true, .ours = 1, .offset = AT(pdu_in_order),
     .leading = true},
    {"DataSequenceInOrder", RULE_OR, IN_OPERATIONAL, true, .ours = 1,
     .offset = AT(sequence_in_order), .leading = true},
    {"TaskReporting", RULE_TASK_REPORTING, IN_OPERATIONAL, true, .leading = true},
    {"SendTargets", RULE_SEND_TARGETS, IN_FULL},
    {"IFMarker", RULE_NO, IN_OPERATIONAL},
    {"OFMarker", RULE_NO, IN_OPERATIONAL},
    {"IFMarkInt", RULE_REJECT, IN_OPERATIONAL},
    {"OFMarkInt", RULE_REJECT, IN_OPERATIONAL},
    {"TargetAlias", RULE_REJECT, IN_LOGIN | IN_FULL},
    {"TargetAddress", RULE_REJECT, IN_LOGIN | IN_FULL},
    {"TargetPortalGroupTag", RULE_REJECT, IN_LOGIN | IN_FULL},
};
_Static_assert(ARRAY_SIZE(keys) <= 64, "one bit a key in iscsi_negotiation.seen");

static const char *const digest_names[] = {"None", "CRC32C"};

/* ---- text ---- */

void iscsi_text_add(struct iscsi_text *text, const char *key, const char *value)
{
	size_t room = text->size - text->bytes;
	int n = snprintf(text->data + text->bytes, room, "%s=%s", key, value);

	if (n < 0 || (size_t)n + 1 > room)
		text->overflow = true;
	else
		text->bytes += (size_t)n + 1;
}

void iscsi_text_add_number(struct iscsi_text *text, const char *key, uint32_t value)
{
	char number[16];

	snprintf(number, sizeof number, "%u", value);
	iscsi_text_add(text, key, number);
}

static bool is_long_binary(const char *pair)
{
	return strncmp(pair, "CHAP_C=", 7) == 0 || strncmp(pair, "CHAP_R=", 7) == 0;
}

int iscsi_text_next(char **cursor, const char *end, char **ret_key, char **ret_value)
{
	char *key = *cursor, *value;
	size_t limit;

	while (key < end && *key == '\0')
		key++;
	if (key >= end)
		return 0;
	*cursor = key + strnlen(key, (size_t)(end - key));
	**cursor = '\0';
	if (*cursor < end)
		(*cursor)++;
	value = strchr(key, '=');
	if (!value || value == key || value - key > ISCSI_KEY_MAX_BYTES)
		return -EINVAL;
	limit = is_long_binary(key) ? ISCSI_BINARY_MAX_BYTES : ISCSI_VALUE_MAX_BYTES;
	if (strlen(value + 1) > limit)
		return -EINVAL;
	*value = '\0';
	*ret_key = key;
	*ret_value = value + 1;
	return 1;
}

/* ---- values ---- */

bool iscsi_list_has(const char *list, const char *word)
{
	size_t size = strlen(word);

	for (const char *at = list; at; at = strchr(at, ',')) {
		if (*at == ',')
			at++;
		if (strncmp(at, word, size) == 0 && (at[size] == ',' || at[size] == '\0'))
			return true;
	}
	return false;
}

/* A number of RFC 7143 6.1: decimal or 0x hexadecimal, nothing else. */
static bool number_parse(const char *text, uint32_t *ret_value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	unsigned long value;

	/* strtoul itself would take blanks and signs. */
	for (const char *at = digits; *at; at++) {
		if (!(hex ? isxdigit((unsigned char)*at) : isdigit((unsigned char)*at)))
			return false;
	}
	if (*digits == '\0')
		return false;
	errno = 0;
	value = strtoul(digits, NULL, hex ? 16 : 10);
	if (errno != 0 || value > UINT32_MAX)
		return false;
	*ret_value = (uint32_t)value;
	return true;
}

/* RFC 7143 4.2.7.4, 4.2.7.5: identifiers of 8 or (naa.) 16 bytes, in hexadecimal digits. */
static bool is_identifier(const char *name, size_t size, bool may_be_long)
{
	if (size != 4 + 16 && !(may_be_long && size == 4 + 32))
		return false;
	for (size_t i = 4; i < size; i++) {
		if (!strchr("0123456789abcdefABCDEF", name[i]))
			return false;
	}
	return true;
}

int iscsi_name_normalise(const char *name, char out[ISCSI_NAME_BYTES])
{
	size_t size = strlen(name);

	if (size >= ISCSI_NAME_BYTES)
		return -EINVAL;
	if (strncasecmp(name, "eui.", 4) == 0 && !is_identifier(name, size, false))
		return -EINVAL;
	if (strncasecmp(name, "naa.", 4) == 0 && !is_identifier(name, size, true))
		return -EINVAL;
	if (strncasecmp(name, "iqn.", 4) != 0 && strncasecmp(name, "eui.", 4) != 0 &&
	    strncasecmp(name, "naa.", 4) != 0)
		return -EINVAL;
	if (size == 4)
		return -EINVAL;
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)name[i];

		/* The comma separates name and ISID where a nexus is written as text. */
		if (c <= ' ' || c == 0x7f || c == ',')
			return -EINVAL;
	}
	for (size_t i = 0; i <= size; i++)
		out[i] = name[i] >= 'A' && name[i] <= 'Z' ? (char)(name[i] - 'A' + 'a') : name[i];
	return 0;
}

static uint32_t *field_of(struct iscsi_params *params, const struct key *key)
{
	return (uint32_t *)(void *)((char *)params + key->offset);
}

/* ---- rules ---- */

static void offer_digest(struct iscsi_params *params, const struct key *key, const char *value,
			 struct iscsi_text *out)
{
	size_t best = ARRAY_SIZE(digest_names);
	const char *at = value;

	while (best == ARRAY_SIZE(digest_names) && *at) {
		size_t size = strcspn(at, ",");

		for (size_t i = 0; i < ARRAY_SIZE(digest_names); i++) {
			if (strlen(digest_names[i]) == size &&
			    strncmp(at, digest_names[i], size) == 0)
				best = i;
		}
		at += size + (at[size] == ',');
	}
	if (knobs.digests && iscsi_list_has(value, digest_names[1]))
		best = 1;
	if (best == ARRAY_SIZE(digest_names)) {
		iscsi_text_add(out, key->name, "Reject");
		return;
	}
	*field_of(params, key) = (uint32_t)best;
	iscsi_text_add(out, key->name, digest_names[best]);
}

static void offer_boolean(struct iscsi_params *params, const struct key *key, const char *value,
			  struct iscsi_text *out)
{
	bool yes = strcmp(value, "Yes") == 0;

	if (!yes && strcmp(value, "No") != 0) {
		iscsi_text_add(out, key->name, "Reject");
		return;
	}
	yes = key->rule == RULE_OR ? yes || key->ours : yes && key->ours;
	*field_of(params, key) = yes;
	iscsi_text_add(out, key->name, yes ? "Yes" : "No");
}

static void offer_number(struct iscsi_negotiation *negotiation, const struct key *key,
			 const char *value, struct iscsi_text *out)
{
	uint32_t number;

	if (!number_parse(value, &number) || number < key->min || number > key->max) {
		iscsi_text_add(out, key->name, "Reject");
		return;
	}
	if (key->rule == RULE_FIRST_BURST) {
		negotiation->first_burst_offered = true;
		negotiation->first_burst = MIN_OF(number, key->ours);
		return;
	}
	if (key->rule == RULE_MIN)
		number = MIN_OF(number, key->ours);
	else if (key->rule == RULE_MAX)
		number = MAX_OF(number, key->ours);
	*field_of(&negotiation->params, key) = number;
	if (key->rule != RULE_DECLARED)
		iscsi_text_add_number(out, key->name, number);
}

static int offer_session_type(struct iscsi_negotiation *negotiation, const char *value)
{
	if (strcmp(value, "Discovery") == 0)
		negotiation->discovery = true;
	else if (strcmp(value, "Normal") != 0)
		return -EOPNOTSUPP;
	return 0;
}

static int offer_apply(struct iscsi_negotiation *negotiation, const struct key *key,
		       const char *value, struct iscsi_text *out)
{
	switch (key->rule) {
	case RULE_DIGEST:
		offer_digest(&negotiation->params, key, value, out);
		break;
	case RULE_OR:
	case RULE_AND:
		offer_boolean(&negotiation->params, key, value, out);
		break;
	case RULE_MIN:
	case RULE_MAX:
	case RULE_FIRST_BURST:
	case RULE_DECLARED:
		offer_number(negotiation, key, value, out);
		break;
	case RULE_INITIATOR_NAME:
		return iscsi_name_normalise(value, negotiation->initiator_name);
	case RULE_TARGET_NAME:
		return iscsi_name_normalise(value, negotiation->target_name);
	case RULE_SESSION_TYPE:
		return offer_session_type(negotiation, value);
	case RULE_AUTH:
		snprintf(negotiation->auth_methods, sizeof negotiation->auth_methods, "%s", value);
		break;
	case RULE_SEND_TARGETS:
		negotiation->send_targets_asked = true;
		snprintf(negotiation->send_targets, sizeof negotiation->send_targets, "%s", value);
		break;
	case RULE_TASK_REPORTING:
		iscsi_text_add(out, key->name,
			       iscsi_list_has(value, "RFC3720") ? "RFC3720" : "Reject");
		break;
	case RULE_NO:
		iscsi_text_add(out, key->name, "No");
		break;
	case RULE_REJECT:
		iscsi_text_add(out, key->name, "Reject");
		break;
	case RULE_IGNORED:
		break;
	}
	return 0;
}

void iscsi_negotiation_init(struct iscsi_negotiation *negotiation)
{
	/* The defaults of RFC 7143 section 13: what counts when a key is not negotiated. */
	*negotiation = (struct iscsi_negotiation){
	    .params = {.max_send_bytes = ISCSI_DEFAULT_MRDSL,
		       .max_recv_bytes = ISCSI_DEFAULT_MRDSL,
		       .max_burst_bytes = 262144,
		       .first_burst_bytes = 65536,
		       .initial_r2t = 1,
		       .immediate_data = 1,
		       .max_outstanding_r2t = 1,
		       .max_connections = 1,
		       .time2wait = 2,
		       .time2retain = 20,
		       .pdu_in_order = 1,
		       .sequence_in_order = 1},
	};
}

int iscsi_params_offer(struct iscsi_negotiation *negotiation, enum iscsi_stage stage,
		       const char *name, const char *value, struct iscsi_text *out)
{
	unsigned stage_bit = stage == STAGE_SECURITY	  ? IN_SECURITY
			     : stage == STAGE_OPERATIONAL ? IN_OPERATIONAL
							  : IN_FULL;
	const struct key *key = NULL;
	uint64_t bit;

	for (size_t i = 0; i < ARRAY_SIZE(keys) && !key; i++) {
		if (strcmp(keys[i].name, name) == 0)
			key = &keys[i];
	}
	if (!key) {
		iscsi_text_add(out, name, "NotUnderstood");
		return 0;
	}
	bit = UINT64_C(1) << (key - keys);
	if (!(key->stages & stage_bit))
		return -EPROTO;
	if (stage != STAGE_FULL_FEATURE) {
		if (negotiation->seen & bit)
			return -EEXIST;
		negotiation->seen |= bit;
	}
	if ((key->no_discovery && negotiation->discovery) || (key->leading && negotiation->joins)) {
		iscsi_text_add(out, key->name, "Irrelevant");
		return 0;
	}
	return offer_apply(negotiation, key, value, out);
}

void iscsi_params_close(struct iscsi_negotiation *negotiation, struct iscsi_text *out)
{
	struct iscsi_params *params = &negotiation->params;

	if (negotiation->first_burst_offered) {
		negotiation->first_burst_offered = false;
		if (params->initial_r2t && !params->immediate_data) {
			iscsi_text_add(out, "FirstBurstLength", "Irrelevant");
		} else {
			params->first_burst_bytes =
			    MIN_OF(negotiation->first_burst, params->max_burst_bytes);
			iscsi_text_add_number(out, "FirstBurstLength", params->first_burst_bytes);
		}
	}
	/* MaxBurstLength may have been negotiated below the first burst in another text. */
	params->first_burst_bytes = MIN_OF(params->first_burst_bytes, params->max_burst_bytes);
}

void iscsi_params_declare(struct iscsi_negotiation *negotiation, struct iscsi_text *out)
{
	if (negotiation->declared)
		return;
	negotiation->declared = true;
	negotiation->params.max_recv_bytes =
	    knobs.small_mrdsl_bytes > 0 ? knobs.small_mrdsl_bytes : ISCSI_MRDSL;
	iscsi_text_add_number(out, "MaxRecvDataSegmentLength", negotiation->params.max_recv_bytes);
}
