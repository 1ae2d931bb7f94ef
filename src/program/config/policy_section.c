/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy_section.c - the keys of a policy: of a task, and of the defaults. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

#define FACTOR_MAX         1000.0

#define IN_BACKOFF(member) offsetof(struct det_backoff, member)
#define IN_POLICY(member)  offsetof(struct det_policy, member)

enum { RESTART, INTERVAL, RETRIES, TIMEOUT, GRACE, BACKOFF };

/* A decimal number without surrounding text; no exponent and no other form of strtod(). */
static int take_factor(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    const char *text = det_datum_is_scalar(node) ? node->text : "";
    size_t length = strlen(text);
    double factor = 0;
    char *end;

    if (length && length < 32 && strspn(text, "0123456789.") == length &&
        isdigit((unsigned char)*text)) {
        factor = strtod(text, &end);
        if (*end)
            factor = 0;
    }
    if (!(factor >= 1 && factor <= FACTOR_MAX))
        return reader_fail(
            reader, node, "'%s' is a number from 1 to %.0f, such as 1.5", key->name, FACTOR_MAX);
    memcpy(target, &factor, sizeof factor);
    return 0;
}

/* An omitted delay adapts to the other: see det_policy_resolve(). */
int config_take_backoff(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    static const char *const jitters[] = { "none", "full", "equal", "band", "decorrelated", NULL };
    static const struct config_key keys[] = {
        CONFIG_RANGE_OR(
            "first", config_take_span, IN_BACKOFF(first), DET_MICROSECOND, 0, "none", DET_NO_DELAY),
        CONFIG_RANGE("max", config_take_span, IN_BACKOFF(max), DET_MICROSECOND, 0),
        CONFIG_KEY("factor", take_factor, IN_BACKOFF(factor)),
        CONFIG_CHOICE("jitter", IN_BACKOFF(jitter), DET_JITTER_NONE, jitters),
        CONFIG_RANGE_OR(
            "stable_after", config_take_span, IN_BACKOFF(stable_after), 0, 0, "never", DET_NEVER),
    };

    const struct det_backoff *backoff = target;
    int r;

    (void)key;
    r = config_take_mapping(reader, node, CONFIG_TABLE("'backoff'", keys), target, NULL);
    if (r == 0 && backoff->max && backoff->first > backoff->max)
        r = reader_fail_key(reader, node, "'first' of this backoff is over its 'max'");
    return r;
}

static int take_retries(
    struct cli_reader *reader, const struct det_datum *node, const struct config_key *key,
    void *target)
{
    if (det_datum_is_scalar(node) && strcmp(node->text, "0") == 0)
        return reader_fail(reader, node, "no retries at all are 'restart: never'");
    return config_take_number(reader, node, key, target);
}

void config_policy_keys(struct config_key *keys, size_t offset)
{
    static const char *const restarts[] = { "never", "on-failure", "always", NULL };
    static const struct config_key table[CONFIG_POLICY_KEYS] = {
        [RESTART] = CONFIG_CHOICE("restart", IN_POLICY(restart), DET_RESTART_NEVER, restarts),
        [INTERVAL] = CONFIG_KEY("interval", config_take_span, IN_POLICY(interval)),
        [RETRIES] = CONFIG_RANGE_OR(
            "retries", take_retries, IN_POLICY(retries_max), 1, 1000000, "unlimited",
            DET_RETRIES_UNLIMITED),
        [TIMEOUT] = CONFIG_RANGE_OR(
            "timeout", config_take_span, IN_POLICY(timeout), DET_MILLISECOND, 0, "none",
            DET_NO_TIMEOUT),
        [GRACE] = CONFIG_RANGE_OR(
            "grace", config_take_span, IN_POLICY(grace), 0, 0, "forever", DET_NEVER),
        [BACKOFF] = CONFIG_KEY("backoff", config_take_backoff, IN_POLICY(backoff)),
    };

    for (size_t i = 0; i < CONFIG_POLICY_KEYS; i++) {
        keys[i] = table[i];
        keys[i].offset += offset;
    }
}

int config_check_policy(
    struct cli_reader *reader, const struct det_datum *const *nodes,
    const struct det_policy *policy, const struct det_policy *defaults)
{
    /* A default applies to the tasks that it concerns. */
    bool is_printed = nodes[RESTART] && policy != defaults;
    enum det_restart restart = policy->restart ? policy->restart : defaults->restart;
    int r = 0;

    if (nodes[INTERVAL] && policy != defaults && restart != DET_RESTART_ALWAYS)
        r = reader_fail_key(reader, nodes[INTERVAL], "'interval' goes with 'restart: always'");
    if (nodes[RETRIES] && is_printed && policy->restart == DET_RESTART_NEVER)
        r = reader_fail_key(reader, nodes[RETRIES], "'retries' does not go with 'restart: never'");
    return r;
}
