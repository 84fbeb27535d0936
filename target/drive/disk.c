/* SPDX-License-Identifier: MIT
 *
 * Arm, platter and read-ahead buffer of a disk.
 */
#include "target/drive/disk.h"

#include "base/bytes.h"
#include "target/drive/drive.h"

int disk_init(struct disk *disk, const struct drive_model *model, uint64_t size_bytes)
{
	*disk = (struct disk){
	    .model = model,
	    .size_bytes = size_bytes,
	    .inwards = true,
	    .segment_bytes =
		model->buffer_bytes / DISK_SEGMENTS / DISK_SECTOR_BYTES * DISK_SECTOR_BYTES,
	};
	disk_geometry_init(&disk->geometry, model, size_bytes);
	disk->mean_access_ns = model->seek_read.average_ns + disk->geometry.revolution_ns / 2;
	int rc = seek_curve_init(&disk->read, &model->seek_read, disk->geometry.cylinders);
	return rc ? rc
		  : seek_curve_init(&disk->write, &model->seek_write, disk->geometry.cylinders);
}

void disk_locate(const struct disk *disk, struct drive_command *command)
{
	command->from = disk_place_of(&disk->geometry, command->offset_bytes);
	command->behind =
	    disk_place_behind(&disk->geometry, command->offset_bytes + MAX_OF(command->length_bytes,
									      DISK_SECTOR_BYTES));
}

/* ---- the stream of the read-ahead ---- */

static uint64_t stream_byte_at(const struct disk *disk, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > disk->place_ns ? now_ns - disk->place_ns : 0;
	uint64_t byte = disk_byte_at(&disk->geometry, disk->place.pass_ns + passed_ns);
	return MIN_OF(MAX_OF(byte, disk->place_byte), disk->stream->limit);
}

/* Takes note of how far it has come. */
static void stream_update(struct disk *disk, uint64_t now_ns)
{
	if (disk->stream)
		disk->stream->end = MAX_OF(disk->stream->end, stream_byte_at(disk, now_ns));
}

/* A read came as far as BYTE: the segment may be filled so much further. */
static void stream_move_limit(struct disk *disk, struct disk_segment *segment, uint64_t byte,
			      uint64_t now_ns)
{
	uint64_t limit = MIN_OF(byte + disk->segment_bytes, disk->size_bytes);
	if (limit <= segment->limit)
		return;
	if (segment == disk->stream && segment->end == segment->limit) {
		/* The head waited: it goes on when its place comes by. */
		disk->place = disk_place_behind(&disk->geometry, segment->end);
		disk->place_byte = segment->end;
		disk->place_ns =
		    now_ns + disk_rotation_ns(&disk->geometry, disk->place.pass_ns, now_ns);
	}
	segment->limit = limit;
	if (segment->end > disk->segment_bytes)
		segment->first = MAX_OF(segment->first, segment->end - disk->segment_bytes);
}

struct disk_head disk_head_at(const struct disk *disk, uint64_t now_ns)
{
	struct disk_head head = {.place = disk->place};
	if (!disk->stream)
		return head;
	head.streaming = true;
	head.stream_byte = stream_byte_at(disk, now_ns);
	uint64_t whole = head.stream_byte / DISK_SECTOR_BYTES * DISK_SECTOR_BYTES;
	head.place = disk_place_behind(&disk->geometry, MAX_OF(whole, DISK_SECTOR_BYTES));
	return head;
}

/* Does the command go on in the stream, and is the head still under way (or just there)? */
static bool continues_stream(const struct disk *disk, const struct disk_head *head,
			     const struct drive_command *command)
{
	return head->streaming && command->op == IO_READ &&
	       command->offset_bytes >= disk->stream->first &&
	       command->offset_bytes <= head->stream_byte &&
	       head->stream_byte < disk->stream->limit;
}

/* ---- access ---- */

