/* SPDX-License-Identifier: MIT
 *
 * Loading a lab file: decode, then the checks of every part, then all errors in one go.
 */
#include "harness/lab/lab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/lab/lab_impl.h"
#include "harness/workload/foreign.h"
#include "harness/workload/workload.h"

/* The hint to an error about TEXT, which is none of NAMES. */
static void hint_names(struct lab *lab, const char *text, const char *const *names)
{
	const char *near = cfg_nearest(text, names);
	char known[200] = "";

	for (size_t i = 0; names[i]; i++) {
		size_t used = strlen(known);
		(void)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", names[i]);
	}
	if (near)
		cfg_hint(lab->cfg, "did you mean '%s'? allowed: %s", near, known);
	else
		cfg_hint(lab->cfg, "allowed: %s", known);
}

/* The one of OPS' type that `engine` names, OPS without such a key; NULL with the error reported:
 * nobody knows then by which schema the other keys are to be read. */
static const struct workload_ops *find_engine(struct lab *lab, const struct workload_ops *ops)
{
	enum { ENGINES_MAX = 8 };
	const char *names[ENGINES_MAX + 1] = {NULL}, *engine;
	const struct workload_ops *found, *other;
	struct cfg_raw value;
	size_t count = 0;

	if (!ops->engine || !cfg_raw_find(&lab->workload, "engine", &value))
		return ops;
	engine = cfg_raw_scalar(&value);
	if (!engine) /* the schema says what is wrong with it */
		return ops;
	found = workload_find_engine(ops->name, engine);
	if (found)
		return found;
	for (size_t i = 0; (other = workload_at(i)) && count < ENGINES_MAX; i++)
		if (other->engine && !strcmp(other->name, ops->name))
			names[count++] = other->engine;
	cfg_error_raw(lab->cfg, &value, "'engine' has the unknown value '%.60s'", engine);
	hint_names(lab, engine, names);
	return NULL;
}

/* Finds `type` among the workload's keys, then decodes the rest by the schema it names. */
static void decode_workload(struct lab *lab)
{
	const char *key, *type = NULL;
	struct cfg_raw value = {NULL};

	if (!lab->workload.node)
		return;
	for (size_t i = 0; cfg_raw_entry(&lab->workload, i, &key, &value); i++)
		if (key && !strcmp(key, "type")) {
			type = cfg_raw_scalar(&value);
			break;
		}
	if (!type) {
		cfg_error_raw(lab->cfg, &lab->workload,
			      "'workload' must be a mapping with a `type`");
		cfg_hint(lab->cfg, "write workload: {type: exchange, ...}");
		return;
	}
	const struct workload_ops *ops = workload_find(type);
	if (!ops) {
		cfg_error_raw(lab->cfg, &value, "there is no workload of type '%.60s'", type);
		hint_names(lab, type, workload_names);
		return;
	}
	ops = find_engine(lab, ops);
	if (!ops)
		return;
	lab->workload_config = calloc(1, ops->schema->size);
	if (!lab->workload_config) {
		cfg_error_raw(lab->cfg, &lab->workload, "out of memory");
		return;
	}
	lab->workload_ops = ops;
	cfg_decode_raw(lab->cfg, &lab->workload, ops->schema, lab->workload_config);
	if (ops->configure && !cfg_error_count(lab->cfg))
		ops->configure(lab->cfg, lab->workload_config);
}

/* What the workload would say of the hosts' volumes when the run begins. */
static void check_workload(struct lab *lab)
{
	const struct workload_ops *ops = lab->workload_ops;
	const struct volume_config *volumes = lab->group.volumes.items;

	if (!ops || !ops->check || !lab->has_group || cfg_error_count(lab->cfg))
		return;
	for (size_t v = 0; v < lab->group.volumes.count; v++) {
		struct err err = {0};

		if (!lab_volume_is_used(lab, volumes[v].name) ||
		    ops->check(lab->workload_config, volumes[v].name, volumes[v].size_bytes,
			       (uint32_t)volumes[v].block_bytes, &err) == 0)
			continue;
		cfg_error_raw(lab->cfg, &lab->workload, "%s", err.what);
		if (err.hint[0])
			cfg_hint(lab->cfg, "%s", err.hint);
		return;
	}
}

/* The workload names volumes itself: are there such? */
static void check_names(struct lab *lab)
{
	enum { DEVICES_MAX = 256 };
	const struct workload_ops *ops = lab->workload_ops;
	const struct host_config *hosts = lab->hosts.items;
	char(*full)[140] = calloc(DEVICES_MAX, sizeof *full);
	const char *names[DEVICES_MAX], *volume;
	struct err err = {0};
	size_t count = 0;

	for (size_t h = 0; full && h < lab->hosts.count; h++)
		for (size_t v = 0; count < DEVICES_MAX && (volume = lab_host_volume(&hosts[h], v));
		     v++) {
			snprintf(full[count], sizeof full[count], "%.64s/%.64s", hosts[h].name,
				 volume);
			names[count] = full[count];
			count++;
		}
	if (full && ops->check_names(lab->workload_config, names, count, &err) < 0) {
		cfg_error_raw(lab->cfg, &lab->workload, "%s", err.what);
		if (err.hint[0])
			cfg_hint(lab->cfg, "%s", err.hint);
	}
	free(full);
}

static void check_run(struct lab *lab)
{
	struct run_config *run = &lab->run;
	if (cfg_valid(lab->cfg, &run->interval_ns) && cfg_valid(lab->cfg, &run->duration_ns) &&
	    run->interval_ns > run->duration_ns)
		cfg_error_at(lab->cfg, &run->interval_ns, "'interval' is longer than 'duration'");
	else if (run->interval_ns &&
		 (run->duration_ns + run->warmup_ns) / run->interval_ns > 1000000)
		cfg_error_at(lab->cfg, &run->interval_ns,
			     "'interval' is too short: more than 1000000 samples");
}

