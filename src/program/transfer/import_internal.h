/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_internal.h - shared by the files of import.h. */
#ifndef DET_TRANSFER_IMPORT_INTERNAL_H
#define DET_TRANSFER_IMPORT_INTERNAL_H

#include "transfer/import.h"

void incoming_close(const struct import *import, struct incoming *incoming);

/* import_jobs.c */
/* Reports the invalid member. */
DET_MUST_CHECK int import_refuse(struct import *import, struct det_json_object *members);
/* Evaluates the result of the store for a single object: counts it as new, or as existing. */
DET_MUST_CHECK int import_settle(
    struct import *import, int r, bool is_new, uint64_t *count, uint64_t *passed);

#endif
