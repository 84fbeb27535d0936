/* SPDX-License-Identifier: MIT
 *
 * What the reports want to know of a server (exchange_record.h).
 */
#include <math.h>

#include "harness/workload/ese/ese_server_impl.h"

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* As Jetstress names files: Jetstress<database>001.edb on the volume. */
static json_t *file_of(const struct ese_server_db *db, unsigned number)
{
	return json_sprintf("%s/Jetstress%03u001.edb", db->place.database->volume, number);
}

static json_t *database(const struct ese_server *server, unsigned index)
{
	const struct ese_server_db *db = &server->dbs[index];
	const struct ese_db_counters *counters = ese_db_counters(db->db);
	const struct ese_image_rules *rules = ese_db_rules(db->db);
	json_t *json = json_object();

	json_object_set_new(json, "name",
			    json_sprintf("Instance%u.%u", server->setup.number, index + 1));
	json_object_set_new(json, "volume", json_string(db->place.database->volume));
	json_object_set_new(json, "log_volume", json_string(db->place.log->volume));
	json_object_set_new(json, "file", file_of(db, index + 1));
	json_object_set_new(json, "log_path", json_sprintf("%s/", db->place.log->volume));
	json_object_set_new(json, "role", json_string(db->active ? "active" : "passive"));
	json_object_set_new(json, "initial_bytes",
			    integer((uint64_t)(rules ? rules->pages : 0) * ESE_PAGE_BYTES));
	json_object_set_new(json, "final_bytes", integer(ese_db_pages(db->db) * ESE_PAGE_BYTES));
	json_object_set_new(json, "transactions", integer(db->transactions));
	json_object_set_new(json, "splits", integer(counters->splits));
	json_object_set_new(json, "cached_pages", integer(db->cached_pages));
	json_object_set_new(json, "log_files", integer(server->config->log_files));
	return json;
}

static json_t *mix(const struct ese_config *config)
{
	const struct ese_mix_config *mix = &config->mix;

	return json_pack("{s:f,s:f,s:f,s:f,s:f}", "insert", mix->insert * 100, "delete",
			 mix->remove * 100, "replace", mix->replace * 100, "read",
			 MAX_OF(1 - mix->insert - mix->remove - mix->replace, 0) * 100, "lazy",
			 config->lazy_commits * 100);
}

static json_t *share(const struct ese_server *server, double part)
{
	return integer((uint64_t)(part * (double)ese_server_cache_max_bytes(server)));
}

json_t *ese_server_describe(const struct ese_server *server)
{
	const struct ese_config *config = server->config;
	json_t *json = json_object(), *databases = json_array();

	for (unsigned i = 0; i < server->db_count; i++)
		json_array_append_new(databases, database(server, i));
	json_object_set_new(json, "host", json_string(server->setup.host));
	json_object_set_new(json, "sessions", integer(server->session_count));
	json_object_set_new(json, "loop",
			    json_string(config->loop == ESE_OPEN ? "open" : "closed"));
	json_object_set_new(json, "cache_min_bytes", integer(ese_server_cache_min_bytes(server)));
	json_object_set_new(json, "cache_max_bytes", integer(ese_server_cache_max_bytes(server)));
	json_object_set_new(json, "flush_start_bytes",
			    share(server, config->constants.flush_start));
	json_object_set_new(json, "flush_stop_bytes", share(server, config->constants.flush_stop));
	json_object_set_new(json, "target_iops", json_real(ese_server_target_iops(server)));
	if (config->iops_per_mailbox > 0)
		json_object_set_new(json, "mailboxes",
				    integer((uint64_t)llround(ese_server_target_iops(server) /
							      config->iops_per_mailbox)));
	json_object_set_new(json, "mix", mix(config));
	json_object_set_new(json, "bdm", json_boolean(config->bdm));
	json_object_set_new(json, "copies", integer(config->copies));
	json_object_set_new(json, "databases", databases);
	return json;
}
