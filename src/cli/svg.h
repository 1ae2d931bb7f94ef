/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* svg.h - a drawing for GraphViz as SVG. */
#ifndef DET_CLI_SVG_H
#define DET_CLI_SVG_H

#include "base/buffer.h"
#include "cli/cli.h"

/* Appends it. Complains, and returns an exit code: CLI_NOT_FOUND when there is no `dot`. */
DET_MUST_CHECK int svg_of_dot(
    struct cli *cli, const char *text, size_t size, struct det_buffer *ret);

#endif
