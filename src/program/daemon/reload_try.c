/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reload_try.c - loads what the new file names, and unloads it, while the old parts run. */
#include <detent/tool/spec.h>

#include "config/module.h"
#include "daemon/reload_plan.h"
#include "daemon/workers.h"
#include "http/tls_stream.h"
#include "terminal/report.h"

static int report_at(
    struct reload *reload, const struct det_datum *node, const struct det_error *error)
{
    const struct config_file *file = &reload->next.file;
    const struct cli_problem problem = {
        .path = file->path,
        .text = file->text.data,
        .size = file->text.size,
        .line = node->line,
        .column = node->column,
        .column_is_characters = true,
    };

    cli_report_problem(&reload->cli, &problem, "%s", error->text);
    return error->code == DET_ERR_NO_MEMORY ? CLI_FAILURE : CLI_USAGE;
}

static int try_certificate(struct reload *reload)
{
    const struct config_http *http = &reload->next.file.config.http;
    struct det_error error = { 0 };

    if (http_tls_try(reload->cli.allocator, &http->tls, &error) < 0)
        return report_at(reload, http->tls_node, &error);
    return CLI_OK;
}

static int try_module(struct reload *reload, const struct config_machine *machine)
{
    struct det_error error = { 0 };
    struct det_spec *spec = NULL;
    int code = cli_machine_load(&reload->cli, machine->spec, &spec);

    if (code == CLI_OK &&
        module_try(reload->cli.allocator, machine, det_spec_machine(spec), &error) < 0)
        code = report_at(reload, machine->module_node, &error);
    det_spec_close(spec);
    return code;
}

/* Uses the loaded kinds of modules, which do not change. */
static int try_workers(struct reload *reload)
{
    const struct config_workers *config = &reload->next.file.config.workers;
    struct cli_problems problems = { .count = 0 };
    int code = CLI_OK;

    if (!config->node || !up_has_workers(reload->up) ||
        up_workers_check(reload->up, config, &problems) == 0)
        return CLI_OK;
    for (size_t i = 0; i < problems.count; i++) {
        const struct det_datum at = { .line = problems.items[i].line,
                                      .column = problems.items[i].column };
        struct det_error error = { 0 };

        det_error_set(&error, DET_ERR_MALFORMED, "%s", problems.items[i].text);
        code = report_at(reload, &at, &error);
    }
    return code;
}

int reload_try(struct reload *reload)
{
    const struct config *config = &reload->next.file.config;
    int code = try_certificate(reload);

    if (code == CLI_OK)
        code = try_workers(reload);

    for (size_t i = 0; i < config->machine_count && code == CLI_OK; i++) {
        if (config->machines[i].is_served && config->machines[i].module)
            code = try_module(reload, &config->machines[i]);
    }
    return code;
}
