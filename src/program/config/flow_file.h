/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_file.h - a flow that can run: the stages of a .flow file with the settings of detent.yaml or
 * of a command line, and with the functions of a module. */
#ifndef DET_CONFIG_FLOW_FILE_H
#define DET_CONFIG_FLOW_FILE_H

#include <detent/flow.h>

#include "config/config.h"
#include "terminal/terminal.h"

struct flow_definition {
    struct config_flow config; /* a copy; without nodes */
    const struct det_flow *flow;
    const char *folder; /* of the .flow file: settings are relative to it */
    uint64_t digest;    /* of everything above */
};

/* Reads and checks the .flow file of `config`, whose paths are relative to the working directory,
 * replaces settings of its stages, and finds the functions of stages without a connector in the
 * module. CLI_OK, or an exit code after reporting the problems. Nothing points into `config`
 * afterwards. */
DET_MUST_CHECK int flow_definition_open(
    struct cli *cli, const struct config_flow *config, struct flow_definition **ret);
/* What a definition is for: to view its rows, no connectors and functions are needed; a test needs
 * none for sources and sinks; a check does not load the module. */
enum flow_purpose { FLOW_TO_RUN, FLOW_TO_TEST, FLOW_TO_CHECK, FLOW_TO_VIEW };
DET_MUST_CHECK int flow_definition_open_for(
    struct cli *cli, const struct config_flow *config, enum flow_purpose purpose,
    struct flow_definition **ret);
/* Each call needs a flow_definition_close(). Any thread. */
struct flow_definition *flow_definition_share(struct flow_definition *definition);
/* The last one frees it; NULL does nothing. Any thread. */
void flow_definition_close(struct flow_definition *definition);

/* Returns true if pipelines of both do the same, with the same settings. */
static inline bool flow_definition_is_same(
    const struct flow_definition *a, const struct flow_definition *b)
{
    return a->digest == b->digest;
}
/* "source", "transform", ... */
const char *flow_kind_name(enum det_stage_kind kind);
/* Returns the stage with this name; NULL: none. */
const struct det_stage *flow_find_stage(const struct det_flow *flow, const char *name);

#endif
