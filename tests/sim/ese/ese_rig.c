/* SPDX-License-Identifier: MIT
 *
 * The Exchange engine on simulated devices: see ese_rig.h.
 */
#include "tests/sim/ese/ese_rig.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "harness/workload/ese/ese_db.h"

struct slot {
	struct loop_timer timer;
	struct rig_device *device;
	struct io *io;
	struct slot *next;
};

struct rig_device {
	struct io_layer layer;
	struct rig *rig;
	bool log;
	uint8_t *memory; /* NULL: nothing is kept */
	struct slot *free_slots;
};

/* ---- the device ---- */

static void transfer(struct rig_device *device, struct io *io)
{
	if (!device->memory)
		return;
	if (io->op == IO_WRITE)
		iov_to_mem(io->iov, io->iov_count, 0, device->memory + io->offset_bytes,
			   io->length_bytes);
	else if (io->op == IO_READ)
		iov_from_mem(io->iov, io->iov_count, 0, device->memory + io->offset_bytes,
			     io->length_bytes);
}

static void timed_transfer(struct rig_device *device, struct io *io)
{
	struct rig *rig = device->rig;
	uint64_t begin_ns;

	if (!rig->setup.clock_ns || !device->memory) {
		transfer(device, io);
		return;
	}
	begin_ns = rig->setup.clock_ns();
	transfer(device, io);
	rig->transfer_ns += rig->setup.clock_ns() - begin_ns;
	rig->transfers++;
}

static void served(void *arg)
{
	struct slot *slot = arg;
	struct io *io = slot->io;

	timed_transfer(slot->device, io);
	slot->next = slot->device->free_slots;
	slot->device->free_slots = slot;
	io_complete(io, 0);
}

static uint64_t qnap_latency_ns(const struct io *io, bool log)
{
	if (log)
		return io->op == IO_WRITE ? 1100 * NS_PER_US : 2700 * NS_PER_US;
	return io->op == IO_WRITE ? 2400 * NS_PER_US : 14 * NS_PER_MS;
}

static void submit(struct io_layer *layer, struct io *io)
{
	struct rig_device *device = container_of(layer, struct rig_device, layer);
	struct rig *rig = device->rig;
	struct slot *slot = device->free_slots;
	uint64_t ns = rig->setup.latency_ns ? rig->setup.latency_ns(rig, io, device->log)
					    : qnap_latency_ns(io, device->log);

	assert(io_in_range(layer, io));
	if (slot) {
		device->free_slots = slot->next;
	} else {
		slot = calloc(1, sizeof *slot);
		assert(slot);
		slot->device = device;
		loop_timer_init(&slot->timer, served, slot);
	}
	slot->io = io;
	loop_timer_set(rig->loop, &slot->timer, loop_now_ns(rig->loop) + ns);
}

static const struct io_layer_ops device_ops = {.name = "rig", .submit = submit};

static void open_device(struct rig *rig, unsigned index, bool log, uint64_t bytes)
{
	struct rig_device *device = &rig->rig_devices[index];
	unsigned number = index / 2, hosts = rig->setup.hosts ? rig->setup.hosts : 1;

	*device = (struct rig_device){.layer = {&device_ops, bytes}, .rig = rig, .log = log};
	if (rig->setup.content) {
		device->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert(device->memory != MAP_FAILED);
	}
	snprintf(rig->names[index], sizeof rig->names[index], log ? "log%u" : "db%u", number + 1);
	snprintf(rig->names[rig->device_count + index], sizeof rig->names[0], "mbx%u",
		 number * hosts / rig->setup.databases + 1);
	rig->devices[index] = (struct workload_device){
	    .host = rig->names[rig->device_count + index],
	    .volume = rig->names[index],
	    .layer = &device->layer,
	    .block_bytes = 512,
	    .known_zero = true,
	};
}

/* ---- the workload ---- */

static void mismatch(void *arg, const struct mismatch *found)
{
	printf("# mismatch: %s on %s at %llu\n", mismatch_names[found->kind], found->volume,
	       (unsigned long long)found->offset_bytes);
}

