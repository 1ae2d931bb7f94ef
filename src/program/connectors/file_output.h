/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_output.h - a file that a sink appends to, exactly once: what is not covered by the cursor of
 * the sink is cut off when the run resumes.
 *
 *     file  [ synced: cursor.size | written: `written` | buffered ]
 *
 * Invariants
 *   1. cursor.size <= written; the cursor moves only after a sync.
 *   2. `tail` of the cursor is the checksum of the last bytes before cursor.size, so a file that
 * was
 *      replaced or edited is found before anything is cut off.
 *   3. The file is locked while it is open, and no symbolic link is followed. */
#ifndef DET_CONNECTORS_FILE_OUTPUT_H
#define DET_CONNECTORS_FILE_OUTPUT_H

#include <detent/driver/world.h>
#include <detent/flow.h>

#define REC_SPEC "connectors/file_sink.rec"
#include <detent/rec/declare.h>

#include "base/buffer.h"

/* What to do with a file that a new run finds. */
enum file_existing { FILE_REFUSE, FILE_REPLACE, FILE_APPEND };

struct file_output {
    struct det_world *world;
    const char *path;      /* borrowed */
    struct det_file *file; /* NULL: not open */
    enum file_existing existing;
    bool is_synced; /* flush syncs */
    uint64_t written;
    struct det_buffer buffer;
};

/* "", "error", "replace" or "append" of settings; false: another word. */
bool file_existing_of(const char *word, enum file_existing *ret);

void file_output_init(
    struct file_output *output, struct det_world *world, const struct det_allocator *allocator,
    const char *path);
/* Cuts off nothing: unsynced bytes are lost or not, the cursor decides. */
void file_output_deinit(struct file_output *output);
/* Opens the file at the cursor. The caller writes a head if `written` is 0 afterwards. */
DET_MUST_CHECK int file_output_open(
    struct file_output *output, struct file_sink_cursor *cursor, struct det_error *reterr);
/* Writes the buffer if it is large; call it after each row. */
DET_MUST_CHECK int file_output_relieve(struct file_output *output, struct det_error *reterr);
/* Writes the buffer, syncs, and moves the cursor. */
DET_MUST_CHECK int file_output_flush(
    struct file_output *output, struct file_sink_cursor *cursor, struct det_error *reterr);

#endif
