/* SPDX-License-Identifier: MIT
 *
 * The reservations file: layout, atomic replacement, checks on the way back in.
 */
#include "target/scsi/pr_persist.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "target/scsi/sense.h"

enum {
	VERSION = 1,
	VERSION_AT = 8,
	CRC_AT = 12,
	NAA_AT = 16,
	COUNT_AT = 32,
	HOLDER_AT = 36,
	TYPE_AT = 40,
	HEADER_BYTES = 48,
	RECORD_ISID_AT = 8,
	RECORD_PORT_AT = 14,
	RECORD_NAME_LENGTH_AT = 16,
	RECORD_BYTES = 20,
	MAX_BYTES = HEADER_BYTES + PR_MAX_REGISTRATIONS * (RECORD_BYTES + PR_NAME_BYTES),
};
static const char magic[8] = {'S', 'A', 'N', 'L', 'P', 'R', 'S', '1'};

static int file_path(char out[PATH_MAX], const struct pr_file *file)
{
	char naa[2 * PR_NAA_BYTES + 1];
	int length;

	for (unsigned i = 0; i < PR_NAA_BYTES; i++)
		snprintf(naa + 2 * (size_t)i, 3, "%02x", file->naa[i]);
	length =
	    snprintf(out, PATH_MAX, "%s/%s.%s.reservations", file->directory, file->volume, naa);
	return length < 0 || length >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int sync_directory(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = fsync(fd) ? -errno : 0;
	close(fd);
	return r;
}

/* ---- saving ---- */

static uint32_t file_crc(const uint8_t *data, size_t bytes)
{
	return crc32c(crc32c(0, data, CRC_AT), data + CRC_AT + 4, bytes - CRC_AT - 4);
}

/* Returns the length; OUT has room for MAX_BYTES. */
static size_t state_put(uint8_t *out, const struct pr_file *file, const struct pr_state *state)
{
	size_t at = HEADER_BYTES;
	uint32_t count = 0;

	memset(out, 0, HEADER_BYTES);
	memcpy(out, magic, sizeof magic);
	put_be32(out + VERSION_AT, VERSION);
	memcpy(out + NAA_AT, file->naa, PR_NAA_BYTES);
	out[TYPE_AT] = state->type;
	for (unsigned i = 0; i < state->count; i++) {
		const struct pr_registration *registration = &state->registrations[i];
		size_t length = strlen(registration->initiator.name);

		if (registration->gone)
			continue;
		if (state->holder == i)
			put_be32(out + HOLDER_AT, count);
		put_be64(out + at, registration->key);
		memcpy(out + at + RECORD_ISID_AT, registration->initiator.isid, PR_ISID_BYTES);
		put_be16(out + at + RECORD_PORT_AT, registration->port);
		put_be32(out + at + RECORD_NAME_LENGTH_AT, 0);
		put_be16(out + at + RECORD_NAME_LENGTH_AT, (uint16_t)length);
		memcpy(out + at + RECORD_BYTES, registration->initiator.name, length);
		at += RECORD_BYTES + length;
		count++;
	}
	put_be32(out + COUNT_AT, count);
	put_be32(out + CRC_AT, file_crc(out, at));
	return at;
}

static int write_synced(const char *path, const uint8_t *data, size_t bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int r = 0;

	if (fd < 0)
		return -errno;
	while (r == 0 && bytes > 0) {
		ssize_t written = write(fd, data, bytes);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			r = written < 0 ? -errno : -EIO;
			break;
		}
		data += written;
		bytes -= (size_t)written;
	}
	if (r == 0 && fsync(fd))
		r = -errno;
	close(fd);
	return r;
}

static int replace(const char *path, const uint8_t *data, size_t bytes)
{
	char temporary[PATH_MAX + 8];
	int r;

	snprintf(temporary, sizeof temporary, "%s.new", path);
	r = write_synced(temporary, data, bytes);
	if (r == 0 && rename(temporary, path))
		r = -errno;
	if (r)
		unlink(temporary);
	return r;
}

