/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* kinds.c - the list of kinds as tables. */
#include "kinds/kinds.h"

const struct det_kind_entry *det_kinds_list(void)
{
    static const struct det_kind_entry list[] = {
#define DET_KIND(name, use, summary) { &name##_kind, DET_KIND_##use, summary },
#include "kinds/kinds.def"
#undef DET_KIND
        { NULL, DET_KIND_BUILT_IN, NULL },
    };

    return list;
}

const struct det_worker_kind *const *det_kinds_all(void)
{
    static const struct det_worker_kind *const all[] = {
#define DET_KIND(name, use, summary) &name##_kind,
#include "kinds/kinds.def"
#undef DET_KIND
        NULL,
    };

    return all;
}
