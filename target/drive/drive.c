/* SPDX-License-Identifier: MIT
 *
 * A drive: counts, knows whether it has failed, and hands requests to its service-time model or
 * straight to its store.  A drive that fails while requests are in its queue ends those with
 * -ENODEV as well, as a pulled drive does.
 */
#include "target/drive/drive.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "target/drive/faults_impl.h"
#include "target/drive/freelist.h"
#include "target/drive/integrity.h"
#include "target/drive/model.h"

/* More than all requests a RAID set can have under way: the set pushes back first, because a drive
 * that refused one half of an update would fall out of the set. */
enum { DRIVE_IN_FLIGHT_MAX = 1 << 18 };

struct drive_full {
	struct drive drive;
	struct loop *loop;
	struct freelist children;
};

struct drive_child {
	struct io io;
	struct io *parent;
};

static const struct store_ops *const stores[] = {&store_memory_ops, &store_file_ops,
						 &store_discard_ops};

const struct store_ops *store_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(stores); i++)
		if (strcmp(stores[i]->name, name) == 0)
			return stores[i];
	return NULL;
}

static void drive_count_error(struct drive_counters *counters, int status)
{
	counters->errors++;
	switch (status) {
	case -EIO:
		counters->media_errors++;
		break;
	case -EILSEQ:
		counters->checksum_errors++;
		break;
	case -ETIMEDOUT:
		counters->timeouts++;
		break;
	case -ENODEV:
		counters->gone_errors++;
		break;
	default:
		break;
	}
}

static void drive_child_done(struct io *io)
{
	struct drive_child *child = container_of(io, struct drive_child, io);
	struct drive_full *full = io->owner;
	struct drive *drive = &full->drive;
	struct io *parent = child->parent;
	int status = io->status;

	if (drive->faults)
		status = drive_faults_judge(drive, io, status);
	if (drive->failed)
		status = -ENODEV;
	drive->in_flight--;
	if (status)
		drive_count_error(&drive->counters, status);
	freelist_give(&full->children, child);
	/* The store is dead: so is the drive, until it gets another one. */
	if (status == -ENODEV && !drive->failed)
		drive_set_failed(drive, true);
	io_complete(parent, status);
}

static void drive_count(struct drive_counters *counters, const struct io *io)
{
	switch (io->op) {
	case IO_READ:
		counters->reads++;
		counters->read_bytes += io->length_bytes;
		break;
	case IO_WRITE:
		counters->writes++;
		counters->write_bytes += io->length_bytes;
		break;
	case IO_FLUSH:
		counters->flushes++;
		break;
	case IO_UNMAP:
		counters->unmaps++;
		break;
	}
}

static void drive_refuse(struct drive *drive, struct io *io, int status)
{
	drive_count_error(&drive->counters, status);
	io_complete(io, status);
}

void drive_go_on(struct drive *drive, struct io *io)
{
	io_submit(drive->model ? drive->model : drive->store, io);
}

struct loop *drive_loop(const struct drive *drive)
{
	return container_of(drive, struct drive_full, drive)->loop;
}

static void drive_submit(struct io_layer *layer, struct io *io)
{
	struct drive_full *full = container_of(layer, struct drive_full, drive.layer);
	struct drive *drive = &full->drive;

	if (drive->failed) {
		drive_refuse(drive, io, -ENODEV);
		return;
	}
	if (!io_in_range(layer, io)) {
		drive_refuse(drive, io, -ERANGE);
		return;
	}
	struct drive_child *child = freelist_take(&full->children);
	if (!child) {
		drive_refuse(drive, io, -EBUSY);
		return;
	}
	drive_count(&drive->counters, io);
	drive->in_flight++;
	drive->counters.queue_peak = MAX_OF(drive->counters.queue_peak, drive->in_flight);
	child->io = *io;
	child->io.done = drive_child_done;
	child->io.owner = full;
	child->parent = io;
	if (!drive->faults || !drive_faults_take(drive, &child->io))
		drive_go_on(drive, &child->io);
}

