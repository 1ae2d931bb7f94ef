/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* faulty_test.h - for suites of workers: a store that fails for a while. */
#ifndef DET_WORKER_FAULTY_TEST_H
#define DET_WORKER_FAULTY_TEST_H

#include <detent/driver/store.h>
#include <detent/tool/documents.h>

#include "worker/lab_test.h"

/* A store whose saves fail while `fault` is set. */
static int fault;
static uint32_t faults, saves;
static const struct det_document_ops *real;
static struct det_document_ops faulty_documents;
static struct det_store_ops faulty;

static inline int faulty_save(
    struct det_store *store, const struct det_document_save *some, size_t count,
    struct det_document_saved *ret, struct det_error *reterr)
{
    saves++;
    if (!fault)
        return real->save(store, some, count, ret, reterr);
    faults++;
    return det_error_set(reterr, fault, "the disk is on fire; buy another one");
}

static inline void make_faulty(struct lab *lab)
{
    fault = 0;
    faults = saves = 0;
    faulty = *lab->store->ops;
    real = faulty.documents;
    faulty_documents = *real;
    faulty_documents.save = faulty_save;
    faulty.documents = &faulty_documents;
    lab->store->ops = &faulty;
}

#endif
