/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_output.c - a file that a sink appends to, exactly once. */
#include "connectors/file_output.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/text.h"
#include "os/os.h"

/* The buffer is written from this size on. */
#define BUFFER_LARGE 1048576
/* Bytes before the cursor that its checksum covers. */
#define TAIL_MAX 4096

bool file_existing_of(const char *word, enum file_existing *ret)
{
    static const char *const words[] = { "error", "replace", "append" };

    *ret = FILE_REFUSE;
    if (!*word)
        return true;
    for (int i = 0; i < 3; i++) {
        if (strcmp(words[i], word) != 0)
            continue;
        *ret = (enum file_existing)i;
        return true;
    }
    return false;
}

void file_output_init(
    struct file_output *output, struct det_world *world, const struct det_allocator *allocator,
    const char *path)
{
    *output = (struct file_output){ .world = det_world_or_real(world), .path = path };
    output->is_synced = true;
    det_buffer_init(&output->buffer, allocator);
}

void file_output_deinit(struct file_output *output)
{
    det_file_close(output->world, output->file);
    output->file = NULL;
    det_buffer_deinit(&output->buffer);
}

static int fail_io(
    const struct file_output *output, int r, const char *what, struct det_error *reterr)
{
    const char *remedy = "check its path, its folder and their permissions; a symbolic link is not "
                         "followed";

    if (r == DET_ERR_NO_SPACE)
        remedy = "make space on the disk, then resume the flow";
    else if (r == DET_ERR_BUSY)
        remedy = "another process or another stage writes it; use one path for each sink";
    return det_error_set(
        reterr, r, "%s: cannot %s: %s; %s", output->path, what, det_error_text(r), remedy);
}

static int tail_checksum(
    const struct file_output *output, uint64_t size, uint32_t *ret, struct det_error *reterr)
{
    uint8_t bytes[TAIL_MAX];
    size_t count = size < TAIL_MAX ? (size_t)size : TAIL_MAX;
    int64_t r;

    r = det_file_read(output->world, output->file, size - count, bytes, count);
    if (r < 0)
        return fail_io(output, (int)r, "read it", reterr);
    *ret = det_crc32c(0, bytes, (size_t)r);
    return 0;
}

/* Checks that the file is still the one of the cursor. */
static int check_tail(
    const struct file_output *output, uint64_t found, const struct file_sink_cursor *cursor,
    struct det_error *reterr)
{
    uint32_t tail = 0;
    int r;

    if (found < cursor->size)
        return det_error_set(
            reterr, DET_ERR_CONFLICT,
            "%s: its size is %llu, but the flow has written up to %llu: restore the file, or begin "
            "a "
            "new "
            "run",
            output->path, (unsigned long long)found, (unsigned long long)cursor->size);
    r = tail_checksum(output, cursor->size, &tail, reterr);
    if (r < 0 || tail == cursor->tail)
        return r;
    return det_error_set(
        reterr, DET_ERR_CONFLICT,
        "%s was changed by another program before byte %llu: restore the file, or begin a new run",
        output->path, (unsigned long long)cursor->size);
}

static int resume_file(
    struct file_output *output, uint64_t found, const struct file_sink_cursor *cursor,
    struct det_error *reterr)
{
    int r;

    r = check_tail(output, found, cursor, reterr);
    if (r < 0)
        return r;
    output->written = cursor->size;
    if (found == cursor->size)
        return 0;
    r = det_file_truncate(output->world, output->file, cursor->size);
    return r < 0 ? fail_io(output, r, "cut off what was not acknowledged", reterr) : 0;
}

static int begin_file(struct file_output *output, uint64_t found, struct det_error *reterr)
{
    int r = 0;

    output->written = found;
    if (found == 0 || output->existing == FILE_APPEND)
        return 0;
    if (output->existing == FILE_REFUSE)
        return det_error_set(
            reterr, DET_ERR_EXISTS,
            "%s exists and is not empty: add 'existing: replace' or 'existing: append' to the "
            "settings, or use another path",
            output->path);
    r = det_file_truncate(output->world, output->file, 0);
    if (r < 0)
        return fail_io(output, r, "replace it", reterr);
    output->written = 0;
    return 0;
}