struct command_times disk_access(const struct disk *disk, const struct disk_head *head,
				 const struct drive_command *command, uint64_t now_ns)
{
	const struct disk_geometry *geometry = &disk->geometry;
	struct command_times times = {.start_ns = now_ns};

	if (continues_stream(disk, head, command)) {
		uint64_t end_ns =
		    disk->place_ns + (command->behind.pass_ns > disk->place.pass_ns
					  ? command->behind.pass_ns - disk->place.pass_ns
					  : 0);
		times.transfer_ns = end_ns > now_ns ? end_ns - now_ns : 0;
		return times;
	}
	uint64_t from = head->place.cylinder, to = command->from.cylinder;
	if (from != to)
		times.seek_ns = seek_curve_ns(command->op == IO_WRITE ? &disk->write : &disk->read,
					      from > to ? from - to : to - from);
	else if (head->place.track != command->from.track)
		times.seek_ns = geometry->switch_ns;
	times.rotation_ns =
	    disk_rotation_ns(geometry, command->from.pass_ns, now_ns + times.seek_ns);
	times.transfer_ns = command->behind.pass_ns - command->from.pass_ns;
	return times;
}

/* The segment a read that ended joins: the one it continues, or the least recently read. */
static struct disk_segment *segment_for(struct disk *disk, const struct drive_command *command)
{
	struct disk_segment *oldest = &disk->segments[0];
	for (unsigned i = 0; i < DISK_SEGMENTS; i++) {
		struct disk_segment *segment = &disk->segments[i];
		if (segment->end > segment->first && command->offset_bytes >= segment->first &&
		    command->offset_bytes <= segment->end)
			return segment;
		if (segment->used < oldest->used)
			oldest = segment;
	}
	oldest->first = oldest->end = command->offset_bytes;
	return oldest;
}

static void forget_written(struct disk *disk, const struct drive_command *command)
{
	for (unsigned i = 0; i < DISK_SEGMENTS; i++) {
		struct disk_segment *segment = &disk->segments[i];
		if (command->offset_bytes < segment->end &&
		    command->offset_bytes + command->length_bytes > segment->first)
			segment->end = segment->first;
	}
}

static void read_ahead(struct disk *disk, const struct drive_command *command)
{
	uint64_t end = command->offset_bytes + command->length_bytes;
	struct disk_segment *segment = segment_for(disk, command);

	segment->end = MAX_OF(segment->end, end);
	segment->limit = MIN_OF(end + disk->segment_bytes, disk->size_bytes);
	if (segment->end > disk->segment_bytes)
		segment->first = MAX_OF(segment->first, segment->end - disk->segment_bytes);
	segment->used = ++disk->uses;
	disk->stream = segment;
}

void disk_start(struct disk *disk, struct drive_command *command, const struct drive_slow *slow,
		uint64_t now_ns)
{
	struct disk_head head = disk_head_at(disk, now_ns);
	struct command_times times = disk_access(disk, &head, command, now_ns);
	uint64_t service_ns = times.seek_ns + times.rotation_ns + times.transfer_ns;

	stream_update(disk, now_ns);
	command->times = times;
	command->due_ns = now_ns + drive_slowed_ns(slow, service_ns);
	if (service_ns == 0 && continues_stream(disk, &head, command)) {
		/* It came into the buffer meanwhile: the head is further on already. */
		stream_move_limit(disk, disk->stream, command->offset_bytes + command->length_bytes,
				  now_ns);
		return;
	}
	disk->stream = NULL;
	disk->place = command->behind;
	disk->place_byte = command->offset_bytes + command->length_bytes;
	disk->place_ns = command->due_ns;
	if (command->op == IO_WRITE)
		forget_written(disk, command);
	else if (disk->segment_bytes)
		read_ahead(disk, command);
}

bool disk_buffer_hit(struct disk *disk, struct drive_command *command, uint64_t now_ns)
{
	uint64_t end = command->offset_bytes + command->length_bytes;

	if (command->op != IO_READ || !disk->segment_bytes)
		return false;
	stream_update(disk, now_ns);
	for (unsigned i = 0; i < DISK_SEGMENTS; i++) {
		struct disk_segment *segment = &disk->segments[i];
		if (command->offset_bytes < segment->first || end > segment->end)
			continue;
		uint64_t rate = disk->model->link_bytes_per_s;
		uint64_t link_ns =
		    rate ? (uint64_t)((double)command->length_bytes * 1e9 / (double)rate) : 0;
		uint64_t start_ns = MAX_OF(command->ready_ns, disk->link_free_ns);
		if (segment == disk->stream) /* a part may be on its way just now */
			start_ns = MAX_OF(start_ns, disk->place_ns);
		command->due_ns = start_ns + link_ns;
		disk->link_free_ns = command->due_ns;
		segment->used = ++disk->uses;
		stream_move_limit(disk, segment, end, now_ns);
		return true;
	}
	return false;
}
