/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* diagnostic.c - names, help and severity of the rules in rules.def. */
#include <detent/tool/diagnostic.h>

#include "base/assert.h"

struct rule {
    const char *id;
    const char *help;
    enum det_severity severity;
};

static const struct rule rules[] = {
#define DET_RULE(name, id, severity, help) [DET_RULE_##name] = { id, help, severity },
#include <detent/tool/rules.def>
#undef DET_RULE
};

static const struct rule *rule_of(enum det_rule rule)
{
    det_assert((unsigned)rule < DET_RULE_COUNT);
    return &rules[rule];
}

const char *det_rule_id(enum det_rule rule)
{
    return rule_of(rule)->id;
}

const char *det_rule_help(enum det_rule rule)
{
    return rule_of(rule)->help;
}

enum det_severity det_rule_severity(enum det_rule rule)
{
    return rule_of(rule)->severity;
}
