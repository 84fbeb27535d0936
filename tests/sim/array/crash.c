/* SPDX-License-Identifier: MIT
 *
 * Crashes of a simulated array.
 */
#include "tests/sim/array/crash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/io.h"
#include "target/drive/vfs.h"

enum { BLOCK_BYTES = 64 * 1024, BLOCKS_MAX = 2048 }; /* of a file: larger ones are not watched */
enum { FILES_MAX = 128, SECTOR = 512, LOST_ONE_IN = 40, PATH_BYTES = 400, NAME_BYTES = 64 };

const char *const crash_mutant_names[] = {
    "none", "lost-write", "lying-sync", "dead-battery", "lost-line", "lost-update", NULL,
};

/* What a range held before a write that is not synced yet. */
struct undo {
	struct undo *next; /* older */
	uint64_t at, size;
	uint8_t *before;
};

struct crash_file {
	dev_t device;
	ino_t inode;
	int fd; /* our own: the array's may be closed */
	bool is_drive;
	uint64_t size;
	uint64_t data[BLOCKS_MAX / 64]; /* a bit a block that may hold anything but zeros */
	struct undo *undo;		/* newest first */
};

/* A battery-backed memory, and the parts of it that hold something. */
struct kept {
	struct kept *next;
	uint64_t at, size;
	uint8_t *content;
};

struct memory {
	struct memory *next;
	uint64_t size;
	struct kept *kept;
	char path[PATH_BYTES];
};

static struct crash {
	const char *dir;
	struct rng rng;
	uint64_t coins;
	bool power, dead;
	enum crash_mutant mutant;
	uint64_t calls_left; /* 0: not armed */
	struct crash_file files[FILES_MAX];
	unsigned file_count;
	struct memory *memories;
	char given_up[4][NAME_BYTES];
	size_t given_up_count;
	void (*told)(void *arg);
	void *told_arg;
} crash;

/* ---- files ---- */

/* Most of a drive was never written: that is not read from the system, which takes longer than all
 * the rest. */
static void note_data(struct crash_file *file, uint64_t at, uint64_t size)
{
	for (uint64_t i = at / BLOCK_BYTES; i * BLOCK_BYTES < at + size && i < BLOCKS_MAX; i++)
		file->data[i / 64] |= UINT64_C(1) << (i % 64);
}

static void note_punched(struct crash_file *file, uint64_t at, uint64_t size)
{
	uint64_t first = (at + BLOCK_BYTES - 1) / BLOCK_BYTES;

	for (uint64_t i = first; (i + 1) * BLOCK_BYTES <= at + size && i < BLOCKS_MAX; i++)
		file->data[i / 64] &= ~(UINT64_C(1) << (i % 64));
}

static bool is_hole(const struct crash_file *file, uint64_t at, uint64_t size)
{
	if (at + size > file->size || at + size > (uint64_t)BLOCKS_MAX * BLOCK_BYTES)
		return false;
	for (uint64_t i = at / BLOCK_BYTES; i * BLOCK_BYTES < at + size; i++)
		if (file->data[i / 64] >> (i % 64) & 1)
			return false;
	return true;
}

static void find_data(struct crash_file *file)
{
	off_t end = 0, at;

	while ((at = lseek(file->fd, end, SEEK_DATA)) >= 0) {
		end = lseek(file->fd, at, SEEK_HOLE);
		note_data(file, (uint64_t)at, (uint64_t)(end - at));
	}
}

static struct crash_file *file_of(int fd)
{
	struct stat status;
	char link[64], path[PATH_BYTES];

	if (fstat(fd, &status))
		return NULL;
	for (unsigned i = 0; i < crash.file_count; i++)
		if (crash.files[i].inode == status.st_ino &&
		    crash.files[i].device == status.st_dev) {
			crash.files[i].size = (uint64_t)status.st_size;
			return &crash.files[i];
		}
	if (crash.file_count == FILES_MAX)
		return NULL;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t length = readlink(link, path, sizeof path - 1);
	path[MAX_OF(length, 0)] = '\0';
	struct crash_file *file = &crash.files[crash.file_count++];
	*file = (struct crash_file){
	    .device = status.st_dev,
	    .inode = status.st_ino,
	    .fd = open(link, O_RDWR | O_CLOEXEC),
	    .is_drive = strstr(path, "-drive") != NULL,
	    .size = (uint64_t)status.st_size,
	};
	find_data(file);
	return file;
}

static void forget_undo(struct crash_file *file)
{
	while (file->undo) {
		struct undo *undo = file->undo;
		file->undo = undo->next;
		free(undo->before);
		free(undo);
	}
}

static void note_undo(struct crash_file *file, uint64_t at, uint64_t size)
{
	struct undo *undo = calloc(1, sizeof *undo);
	uint64_t begin = at / SECTOR * SECTOR, end = round_up_u64(at + size, SECTOR);

	if (undo)
		undo->before = calloc(1, end - begin);
	if (!undo || !undo->before)
		abort();
	undo->at = begin;
	undo->size = end - begin;
	(void)!pread(file->fd, undo->before, undo->size, (off_t)undo->at);
	undo->next = file->undo;
	file->undo = undo;
}

