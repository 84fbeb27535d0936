/* SPDX-License-Identifier: MIT
 *
 * The server that is killed: a database on the only volume of a lab's only host, under load until
 * SIGTERM.
 */
#ifndef SANLAB_TESTS_KILLED_ESE_SERVE_H
#define SANLAB_TESTS_KILLED_ESE_SERVE_H

#include "tests/killed/ese_load.h"

enum { SERVE_KEYS = 1600 };
#define SERVE_LAZY_FLUSH_NS (100 * NS_PER_MS)

/* Events (struct ese_load_event) go to FD.  The exit code. */
int ese_serve(const char *lab_file, uint64_t seed, int fd);

#endif
