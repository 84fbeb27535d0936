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
    &run_json_writer,	   &summary_writer, &junit_writer,  &html_writer,
    &prom_writer,	   &hgrm_writer,    &config_writer, &jetstress_html_writer,
    &jetstress_log_writer, &esrp_writer,    &curve_writer,  NULL,
};

/* One file of one writer. */
struct job {
	const struct report_writer *writer;
	const struct record *record;
	unsigned index; /* of those that write several */
};

static int job_fill(const void *arg, FILE *to)
{
	const struct job *job = arg;

	return job->writer->write ? job->writer->write(job->record, to)
				  : job->writer->write_part(job->record, job->index, to);
}

static int fill_whole(report_fill_fn fill, const void *arg, FILE *to)
{
	int r = fill(arg, to);

	if (r == 0 && (fflush(to) == EOF || ferror(to)))
		r = -(errno ? errno : EIO);
	/* Writers know that the stream failed, not why. */
	if (r == -EIO && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
		r = -errno;
	return r;
}

int report_write_file(const char *dir, const char *name, report_fill_fn fill, const void *arg,
		      struct err *err)
{
	char *file = NULL, *temporary = NULL;
	FILE *to = NULL;
	int r;

	if (asprintf(&file, "%s/%s", dir, name) < 0)
		return err_set(err, -ENOMEM, "out of memory");
	if (asprintf(&temporary, "%s/.%s.%ld", dir, name, (long)getpid()) < 0) {
		free(file);
		return err_set(err, -ENOMEM, "out of memory");
	}
	errno = 0;
	to = fopen(temporary, "we");
	r = to ? fill_whole(fill, arg, to) : -errno;
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

/* One that fails does not keep the others from being written; the first is reported. */
static int write_files(const struct record *record, const struct report_writer *writer,
		       const char *dir, struct err *err)
{
	struct job job = {.writer = writer, .record = record};
	char name[REPORT_NAME_BYTES];
	int first = 0, r;

	if (writer->write)
		return report_write_file(dir, writer->file, job_fill, &job, err);
	for (; (r = writer->name(record, job.index, name)) == 0; job.index++) {
		r = report_write_file(dir, name, job_fill, &job, err);
		first = first ? first : r;
	}
	return first ? first : r == -ENOENT ? 0 : err_set(err, r, "%s", strerror(-r));
}

void report_safe_name(char *name)
{
	for (; *name; name++) {
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_",
			    *name))
			*name = '_';
	}
}

int report_write_all(const struct record *record, const char *dir, struct err *err)
{
	int first = directory_make(dir, err);

	if (first < 0)
		return first;
	for (size_t i = 0; report_writers[i]; i++) {
		int r = write_files(record, report_writers[i], dir, err);

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
