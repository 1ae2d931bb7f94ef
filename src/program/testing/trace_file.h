/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* trace_file.h - what happened in a run, as JSON Lines (docs/formats/trace.md): written by `test`
 * and `sim`, read by `diagram`. */
#ifndef DET_TESTING_TRACE_FILE_H
#define DET_TESTING_TRACE_FILE_H

#include <detent/runtime.h>
#include <detent/tool/draw.h>

#include "base/arena.h"
#include "base/buffer.h"
#include "base/text.h"
#include "terminal/terminal.h"

#define CLI_TRACE_SIZE_MAX 67108864
#define CLI_TRACE_LINE_MAX 1048576

/* Lines of a trace, in memory until cli_trace_save(). A zero one with an allocator is empty. */
struct cli_trace_writer {
    struct det_buffer lines;
    bool is_wanted; /* false: the calls do nothing */
};

void cli_trace_run(
    struct cli_trace_writer *writer, const struct det_machine *machine, const char *run);
void cli_trace_step(struct cli_trace_writer *writer, const struct det_note *note);
/* Writes to the file, or to the output for "-". 0 or an exit code. */
DET_MUST_CHECK int cli_trace_save(
    struct cli *cli, const struct cli_trace_writer *writer, const char *path);
/* Returns true if the trace uses the output, so that results must go elsewhere. NULL is allowed. */
bool cli_trace_is_output(const char *path);

/* One run of a trace, ready to be drawn. */
struct cli_trace {
    struct det_arena arena;
    struct det_draw_trace trace;
};

/* Returns the run called `run`, or the first one if NULL, from the text of a trace of this machine,
 * or of the output of `detent history --json`, whose run has the id of the instance. 0, or a
 * negative error (DET_ERR_NOT_FOUND: no such run) with a sentence in `reterr`. */
DET_MUST_CHECK int cli_trace_read(
    const struct det_machine *machine, struct det_view text, const char *run,
    const struct det_allocator *allocator, struct cli_trace *ret, struct det_error *reterr);
void cli_trace_deinit(struct cli_trace *trace);

#endif
