/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kinds.h - the worker kinds of the program: those for detent.yaml, and those of the scenarios.
 * Each is one .worker and one .c file, and one line in kinds.def. */
#ifndef DET_KINDS_KINDS_H
#define DET_KINDS_KINDS_H

#include <detent/worker.h>

#define DET_KIND(name, use, summary) extern const struct det_worker_kind name##_kind;
#include "kinds/kinds.def"
#undef DET_KIND

enum det_kind_use {
    DET_KIND_BUILT_IN, /* for detent.yaml */
    DET_KIND_EXAMPLE,  /* for scenarios */
};

/* An entry of the list. */
struct det_kind_entry {
    const struct det_worker_kind *kind;
    enum det_kind_use use;
    const char *summary;
};

/* Returns all of them, `kind` NULL at the end. */
const struct det_kind_entry *det_kinds_list(void);
/* Returns all for det_workers_open(), NULL at the end. */
const struct det_worker_kind *const *det_kinds_all(void);

#endif
