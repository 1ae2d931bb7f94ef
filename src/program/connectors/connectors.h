/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* connectors.h - the connectors of the program: stages of a flow without C. Each is one .c file,
 * its settings in a .rec file, and one line in connectors.def. */
#ifndef DET_CONNECTORS_CONNECTORS_H
#define DET_CONNECTORS_CONNECTORS_H

#include <detent/flow.h>

#define DET_CONNECTOR(name, kind, summary)           \
    extern const struct det_connector name##_##kind; \
    extern const char name##_##kind##_about[];
#include "connectors/connectors.def"
#undef DET_CONNECTOR

/* The members of a connector that are in the list: CONNECTOR_HEAD(lines, source). */
#define CONNECTOR_KIND_source    DET_STAGE_SOURCE
#define CONNECTOR_KIND_transform DET_STAGE_TRANSFORM
#define CONNECTOR_KIND_stateful  DET_STAGE_STATEFUL
#define CONNECTOR_KIND_join      DET_STAGE_JOIN
#define CONNECTOR_KIND_sink      DET_STAGE_SINK
#define CONNECTOR_HEAD(id, kind) \
    .name = #id, .about = id##_##kind##_about, .kinds = 1u << CONNECTOR_KIND_##kind

/* Returns all of them, for the options of a pipeline; NULL at the end. The order is that of
 * connectors.def. */
const struct det_connector *const *det_connectors_all(void);
/* Finds the connector of a stage by the name and kind of its `use`. DET_ERR_NOT_FOUND with the
 * nearest name, or with the kinds that have this name. */
DET_MUST_CHECK int det_connectors_find(
    const char *name, enum det_stage_kind kind, const struct det_connector **ret,
    struct det_error *reterr);
/* Finds the connector of a stage and checks its settings, without opening anything. `folder`: that
 * relative paths are relative to; NULL: the working directory. */
DET_MUST_CHECK int det_connectors_check(
    const struct det_stage *stage, const char *folder, struct det_error *reterr);
/* Returns "source", ..., for messages. */
const char *det_stage_kind_text(enum det_stage_kind kind);

#endif
