/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* backoff.c - `detent backoff`: the delays between the attempts of a failing task, as a table. */
#include <detent/driver/policy.h>
#include <detent/machine.h>
#include <detent/policy.h>

#include <string.h>

#include "base/assert.h"
#include "base/checked.h"
#include "base/text.h"
#include "os/sim/random.h"
#include "record/number.h"
#include "terminal/args.h"
#include "terminal/command.h"
#include "json/writer.h"

#define ATTEMPTS_DEFAULT 10
#define ATTEMPTS_MAX     100000
#define GAP              3

enum {
    OPTION_FIRST,
    OPTION_FACTOR,
    OPTION_MAX,
    OPTION_JITTER,
    OPTION_RETRIES,
    OPTION_ATTEMPTS,
    OPTION_SEED,
};

static const struct cli_option option_table[] = {
    [OPTION_FIRST] = { "first", 0, "TIME", NULL, "first delay (default 200ms; 0s for none)" },
    [OPTION_FACTOR] = { "factor", 0, "N", NULL, "growth factor of the delay (default 2)" },
    [OPTION_MAX] = { "max", 0, "TIME", NULL, "longest delay (default 30s)" },
    [OPTION_JITTER] = { "jitter", 0, "KIND", "none full equal band decorrelated",
                        "how delays are spread (default equal)" },
    [OPTION_RETRIES] = { "retries", 0, "N", NULL, "give up after N retries (default never)" },
    [OPTION_ATTEMPTS] = { "attempts", 0, "N", NULL, "number of attempts to show (default 10)" },
    [OPTION_SEED] = { "seed", 0, "N", NULL, "also show one random run, repeatable by its seed" },
    { NULL, 0, NULL, NULL, NULL },
};

static const struct {
    const char *name, *meaning;
} jitters[] = {
    [DET_JITTER_INHERIT] = { "", "" },
    [DET_JITTER_NONE] = { "none", "the delay is the base" },
    [DET_JITTER_FULL] = { "full", "from 0 to the base" },
    [DET_JITTER_EQUAL] = { "equal", "from half the base to the base" },
    [DET_JITTER_BAND] = { "band", "from the first delay to three times the base, at most max" },
    [DET_JITTER_DECORRELATED] = { "decorrelated", "from the first delay to three times the "
                                                  "previous delay, at most max" },
};

struct plan {
    struct cli *cli;
    struct det_policy policy; /* resolved */
    uint64_t attempts;
    bool has_limit, has_seed;
    uint64_t seed;
};

/* One attempt. */
struct row {
    uint64_t attempt;
    det_time base, least, most, drawn;                    /* of the delay before it */
    det_time waited_least, waited_most, waited_by_chance; /* total, until it starts */
    struct det_chance chance;
};

static struct row first_row(const struct plan *plan)
{
    struct row row = { .attempt = 1 };

    det_chance_init(&row.chance, plan->seed, 0);
    return row;
}

static void next_row(const struct plan *plan, struct row *row)
{
    const struct det_backoff *backoff = &plan->policy.backoff;
    uint32_t failures = (uint32_t)(row->attempt - 1);

    row->attempt++;
    row->base = det_backoff_base(backoff, failures);
    /* Random bits of 0 give the least delay, all ones the greatest. */
    row->least = det_backoff_delay(backoff, failures, row->least, 0);
    row->most = det_backoff_delay(backoff, failures, row->most, UINT64_MAX);
    row->drawn = det_backoff_delay(backoff, failures, row->drawn, det_chance_next(&row->chance));
    det_assert(row->least <= row->most && row->drawn <= row->most);
    row->waited_least = det_add_time(row->waited_least, row->least);
    row->waited_most = det_add_time(row->waited_most, row->most);
    row->waited_by_chance = det_add_time(row->waited_by_chance, row->drawn);
}

/* The table. */

enum { ATTEMPT, BASE, DELAY, WAITED, DRAWN, WAITED_THEN, COLUMNS };

static const char *const heads[COLUMNS] = {
    "attempt", "base", "delay", "total wait", "drawn", "total",
};

struct cells {
    char text[COLUMNS][2 * DET_DURATION_TEXT + 4];
};

/* Rounds for reading: hours to seconds, seconds to milliseconds, and so on. */
static det_time round_span(det_time span)
{
    det_time unit = span >= DET_HOUR          ? DET_SECOND
                    : span >= DET_MINUTE      ? 100 * DET_MILLISECOND
                    : span >= DET_SECOND      ? DET_MILLISECOND
                    : span >= DET_MILLISECOND ? DET_MICROSECOND
                                              : 1;

    return det_add_time(span, unit / 2) / unit * unit;
}

