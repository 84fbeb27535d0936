/* SPDX-License-Identifier: MIT
 *
 * Diagnostics on stderr with a level; never secrets, never on the data path.
 * Library rooms log at debug only; programs (harness/cli, target shell) log the rest.
 * Threading: any; one write(2) a line.
 */
#ifndef SANLAB_BASE_LOG_H
#define SANLAB_BASE_LOG_H

enum log_level {
	LOG_LEVEL_NONE = -1,
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARN,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG
};

void log_set_level(enum log_level level);
enum log_level log_get_level(void);
void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...)  log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)  log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)                                        \
	do {                                                  \
		if (log_get_level() >= LOG_LEVEL_DEBUG)       \
			log_at(LOG_LEVEL_DEBUG, __VA_ARGS__); \
	} while (0)

#endif