static bool group_given(const struct lab *lab)
{
	const struct group_config *group = &lab->group;
	return cfg_given(lab->cfg, &group->style) || cfg_given(lab->cfg, &group->portal) ||
	       cfg_given(lab->cfg, &group->pools) || cfg_given(lab->cfg, &group->volumes);
}

static void check_all(struct lab *lab)
{
	cfg_check_name(lab->cfg, &lab->name);
	lab->has_group = group_given(lab);
	if (lab->has_group)
		group_config_check(lab->cfg, &lab->group);
	else if (!lab->hosts.count && !cfg_error_count(lab->cfg))
		cfg_error_at(lab->cfg, &lab->name,
			     "the lab has neither a group nor hosts: there is nothing to do");
	lab_check_hosts(lab);
	decode_workload(lab);
	check_run(lab);
	lab_check_faults(lab);
	lab_check_expect(lab);
	check_workload(lab);
	if (lab->workload_ops && lab->workload_ops->check_names && !cfg_error_count(lab->cfg))
		check_names(lab);
}

static void make_timeline(struct lab *lab)
{
	int r = lab_make_timeline(lab);

	if (r == -E2BIG)
		cfg_error_at(lab->cfg, &lab->faults, "more than %d faults in one run",
			     LAB_MAX_FAULT_EVENTS);
	else if (r < 0)
		cfg_error_at(lab->cfg, &lab->faults, "no memory for the faults");
}

/* Takes CFG. */
static int load(struct cfg *cfg, const char *const *sets, size_t set_count, FILE *errors_to,
		struct lab **ret_lab)
{
	struct lab *lab = calloc(1, sizeof *lab);
	if (!lab) {
		cfg_free(cfg);
		return -ENOMEM;
	}
	/* A file that is not YAML has one kind of error; what is missing in it is unknown. */
	bool readable = !cfg_error_count(cfg);
	for (size_t i = 0; i < set_count; i++)
		cfg_set(cfg, sets[i]);
	cfg_decode(cfg, &lab_schema, lab);
	lab->cfg = cfg;
	if (readable)
		check_all(lab);
	if (readable && !cfg_error_count(cfg))
		make_timeline(lab);
	if (cfg_error_count(cfg)) {
		cfg_print_errors(cfg, errors_to);
		lab_free(lab);
		return -EINVAL;
	}
	*ret_lab = lab;
	return 0;
}

int lab_load(const char *file, const char *const *sets, size_t set_count, struct lab **ret_lab)
{
	struct err err = {0};
	struct cfg *cfg = NULL;
	int rc = cfg_open(file, &cfg, &err);
	if (rc) {
		err_print(&err);
		return rc;
	}
	return load(cfg, sets, set_count, stderr, ret_lab);
}

int lab_parse(const char *name, const char *text, size_t size, const char *const *sets,
	      size_t set_count, FILE *errors_to, struct lab **ret_lab)
{
	struct cfg *cfg = NULL;
	int rc = cfg_parse(name, text, size, &cfg);
	return rc ? rc : load(cfg, sets, set_count, errors_to, ret_lab);
}

struct lab *lab_free(struct lab *lab)
{
	if (!lab)
		return NULL;
	lab_free_timeline(lab);
	free(lab->workload_config);
	cfg_free(lab->cfg);
	free(lab);
	return NULL;
}

static bool can_observe(const struct lab *lab, struct err *err)
{
	if (lab->has_group && !lab->hosts.count)
		return true;
	err_set(err, -EINVAL, "lab '%s': a foreign workload needs a group to come to, and no hosts",
		lab->name);
	err_hint(err, "leave out `hosts`, or give them a workload of their own");
	return false;
}

bool lab_can_run(const struct lab *lab, struct err *err)
{
	if (lab->workload_ops == &foreign_workload_ops)
		return can_observe(lab, err);
	if (!lab->hosts.count) {
		err_set(err, -EINVAL, "lab '%s' has no hosts: nobody would do any I/O", lab->name);
		err_hint(
		    err,
		    "serve it with `sanlab target`, add hosts and a workload, or watch somebody "
		    "else's load with workload: {type: foreign}");
		return false;
	}
	if (!lab->workload_ops) {
		err_set(err, -EINVAL, "lab '%s' has no workload", lab->name);
		err_hint(err, "add workload: {type: exchange, ...}");
		return false;
	}
	return true;
}

int lab_observe(struct lab *lab)
{
	void *config;

	lab->hosts.count = 0;
	if (lab->workload_ops == &foreign_workload_ops)
		return 0;
	config = foreign_config_new();
	if (!config)
		return -ENOMEM;
	free(lab->workload_config);
	lab->workload_config = config;
	lab->workload_ops = &foreign_workload_ops;
	return 0;
}

int lab_emit(const struct lab *lab, FILE *to)
{
	return cfg_emit(lab->cfg, &lab_schema, to);
}

void lab_print_reference(FILE *to)
{
	(void)fprintf(to, "The lab file: keys, types, limits and defaults.  [] marks the elements "
			  "of a list.\n\n");
	cfg_print_reference(&lab_schema, "", to);
	const struct workload_ops *ops;
	for (size_t i = 0; (ops = workload_at(i)); i++) {
		(void)fprintf(to, "\nworkload: {type: %s%s%s}: %s\n\n", ops->name,
			      ops->engine ? ", engine: " : "", ops->engine ? ops->engine : "",
			      ops->help ? ops->help : "");
		cfg_print_reference(ops->schema, "workload.", to);
	}
}