/* Each sector either kept all of its writes since the last sync or lost all of them. */
static bool sector_lost(const struct crash_file *file, uint64_t sector)
{
	uint64_t coin = (crash.coins ^ file->inode << 40 ^ sector) * UINT64_C(0x9e3779b97f4a7c15);
	return coin >> 62 == 0;
}

static void lose_power(void)
{
	for (unsigned i = 0; i < crash.file_count; i++) {
		struct crash_file *file = &crash.files[i];
		struct stat status;
		if (fstat(file->fd, &status))
			continue;
		for (struct undo *undo = file->undo; undo; undo = undo->next)
			for (uint64_t at = 0; at < undo->size; at += SECTOR) {
				uint64_t where = undo->at + at;
				if (where + SECTOR > (uint64_t)status.st_size ||
				    !sector_lost(file, where / SECTOR))
					continue;
				(void)!pwrite(file->fd, undo->before + at, SECTOR, (off_t)where);
			}
		forget_undo(file);
	}
}

/* ---- battery-backed memory ---- */

/* Not what says whose memory it is: without that nothing is opened at all. */
static void lose_lines(struct kept *kept)
{
	enum { HEAD_BYTES = 8192, LINE_BYTES = 512, LINE_ONE_IN = 8 };

	for (uint64_t at = 0; at + LINE_BYTES <= kept->size; at += LINE_BYTES)
		if (kept->at + at >= HEAD_BYTES && rng_below(&crash.rng, LINE_ONE_IN) == 0)
			memset(kept->content + at, 0, LINE_BYTES);
}

static void keep(const char *name)
{
	struct memory *memory = calloc(1, sizeof *memory);
	struct stat status;
	off_t end = 0, at;

	if (!memory)
		abort();
	snprintf(memory->path, sizeof memory->path, "%s/%s", crash.dir, name);
	int fd = open(memory->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status))
		abort();
	memory->size = (uint64_t)status.st_size;
	memory->next = crash.memories;
	crash.memories = memory;
	while ((at = lseek(fd, end, SEEK_DATA)) >= 0) {
		end = lseek(fd, at, SEEK_HOLE);
		struct kept *kept = calloc(1, sizeof *kept);
		if (!kept || !(kept->content = malloc((size_t)(end - at))))
			abort();
		kept->at = (uint64_t)at;
		kept->size = (uint64_t)(end - at);
		if (crash.mutant == MUTANT_DEAD_BATTERY ||
		    pread(fd, kept->content, kept->size, at) != (ssize_t)kept->size)
			memset(kept->content, 0, kept->size);
		if (crash.mutant == MUTANT_LOST_LINE && strstr(name, "-cache"))
			lose_lines(kept);
		kept->next = memory->kept;
		memory->kept = kept;
	}
	close(fd);
}

static void keep_memory(void)
{
	struct dirent *entry;
	DIR *dir = opendir(crash.dir);

	while (dir && (entry = readdir(dir)))
		if (strstr(entry->d_name, ".nvram"))
			keep(entry->d_name);
	if (dir)
		closedir(dir);
}

/* ---- the calls ---- */

/* 0: go on; 1: this one is the last, in part; -1: dead. */
static int next_call(void)
{
	if (crash.dead) {
		errno = EIO;
		return -1;
	}
	if (crash.calls_left == 0 || --crash.calls_left > 0)
		return 0;
	return 1;
}

static void die(void)
{
	crash.dead = true;
	if (crash.power)
		lose_power();
	keep_memory();
	if (crash.told)
		crash.told(crash.told_arg);
	errno = EIO;
}

static ssize_t crash_preadv(int fd, const struct iovec *iov, int count, off_t at)
{
	struct crash_file *file = crash.dead ? NULL : file_of(fd);
	uint64_t size = iov_bytes(iov, (unsigned)count);

	if (file && is_hole(file, (uint64_t)at, size)) {
		iov_zero(iov, (unsigned)count, 0, size);
		return (ssize_t)size;
	}
	if (!crash.dead)
		return vfs_system.preadv(fd, iov, count, at);
	errno = EIO;
	return -1;
}

/* The first sectors of a write. */
static void write_part(int fd, const struct iovec *iov, int count, off_t at)
{
	uint64_t size = iov_bytes(iov, (unsigned)count);
	uint64_t part = rng_below(&crash.rng, size / SECTOR + 1) * SECTOR;
	uint8_t *data = malloc(MAX_OF(part, 1));

	if (!data)
		abort();
	iov_to_mem(iov, (unsigned)count, 0, data, part);
	(void)!pwrite(fd, data, part, at);
	free(data);
}

