/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* generated_files.c - writes the files of `gen`: missing files are written, existing ones stay as
 * they are without --force. For the C file, which users edit, missing stubs are printed, or
 * appended with --append. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "base/memory.h"
#include "base/text.h"
#include "codegen/codegen.h"
#include "os/os.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "json/writer.h"

#define FILES_MAX  64
#define SOURCE_MAX 16777216

/* A file to be written. */
struct gen_product {
    char path[DET_PATH_MAX];
    struct det_buffer text;
    bool is_there;
};

int gen_open(struct gen *gen)
{
    gen->products = DET_NEW_ARRAY(gen->cli->allocator, FILES_MAX, struct gen_product);
    return gen->products ? CLI_OK : cli_no_memory(gen->cli);
}

void gen_close(struct gen *gen)
{
    det_assert(gen->count <= FILES_MAX);
    for (size_t i = 0; i < gen->count; i++)
        det_buffer_deinit(&gen->products[i].text);
    DET_DELETE_ARRAY(gen->cli->allocator, gen->products, FILES_MAX);
    DET_DELETE_ARRAY(gen->cli->allocator, gen->stubs, gen->stub_count);
    DET_DELETE_ARRAY(gen->cli->allocator, gen->names, gen->stub_count);
}

struct det_buffer *gen_add(struct gen *gen, const char *stem, size_t size, const char *suffix)
{
    struct gen_product *product = &gen->products[gen->count];
    struct stat status;

    if (gen->count == FILES_MAX)
        return NULL;
    snprintf(
        product->path, sizeof product->path, "%s%s%.*s%s", gen->folder ? gen->folder : "",
        gen->folder ? "/" : "", (int)size, stem, suffix);
    product->is_there = lstat(product->path, &status) == 0;
    det_buffer_init(&product->text, gen->cli->allocator);
    gen->count++;
    return &product->text;
}

static int make_folder(struct gen *gen)
{
    if (!gen->folder || mkdir(gen->folder, 0777) == 0 || errno == EEXIST)
        return CLI_OK;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    cli_report_error(gen->cli, "cannot create the folder %s: %s", gen->folder, strerror(errno));
    return CLI_FAILURE;
}

static size_t count_missing(const struct gen *gen)
{
    size_t missing = 0;

    for (size_t i = 0; i < gen->stub_count; i++)
        missing += !gen->stubs[i].is_there;
    return missing;
}

/* Appends the missing stubs to the text. */
static void put_missing(struct gen *gen, struct det_buffer *text)
{
    for (size_t i = 0; i < gen->stub_count; i++) {
        if (gen->stubs[i].is_there)
            continue;
        if (gen->flow)
            gen_flow_stub_append(text, gen->flow, &gen->stubs[i]);
        else
            gen_stub_append(text, gen->spec, &gen->stubs[i]);
    }
}

static int append_missing(struct gen *gen, const char *path, const struct cli_text *source)
{
    struct det_buffer text;
    int code;

    det_buffer_init(&text, gen->cli->allocator);
    det_buffer_append(&text, source->data, source->size);
    if (source->size && source->data[source->size - 1] != '\n')
        det_buffer_append_char(&text, '\n');
    put_missing(gen, &text);
    code = det_buffer_status(&text) < 0
               ? cli_no_memory(gen->cli)
               : cli_file_write(gen->cli, path, det_buffer_text(&text), text.size);
    if (code == CLI_OK)
        cli_report_file(gen->cli, path, "appended", false);
    det_buffer_deinit(&text);
    return code;
}

static void print_missing_json(struct gen *gen, const char *path, const struct det_buffer *text)
{
    struct det_json_writer json;

    cli_json_begin(gen->cli, &json, "file");
    det_json_text(&json, "file", path);
    det_json_text(&json, "state", "kept");
    det_json_open(&json, "missing", '[');
    for (size_t i = 0; i < gen->stub_count; i++) {
        if (!gen->stubs[i].is_there)
            det_json_text(&json, NULL, gen->stubs[i].name);
    }
    det_json_close(&json, ']');
    det_json_text(&json, "stubs", det_buffer_text(text));
    cli_json_end(gen->cli, &json);
}

