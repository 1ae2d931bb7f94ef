/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/flow_spec.h - reads the spec file of a flow (.flow) without a compiler.
 *
 * The text is the one that the C templates of flow/define.h include: rows, comments, #define
 * FLOW_NAME, #include of fragments, and no other C. The verdict equals the compiler's and that of
 * det_flow_check(). */
#ifndef DETENT_TOOL_FLOW_SPEC_H
#define DETENT_TOOL_FLOW_SPEC_H

#include <detent/flow.h>
#include <detent/tool/spec.h>

DET_BEGIN

/* Limits of a row. */
#define DET_FLOW_OPTIONS_MAX 12 /* options of a stage */
#define DET_FLOW_WITH_MAX    8  /* names in WITH(...) */

struct det_flow_spec;

/* Reads a spec from text, like det_spec_read(): 0 and a spec even if it is broken; fails only with
 * DET_ERR_NO_MEMORY. `options` may be NULL; `report_unhandled` is ignored. */
DET_API int det_flow_spec_read(
    const char *path, const char *text, size_t size, const struct det_spec_options *options,
    struct det_flow_spec **ret) DET_MUST_CHECK;
DET_API void det_flow_spec_close(struct det_flow_spec *spec);
DET_SCOPED_CLOSE(flow_spec)

/* The flow with its records; NULL: a rule is broken. Owned by the spec. Stages have no `functions`;
 * those without `use` need C. */
DET_API const struct det_flow *det_flow_spec_flow(const struct det_flow_spec *spec);
DET_API const struct det_diagnostics *det_flow_spec_diagnostics(const struct det_flow_spec *spec);
/* Each file of the spec, the spec itself first; NULL at the end. */
DET_API const char *det_flow_spec_file(const struct det_flow_spec *spec, size_t index);
/* Each record of the spec, in order; NULL at the end. */
DET_API const struct det_record *det_flow_spec_record(
    const struct det_flow_spec *spec, size_t index);

/* The place of the row of a stage or of an edge of the flow. */
DET_API struct det_place det_flow_spec_stage_place(const struct det_flow_spec *spec, size_t stage);
DET_API struct det_place det_flow_spec_edge_place(const struct det_flow_spec *spec, size_t edge);

/* The texts of a stage that have a language of their own. */
enum det_flow_text {
    DET_FLOW_TEXT_KEY,           /* KEY, or the second of ON */
    DET_FLOW_TEXT_REFERENCE_KEY, /* the first of ON */
    DET_FLOW_TEXT_USE,           /* the name of a connector */
    DET_FLOW_TEXT_SETTINGS,      /* of the connector */
};
/* The place of byte `offset` of a text in the file; `width` is what is left of the text. The place
 * of the stage if it has no such text. */
DET_API struct det_place det_flow_spec_text_place(
    const struct det_flow_spec *spec, size_t stage, enum det_flow_text text, size_t offset);

DET_END
#endif
