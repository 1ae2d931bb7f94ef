/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* worker_file.c - reads a .worker file with its C sources, and reports what is wrong with them. */
#include "config/worker_file.h"

#include <string.h>

#include "base/assert.h"
#include "base/memory.h"
#include "os/os.h"
#include "terminal/report.h"

static int read_spec(struct cli *cli, const char *path, struct cli_worker *worker)
{
    struct det_spec_files files = cli_spec_files(cli);
    struct det_spec_options options = { .allocator = cli->allocator, .files = &files };
    int code = cli_text_read(cli, path, DET_SPEC_SIZE_MAX, &worker->text);
    int r;

    if (code != CLI_OK)
        return code;
    r = det_worker_spec_read(path, worker->text.data, worker->text.size, &options, &worker->spec);
    return r < 0 ? cli_no_memory(cli) : CLI_OK;
}

/* link.c beside link.worker. False when the name is too long. */
static bool name_beside(const char *path, char *target, size_t capacity)
{
    size_t stem = strlen(path) - strlen(CLI_WORKER_SUFFIX);
    int length = snprintf(target, capacity, "%.*s" CLI_SOURCE_SUFFIX, (int)stem, path);

    return length > 0 && (size_t)length < capacity;
}

static int add_source(struct cli *cli, const char *path, struct cli_worker *worker)
{
    struct cli_text *text = &worker->texts[worker->source_count];
    struct det_arch_text *source = &worker->sources[worker->source_count];
    char *name = det_string_copy(cli->allocator, path);
    int code;

    det_assert(worker->source_count < worker->source_capacity);
    if (!name)
        return cli_no_memory(cli);
    code = cli_text_read(cli, path, DET_ARCH_SIZE_MAX, text);
    if (code != CLI_OK) {
        det_free_string(cli->allocator, name);
        return code;
    }
    *source = (struct det_arch_text){ name, text->data, text->size };
    worker->source_count++;
    return CLI_OK;
}

static bool is_known(const struct cli_worker *worker, const char *path)
{
    for (size_t i = 0; i < worker->source_count; i++) {
        if (cli_is_same_file(worker->sources[i].path, path))
            return true;
    }
    return false;
}

static int read_sources(
    struct cli *cli, const char *path, const char *const *paths, struct cli_worker *worker)
{
    char beside[DET_PATH_MAX];
    size_t count = 0;
    int code = CLI_OK;

    while (paths[count])
        count++;
    worker->source_capacity = count + 1;
    worker->texts = DET_NEW_ARRAY(cli->allocator, count + 1, struct cli_text);
    worker->sources = DET_NEW_ARRAY(cli->allocator, count + 1, struct det_arch_text);
    if (!worker->texts || !worker->sources)
        return cli_no_memory(cli);
    for (size_t i = 0; i < count && code == CLI_OK; i++) {
        if (cli_has_suffix(paths[i], CLI_SOURCE_SUFFIX) && !is_known(worker, paths[i]))
            code = add_source(cli, paths[i], worker);
    }
    if (code == CLI_OK && name_beside(path, beside, sizeof beside) && cli_is_there(beside) &&
        !is_known(worker, beside))
        code = add_source(cli, beside, worker);
    return code;
}

int cli_worker_open(
    struct cli *cli, const char *path, const char *const *paths, struct cli_worker *ret)
{
    struct det_arch_text text;
    int code, r;

    det_assert(cli_has_suffix(path, CLI_WORKER_SUFFIX));
    *ret = (struct cli_worker){ .spec = NULL };
    code = read_spec(cli, path, ret);
    if (code != CLI_OK || !det_worker_spec_is_valid(ret->spec))
        return code;
    code = read_sources(cli, path, paths, ret);
    if (code != CLI_OK)
        return code;
    text = (struct det_arch_text){ path, ret->text.data, ret->text.size };
    r = det_arch_check(
        ret->spec, &text, ret->sources, ret->source_count, cli->allocator, &ret->arch);
    return r < 0 ? cli_no_memory(cli) : CLI_OK;
}

/* The caller sees a constant; the memory is ours. */
static void free_name(struct cli *cli, const char *name)
{
    char *bytes;

    memcpy(&bytes, &name, sizeof bytes);
    det_free_string(cli->allocator, bytes);
}

void cli_worker_close(struct cli *cli, struct cli_worker *worker)
{
    det_arch_close(worker->arch);
    det_worker_spec_close(worker->spec);
    for (size_t i = 0; i < worker->source_count; i++) {
        free_name(cli, worker->sources[i].path);
        cli_text_free(cli, &worker->texts[i]);
    }
    DET_DELETE_ARRAY(cli->allocator, worker->sources, worker->source_capacity);
    DET_DELETE_ARRAY(cli->allocator, worker->texts, worker->source_capacity);
    if (worker->text.data)
        cli_text_free(cli, &worker->text);
}

static void report_source(struct cli *cli, const struct det_arch_finding *finding)
{
    const struct det_arch_rule_text *rule = det_arch_rule_text(finding->rule);

    cli_report_remark(
        cli, &(struct cli_remark){ .severity = rule->severity,
                                   .rule = rule->id,
                                   .place = finding->place,
                                   .text = finding->text,
                                   .why = rule->why,
                                   .example = rule->example });
}

bool cli_worker_report(
    struct cli *cli, const char *path, const struct cli_worker *worker, bool is_strict,
    struct cli_worker_count *count)
{
    const struct det_diagnostics *found = det_worker_spec_diagnostics(worker->spec);
    struct cli_worker_count own = { found->error_count, found->warning_count };

    for (size_t i = 0; i < found->count; i++)
        cli_report(cli, path, &found->items[i]);
    if (worker->arch) {
        const struct det_arch_report *report = det_arch_report(worker->arch);

        for (size_t i = 0; i < report->count; i++)
            report_source(cli, &report->findings[i]);
        own.errors += report->error_count;
        own.warnings += report->warning_count;
        if (worker->source_count && !report->state_functions)
            cli_print_error(
                cli, "%s: note: none of its functions is in %s\n", path,
                worker->source_count == 1 ? worker->sources[0].path : "the sources");
    }
    count->errors += own.errors;
    count->warnings += own.warnings;
    return own.errors || (is_strict && own.warnings);
}