static int print_missing(struct gen *gen, const char *path)
{
    struct cli *cli = gen->cli;
    struct det_buffer text;
    int code = CLI_OK;

    det_buffer_init(&text, cli->allocator);
    put_missing(gen, &text);
    if (det_buffer_status(&text) < 0)
        code = cli_no_memory(cli);
    else if (cli->is_json)
        print_missing_json(gen, path, &text);
    else
        cli_write(cli, det_buffer_text(&text), text.size);
    det_buffer_deinit(&text);
    return code;
}

/* Reports the number of missing functions, after the stubs. */
static void print_missing_file(struct gen *gen, const char *path, size_t missing)
{
    det_assert(missing <= gen->stub_count);
    if (gen->cli->is_json)
        return;
    if (missing == 0)
        cli_print_error(gen->cli, "%s is kept: it has all functions that the spec names\n", path);
    else
        cli_print_error(
            gen->cli, "%s is kept: it lacks %zu of %zu function%s; %s\n", path, missing,
            gen->stub_count, det_plural(gen->stub_count),
            gen->is_appended ? "their stubs were added at its end"
                             : "these are their stubs; --append adds them");
}

/* The C file exists. */
static int update_source(struct gen *gen, const char *path)
{
    struct cli_text source;
    int code = cli_text_read(gen->cli, path, SOURCE_MAX, &source);
    size_t missing;

    if (code != CLI_OK)
        return code;
    det_assert(gen->stubs && (gen->spec || gen->flow) && !gen->is_forced);
    gen_stubs_find(gen->stubs, gen->stub_count, det_view_of(source.data, source.size));
    missing = count_missing(gen);
    code =
        missing && gen->is_appended ? append_missing(gen, path, &source) : print_missing(gen, path);
    if (code == CLI_OK)
        print_missing_file(gen, path, missing);
    cli_text_free(gen->cli, &source);
    return code;
}

static bool has_define(struct gen *gen, const char *path)
{
    const char *template = gen->flow ? "detent/flow/define.h" : "detent/fsm/define.h";
    struct cli_text source;
    bool has;

    if (cli_text_load(gen->cli, path, SOURCE_MAX, &source, NULL) < 0)
        return true; /* update_source() reports the error */
    has = memmem(source.data, source.size, template, strlen(template)) != NULL;
    cli_text_free(gen->cli, &source);
    return has;
}

/* With stubs, an existing C file must be that of a machine, and headers are kept. Otherwise no file
 * may exist. */
static int check_there(struct gen *gen)
{
    for (size_t i = 0; i < gen->count && !gen->is_forced; i++) {
        const char *path = gen->products[i].path;
        bool is_source = gen->stubs && cli_has_suffix(path, ".c");

        if (!gen->products[i].is_there || (gen->stubs && !is_source))
            continue;
        if (is_source && has_define(gen, path))
            continue;
        cli_report_error(
            gen->cli,
            "%s already exists%s; nothing was written (--force overwrites, --output "
            "FOLDER writes elsewhere)",
            path,
            !is_source  ? ""
            : gen->flow ? " and is not the file of a flow"
                        : " and is not the file of a machine");
        return CLI_CONFLICT;
    }
    return CLI_OK;
}

static int write_product(struct gen *gen, struct gen_product *product, bool is_talk)
{
    struct cli *cli = gen->cli;
    int code;

    if (det_buffer_status(&product->text) < 0)
        return cli_no_memory(cli);
    if (product->is_there && !gen->is_forced) {
        if (gen->stubs && cli_has_suffix(product->path, ".c"))
            return update_source(gen, product->path);
        cli_report_file(cli, product->path, "kept", true);
        return CLI_OK;
    }
    code = cli_file_write(cli, product->path, det_buffer_text(&product->text), product->text.size);
    if (code == CLI_OK)
        cli_report_file(cli, product->path, "written", is_talk);
    return code;
}

/* If stubs are printed to the output, the names of files are messages. */
int gen_write(struct gen *gen)
{
    bool has_stubs = false;
    int code = check_there(gen);

    for (size_t i = 0; i < gen->count; i++)
        has_stubs = has_stubs || (gen->stubs && gen->products[i].is_there && !gen->is_forced &&
                                  !gen->is_appended && cli_has_suffix(gen->products[i].path, ".c"));
    if (code == CLI_OK)
        code = make_folder(gen);
    for (size_t i = 0; i < gen->count && code == CLI_OK; i++)
        code = write_product(gen, &gen->products[i], has_stubs);
    return code;
}
