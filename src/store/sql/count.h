/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* count.h - the operation `count` of both SQL drivers. */
#ifndef DET_STORE_SQL_COUNT_H
#define DET_STORE_SQL_COUNT_H

#include <detent/driver/store.h>

int det_sql_count_all(
    struct det_store *store, int (*visit)(void *context, const struct det_store_counted *row),
    void *context, uint64_t *ret_bytes);

#endif
