/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* line_source.h - the sources lines and jsonl: a row for each line of a file or a pipe. */
#ifndef DET_CONNECTORS_LINE_SOURCE_H
#define DET_CONNECTORS_LINE_SOURCE_H

#include "connectors/file_cursor.h"
#include "connectors/line_row.h"
#include "os/os.h"

struct line_source {
    char path[DET_PATH_MAX];
    struct input input;
    struct line_row line_row;
    uint32_t skip;    /* lines at the begin */
    bool skips_blank; /* lines with nothing but blanks */
    bool has_begun;
};

/* Sets `path` from the setting; "" and "-": standard input. */
DET_MUST_CHECK int line_source_path(
    struct line_source *source, const struct settings *settings, const char *path,
    const char *folder, struct det_error *reterr);
/* Of a source whose call->self begins with a struct line_source. */
DET_MUST_CHECK int line_source_next(struct det_stage_call *call, void *cursor);
void line_source_deinit(struct line_source *source);

#endif
