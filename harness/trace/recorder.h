/* SPDX-License-Identifier: MIT
 *
 * Records what a run asks of its devices, as a fio iolog of version 3 that fio and the replay
 * workload read.
 *
 * Each device gets a layer (recorder_wrap) that writes down what passes and passes it on as it is:
 * an I/O is neither copied nor held.  Lines go into buffers that a thread of its own writes out
 * (gzip when the file is called *.gz), so a slow disk holds up nobody: when all buffers are full,
 * I/Os are left out of the recording and counted.  Memory is bounded by the buffers.
 *
 *   IO_READ -> read, IO_WRITE -> write, IO_UNMAP -> trim, IO_FLUSH -> sync,
 *   IO_WRITE with FUA -> write and, at the same microsecond, datasync: what fio carries out there
 * is at least as strong, and our reader makes FUA of the pair again. Times are those at which the
 * I/Os were handed to the device, in microseconds since recorder_start, from 1 on: fio loses the
 * pause after an instant 0.  A device is called HOST.VOLUME: fio takes that for a file in its
 * directory, `replay_redirect` names another.
 *
 * Threading: the loop's thread but for the writer inside.
 */
#ifndef SANLAB_HARNESS_TRACE_RECORDER_H
#define SANLAB_HARNESS_TRACE_RECORDER_H

#include "base/err.h"
#include "base/io.h"
#include "base/loop.h"

struct recorder;

int recorder_open(const char *file, struct loop *loop, struct recorder **ret_recorder,
		  struct err *err);
/* A layer in front of BELOW; it lives until recorder_close.  NULL: out of memory. */
struct io_layer *recorder_wrap(struct recorder *recorder, struct io_layer *below, const char *host,
			       const char *volume);
/* From here on I/Os are recorded; until recorder_stop. */
void recorder_start(struct recorder *recorder);
void recorder_stop(struct recorder *recorder);

struct recorder_result {
	const char *file;
	uint64_t ios, lost; /* written down; left out because the disk was too slow */
	int status;	    /* negative errno: the file could not be written, and ends early */
};
/* Writes out all there is, waits for it and closes the file; the layers go on passing I/O. */
void recorder_finish(struct recorder *recorder, struct recorder_result *ret_result);
struct recorder *recorder_close(struct recorder *recorder); /* NULL is fine; returns NULL */

#endif
