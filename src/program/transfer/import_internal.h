/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_internal.h - what the files of import.h share. */
#ifndef DET_TRANSFER_IMPORT_INTERNAL_H
#define DET_TRANSFER_IMPORT_INTERNAL_H

#include "transfer/import.h"

void incoming_close(const struct import *import, struct incoming *incoming);

/* import_jobs.c */
/* What is wrong with the members. */
DET_MUST_CHECK int import_refuse(struct import *import, struct det_json_object *members);
/* What the store says about something that came by itself: counted as new, or as passed. */
DET_MUST_CHECK int import_settle(
    struct import *import, int r, bool is_new, uint64_t *count, uint64_t *passed);

#endif
