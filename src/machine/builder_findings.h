/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_findings.h - the findings of one build: the DET_DIAGNOSTICS_MAX most severe and earliest
 * ones. */
#ifndef DET_MACHINE_BUILDER_FINDINGS_H
#define DET_MACHINE_BUILDER_FINDINGS_H

#include <stdarg.h>

#include "base/map.h"
#include "machine/builder_rows.h"

struct det_build_finding;

/* Start of the hint that an unknown name could be declared, if no similar name exists. */
#define DET_BUILD_DECLARE "declare it: "

struct det_build_findings {
    struct det_machine_builder *builder;
    struct det_map files; /* of struct det_build_file */
    uint32_t file_count;
    uint32_t order;                                      /* of the next finding */
    struct det_build_finding *kept[DET_DIAGNOSTICS_MAX]; /* the most severe first, then by place */
    size_t kept_count;
    size_t found[DET_SEVERITY_BROKEN + 1]; /* by severity, including those not kept */
    int status;                            /* 0 or DET_ERR_NO_MEMORY; sticky */
};

/* Takes the order of the files from the rows, and adds the findings of the front end. */
void det_build_findings_init(
    struct det_build_findings *findings, struct det_machine_builder *builder);
void det_build_findings_deinit(struct det_build_findings *findings);

/* Adds a finding about a name of a row, or about the machine if the row is NULL. Returns it, to set
 * its other place and its hint, or NULL if it is not kept: there are enough more severe or earlier
 * ones, or no memory. */
struct det_diagnostic *det_build_report(
    struct det_build_findings *findings, enum det_rule rule, const struct det_build_row *row,
    const struct det_build_name *name, const char *format, ...) DET_PRINTF(5, 6);
/* No effect for a finding that is not kept. */
void det_build_hint(
    struct det_build_findings *findings, struct det_diagnostic *finding, const char *format, ...)
    DET_PRINTF(3, 4);
void det_build_other(
    struct det_build_findings *findings, struct det_diagnostic *finding,
    const struct det_build_row *row, const struct det_build_name *name);

/* Sorts by place. Returns 0 or DET_ERR_NO_MEMORY. */
int det_build_findings_finish(struct det_build_findings *findings, struct det_diagnostics *ret);

#endif
