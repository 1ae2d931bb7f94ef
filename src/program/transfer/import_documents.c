/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* import_documents.c - imports documents one by one; existing ones stay unchanged. */
#include <stdio.h>
#include <string.h>

#include "store/document.h"
#include "transfer/import_internal.h"

int import_document(struct import *import, struct det_json_object *members)
{
    const struct cli_store *store = import->store;
    struct det_document row = {
        .kind = det_json_object_text(members, "of"),
        .id = det_json_object_text(members, "id"),
        .version = det_json_object_number(members, "version"),
        .created_at = det_json_object_time(members, "created_at"),
        .updated_at = det_json_object_time(members, "updated_at"),
        .text = det_json_object_text(members, "text"),
    };
    uint64_t floor = det_json_object_number(members, "sync");
    bool is_new = false;
    int r;

    row.size = strlen(row.text);
    if (det_document_role_find(det_json_object_text(members, "role"), &row.role) < 0)
        det_json_object_fail(members, "role");
    if (members->has_failed || members->wrong[0])
        return import_refuse(import, members);
    r = store->ops->documents->restore(store->store, &row, floor, &is_new);
    return import_settle(import, r, is_new, &import->documents, &import->passed_documents);
}
