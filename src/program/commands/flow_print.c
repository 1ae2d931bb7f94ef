/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_print.c - rows, counts and rates of flows as text. */
#include <stdio.h>
#include <string.h>

#include "commands/flow_verbs.h"
#include "inspect/document_print.h"
#include "inspect/print_tasks.h"
#include "json/reader.h"

const char *flow_count_text(uint64_t count, char target[FLOW_COUNT_TEXT])
{
    char digits[24];
    size_t size = (size_t)snprintf(digits, sizeof digits, "%llu", (unsigned long long)count);
    size_t at = 0;

    for (size_t i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            target[at++] = ',';
        target[at++] = digits[i];
    }
    target[at] = '\0';
    return target;
}

const char *flow_rate_text(double rate, char target[FLOW_COUNT_TEXT])
{
    if (rate >= 1e6)
        snprintf(target, FLOW_COUNT_TEXT, "%.2f M/s", rate / 1e6);
    else if (rate >= 1e4)
        snprintf(target, FLOW_COUNT_TEXT, "%.0f k/s", rate / 1e3);
    else
        snprintf(target, FLOW_COUNT_TEXT, "%.0f/s", rate);
    return target;
}

static void print_member(struct cli *cli, const struct det_json_value *row, const char *key)
{
    const char *text = show_text(row, key);

    if (*text)
        cli_print(cli, "  %s", text);
}

/* "12  10:00:00.250  data  {...}" */
void flow_print_row(struct cli *cli, const struct det_json_value *row)
{
    const char *kind = show_text(row, "kind");
    const struct det_json_value *value = det_json_get(row, "value");
    char time[CLI_TIME_OF_DAY];
    bool is_rejected = strcmp(kind, "rejected") == 0;

    cli_print_in(cli, CLI_FAINT, "%llu", (unsigned long long)det_json_get_number(row, "position"));
    cli_print_in(cli, CLI_FAINT, "  %s", cli_time_of_day(det_json_get_time(row, "at"), time));
    if (strcmp(kind, "data") != 0)
        cli_print_in(cli, is_rejected ? CLI_YELLOW : CLI_BOLD, "  %s", kind);
    print_member(cli, row, "fact");
    print_member(cli, row, "stage");
    print_member(cli, row, "end");
    print_member(cli, row, "why");
    print_member(cli, row, "reason");
    print_member(cli, row, "text");
    print_member(cli, row, "error");
    if (value && value->kind != DET_JSON_NULL)
        cli_print(cli, "  ");
    if (value && value->kind != DET_JSON_NULL)
        cli_print_value(cli, value);
    else
        cli_print(cli, "\n");
}