/* A drive without a service time and without faults lends what its store lends. */
static int drive_lend(struct io_layer *layer, uint64_t offset, uint64_t length,
		      struct io_lent *lent)
{
	struct drive *drive = container_of(layer, struct drive, layer);
	if (drive->failed || drive->model || drive->faults)
		return -EOPNOTSUPP;
	int rc = io_lend(drive->store, offset, length, lent);
	if (rc == 0) {
		drive->counters.reads++;
		drive->counters.read_bytes += length;
	}
	return rc;
}

static const struct io_layer_ops drive_layer_ops = {
    .name = "drive",
    .submit = drive_submit,
    .lend = drive_lend,
};

static void layer_free(struct io_layer *layer)
{
	if (layer && layer->ops->free)
		layer->ops->free(layer);
}

/* Store, checksums, model. */
static int drive_open_stack(struct loop *loop, const struct drive_config *config,
			    struct drive *drive, struct err *err)
{
	const struct store_ops *ops = config->store;
	const char *place = config->store_place;

	int rc =
	    ops->open(loop, place, config->name, drive->layer.size_bytes, &drive->bare_store, err);
	if (rc)
		return rc;
	drive->store = drive->bare_store;
	if (config->checksums && !ops->forgets)
		rc =
		    integrity_open(ops, place, config->name, drive->bare_store, &drive->store, err);
	else if (ops->identity)
		rc = integrity_forget(place, config->name, err);
	if (rc || config->timing != DRIVE_TIMING_MODELLED)
		return rc;
	rc = drive_model_open(loop, config->model, config->scheduler, drive->store, &drive->model);
	if (rc)
		return err_set(err, rc, "drive %s cannot be modelled as %s: %s", config->name,
			       config->model->name, strerror(-rc));
	drive_model_count(drive->model, &drive->counters);
	return 0;
}

int drive_open(struct loop *loop, const struct drive_config *config, struct drive **ret_drive,
	       struct err *err)
{
	uint64_t size_bytes = config->size_bytes ? config->size_bytes : config->model->size_bytes;
	struct drive_full *full = calloc(1, sizeof *full);
	if (!full)
		return err_set(err, -ENOMEM, "no memory for drive %s", config->name);
	struct drive *drive = &full->drive;

	drive->layer = (struct io_layer){.ops = &drive_layer_ops, .size_bytes = size_bytes};
	int written = snprintf(drive->name, sizeof drive->name, "%s", config->name);
	if (written < 0 || (size_t)written >= sizeof drive->name) {
		free(full);
		return err_set(err, -ENAMETOOLONG, "drive name %s is longer than %zu characters",
			       config->name, sizeof drive->name - 1);
	}
	freelist_init(&full->children, sizeof(struct drive_child), DRIVE_IN_FLIGHT_MAX);
	full->loop = loop;
	int rc = drive_open_stack(loop, config, drive, err);
	if (rc) {
		drive_close(drive);
		return rc;
	}
	*ret_drive = drive;
	return 0;
}

struct drive *drive_close(struct drive *drive)
{
	if (!drive)
		return NULL;
	struct drive_full *full = container_of(drive, struct drive_full, drive);
	drive_drain(drive);
	assert(drive->in_flight == 0);
	layer_free(drive->model);
	layer_free(drive->store);
	drive_faults_free(drive);
	freelist_done(&full->children);
	free(full);
	return NULL;
}

void drive_set_failed(struct drive *drive, bool failed)
{
	if (drive->failed == failed)
		return;
	drive->failed = failed;
	if (drive->changed)
		drive->changed(drive->changed_arg, drive);
}

int drive_store_replaced(struct drive *drive, const char *place, struct err *err)
{
	if (drive->store == drive->bare_store)
		return integrity_forget(place, drive->name, err);
	return integrity_reopen(drive->store, &store_file_ops, place, drive->name, err);
}

void drive_drain(struct drive *drive)
{
	drive_faults_drain(drive);
	if (drive->model)
		drive_model_drain(drive->model);
}