int pr_file_save(const struct pr_file *file, const struct pr_state *state)
{
	char path[PATH_MAX];
	uint8_t *data;
	int r = file_path(path, file);

	if (r)
		return r;
	if (!state->persists) {
		if (unlink(path))
			return errno == ENOENT ? 0 : -errno;
		return sync_directory(file->directory);
	}
	data = malloc(MAX_BYTES);
	if (!data)
		return -ENOMEM;
	r = replace(path, data, state_put(data, file, state));
	free(data);
	return r ? r : sync_directory(file->directory);
}

/* ---- loading ---- */

/* One registration at DATA; returns its length, 0: damaged. */
static size_t record_get(const uint8_t *data, size_t bytes, struct pr_state *state)
{
	struct pr_initiator initiator = {.name = ""};
	size_t length;

	if (bytes < RECORD_BYTES)
		return 0;
	length = get_be16(data + RECORD_NAME_LENGTH_AT);
	if (length == 0 || length >= sizeof initiator.name || length > bytes - RECORD_BYTES)
		return 0;
	memcpy(initiator.name, data + RECORD_BYTES, length);
	memcpy(initiator.isid, data + RECORD_ISID_AT, PR_ISID_BYTES);
	if (strlen(initiator.name) != length || get_be64(data) == 0 ||
	    pr_add(state, &initiator, get_be16(data + RECORD_PORT_AT), get_be64(data)) !=
		SENSE_NONE)
		return 0;
	return RECORD_BYTES + length;
}

static bool state_get(const struct pr_file *file, const uint8_t *data, size_t bytes,
		      struct pr_state *state)
{
	size_t at = HEADER_BYTES;
	uint32_t count;

	if (bytes < HEADER_BYTES || memcmp(data, magic, sizeof magic) != 0 ||
	    get_be32(data + VERSION_AT) != VERSION ||
	    get_be32(data + CRC_AT) != file_crc(data, bytes) ||
	    memcmp(data + NAA_AT, file->naa, PR_NAA_BYTES) != 0)
		return false;
	count = get_be32(data + COUNT_AT);
	for (uint32_t i = 0; i < count; i++) {
		size_t length = record_get(data + at, bytes - at, state);

		if (length == 0)
			return false;
		at += length;
	}
	state->persists = true;
	state->type = data[TYPE_AT];
	state->holder = get_be32(data + HOLDER_AT);
	return at == bytes && (state->type == PR_NONE ||
			       (pr_type_is_valid(state->type) && state->holder < state->count));
}

static int read_all(int fd, uint8_t *data, size_t *ret_bytes)
{
	size_t bytes = 0;

	while (bytes < MAX_BYTES) {
		ssize_t got = read(fd, data + bytes, MAX_BYTES - bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		bytes += (size_t)got;
	}
	*ret_bytes = bytes;
	return 0;
}

static int load(const struct pr_file *file, const char *path, int fd, struct pr_state *state,
		struct err *err)
{
	uint8_t *data = malloc(MAX_BYTES);
	size_t bytes = 0;
	int r = data ? read_all(fd, data, &bytes) : -ENOMEM;

	if (r)
		err_set(err, r, "cannot read %s: %s", path, strerror(-r));
	else if (!state_get(file, data, bytes, state)) {
		r = err_set(err, -EBADMSG, "the reservations of volume %s in %s are damaged",
			    file->volume, path);
		err_hint(err, "restore the file, or remove it to begin without reservations");
	}
	free(data);
	return r;
}

int pr_file_load(const struct pr_file *file, struct pr_state *state, struct err *err)
{
	struct pr_state *loaded;
	char path[PATH_MAX];
	int fd, r = file_path(path, file);

	if (r)
		return err_set(err, r, "the name of volume %s in %s is too long", file->volume,
			       file->directory);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		if (errno == ENOENT)
			return 0;
		r = -errno;
		return err_set(err, r, "cannot open %s: %s", path, strerror(-r));
	}
	loaded = pr_state_new();
	r = loaded ? load(file, path, fd, loaded, err) : -ENOMEM;
	close(fd);
	if (r == 0) {
		free(state->registrations);
		*state = *loaded;
		loaded->registrations = NULL;
	}
	pr_state_free(loaded);
	return r;
}
