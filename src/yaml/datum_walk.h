/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* datum_walk.h - walks a tree of data in order, without recursion. */
#ifndef DET_YAML_DATUM_WALK_H
#define DET_YAML_DATUM_WALK_H

#include "base/assert.h"
#include "yaml/datum.h"

/* A text is at most DET_DATUM_DEPTH_MAX deep; the data of a template are two maps deeper. */
#define DET_DATUM_STACK (DET_DATUM_DEPTH_MAX + 2)

enum det_datum_step {
    DET_DATUM_AT_VALUE, /* neither list nor map */
    DET_DATUM_AT_OPEN,  /* a list or a map: its elements follow */
    DET_DATUM_AT_CLOSE, /* its elements are complete */
    DET_DATUM_AT_END,
};

struct det_datum_walk {
    const struct det_datum *at; /* the datum of the last step */
    const struct det_datum *next;
    const struct det_datum *open[DET_DATUM_STACK];
    unsigned depth;
};

static inline void det_datum_walk_init(struct det_datum_walk *walk, const struct det_datum *root)
{
    walk->at = NULL;
    walk->next = root;
    walk->depth = 0;
}

static inline enum det_datum_step det_datum_walk_next(struct det_datum_walk *walk)
{
    const struct det_datum *next = walk->next;

    if (!next) {
        if (walk->depth == 0)
            return DET_DATUM_AT_END;
        walk->at = walk->open[--walk->depth];
        walk->next = walk->depth ? walk->at->next : NULL;
        return DET_DATUM_AT_CLOSE;
    }
    walk->at = next;
    if (!det_datum_is_scalar(next)) {
        det_assert(walk->depth < DET_DATUM_STACK);
        walk->open[walk->depth++] = next;
        walk->next = next->first;
        return DET_DATUM_AT_OPEN;
    }
    walk->next = walk->depth ? next->next : NULL;
    return DET_DATUM_AT_VALUE;
}

#endif
