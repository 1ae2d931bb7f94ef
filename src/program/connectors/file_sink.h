/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* file_sink.h - what the sinks `csv` and `jsonl` share: rows as lines of a file, exactly once, or
 * on standard output. */
#ifndef DET_CONNECTORS_FILE_SINK_H
#define DET_CONNECTORS_FILE_SINK_H

#include "connectors/columns.h"
#include "connectors/file_output.h"
#include "connectors/settings.h"
#include "os/os.h"

struct file_sink;

struct file_sink_format {
    unsigned flags; /* enum columns_flags */
    /* Appends the head of the file. NULL: none. */
    void (*write_head)(const struct file_sink *sink, struct det_buffer *buffer);
    void (*write_row)(const struct file_sink *sink, const void *row, struct det_buffer *buffer);
};

struct file_sink {
    const struct file_sink_format *format;
    struct file_output output;
    struct columns columns;
    char delimiter; /* of CSV */
    bool is_stdout;
    bool has_begun; /* standard output has its head */
    char path[DET_PATH_MAX];
};

/* Settings that both have. */
struct file_sink_place {
    const char *path, *existing, *durability;
};

/* Checks the settings; `ret` is NULL, or gets the path and its options. */
DET_MUST_CHECK int file_sink_check(
    const struct settings *settings, const struct file_sink_place *place, const char *folder,
    struct file_sink *ret, struct det_error *reterr);
/* Opens the sink of a stage with what file_sink_check() has set, and sets call->self. Takes the
 * sink, which is an allocation of call->allocator, also if it fails. */
DET_MUST_CHECK int file_sink_open(
    struct det_stage_call *call, struct file_sink *sink_take, const struct file_sink_format *format,
    struct det_error *reterr);

/* Functions of the stage. */
void file_sink_close(struct det_stage_call *call);
int file_sink_begin(struct det_stage_call *call, void *cursor);
int file_sink_deliver(struct det_stage_call *call, void *cursor, const void *in);
int file_sink_flush(struct det_stage_call *call, void *cursor);

#endif