static ssize_t crash_pwritev(int fd, const struct iovec *iov, int count, off_t at)
{
	struct crash_file *file = file_of(fd);
	uint64_t size = iov_bytes(iov, (unsigned)count);
	int last = next_call();

	if (last < 0)
		return -1;
	if (crash.power && file)
		note_undo(file, (uint64_t)at, size);
	if (file)
		note_data(file, (uint64_t)at, size);
	if (last) {
		write_part(fd, iov, count, at);
		die();
		return -1;
	}
	if (crash.mutant == MUTANT_LOST_WRITE && file && file->is_drive &&
	    rng_below(&crash.rng, LOST_ONE_IN) == 0)
		return (ssize_t)size;
	return vfs_system.pwritev(fd, iov, count, at);
}

static int crash_sync(int fd)
{
	struct crash_file *file = file_of(fd);
	int last = next_call();

	if (last < 0)
		return -1;
	if (last) {
		die();
		return -1;
	}
	/* The page cache of this machine does not lose power: no real sync is needed. */
	if (file && crash.mutant != MUTANT_LYING_SYNC)
		forget_undo(file);
	return 0;
}

/* Calls that take place whole or not at all. */
static int whole_call(void)
{
	int last = next_call();
	if (last < 0)
		return -1;
	if (last) {
		die();
		return -1;
	}
	return 0;
}

static int crash_resize(int fd, off_t size)
{
	return whole_call() ? -1 : vfs_system.resize(fd, size);
}

static int crash_allocate(int fd, off_t at, off_t size)
{
	/* Sparse: most of a journal is never used, and there is no full file system to provide for.
	 */
	return whole_call() ? -1 : vfs_system.resize(fd, at + size);
}

static int crash_punch(int fd, off_t at, off_t size)
{
	struct crash_file *file = file_of(fd);
	int rc = whole_call() ? -1 : vfs_system.punch(fd, at, size);

	if (rc == 0 && file)
		note_punched(file, (uint64_t)at, (uint64_t)size);
	return rc;
}

static int crash_rename(const char *from, const char *to)
{
	return whole_call() ? -1 : vfs_system.rename(from, to);
}

static int crash_sync_memory(void *memory, size_t size)
{
	return 0;
}

static const struct vfs_ops crash_vfs = {
    .preadv = crash_preadv,
    .pwritev = crash_pwritev,
    .sync = crash_sync,
    .resize = crash_resize,
    .allocate = crash_allocate,
    .punch = crash_punch,
    .rename = crash_rename,
    .sync_memory = crash_sync_memory,
};

/* ---- a seed ---- */

void crash_begin(const char *dir, uint64_t seed, bool power, enum crash_mutant mutant)
{
	crash = (struct crash){.dir = dir, .power = power, .mutant = mutant};
	rng_init(&crash.rng, seed, rng_stream_of("crash"));
	crash.coins = rng_u64(&crash.rng);
	vfs = &crash_vfs;
}

static void close_files(void)
{
	for (unsigned i = 0; i < crash.file_count; i++) {
		forget_undo(&crash.files[i]);
		if (crash.files[i].fd >= 0)
			close(crash.files[i].fd);
	}
	crash.file_count = 0;
}

/* What was stored after the crash is gone, also where nothing had been stored before. */
static void release_memory(bool restore)
{
	while (crash.memories) {
		struct memory *memory = crash.memories;
		int fd = restore ? open(memory->path, O_WRONLY | O_TRUNC | O_CLOEXEC) : -1;
		if (restore && (fd < 0 || ftruncate(fd, (off_t)memory->size)))
			abort();
		while (memory->kept) {
			struct kept *kept = memory->kept;
			if (restore)
				(void)!pwrite(fd, kept->content, kept->size, (off_t)kept->at);
			memory->kept = kept->next;
			free(kept->content);
			free(kept);
		}
		if (fd >= 0)
			close(fd);
		crash.memories = memory->next;
		free(memory);
	}
}

void crash_end(void)
{
	close_files();
	release_memory(false);
	vfs = &vfs_system;
}

void crash_arm(uint64_t calls)
{
	if (!crash.dead)
		crash.calls_left = calls;
}

void crash_disarm(void)
{
	crash.calls_left = 0;
}

void crash_now(void)
{
	if (!crash.dead)
		die();
}

void crash_give_up(const char *name)
{
	if (crash.given_up_count < ARRAY_SIZE(crash.given_up))
		snprintf(crash.given_up[crash.given_up_count++], NAME_BYTES, "%s", name);
}

bool crash_happened(void)
{
	return crash.dead;
}

void crash_tell(void (*fn)(void *arg), void *arg)
{
	crash.told = fn;
	crash.told_arg = arg;
}

void crash_recover(void)
{
	char path[PATH_BYTES];

	close_files();
	release_memory(true);
	while (crash.given_up_count > 0) {
		snprintf(path, sizeof path, "%s/%s", crash.dir,
			 crash.given_up[--crash.given_up_count]);
		if (truncate(path, 0))
			abort();
	}
	crash.coins = rng_u64(&crash.rng);
	crash.dead = false;
	crash.calls_left = 0;
}
