/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* tool/diagnostic.h - findings about a definition, with place, reason and remedy. */
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
    DET_SEVERITY_INFO,    /* information, such as an override */
    DET_SEVERITY_WARNING, /* legal, but probably unintended */
    DET_SEVERITY_BROKEN,  /* an error: the definition is not a machine */
};

/* A place in the text. `file` NULL: there is no text; `line` is then the number of the row as
 * counted by builder.h, or 0 for the machine as a whole. */
struct det_place {
    const char *file;
    uint32_t line, column; /* from 1; column counts bytes */
    uint32_t width;        /* bytes to underline; 0 is 1 */
    const char *source;    /* the whole line without its newline; NULL: not kept */
};

struct det_diagnostic {
    enum det_rule rule;
    enum det_severity severity;
    struct det_place place;
    struct det_place other; /* place of the first declaration; line 0: none */
    const char *text;       /* a sentence about this machine, without the place */
    const char *hint;       /* the remedy; NULL: see the rule's help */
};

struct det_diagnostics {
    const struct det_diagnostic *items; /* in order of place */
    size_t count;
    size_t error_count, warning_count; /* all findings, including those that were cut */
    bool is_cut; /* more than DET_DIAGNOSTICS_MAX findings; the least severe are omitted first */
};

#define DET_DIAGNOSTICS_MAX 200

/* The stable name of a rule for scripts: "duplicate-transition". */
DET_API const char *det_rule_id(enum det_rule rule);
/* The meaning of a rule and its remedy, for people. */
DET_API const char *det_rule_help(enum det_rule rule);
DET_API enum det_severity det_rule_severity(enum det_rule rule);

DET_END
#endif