static int open_file(
    struct file_output *output, const struct file_sink_cursor *cursor, struct det_error *reterr)
{
    unsigned flags = DET_FILE_READ | DET_FILE_WRITE | DET_FILE_NO_LINK;
    char folder[DET_PATH_MAX];
    int r;

    r = det_file_open(
        output->world, output->path, flags | (cursor->is_begun ? 0u : DET_FILE_CREATE),
        &output->file);
    if (r == DET_ERR_NOT_FOUND && cursor->is_begun && cursor->size > 0)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND,
            "%s is gone, but the flow has written up to byte %llu: restore the file, or begin a "
            "new "
            "run",
            output->path, (unsigned long long)cursor->size);
    if (r == DET_ERR_NOT_FOUND && cursor->is_begun)
        r = det_file_open(output->world, output->path, flags | DET_FILE_CREATE, &output->file);
    if (r < 0)
        return fail_io(output, r, "open it", reterr);
    r = det_file_lock(output->world, output->file);
    if (r < 0)
        return fail_io(output, r, "lock it", reterr);
    if (!output->is_synced || cursor->is_begun || det_file_folder(output->path, folder) < 0)
        return 0;
    r = det_folder_sync(output->world, folder);
    return r < 0 ? fail_io(output, r, "sync its folder", reterr) : 0;
}

int file_output_open(
    struct file_output *output, struct file_sink_cursor *cursor, struct det_error *reterr)
{
    int64_t found;
    int r;

    det_assert(!output->file);
    r = open_file(output, cursor, reterr);
    if (r == 0) {
        found = det_file_size(output->world, output->file);
        if (found < 0)
            r = fail_io(output, (int)found, "read its size", reterr);
        else if (cursor->is_begun)
            r = resume_file(output, (uint64_t)found, cursor, reterr);
        else
            r = begin_file(output, (uint64_t)found, reterr);
    }
    if (r == 0 && !cursor->is_begun) {
        r = tail_checksum(output, output->written, &cursor->tail, reterr);
        cursor->size = output->written;
        cursor->is_begun = r == 0;
    }
    if (r < 0) {
        det_file_close(output->world, output->file);
        output->file = NULL;
    }
    return r;
}

static int write_buffer(struct file_output *output, struct det_error *reterr)
{
    struct det_buffer *buffer = &output->buffer;
    int r = det_buffer_status(buffer);

    if (r < 0)
        return fail_io(output, r, "keep rows for it", reterr);
    if (buffer->size == 0)
        return 0;
    r = det_file_write(output->world, output->file, output->written, buffer->data, buffer->size);
    if (r < 0)
        return fail_io(output, r, "write it", reterr);
    output->written += buffer->size;
    det_buffer_clear(buffer);
    return 0;
}

int file_output_relieve(struct file_output *output, struct det_error *reterr)
{
    det_assert(output->file);
    if (output->buffer.size < BUFFER_LARGE && det_buffer_status(&output->buffer) == 0)
        return 0;
    return write_buffer(output, reterr);
}

int file_output_flush(
    struct file_output *output, struct file_sink_cursor *cursor, struct det_error *reterr)
{
    uint32_t tail = cursor->tail;
    int r;

    det_assert(output->file && cursor->is_begun);
    if (output->buffer.size == 0 && output->written == cursor->size)
        return det_buffer_status(&output->buffer) < 0 ? write_buffer(output, reterr) : 0;
    r = write_buffer(output, reterr);
    if (r < 0)
        return r;
    r = output->is_synced ? det_file_sync(output->world, output->file) : 0;
    if (r < 0)
        return fail_io(output, r, "sync it", reterr);
    r = tail_checksum(output, output->written, &tail, reterr);
    if (r < 0)
        return r;
    cursor->tail = tail;
    cursor->size = output->written;
    return 0;
}
