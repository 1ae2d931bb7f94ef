/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* export_documents.c - the documents of a store as lines of its export, all of one moment, without
 * their deltas. */
#include <detent/tool/documents.h>

#include "transfer/export.h"

struct writing {
    struct exporter *exporter;
    struct det_document_position position;
    int code; /* an exit code */
};

static int write_document(void *context, const struct det_document *row)
{
    struct writing *writing = context;
    struct exporter *exporter = writing->exporter;
    struct det_json_writer *json = &exporter->json;

    export_begin(exporter, "document");
    det_json_text(json, "of", row->kind);
    det_json_text(json, "id", row->id);
    det_json_text(json, "role", det_document_role_name(row->role));
    det_json_number(json, "version", row->version);
    det_json_number(json, "sync", writing->position.latest);
    det_json_time(json, "created_at", row->created_at);
    det_json_time(json, "updated_at", row->updated_at);
    det_json_bytes(json, "text", row->text, row->size);
    exporter->documents++;
    writing->code = cli_is_stopped(exporter->store->cli) ? CLI_INTERRUPTED : export_end(exporter);
    return writing->code == CLI_OK ? 0 : 1;
}

int export_documents(struct exporter *exporter)
{
    struct writing writing = { .exporter = exporter };
    int r;

    r = det_store_documents_list(
        exporter->store->store, NULL, write_document, &writing, &writing.position);
    if (r == DET_ERR_UNSUPPORTED)
        return CLI_OK;
    return r < 0 ? cli_report_store_error(exporter->store, r, NULL) : writing.code;
}