static char *show(det_time span, char target[DET_DURATION_TEXT])
{
    if (span == DET_NEVER)
        snprintf(target, DET_DURATION_TEXT, "for ever");
    else
        det_format_duration(round_span(span), target, DET_DURATION_TEXT);
    return target;
}

static void show_range(char *target, size_t size, det_time least, det_time most)
{
    char from[DET_DURATION_TEXT], to[DET_DURATION_TEXT];

    if (least == most)
        snprintf(target, size, "%s", show(least, from));
    else
        snprintf(target, size, "%s - %s", show(least, from), show(most, to));
}

static void fill_cells(const struct row *row, struct cells *ret)
{
    const size_t size = sizeof ret->text[0];
    char text[DET_DURATION_TEXT];

    snprintf(ret->text[ATTEMPT], size, "%llu", (unsigned long long)row->attempt);
    show_range(ret->text[WAITED], size, row->waited_least, row->waited_most);
    snprintf(ret->text[WAITED_THEN], size, "%s", show(row->waited_by_chance, text));
    if (row->attempt == 1) {
        for (int i = BASE; i <= DRAWN; i++)
            snprintf(ret->text[i], size, i == WAITED ? "0s" : "-");
        return;
    }
    snprintf(ret->text[BASE], size, "%s", show(row->base, text));
    show_range(ret->text[DELAY], size, row->least, row->most);
    snprintf(ret->text[DRAWN], size, "%s", show(row->drawn, text));
}

static void measure(const struct plan *plan, int widths[COLUMNS])
{
    struct row row = first_row(plan);

    for (int i = 0; i < COLUMNS; i++)
        widths[i] = (int)strlen(heads[i]);
    for (uint64_t n = 0; n < plan->attempts; n++, next_row(plan, &row)) {
        struct cells cells;

        fill_cells(&row, &cells);
        for (int i = 0; i < COLUMNS; i++) {
            int size = (int)strlen(cells.text[i]);

            widths[i] = size > widths[i] ? size : widths[i];
        }
    }
}

static void print_table(const struct plan *plan)
{
    struct row row = first_row(plan);
    int columns = plan->has_seed ? COLUMNS : DRAWN;
    int widths[COLUMNS];

    measure(plan, widths);
    for (int i = 0; i < columns; i++)
        cli_print_in(plan->cli, CLI_BOLD, "%*s%*s", i ? GAP : 0, "", widths[i], heads[i]);
    cli_print(plan->cli, "\n");
    for (uint64_t n = 0; n < plan->attempts && !cli_is_stopped(plan->cli);
         n++, next_row(plan, &row)) {
        struct cells cells;

        fill_cells(&row, &cells);
        for (int i = 0; i < columns; i++)
            cli_print_in(
                plan->cli, i == DRAWN || i == WAITED_THEN ? CLI_BLUE : CLI_PLAIN, "%*s%*s",
                i ? GAP : 0, "", widths[i], cells.text[i]);
        cli_print(plan->cli, "\n");
    }
}

static void print_notes(const struct plan *plan)
{
    const struct det_policy *policy = &plan->policy;
    uint64_t last = (uint64_t)policy->retries_max + 1;
    struct cli *cli = plan->cli;

    cli_print_error(
        cli, "Jitter %s: %s.\n", jitters[policy->backoff.jitter].name,
        jitters[policy->backoff.jitter].meaning);
    if (!plan->has_limit)
        cli_print_error(cli, "Retries are not limited.\n");
    else
        cli_print_error(
            cli, "Attempt %llu is the last%s.\n", (unsigned long long)last,
            plan->attempts < last ? "; --attempts shows more" : "");
}

static void print_row_as_json(const struct plan *plan, const struct row *row)
{
    struct det_json_writer json;

    cli_json_begin(plan->cli, &json, "attempt");
    det_json_number(&json, "attempt", row->attempt);
    det_json_signed(&json, "base_ns", row->base);
    det_json_signed(&json, "delay_least_ns", row->least);
    det_json_signed(&json, "delay_most_ns", row->most);
    det_json_signed(&json, "waited_least_ns", row->waited_least);
    det_json_signed(&json, "waited_most_ns", row->waited_most);
    if (plan->has_seed) {
        det_json_signed(&json, "drawn_ns", row->drawn);
        det_json_signed(&json, "drawn_waited_ns", row->waited_by_chance);
    }
    cli_json_end(plan->cli, &json);
}

