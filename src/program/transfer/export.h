/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export.h - shared by the files that write an export: export_store.c for machines and their
 * instances, export_jobs.c and export_documents.c. */
#ifndef DET_TRANSFER_EXPORT_H
#define DET_TRANSFER_EXPORT_H

#include "inspect/stored_instance.h"
#include "transfer/hash_chain.h"

/* Version of the written format, docs/formats/export.md; older ones are read too. */
#define EXPORT_FORMAT 6

struct exporter {
    struct cli_store *store;
    FILE *file;
    struct det_json_writer json;
    struct seal seal;
    const struct det_machine *machine;
    struct instance *instance;
    uint64_t lines, instances, events, jobs, schedules, documents;
    uint64_t damaged; /* skipped instances */
    uint64_t total;   /* instances, for the progress bar; 0: not counted */
    uint64_t first;   /* sequence of the first stored event; 0: none */
    uint64_t moves;   /* number of stored events that changed the state */
};

/* Opens the object of a line; seals and writes it, returning an exit code. */
void export_begin(struct exporter *exporter, const char *kind);
DET_MUST_CHECK int export_end(struct exporter *exporter);

/* All jobs and schedules of the store; an exit code. */
DET_MUST_CHECK int export_jobs(struct exporter *exporter);
/* All documents. */
DET_MUST_CHECK int export_documents(struct exporter *exporter);

/* Exports the store. To the output without a path, or with "-". */
DET_MUST_CHECK int store_export(struct cli_store *store, const char *path);

#endif
