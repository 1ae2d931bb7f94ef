/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch.h - the architecture test: checks rules for the C source of a worker that no C type can
 * express.
 *
 * It reads tokens, not C: no headers, no user macros, no types. It identifies functions by name
 * (link_in_up, link_do_connect, link_collect, ...), and follows calls to functions of the same
 * sources. An exception, where a finding is wrong, is a comment
 *
 *     // detent: allow action-retry because the bus needs a second knock
 *
 * on the line of the finding or on the one before. Pure: texts in, findings out. */
#ifndef DET_WORKER_ARCH_H
#define DET_WORKER_ARCH_H

#include <detent/tool/worker_spec.h>

/* Limit of one source, in bytes. */
#define DET_ARCH_SIZE_MAX (4 << 20)

enum det_arch_rule {
#define DET_ARCH_RULE(name, id, severity, what, why, example) DET_ARCH_##name,
#include "worker/arch_rules.def"
    DET_ARCH_RULE_COUNT
};

struct det_arch_rule_text {
    const char *id, *what, *why, *example;
    enum det_severity severity;
};
const struct det_arch_rule_text *det_arch_rule_text(enum det_arch_rule rule);

struct det_arch_text {
    const char *path, *text;
    size_t size;
};

struct det_arch_finding {
    enum det_arch_rule rule;
    struct det_place place;
    const char *text; /* a sentence about this place */
};

struct det_arch_report {
    const struct det_arch_finding *findings; /* in order of place */
    size_t count, error_count, warning_count;
    const struct det_worker_transition *transitions; /* transitions found in the source */
    size_t transition_count;
    size_t state_functions; /* number of functions found; 0: these are not the worker's sources */
};

struct det_arch;

/* `spec_text` is the text of `spec`, for its exceptions; a spec that is not valid is
 * DET_ERR_INVALID. All arguments are borrowed until close. `report` is owned by `ret`. */
DET_MUST_CHECK int det_arch_check(
    const struct det_worker_spec *spec, const struct det_arch_text *spec_text,
    const struct det_arch_text *sources, size_t source_count, const struct det_allocator *allocator,
    struct det_arch **ret);
const struct det_arch_report *det_arch_report(const struct det_arch *arch);
void det_arch_close(struct det_arch *arch);

#endif
