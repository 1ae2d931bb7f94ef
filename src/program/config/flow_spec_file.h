/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_spec_file.h - a .flow file as text, for commands that check and draw it. */
#ifndef DET_CONFIG_FLOW_SPEC_FILE_H
#define DET_CONFIG_FLOW_SPEC_FILE_H

#include <detent/tool/flow_spec.h>

#include "terminal/input.h"

/* Reads a flow; reports an unreadable file. Returns 0 or an exit code; a broken flow is 0: see
 * det_flow_spec_flow(). */
DET_MUST_CHECK int cli_flow_spec_load(
    struct cli *cli, const char *path, struct det_flow_spec **ret);

/* The number of findings of a flow. */
struct cli_flow_count {
    size_t errors, warnings;
};
/* Prints the findings in its rows and, of a valid flow, in the settings of its connectors. Returns
 * their number. */
struct cli_flow_count cli_flow_spec_report(
    struct cli *cli, const char *path, const struct det_flow_spec *spec);

#endif
