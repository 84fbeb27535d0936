/* SPDX-License-Identifier: MIT
 *
 * sanlab run: the main job.
 */
#include <errno.h>
#include <unistd.h>

#include "base/err.h"
#include "harness/cli/cli.h"
#include "harness/run/run.h"
#include "harness/sim/run_virtual.h"
#include "harness/workload/replay.h"

static bool can_record(const struct lab *lab, const char *file, struct err *err)
{
	if (!lab->hosts.count)
		err_set(err, -EINVAL, "--record needs hosts of the lab: this load is not ours");
	else if (lab->workload_ops == &replay_workload_ops &&
		 replay_reads(lab->workload_config, file))
		err_set(err, -EINVAL, "--record would overwrite the trace '%.200s'", file);
	return err->code == 0;
}

int cmd_run(const struct cli_args *args)
{
	struct run_options options = {
	    .out_dir = args->out_dir,
	    .record = args->record,
	    .quiet = args->quiet,
	    .progress = !args->quiet && !args->no_progress && isatty(STDERR_FILENO),
	};
	struct err err = {0};
	struct lab *lab;
	int code;

	if (lab_load(args->words[0], args->sets, args->set_count, &lab) < 0)
		return EXIT_USAGE;
	if (!lab_can_run(lab, &err) || (args->record && !can_record(lab, args->record, &err))) {
		err_print(&err);
		lab_free(lab);
		return EXIT_USAGE;
	}
	code = args->virtual_time
		   ? run_virtual(lab, &options)
		   : run_lab(lab, args->words[0], args->sets, args->set_count, &options);
	lab_free(lab);
	return code;
}
