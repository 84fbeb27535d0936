/* SPDX-License-Identifier: MIT
 *
 * The table of writers, and files that appear whole or not at all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/report/directory.h"
#include "harness/report/report.h"
#include "harness/report/writers.h"

const char *const verdict_names[] = {"pass", "fail", "skip", NULL};

/* run.json first: should the disk be full, the machine-readable one has the best chance. */
const struct report_writer *const report_writers[] = {
    &run_json_writer, &summary_writer, &junit_writer,  &html_writer,
    &prom_writer,     &hgrm_writer,    &config_writer, NULL,
};

/* One writer with, for those that write one file a kind, the kind. */
struct job {
	const struct report_writer *writer;
	const char *kind;
};

static int job_run(const struct job *job, const struct record *record, FILE *to)
{
	int r = job->kind ? job->writer->write_kind(record, job->kind, to)
			  : job->writer->write(record, to);

	if (r == 0 && (fflush(to) == EOF || ferror(to)))
		r = -(errno ? errno : EIO);
	/* Writers know that the stream failed, not why. */
	if (r == -EIO && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		r = -errno;
	return r;
}

/* "latency-*.hgrm" with the kind in it, reduced to what is safe in a file name. */
static void job_file_name(const struct job *job, char *out, size_t size)
{
	const char *star = strchr(job->writer->file, '*');
	size_t head = star ? (size_t)(star - job->writer->file) : 0;

	if (!star || !job->kind) {
		snprintf(out, size, "%s", job->writer->file);
		return;
	}
	snprintf(out, size, "%.*s%.64s%s", (int)head, job->writer->file, job->kind, star + 1);
	for (char *p = out + head; *p; p++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_",
			    *p))
			*p = '_';
	}
}

static int write_file(const struct record *record, const struct job *job, const char *dir,
		      struct err *err)
{
	char name[160], *file = NULL, *temporary = NULL;
	FILE *to = NULL;
	int r;

	job_file_name(job, name, sizeof name);
	if (asprintf(&file, "%s/%s", dir, name) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (asprintf(&temporary, "%s/.%s.%ld", dir, name, (long)getpid()) < 0) {
		free(file);
		return err_set(err, -ENOMEM, "out of memory");
	}
	errno = 0;
	to = fopen(temporary, "we");
	r = to ? job_run(job, record, to) : -errno;
	if (to && fclose(to) == EOF && r == 0)
		r = -errno;
	if (r == 0 && rename(temporary, file) < 0)
		r = -errno;
	if (r < 0) {
		if (to)
			unlink(temporary);
		err_set(err, r, "cannot write the report: %s", strerror(-r));
		err_where(err, "%s", file);
		if (r == -ENOSPC || r == -EDQUOT)
			err_hint(err, "make room there, or give --out a directory elsewhere");
	}
	free(temporary);
	free(file);
	return r;
}

static bool kind_seen(const struct record *record, unsigned index)
{
	for (unsigned i = 0; i < index; i++) {
		const char *name = record->streams[i].name;

		if (name && strcmp(name, record->streams[index].name) == 0)
			return true;
	}
	return false;
}

static int write_kinds(const struct record *record, const struct report_writer *writer,
		       const char *dir, struct err *err)
{
	int first = 0;

	for (unsigned i = 0; i < record->stream_count; i++) {
		struct job job = {.writer = writer, .kind = record->streams[i].name};
		int r;

		if (!job.kind || kind_seen(record, i))
			continue;
		r = write_file(record, &job, dir, err);
		first = first ? first : r;
	}
	return first;
}

int report_write_all(const struct record *record, const char *dir, struct err *err)
{
	int first = directory_make(dir, err);

	if (first < 0)
		return first;
	/* One that fails does not keep the others from being written; the first is reported. */
	for (size_t i = 0; report_writers[i]; i++) {
		struct job job = {.writer = report_writers[i]};
		int r;

		if (job.writer->write_kind)
			r = write_kinds(record, job.writer, dir, err);
		else
			r = write_file(record, &job, dir, err);
		first = first ? first : r;
	}
	return first;
}

static int config_write(const struct record *record, FILE *to)
{
	const char *yaml = record->config_yaml;

	if (!yaml)
		yaml = "# the run recorded no configuration\n";
	return fputs(yaml, to) == EOF ? -EIO : 0;
}

const struct report_writer config_writer = {
    .file = "config.effective.yaml",
    .help = "the lab file with every default and --set filled in",
    .write = config_write,
};

int report_show(const struct record *record)
{
	return report_summary(record, stdout, isatty(STDOUT_FILENO) && !getenv("NO_COLOR"));
}
