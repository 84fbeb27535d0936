/* SPDX-License-Identifier: MIT
 *
 * Reads /proc, /etc/os-release and uname; what is not there is left out.
 */
#include "harness/run/environment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sanlab_version.h"

/* The value of the first line of FILE that begins with KEY, behind its separator; false: none. */
static bool read_key(const char *file, const char *key, char *out, size_t size)
{
	FILE *from = fopen(file, "re");
	size_t length = strlen(key);
	char line[512];
	bool found = false;

	if (!from)
		return false;
	while (!found && fgets(line, sizeof line, from)) {
		const char *value = line + length;

		if (strncmp(line, key, length) != 0)
			continue;
		value += strspn(value, " \t:=\"");
		snprintf(out, size, "%.*s", (int)strcspn(value, "\"\n"), value);
		found = *out != '\0';
	}
	fclose(from);
	return found;
}

static void set_text(json_t *to, const char *key, const char *text)
{
	json_t *value = json_string(text);

	if (value)
		json_object_set_new(to, key, value);
}

json_t *environment_json(void)
{
	json_t *environment = json_object();
	struct utsname names;
	struct sysinfo info;
	char text[256];

	set_text(environment, "sanlab", SANLAB_VERSION);
	if (uname(&names) == 0) {
		snprintf(text, sizeof text, "%s %s", names.sysname, names.release);
		set_text(environment, "kernel", text);
		set_text(environment, "machine", names.machine);
		set_text(environment, "host", names.nodename);
	}
	if (read_key("/etc/os-release", "PRETTY_NAME", text, sizeof text))
		set_text(environment, "system", text);
	if (read_key("/proc/cpuinfo", "model name", text, sizeof text))
		set_text(environment, "cpu", text);
	json_object_set_new(environment, "cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	if (sysinfo(&info) == 0)
		json_object_set_new(environment, "memory_bytes",
				    json_integer((json_int_t)info.totalram * info.mem_unit));
	set_text(environment, "compiler", __VERSION__);
	return environment;
}
