/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* flow_spec_file.c - reads a .flow file and reports what is wrong with it, also with the settings
 * of its connectors. */
#include "config/flow_spec_file.h"

#include <string.h>

#include "base/assert.h"
#include "base/text.h"
#include "connectors/connectors.h"
#include "os/os.h"
#include "terminal/report.h"

int cli_flow_spec_load(struct cli *cli, const char *path, struct det_flow_spec **ret)
{
    struct det_spec_files files = cli_spec_files(cli);
    struct det_spec_options options = { .allocator = cli->allocator, .files = &files };
    struct cli_text text;
    int code = cli_text_read(cli, path, DET_SPEC_SIZE_MAX, &text);
    int r;

    if (code != CLI_OK)
        return code;
    r = det_flow_spec_read(path, text.data, text.size, &options, ret);
    cli_text_free(cli, &text);
    return r < 0 ? cli_no_memory(cli) : CLI_OK;
}

/* Finds ", line 1, column 5: " in an error of settings; returns what follows it, and the column. 0
 * as the column: the error has no place on the first line. */
static const char *split_place(const char *text, uint32_t *ret_column)
{
    static const char mark[] = ", line 1, column ";
    const char *at = strstr(text, mark);
    const char *number = at ? at + sizeof mark - 1 : text;
    size_t digits = strspn(number, "0123456789");
    uint64_t column = 0;

    *ret_column = 0;
    if (!at || digits > 6 || strncmp(number + digits, ": ", 2) != 0 ||
        det_parse_u64(det_view_of(number, digits), &column) < 0)
        return text;
    *ret_column = (uint32_t)column;
    return number + digits + 2;
}

/* Returns true if the connector and its settings are valid; otherwise reports it. */
static bool check_connector(
    struct cli *cli, const char *path, const struct det_flow_spec *spec, size_t index)
{
    const struct det_stage *stage = &det_flow_spec_flow(spec)->stages[index];
    struct det_diagnostic finding = { .rule = DET_RULE_BAD_CONNECTOR,
                                      .severity = DET_SEVERITY_BROKEN };
    enum det_flow_text text = DET_FLOW_TEXT_USE;
    char folder[DET_PATH_MAX];
    struct det_error error = { 0 };
    uint32_t column = 0;
    int r;

    if (!stage->use)
        return true;
    r = det_file_folder(path, folder);
    if (r == 0)
        r = det_connectors_check(stage, folder, &error);
    if (r == 0)
        return true;
    finding.text = *error.text ? split_place(error.text, &column) : det_error_text(r);
    if (stage->settings && r != DET_ERR_NOT_FOUND)
        text = DET_FLOW_TEXT_SETTINGS;
    finding.place = det_flow_spec_text_place(
        spec, index, text, text == DET_FLOW_TEXT_SETTINGS && column ? column - 1 : 0);
    cli_report(cli, path, &finding);
    return false;
}

struct cli_flow_count cli_flow_spec_report(
    struct cli *cli, const char *path, const struct det_flow_spec *spec)
{
    const struct det_diagnostics *found = det_flow_spec_diagnostics(spec);
    const struct det_flow *flow = det_flow_spec_flow(spec);
    struct cli_flow_count count = { found->error_count, found->warning_count };

    for (size_t i = 0; i < found->count; i++)
        cli_report(cli, path, &found->items[i]);
    for (size_t i = 0; flow && i < flow->stage_count; i++)
        count.errors += !check_connector(cli, path, spec, i);
    return count;
}
