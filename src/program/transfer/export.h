/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export.h - what the files that write an export share: export_store.c, which has the machines and
 * their instances, export_jobs.c and export_documents.c. */
#ifndef DET_TRANSFER_EXPORT_H
#define DET_TRANSFER_EXPORT_H

#include "inspect/stored_instance.h"
#include "transfer/hash_chain.h"

/* The format that is written, docs/formats/export.md; older ones are read too. */
#define EXPORT_FORMAT 6

struct exporter {
    struct cli_store *store;
    FILE *file;
    struct det_json_writer json;
    struct seal seal;
    const struct det_machine *machine;
    struct instance *instance;
    uint64_t lines, instances, events, jobs, schedules, documents;
    uint64_t damaged; /* instances that are left out */
    uint64_t total;   /* instances, for who looks on; 0: nobody does */
    uint64_t first;   /* the sequence of the first event that is kept; 0: none */
    uint64_t moves;   /* how many of those that are kept changed the state */
};

/* A line: opens the object of that kind; and seals it and writes it, with an exit code. */
void export_begin(struct exporter *exporter, const char *kind);
DET_MUST_CHECK int export_end(struct exporter *exporter);

/* All jobs and schedules of the store; an exit code. */
DET_MUST_CHECK int export_jobs(struct exporter *exporter);
/* All documents. */
DET_MUST_CHECK int export_documents(struct exporter *exporter);

/* Exports the store. To the output without a path, or with "-". */
DET_MUST_CHECK int store_export(struct cli_store *store, const char *path);

#endif