static void failed(void *arg, const char *why)
{
	struct rig *rig = arg;

	rig->failed = true;
	snprintf(rig->why, sizeof rig->why, "%s", why);
}

static void ended(void *arg) {}

static void done(void *arg, int status)
{
	struct rig *rig = arg;

	rig->status = status;
	rig->waiting = false;
}

/* In steps of a second until DONE was called. */
static int await(struct rig *rig, double limit_seconds)
{
	for (double s = 0; rig->waiting && !rig->failed && s < limit_seconds; s++)
		rig_run(rig, 1);
	if (rig->failed || rig->waiting || rig->status < 0)
		printf("# rig: %s (status %d)\n",
		       rig->failed    ? rig->why
		       : rig->waiting ? "still waiting"
				      : "failed",
		       rig->status);
	return rig->failed || rig->waiting ? -1 : rig->status;
}

static void configure(struct rig *rig)
{
	char text[4096];
	size_t used = (size_t)snprintf(text, sizeof text, "{%s, placement: [", rig->setup.config);

	for (unsigned i = 0; i < rig->setup.databases; i++)
		used += (size_t)snprintf(text + used, sizeof text - used,
					 "{database: db%u, log: log%u},", i + 1, i + 1);
	snprintf(text + used, sizeof text - used, "]}");
	if (ese_config_parse(text, &rig->cfg, &rig->config) < 0) {
		cfg_print_errors(rig->cfg, stderr);
		abort();
	}
}

struct rig *rig_new(const struct rig_setup *setup)
{
	struct rig *rig = calloc(1, sizeof *rig);
	struct err err = {0};
	uint64_t log_bytes;

	assert(rig && setup->databases <= RIG_DATABASES_MAX);
	rig->setup = *setup;
	configure(rig);
	rig->device_count = 2 * setup->databases;
	rig->devices = calloc(rig->device_count, sizeof *rig->devices);
	rig->rig_devices = calloc(rig->device_count, sizeof *rig->rig_devices);
	rig->names = calloc(2 * rig->device_count, sizeof *rig->names);
	assert(rig->devices && rig->rig_devices && rig->names);
	log_bytes = (rig->config.log_files + 4) * MIB;
	if (loop_new_virtual(0, &rig->loop) < 0)
		abort();
	for (unsigned i = 0; i < rig->device_count; i++)
		open_device(rig, i, i % 2, i % 2 ? log_bytes : setup->database_bytes);
	rig->env = (struct workload_env){
	    .loop = rig->loop,
	    .seed = setup->seed,
	    .devices = rig->devices,
	    .device_count = rig->device_count,
	    .mismatch = mismatch,
	    .ended = ended,
	    .failed = failed,
	    .arg = rig,
	    .window_ns = 7200 * NS_PER_S,
	};
	if (ese_workload_ops.open(&rig->env, &rig->config, &rig->workload, &err) < 0) {
		err_print(&err);
		abort();
	}
	rig->waiting = true;
	ese_workload_ops.prepare(rig->workload, done, rig);
	if (await(rig, 36000) < 0)
		abort();
	ese_workload_ops.start(rig->workload);
	rig_reset(rig);
	return rig;
}

struct rig *rig_free(struct rig *rig)
{
	rig->failed = false;
	rig->waiting = true;
	ese_workload_ops.stop(rig->workload, done, rig);
	if (await(rig, 3600) < 0)
		abort();
	ese_workload_ops.free(rig->workload);
	for (unsigned i = 0; i < rig->device_count; i++) {
		struct rig_device *device = &rig->rig_devices[i];

		while (device->free_slots) {
			struct slot *slot = device->free_slots;

			device->free_slots = slot->next;
			free(slot);
		}
		if (device->memory)
			munmap(device->memory, device->layer.size_bytes);
	}
	loop_free(rig->loop);
	cfg_free(rig->cfg);
	free(rig->names);
	free(rig->rig_devices);
	free(rig->devices);
	free(rig);
	return NULL;
}

