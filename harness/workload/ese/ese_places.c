/* SPDX-License-Identifier: MIT
 *
 * Which of the hosts' volumes is what: databases, their logs, copies of databases; and whether they
 * are large enough.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_file.h"
#include "harness/workload/ese/ese_workload.h"

static const struct ese_placement_config *placement_of(const struct ese_config *config,
						       const char *database)
{
	const struct ese_placement_config *places = config->placement.items;

	for (size_t i = 0; i < config->placement.count; i++)
		if (!strcmp(places[i].database, database))
			return &places[i];
	return NULL;
}

static bool log_elsewhere(const struct ese_config *config, const char *database)
{
	const struct ese_placement_config *place = placement_of(config, database);

	return place && place->log;
}

static unsigned logs_on(const struct ese_config *config, const char *volume)
{
	const struct ese_placement_config *places = config->placement.items;
	unsigned logs = 0;

	for (size_t i = 0; i < config->placement.count; i++)
		if (places[i].log && !strcmp(places[i].log, volume))
			logs++;
	return logs;
}

/* The HOST/VOLUME of NAMES that has VOLUME; NULL: none. */
static const char *find_name(const char *volume, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *slash = strchr(names[i], '/');

		if (slash && !strcmp(slash + 1, volume))
			return names[i];
	}
	return NULL;
}

static int check_name(const char *key, const char *volume, const char *const *names, size_t count,
		      struct err *err)
{
	if (!volume || find_name(volume, names, count))
		return 0;
	err_hint(err, "database, log and copy-of name volumes of the hosts");
	return err_set(err, -EINVAL, "placement: no host has a volume '%.100s' (%s)", volume, key);
}

/* The volumes of PLACE exist: their hosts fit, too. */
static int check_places_hosts(const struct ese_placement_config *place, const char *const *names,
			      size_t count, struct err *err)
{
	const char *host = find_name(place->database, names, count);
	int length = (int)(strchr(host, '/') - host) + 1;

	if (place->log && strncmp(find_name(place->log, names, count), host, (size_t)length) != 0) {
		err_hint(err, "name a volume of the same host");
		return err_set(err, -EINVAL,
			       "placement: host %.*s has no volume %.60s for the log of %.60s",
			       length - 1, host, place->log, place->database);
	}
	if (place->copy_of &&
	    !strncmp(find_name(place->copy_of, names, count), host, (size_t)length)) {
		err_hint(err, "copy-of names the volume of an active database on another host");
		return err_set(err, -EINVAL,
			       "placement: %.60s cannot be a copy of %.60s: both are volumes of "
			       "host %.*s",
			       place->database, place->copy_of, length - 1, host);
	}
	return 0;
}

static int check_placement(const struct ese_placement_config *place, const char *const *names,
			   size_t count, struct err *err)
{
	int r = check_name("database", place->database, names, count, err);

	if (r == 0)
		r = check_name("log", place->log, names, count, err);
	if (r == 0)
		r = check_name("copy-of", place->copy_of, names, count, err);
	return r == 0 ? check_places_hosts(place, names, count, err) : r;
}

int ese_check_names(const void *config, const char *const *names, size_t count, struct err *err)
{
	const struct cfg_list *list = &((const struct ese_config *)config)->placement;
	const struct ese_placement_config *places = list->items;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->count; i++)
		r = check_placement(&places[i], names, count, err);
	return r;
}

/* The database that VOLUME held, or held a copy of, when the run began. */
static const char *original(const struct ese_config *config, const char *volume)
{
	const struct ese_placement_config *place = placement_of(config, volume);

	return place && place->copy_of ? place->copy_of : volume;
}

/* Earlier faults may have made a copy the active database: which of them is active counts when the
 * fault comes, here only that both hold the same database. */
int ese_check_fault(const void *config, const struct workload_fault *fault, struct err *err)
{
	const struct ese_config *ese = config;
	const struct ese_placement_config *places = ese->placement.items;
	const char *database = original(ese, fault->volume);
	bool copied = false;

	for (size_t i = 0; i < ese->placement.count; i++)
		copied |= places[i].copy_of && !strcmp(places[i].copy_of, database);
	if (copied && (!fault->to || (strcmp(fault->to, fault->volume) != 0 &&
				      !strcmp(original(ese, fault->to), database))))
		return 0;
	err_hint(err, "workload.placement: [{database: VOLUME, copy-of: %s}] makes one", database);
	return copied ? err_set(err, -EINVAL, "volume %s holds no copy of %s", fault->to,
				fault->volume)
		      : err_set(err, -EINVAL, "database %s has no copy", fault->volume);
}

/* What the layouts say of a volume of SIZE_BYTES. */
static int check_size(const struct ese_config *config, const char *volume, uint64_t size_bytes,
		      struct err *err)
{
	unsigned logs = logs_on(config, volume);
	uint64_t pages = config->initial_bytes / ESE_PAGE_BYTES, end = 0;
	uint32_t files = (uint32_t)config->log_files;
	struct ese_layout layout;
	struct err why = {0};
	int r = 0;

	if (!logs)
		r = ese_layout_database(size_bytes, config->database_bytes, pages,
					log_elsewhere(config, volume) ? 0 : files, &layout, &why);
	for (unsigned i = 0; r == 0 && i < logs; i++, end = layout.end_bytes)
		r = ese_layout_log(size_bytes, end, files, &layout, &why);
	if (r < 0) {
		err_set(err, r, "volume %s: %s", volume, why.what);
		err_hint(err, "make the volume larger, or set workload.database-size, "
			      ".initial-size and .log-files");
	}
	return r;
}

