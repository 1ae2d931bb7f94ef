/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* template.h - text with {{ .variables }}: compiled once to a list of steps, rendered many times.
 *
 *     {{ .IP }} {{ .global.x }} {{ $x }}             values
 *     {{ if ... }} {{ else if ... }} {{ else }} {{ end }}
 *     {{ range .list }}, {{ range $i, $v := .list }} lists; maps in the order of their keys
 *     {{ with .map }}                                makes it the dot, if it is not empty
 *     {{ $x := 3 }} {{ $x = 4 }}
 *     {{ eq .a 1 }} {{ .a | default 3 | quote }} {{ (len .b) }}
 *     {{ quoted }} ... {{ end }}                     its contents, as one quoted text
 *     {{- trims -}}, and comments
 *
 * Rendering is strict: any use of a missing variable is an error. It cannot hang or grow without
 * bound: steps, output, depth and size are limited. docs/formats/workers.md has the language. */
#ifndef DET_WORKER_TEMPLATE_H
#define DET_WORKER_TEMPLATE_H

#include "yaml/datum.h"

#define DET_TEMPLATE_SIZE_MAX   1048576 /* bytes of the text */
#define DET_TEMPLATE_OUTPUT_MAX 1048576 /* bytes in the result */
#define DET_TEMPLATE_DEPTH_MAX  64      /* nesting of blocks, and of parentheses */
#define DET_TEMPLATE_STEPS_MAX  1000000 /* steps of one rendering */

struct det_template;

/* `what` is for messages, and borrowed as long as the template lives: "config". DET_ERR_MALFORMED
 * with line, column, reason and remedy; DET_ERR_LIMIT, DET_ERR_NO_MEMORY. */
DET_MUST_CHECK int det_template_open(
    const struct det_allocator *allocator, const char *what, const char *text, size_t size,
    struct det_template **ret, struct det_error *reterr);
void det_template_close(struct det_template *template);
/* Appends to the buffer, which is invalid after a failure. DET_ERR_NOT_FOUND: a variable is
 * missing; DET_ERR_TYPE, DET_ERR_RANGE: a function cannot be applied; DET_ERR_LIMIT,
 * DET_ERR_NO_MEMORY. `root` is a map. */
DET_MUST_CHECK int det_template_render(
    const struct det_template *template, const struct det_datum *root, struct det_buffer *buffer,
    struct det_error *reterr);

#endif
