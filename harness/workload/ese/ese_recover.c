/* SPDX-License-Identifier: MIT
 *
 * Soft recovery: the reader hands records to redo until the log ends.
 */
#include "harness/workload/ese/ese_recover.h"

#include <errno.h>
#include <stdlib.h>

#include "base/bytes.h"

struct ese_recovery {
	struct ese_recovery_config config;
	struct ese_recovery_result result;
	struct ese_log_reader *reader;
	struct ese_redo *redo;
	uint64_t begin_ns;
	bool read_ended, stopped, told;
	/* The record that redo had no room for; the reader's own memory, which stays as it is while
	 * the reader is paused. */
	const struct ese_record *waiting;
	uint64_t waiting_first, waiting_end;
};

static int verdict(const struct ese_recovery *recovery)
{
	const struct ese_log_read_result *log = &recovery->result.log;
	const struct ese_redo_counters *redo = ese_redo_counters(recovery->redo);

	if (recovery->stopped)
		return -ECANCELED;
	if (redo->status < 0)
		return redo->status;
	if (log->end == ESE_LOG_END_ERROR || log->end == ESE_LOG_END_CORRUPT)
		return log->status;
	/* What the checkpoint had seen on the device cannot be missing. */
	if (log->next_lgpos < recovery->config.checkpoint.flushed_lgpos)
		return -EBADMSG;
	return redo->pages_wrong ? -EUCLEAN : 0;
}

static void finish_if_done(struct ese_recovery *recovery)
{
	const struct ese_redo_counters *redo = ese_redo_counters(recovery->redo);
	struct ese_recovery_result *result = &recovery->result;

	if (!recovery->read_ended || recovery->told ||
	    (!ese_redo_empty(recovery->redo) && redo->status == 0))
		return;
	recovery->told = true;
	result->checkpoint = recovery->config.checkpoint;
	result->status = verdict(recovery);
	result->records = redo->records;
	result->updates_done = redo->updates_done;
	result->updates_there = redo->updates_there;
	result->pages_mended = redo->pages_mended;
	result->pages_wrong = redo->pages_wrong;
	result->dbtime = MAX_OF(redo->dbtime, recovery->config.checkpoint.dbtime);
	result->files = (double)(result->log.end_lgpos - recovery->config.checkpoint.redo_lgpos) /
			ESE_LOG_FILE_BYTES;
	result->duration_ns = loop_now_ns(recovery->config.loop) - recovery->begin_ns;
	result->log.epoch = MAX_OF(result->log.epoch, recovery->config.checkpoint.epoch);
	recovery->config.done(recovery->config.arg, result);
}

static bool take_record(void *arg, const struct ese_record *record, uint64_t first_lgpos,
			uint64_t end_lgpos)
{
	struct ese_recovery *recovery = arg;

	if (ese_redo_add(recovery->redo, record, first_lgpos, end_lgpos))
		return true;
	if (ese_redo_counters(recovery->redo)->status < 0)
		ese_log_reader_stop(recovery->reader);
	recovery->waiting = record;
	recovery->waiting_first = first_lgpos;
	recovery->waiting_end = end_lgpos;
	return false;
}

static void read_ended(void *arg, const struct ese_log_read_result *result)
{
	struct ese_recovery *recovery = arg;

	recovery->result.log = *result;
	recovery->read_ended = true;
	if (ese_redo_empty(recovery->redo) || ese_redo_counters(recovery->redo)->status < 0)
		finish_if_done(recovery);
	else
		ese_redo_push(recovery->redo); /* redo_idle follows, and may be the end */
}

static void redo_idle(void *arg)
{
	struct ese_recovery *recovery = arg;
	const struct ese_record *record = recovery->waiting;

	if (ese_redo_counters(recovery->redo)->status < 0) {
		if (recovery->read_ended)
			finish_if_done(recovery);
		else
			ese_log_reader_stop(recovery->reader);
		return;
	}
	if (record) {
		recovery->waiting = NULL; /* add may come back here */
		if (ese_redo_add(recovery->redo, record, recovery->waiting_first,
				 recovery->waiting_end))
			ese_log_reader_resume(recovery->reader);
		else
			recovery->waiting = record;
		return;
	}
	if (recovery->read_ended) {
		if (ese_redo_empty(recovery->redo))
			finish_if_done(recovery);
		else
			ese_redo_push(recovery->redo);
	}
}

int ese_recover(const struct ese_recovery_config *config, struct ese_recovery **ret_recovery,
		struct err *err)
{
	struct ese_recovery *recovery = calloc(1, sizeof *recovery);
	struct ese_log_read_config read = {
	    .loop = config->loop,
	    .area = config->area,
	    .from_lgpos = config->checkpoint.redo_lgpos,
	    .stream = config->stream,
	    .record = take_record,
	    .ended = read_ended,
	    .arg = recovery,
	};
	int r;

	if (!recovery)
		return err_set(err, -ENOMEM, "out of memory");
	recovery->config = *config;
	recovery->begin_ns = loop_now_ns(config->loop);
	r = ese_log_reader_new(&read, &recovery->reader, err);
	if (r == 0) {
		r = ese_redo_new(config->loop, config->ops, config->ops_arg, redo_idle, recovery,
				 &recovery->redo);
		if (r < 0)
			err_set(err, r, "out of memory");
	}
	if (r < 0) {
		ese_recovery_free(recovery);
		return r;
	}
	*ret_recovery = recovery;
	ese_log_reader_start(recovery->reader);
	return 0;
}

void ese_recovery_stop(struct ese_recovery *recovery)
{
	recovery->stopped = true;
	if (!recovery->read_ended)
		ese_log_reader_stop(recovery->reader);
}

struct ese_recovery *ese_recovery_free(struct ese_recovery *recovery)
{
	if (!recovery)
		return NULL;
	ese_log_reader_free(recovery->reader);
	ese_redo_free(recovery->redo);
	free(recovery);
	return NULL;
}
