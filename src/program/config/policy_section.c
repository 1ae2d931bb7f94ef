/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* policy_section.c - the keys of a policy: of a task, and of the defaults. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

#define FACTOR_MAX 1000.0

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
        { .name = "first",
          .take = config_take_span,
          .offset = offsetof(struct det_backoff, first),
          .least = (uint64_t)DET_MICROSECOND,
          .word = "none",
          .value = DET_NO_DELAY },
        { .name = "max",
          .take = config_take_span,
          .offset = offsetof(struct det_backoff, max),
          .least = (uint64_t)DET_MICROSECOND },
        { .name = "factor", .take = take_factor, .offset = offsetof(struct det_backoff, factor) },
        { .name = "jitter",
          .take = config_take_choice,
          .offset = offsetof(struct det_backoff, jitter),
          .value = DET_JITTER_NONE,
          .words = jitters },
        { .name = "stable_after",
          .take = config_take_span,
          .offset = offsetof(struct det_backoff, stable_after),
          .word = "never",
          .value = DET_NEVER },
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
        [RESTART] = { .name = "restart",
                      .take = config_take_choice,
                      .offset = offsetof(struct det_policy, restart),
                      .value = DET_RESTART_NEVER,
                      .words = restarts },
        [INTERVAL] = { .name = "interval",
                       .take = config_take_span,
                       .offset = offsetof(struct det_policy, interval) },
        [RETRIES] = { .name = "retries",
                      .take = take_retries,
                      .offset = offsetof(struct det_policy, retries_max),
                      .least = 1,
                      .most = 1000000,
                      .word = "unlimited",
                      .value = DET_RETRIES_UNLIMITED },
        [TIMEOUT] = { .name = "timeout",
                      .take = config_take_span,
                      .offset = offsetof(struct det_policy, timeout),
                      .least = (uint64_t)DET_MILLISECOND,
                      .word = "none",
                      .value = DET_NO_TIMEOUT },
        [GRACE] = { .name = "grace",
                    .take = config_take_span,
                    .offset = offsetof(struct det_policy, grace),
                    .word = "forever",
                    .value = DET_NEVER },
        [BACKOFF] = { .name = "backoff",
                      .take = config_take_backoff,
                      .offset = offsetof(struct det_policy, backoff) },
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
    bool is_said = nodes[RESTART] && policy != defaults;
    enum det_restart restart = policy->restart ? policy->restart : defaults->restart;
    int r = 0;

    if (nodes[INTERVAL] && policy != defaults && restart != DET_RESTART_ALWAYS)
        r = reader_fail_key(reader, nodes[INTERVAL], "'interval' goes with 'restart: always'");
    if (nodes[RETRIES] && is_said && policy->restart == DET_RESTART_NEVER)
        r = reader_fail_key(reader, nodes[RETRIES], "'retries' does not go with 'restart: never'");
    return r;
}