void rig_run(struct rig *rig, double seconds)
{
	loop_run_until(rig->loop, loop_now_ns(rig->loop) + (uint64_t)(seconds * (double)NS_PER_S));
}

int rig_warm_up(struct rig *rig, double limit_seconds)
{
	rig->waiting = true;
	ese_workload_ops.warm_up(rig->workload, done, rig);
	return await(rig, limit_seconds);
}

struct ese_server *rig_server(struct rig *rig, unsigned index)
{
	return container_of(rig->workload, struct ese_workload, base)->servers[index];
}

/* ---- figures ---- */

static uint64_t transactions(struct rig *rig)
{
	const struct ese_workload *ese = container_of(rig->workload, struct ese_workload, base);
	uint64_t sum = 0;

	for (unsigned i = 0; i < ese->server_count; i++) {
		struct ese_server_counts counts;

		ese_server_counts(ese->servers[i], &counts);
		sum += counts.transactions;
	}
	return sum;
}

void rig_reset(struct rig *rig)
{
	workload_reset_counters(rig->workload);
	rig->reset_ns = loop_now_ns(rig->loop);
	rig->transactions = transactions(rig);
	rig->transfers = rig->transfer_ns = 0;
}

/* Rate (of one database) and mean size of all streams NAME. */
static void sum_up(struct rig *rig, const char *name, double seconds, double *ret_rate,
		   double *ret_bytes, double *ret_ns)
{
	double ios = 0, bytes = 0, ns = 0;

	for (unsigned i = 0; i < rig->workload->stream_count; i++) {
		const struct stream *stream = &rig->workload->streams[i];

		if (strcmp(stream->name, name) != 0)
			continue;
		ios += (double)stream->total.ios;
		bytes += (double)stream->total.bytes;
		ns += (double)stream->total.service.sum_ns;
	}
	*ret_rate = ios / seconds / rig->setup.databases;
	*ret_bytes = ios > 0 ? bytes / ios : 0;
	if (ret_ns)
		*ret_ns = ios > 0 ? ns / ios : 0;
}

void rig_figures(struct rig *rig, struct rig_figures *ret)
{
	double s = (double)(loop_now_ns(rig->loop) - rig->reset_ns) / (double)NS_PER_S;

	*ret = (struct rig_figures){.seconds = s, .databases = rig->setup.databases};
	sum_up(rig, "db-read", s, &ret->reads, &ret->read_bytes, &ret->read_ns);
	sum_up(rig, "db-write", s, &ret->writes, &ret->write_bytes, NULL);
	sum_up(rig, "log-write", s, &ret->log_writes, &ret->log_write_bytes, NULL);
	sum_up(rig, "bdm-read", s, &ret->bdm, &ret->bdm_bytes, NULL);
	sum_up(rig, "log-read", s, &ret->log_reads, &ret->log_read_bytes, NULL);
	ret->transactions = (double)(transactions(rig) - rig->transactions) / s;
	ret->iops = (ret->reads + ret->writes) * rig->setup.databases;
}

void rig_print(const char *title, const struct rig_figures *f)
{
	printf("# %s: %.0f s, %.1f tx/s, %.1f IOPS; a database: reads %.2f/s of %.0f B, writes "
	       "%.2f/s of %.0f B (%.3f : 1), log writes %.3f/s of %.0f B (%.2f : 1), maintenance "
	       "%.3f/s of %.0f B, log reads %.3f/s of %.0f B; a transaction: %.3f reads, %.3f "
	       "writes\n",
	       title, f->seconds, f->transactions, f->iops, f->reads, f->read_bytes, f->writes,
	       f->write_bytes, f->reads / f->writes, f->log_writes, f->log_write_bytes,
	       (f->reads + f->writes) / f->log_writes, f->bdm, f->bdm_bytes, f->log_reads,
	       f->log_read_bytes, f->reads * f->databases / f->transactions,
	       f->writes * f->databases / f->transactions);
}
