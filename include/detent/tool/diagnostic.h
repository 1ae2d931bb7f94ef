/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/diagnostic.h - what is wrong with a definition, said so that a person can mend it. */
#ifndef DETENT_TOOL_DIAGNOSTIC_H
#define DETENT_TOOL_DIAGNOSTIC_H

#include <detent/base.h>

DET_BEGIN

/* Every rule, once: rules.def. */
enum det_rule {
#define DET_RULE(name, id, severity, help) DET_RULE_##name,
#include <detent/tool/rules.def>
#undef DET_RULE
    DET_RULE_COUNT
};

enum det_severity {
    DET_SEVERITY_INFO,    /* worth knowing: an override */
    DET_SEVERITY_WARNING, /* legal, and probably not meant */
    DET_SEVERITY_BROKEN,  /* not a machine: an error */
};

/* Where in the text. `file` NULL: there is no text; `line` is then the number of the row, as
 * builder.h counts them, or 0 for what concerns the machine as a whole. */
struct det_place {
    const char *file;
    uint32_t line, column; /* from 1; column counts bytes */
    uint32_t width;        /* bytes to underline; 0 is 1 */
    const char *source;    /* the whole line, without its end; NULL: not kept */
};

struct det_diagnostic {
    enum det_rule rule;
    enum det_severity severity;
    struct det_place place;
    struct det_place other; /* "first said here"; line 0: none */
    const char *text;       /* a sentence about this machine, without the place */
    const char *hint;       /* what to do; NULL: see the rule's help */
};

struct det_diagnostics {
    const struct det_diagnostic *items; /* in order of place */
    size_t count;
    size_t error_count, warning_count; /* of all that were found, also of those that were cut */
    bool is_cut; /* there were more than DET_DIAGNOSTICS_MAX; the least grave are left out first */
};

#define DET_DIAGNOSTICS_MAX 200

/* "duplicate-transition"; the stable name for scripts. */
DET_API const char *det_rule_id(enum det_rule rule);
/* What the rule is about and how to mend it, for people. */
DET_API const char *det_rule_help(enum det_rule rule);
DET_API enum det_severity det_rule_severity(enum det_rule rule);

DET_END
#endif
