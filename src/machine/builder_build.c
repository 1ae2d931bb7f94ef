/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_build.c - the steps of a build, in order; builder_build.h lists the findings of each. */
#include "machine/builder_build.h"

#include "base/assert.h"

static bool is_broken(const struct det_build *build)
{
    return build->findings.found[DET_SEVERITY_BROKEN] > 0;
}

static void run_checks(struct det_build *build)
{
    det_build_declare(build);
    if (build->is_too_large || det_build_has_failed(build))
        return;
    det_build_resolve(build);
    det_build_cells(build);
    if (build->is_too_large || det_build_has_failed(build))
        return;
    det_check_records(build);
    det_check_rules(build);
    if (is_broken(build))
        return;
    det_check_flow(build);
    det_check_stops(build);
}

int det_machine_builder_build(
    struct det_machine_builder *builder, struct det_machine **ret,
    struct det_diagnostics *ret_diagnostics)
{
    struct det_build build;
    int r;

    det_assert(!builder->is_built);
    builder->is_built = true;
    *ret_diagnostics = (struct det_diagnostics){ 0 };
    if (builder->status < 0)
        return builder->status;
    det_build_init(&build, builder);
    run_checks(&build);
    det_assert(builder->status == 0);
    r = det_build_findings_finish(&build.findings, ret_diagnostics);
    if (r == 0)
        r = is_broken(&build) ? DET_ERR_DEFINITION : det_build_lay(&build, ret);
    if (r == DET_ERR_NO_MEMORY)
        *ret_diagnostics = (struct det_diagnostics){ 0 };
    det_build_deinit(&build);
    return r;
}
