/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors.c - the list of connectors as a table, and the search in it. */
#include "connectors/connectors.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"

#define NAMES_MAX                          64

#define DET_CONNECTOR(name, kind, summary) const char name##_##kind##_about[] = summary;
#include "connectors/connectors.def"
#undef DET_CONNECTOR

const struct det_connector *const *det_connectors_all(void)
{
    static const struct det_connector *const all[] = {
#define DET_CONNECTOR(name, kind, summary) &name##_##kind,
#include "connectors/connectors.def"
#undef DET_CONNECTOR
        NULL,
    };

    return all;
}

const char *det_stage_kind_text(enum det_stage_kind kind)
{
    switch (kind) {
    case DET_STAGE_SOURCE:
        return "source";
    case DET_STAGE_TRANSFORM:
        return "transform";
    case DET_STAGE_STATEFUL:
        return "stateful stage";
    case DET_STAGE_JOIN:
        return "join";
    case DET_STAGE_SINK:
        return "sink";
    }
    return "stage";
}

static bool has_kind(const struct det_connector *connector, enum det_stage_kind kind)
{
    return connector->kinds >> kind & 1;
}

/* The name exists, but not for this kind of stage. */
static int fail_kind(
    const struct det_connector *connector, enum det_stage_kind wanted, struct det_error *reterr)
{
    int kind = 0;

    while (!has_kind(connector, (enum det_stage_kind)kind))
        kind++;
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND, "the connector '%s' is for a %s, not for a %s", connector->name,
        det_stage_kind_text((enum det_stage_kind)kind), det_stage_kind_text(wanted));
}

static int fail_name(const char *name, enum det_stage_kind kind, struct det_error *reterr)
{
    const char *names[NAMES_MAX];
    size_t count = 0;
    int nearest;

    for (const struct det_connector *const *at = det_connectors_all(); *at; at++)
        if (has_kind(*at, kind)) {
            det_assert(count < NAMES_MAX);
            names[count++] = (*at)->name;
        }
    nearest = det_text_nearest(name, names, count);
    if (nearest >= 0)
        return det_error_set(
            reterr, DET_ERR_NOT_FOUND, "there is no connector '%.64s'; did you mean '%s'?", name,
            names[nearest]);
    return det_error_set(
        reterr, DET_ERR_NOT_FOUND,
        "there is no connector '%.64s' for a %s; list them with: detent flow connectors", name,
        det_stage_kind_text(kind));
}

int det_connectors_find(
    const char *name, enum det_stage_kind kind, const struct det_connector **ret,
    struct det_error *reterr)
{
    const struct det_connector *other = NULL;

    for (const struct det_connector *const *at = det_connectors_all(); *at; at++) {
        if (strcmp((*at)->name, name) != 0)
            continue;
        if (has_kind(*at, kind)) {
            *ret = *at;
            return 0;
        }
        other = *at;
    }
    return other ? fail_kind(other, kind, reterr) : fail_name(name, kind, reterr);
}

int det_connectors_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr)
{
    const struct det_connector *connector = NULL;
    int r;

    det_assert(stage->use != NULL);
    r = det_connectors_find(stage->use, stage->kind, &connector, reterr);
    if (r < 0)
        return r;
    return connector->check(stage, folder, reterr);
}
