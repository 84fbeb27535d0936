/* SPDX-License-Identifier: MIT
 *
 * Directories of file stores, for tests of what becomes of them.
 */
#ifndef SANLAB_TESTS_ARRAY_STORE_FILES_H
#define SANLAB_TESTS_ARRAY_STORE_FILES_H

/* "DIR/NAME"; one of four buffers used in turn. */
const char *path_of(const char *dir, const char *name);
void copy_file(const char *from, const char *to); /* sparse, as the files are */
void copy_dir(const char *from, const char *to);  /* in place of what is there */
void remove_dir(const char *path);

#endif
