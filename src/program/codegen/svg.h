/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* svg.h - a drawing for GraphViz as SVG. */
#ifndef DET_CODEGEN_SVG_H
#define DET_CODEGEN_SVG_H

#include <stdatomic.h>

#include "base/buffer.h"
#include "terminal/terminal.h"

/* Appends it. Complains, and returns an exit code: CLI_NOT_FOUND when there is no `dot`. Abandoned
 * when `is_left` returns true because its client has left; NULL: never. */
DET_MUST_CHECK int svg_of_dot(
    struct cli *cli, const char *text, size_t size, const atomic_bool *is_left,
    struct det_buffer *ret);

#endif
