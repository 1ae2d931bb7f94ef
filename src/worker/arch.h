/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* arch.h - the architecture test: looks at the C source of a worker for what no type of C can hold.
 *
 * It reads tokens, not C: no headers, no macros of the user's, no types. So it knows functions by
 * their names (link_in_up, link_do_connect, link_collect, ...), follows calls to functions of the
 * same sources, and can be told of an exception where it is wrong:
 *
 *     // detent: allow action-retry because the bus needs a second knock
 *
 * on the line of the finding or on the one before. Pure: texts in, findings out. */
#ifndef DET_WORKER_ARCH_H
#define DET_WORKER_ARCH_H

#include <detent/tool/worker_spec.h>

/* Bytes of one source. */
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
    const struct det_worker_way *ways; /* from state to state, as the source has them */
    size_t way_count;
    size_t state_functions; /* found: 0 means that these are not its sources */
};

struct det_arch;

/* `spec_text` is what `spec` was read from, for its exceptions; a spec that is not valid is
 * DET_ERR_INVALID. Everything that is given is borrowed until close. `report` is owned by `ret`. */
DET_MUST_CHECK int det_arch_check(
    const struct det_worker_spec *spec, const struct det_arch_text *spec_text,
    const struct det_arch_text *sources, size_t source_count, const struct det_allocator *allocator,
    struct det_arch **ret);
const struct det_arch_report *det_arch_report(const struct det_arch *arch);
void det_arch_close(struct det_arch *arch);

#endif