int ese_check_volume(const void *config, const char *volume, uint64_t size_bytes,
		     uint32_t block_bytes, struct err *err)
{
	return check_size(config, volume, size_bytes, err);
}

static const struct workload_device *find_device(const struct workload_env *env, const char *host,
						 const char *volume)
{
	for (unsigned i = 0; i < env->device_count; i++)
		if (!strcmp(env->devices[i].volume, volume) && !strcmp(env->devices[i].host, host))
			return &env->devices[i];
	return NULL;
}

int ese_check_devices(const struct ese_workload *ese, struct err *err)
{
	const struct workload_env *env = &ese->env;
	int r = 0;

	if (env->device_count == 0)
		return err_set(err, -EINVAL, "the exchange workload has no volume to work on");
	for (unsigned i = 0; r == 0 && i < env->device_count; i++) {
		const struct workload_device *device = &env->devices[i];

		for (unsigned k = 0; k < i; k++)
			if (!strcmp(device->volume, env->devices[k].volume))
				return err_set(err, -EINVAL,
					       "volume %s has two users, %s and %s: a database "
					       "belongs to one",
					       device->volume, env->devices[k].host, device->host);
		r = check_size(&ese->config, device->volume, device->layer->size_bytes, err);
	}
	return r;
}

/* The log of the database on DEVICE: where it begins, on which volume. */
static int place_log(struct ese_workload *ese, struct ese_place *place, struct err *err)
{
	const struct ese_placement_config *told =
	    placement_of(&ese->config, place->database->volume);
	struct ese_layout layout = {0};

	place->log = place->database;
	if (!told || !told->log)
		return 0;
	place->log = find_device(&ese->env, place->database->host, told->log);
	if (!place->log) {
		err_hint(err, "name a volume of the same host in workload.placement");
		return err_set(err, -EINVAL, "host %s has no volume %s for the log of %s",
			       place->database->host, told->log, told->database);
	}
	for (struct ese_place *other = ese->places; other < place; other++)
		if (other->log == place->log) {
			int r = ese_layout_log(place->log->layer->size_bytes, other->log_base_bytes,
					       (uint32_t)ese->config.log_files, &layout, err);

			if (r < 0)
				return r;
			place->log_base_bytes = layout.end_bytes;
		}
	return 0;
}

/* ---- open ---- */

static struct stream *open_streams(struct ese_workload *ese, const struct ese_place *place,
				   const char *const *names)
{
	struct stream *streams = &ese->base.streams[ese->base.stream_count];

	for (unsigned i = 0; i < ESE_STREAMS; i++) {
		bool log = i == ESE_LOG_READ || i == ESE_LOG_WRITE;

		streams[i] = (struct stream){
		    .name = names[i],
		    .host = place->database->host,
		    .volume = log ? place->log->volume : place->database->volume,
		    .write = i == ESE_DB_WRITE || i == ESE_LOG_WRITE,
		};
	}
	ese->base.stream_count += ESE_STREAMS;
	return streams;
}

static struct ese_place *place_of(struct ese_workload *ese, const char *database)
{
	for (unsigned i = 0; i < ese->database_count; i++)
		if (!strcmp(ese->places[i].database->volume, database))
			return &ese->places[i];
	return NULL;
}

/* Both ends of a copy may be passive or active in turn. */
static int join_copies(struct ese_workload *ese, struct err *err)
{
	for (unsigned i = 0; i < ese->database_count; i++) {
		struct ese_place *copy = &ese->places[i], *active;

		if (!copy->copy_of)
			continue;
		active = place_of(ese, copy->copy_of);
		if (!active || active->copy_of ||
		    !strcmp(active->database->host, copy->database->host)) {
			err_hint(err, "workload.placement: copy-of names the volume of an active "
				      "database on another host");
			return err_set(err, -EINVAL, "%s cannot be a copy of %s",
				       copy->database->volume, copy->copy_of);
		}
		active->copied = true;
	}
	for (unsigned i = 0; i < ese->database_count; i++) {
		struct ese_place *place = &ese->places[i];

		if (place->copied || place->copy_of)
			place->copy_streams = open_streams(ese, place, ese_copy_stream_names);
	}
	return 0;
}

/* Databases in the order of the hosts, so that each server has its own together. */
int ese_make_places(struct ese_workload *ese, struct err *err)
{
	const struct workload_env *env = &ese->env;
	int r = 0;

	ese->places = calloc(env->device_count, sizeof *ese->places);
	ese->base.streams =
	    calloc((size_t)env->device_count * ESE_STREAMS * 2, sizeof *ese->base.streams);
	ese->servers = calloc(env->device_count, sizeof(struct ese_server *));
	if (!ese->places || !ese->base.streams || !ese->servers)
		return err_set(err, -ENOMEM, "no memory for the workload");
	for (unsigned i = 0; r == 0 && i < env->device_count; i++) {
		struct ese_place *place = &ese->places[ese->database_count];

		if (logs_on(&ese->config, env->devices[i].volume))
			continue;
		place->database = &env->devices[i];
		r = place_log(ese, place, err);
		if (r < 0)
			break;
		if (placement_of(&ese->config, place->database->volume))
			place->copy_of =
			    placement_of(&ese->config, place->database->volume)->copy_of;
		place->streams = open_streams(ese, place, ese_stream_names);
		ese->database_count++;
	}
	if (r == 0)
		r = join_copies(ese, err);
	if (r == 0 && ese->database_count == 0)
		r = err_set(err, -EINVAL, "every volume holds logs: there is no database");
	return r;
}