static void print_as_json(const struct plan *plan)
{
    const struct det_backoff *backoff = &plan->policy.backoff;
    struct row row = first_row(plan);
    struct det_json_writer json;

    for (uint64_t n = 0; n < plan->attempts && !cli_is_stopped(plan->cli);
         n++, next_row(plan, &row))
        print_row_as_json(plan, &row);
    cli_json_begin(plan->cli, &json, "summary");
    det_json_signed(&json, "first_ns", backoff->first == DET_NO_DELAY ? 0 : backoff->first);
    det_json_signed(&json, "max_ns", backoff->max);
    det_json_double(&json, "factor", backoff->factor);
    det_json_text(&json, "jitter", jitters[backoff->jitter].name);
    if (plan->has_limit)
        det_json_number(&json, "retries", plan->policy.retries_max);
    else
        det_json_null(&json, "retries");
    det_json_number(&json, "attempts", plan->attempts);
    cli_json_end(plan->cli, &json);
}

/* Options. */

static bool read_factor(struct cli *cli, const char *text, double *ret)
{
    size_t whole = strspn(text, "0123456789");
    size_t part = text[whole] == '.' ? 1 + strspn(text + whole + 1, "0123456789") : 0;

    if (whole > 0 && part != 1 && text[whole + part] == '\0' &&
        det_parse_double(det_view_text(text), ret) == 0 && *ret >= 1)
        return true;
    cli_report_error(cli, "--factor must be a number of at least 1 (2, 1.5); got '%s'", text);
    return false;
}

static enum det_jitter jitter_of(const char *name)
{
    int jitter = DET_JITTER_DECORRELATED;

    while (jitter > DET_JITTER_NONE && strcmp(jitters[jitter].name, name) != 0)
        jitter--;
    /* The option permits only these. */
    det_assert(strcmp(jitters[jitter].name, name) == 0);
    return (enum det_jitter)jitter;
}

static bool read_backoff(struct plan *plan, const struct cli_args *args)
{
    const char *const *values = args->values;
    struct det_backoff *backoff = &plan->policy.backoff;

    if (values[OPTION_FIRST] &&
        !cli_args_span(plan->cli, "first", values[OPTION_FIRST], 0, &backoff->first))
        return false;
    if (values[OPTION_FIRST] && backoff->first == 0)
        backoff->first = DET_NO_DELAY;
    if (values[OPTION_MAX] &&
        !cli_args_span(plan->cli, "max", values[OPTION_MAX], 1, &backoff->max))
        return false;
    if (values[OPTION_FACTOR] && !read_factor(plan->cli, values[OPTION_FACTOR], &backoff->factor))
        return false;
    if (values[OPTION_JITTER])
        backoff->jitter = jitter_of(values[OPTION_JITTER]);
    return true;
}

static bool read_numbers(struct plan *plan, const struct cli_args *args)
{
    const char *retries = args->values[OPTION_RETRIES], *attempts = args->values[OPTION_ATTEMPTS];
    const char *seed = args->values[OPTION_SEED];
    uint64_t limit = 0;

    plan->attempts = ATTEMPTS_DEFAULT;
    plan->has_limit = retries != NULL;
    plan->has_seed = seed != NULL;
    if ((retries && !cli_args_number(plan->cli, "retries", retries, 0, UINT32_MAX - 1, &limit)) ||
        (attempts &&
         !cli_args_number(plan->cli, "attempts", attempts, 1, ATTEMPTS_MAX, &plan->attempts)) ||
        (seed && !cli_args_number(plan->cli, "seed", seed, 0, INT64_MAX, &plan->seed)))
        return false;
    if (retries && plan->attempts > limit + 1)
        plan->attempts = limit + 1;
    plan->policy.retries_max = (uint32_t)limit;
    return true;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    struct plan plan = { .cli = cli };
    struct det_error error = { 0 };
    uint32_t retries;

    if (!read_backoff(&plan, args) || !read_numbers(&plan, args))
        return CLI_USAGE;
    retries = plan.policy.retries_max;
    if (det_policy_resolve(&plan.policy, NULL, &plan.policy, &error) < 0) {
        cli_report_error(cli, "%s", error.text);
        return CLI_USAGE;
    }
    /* 0 retries means none here; in a policy it means no limit. */
    plan.policy.retries_max = retries;
    if (cli->is_json) {
        print_as_json(&plan);
        return CLI_OK;
    }
    print_table(&plan);
    print_notes(&plan);
    return CLI_OK;
}

extern const struct cli_command cli_command_backoff;
const struct cli_command cli_command_backoff = {
    .name = "backoff",
    .summary = "show the delays between attempts of a failing task",
    .about = "Prints the delays of a policy: for each attempt its base (first * factor^failures,\n"
             "at most max), the range in which jitter places the delay, and the total of all\n"
             "delays. With --seed it also prints one random run. The duration of the attempts\n"
             "themselves is not included. Times are rounded; --json prints them in nanoseconds.",
    .operand = { .form = "" },
    .options = option_table,
    .run = run_command,
};
