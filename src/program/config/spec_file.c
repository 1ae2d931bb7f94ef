/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_file.c - specs from files. */
#include <string.h>

#include "terminal/input.h"
#include "terminal/report.h"

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    struct cli *cli = context;
    struct cli_text text;
    int r;

    r = cli_text_load(cli, path, DET_SPEC_SIZE_MAX, &text, NULL);
    if (r < 0)
        return r;
    *ret = text.data;
    *ret_size = text.size;
    return 0;
}

/* read_file() returned memory that only this file changes. */
static void release_file(void *context, const char *data, size_t size)
{
    struct cli *cli = context;
    struct cli_text text = { .size = size };

    memcpy(&text.data, &data, sizeof text.data);
    cli_text_free(cli, &text);
}

int cli_spec_text_load(struct cli *cli, const char *path, struct cli_text *ret)
{
    int code = cli_text_read(cli, path, DET_SPEC_SIZE_MAX, ret);

    if (code != CLI_OK)
        return code;
    if (!cli_has_suffix(path, CLI_CASES_SUFFIX))
        return CLI_OK;
    cli_text_free(cli, ret);
    cli_report_error(cli, "these are test cases: detent test %s", path);
    return CLI_USAGE;
}

struct det_spec_files cli_spec_files(struct cli *cli)
{
    return (struct det_spec_files){ read_file, release_file, cli };
}

int cli_spec_load(struct cli *cli, const char *path, struct cli_spec *spec)
{
    struct det_spec_files files = cli_spec_files(cli);
    struct det_spec_options options = {
        .allocator = cli->allocator,
        .files = &files,
        .report_unhandled = spec->is_unhandled_wanted,
    };
    struct cli_text text;
    int code, r;

    spec->spec = NULL;
    if (cli_has_suffix(path, CLI_WORKER_SUFFIX)) {
        cli_report_error(cli, "this is a worker, not a machine: detent check %s", path);
        return CLI_USAGE;
    }
    if (cli_has_suffix(path, CLI_FLOW_SUFFIX)) {
        cli_report_error(cli, "this is a flow, not a machine: detent check %s", path);
        return CLI_USAGE;
    }
    code = cli_spec_text_load(cli, path, &text);
    if (code != CLI_OK)
        return code;
    r = det_spec_read(
        strcmp(path, "-") == 0 ? CLI_STDIN_NAME : path, text.data, text.size, &options,
        &spec->spec);
    cli_text_free(cli, &text);
    return r < 0 ? cli_no_memory(cli) : CLI_OK;
}

int cli_machine_load(struct cli *cli, const char *path, struct det_spec **ret)
{
    struct cli_spec spec = { 0 };
    int code = cli_spec_load(cli, path, &spec);

    if (code != CLI_OK)
        return code;
    if (!det_spec_machine(spec.spec)) {
        cli_report_broken(cli, path, det_spec_diagnostics(spec.spec));
        cli_report_error(cli, "%s is not a valid definition; run 'detent check' for details", path);
        det_spec_close(spec.spec);
        return CLI_USAGE;
    }
    *ret = spec.spec;
    return CLI_OK;
}
