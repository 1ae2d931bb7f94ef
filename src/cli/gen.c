/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gen.c - `detent gen`: C or JSON made of a definition. */
#include "cli/gen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/command.h"
#include "cli/input.h"
#include "os/os.h"

#define FILES_MAX 64

enum { OPTION_OUTPUT, OPTION_FORCE };

static const struct cli_option option_table[] = {
    [OPTION_OUTPUT] = { "output", 'o', "FOLDER", NULL,
                        "where the files go; it is made if need be" },
    [OPTION_FORCE] = { "force", 0, NULL, NULL, "overwrite files that are there" },
    { NULL, 0, NULL, NULL, NULL },
};

/* A file on its way to the disk. */
struct product {
    char path[DET_PATH_MAX];
    struct det_buffer text;
};

struct gen {
    struct cli *cli;
    const struct cli_args *args;
    struct product *products; /* FILES_MAX */
    size_t count;
};

static struct det_buffer *add_product(
    struct gen *gen, const char *stem, size_t size, const char *suffix)
{
    const char *folder = gen->args->values[OPTION_OUTPUT];
    struct product *product = &gen->products[gen->count];

    if (gen->count == FILES_MAX)
        return NULL;
    snprintf(
        product->path, sizeof product->path, "%s%s%.*s%s", folder ? folder : "", folder ? "/" : "",
        (int)size, stem, suffix);
    det_buffer_init(&product->text, gen->cli->allocator);
    gen->count++;
    return &product->text;
}

/* Stubs are there to be filled in: what a person wrote is not overwritten by accident. */
static int check_free(struct gen *gen)
{
    struct stat status;

    for (size_t i = 0; i < gen->count && !gen->args->values[OPTION_FORCE]; i++) {
        if (lstat(gen->products[i].path, &status) == 0) {
            cli_complain(
                gen->cli, "%s is already there; nothing was written (--force overwrites)",
                gen->products[i].path);
            return CLI_CONFLICT;
        }
    }
    return CLI_OK;
}

static int make_folder(struct gen *gen)
{
    const char *folder = gen->args->values[OPTION_OUTPUT];

    if (!folder || mkdir(folder, 0777) == 0 || errno == EEXIST)
        return CLI_OK;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    cli_complain(gen->cli, "cannot make the folder %s: %s", folder, strerror(errno));
    return CLI_FAILURE;
}

static int write_products(struct gen *gen)
{
    struct cli *cli = gen->cli;
    int code = check_free(gen);

    if (code == CLI_OK)
        code = make_folder(gen);
    for (size_t i = 0; i < gen->count && code == CLI_OK; i++) {
        struct product *product = &gen->products[i];

        if (det_buffer_status(&product->text) < 0)
            return cli_no_memory(cli);
        code =
            cli_file_write(cli, product->path, det_buffer_text(&product->text), product->text.size);
        if (code == CLI_OK && cli->is_json)
            cli_json(
                cli, json_pack("{s:s, s:o}", "type", "file", "file", cli_json_text(product->path)));
        else if (code == CLI_OK)
            cli_print(cli, "%s\n", product->path);
    }
    return code;
}

static int generate_c(struct gen *gen, struct det_spec *spec)
{
    const char *stem, *path;
    size_t size = gen_stem(det_spec_file(spec, 0), &stem);
    struct det_buffer *text;

    text = add_product(gen, stem, size, ".h");
    if (text)
        gen_header(text, spec);
    text = add_product(gen, stem, size, ".c");
    if (text)
        gen_source(text, spec);
    for (size_t i = 1; (path = det_spec_file(spec, i)); i++) {
        if (!cli_has_suffix(path, CLI_RECORDS_SUFFIX))
            continue;
        size = gen_stem(path, &stem);
        text = add_product(gen, stem, size, ".h");
        if (text)
            gen_records(text, spec, path);
    }
    return write_products(gen);
}

static int generate_json(struct gen *gen, struct det_spec *spec)
{
    json_t *object = gen_json(spec);
    char *text = object ? json_dumps(object, gen->cli->is_json ? 0 : JSON_INDENT(2)) : NULL;
    int code = CLI_OK;

    json_decref(object);
    if (!text)
        return cli_no_memory(gen->cli);
    if (gen->args->values[OPTION_OUTPUT]) {
        struct det_buffer *buffer = add_product(
            gen, det_spec_machine(spec)->name, strlen(det_spec_machine(spec)->name), ".json");

        if (buffer) {
            det_buffer_append_text(buffer, text);
            det_buffer_append_char(buffer, '\n');
        }
        code = write_products(gen);
    } else {
        cli_write(gen->cli, text, strlen(text));
        cli_write(gen->cli, "\n", 1);
    }
    free(text);
    return code;
}

static int generate(struct cli *cli, const struct cli_args *args, struct det_spec *spec)
{
    struct gen gen = { .cli = cli, .args = args };
    int code;

    gen.products = calloc(FILES_MAX, sizeof *gen.products);
    if (!gen.products)
        return cli_no_memory(cli);
    code = strcmp(args->operands[0], "c") == 0 ? generate_c(&gen, spec) : generate_json(&gen, spec);
    for (size_t i = 0; i < gen.count; i++)
        det_buffer_deinit(&gen.products[i].text);
    free(gen.products);
    return code;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *what = args->operands[0];
    struct det_spec *spec;
    int code;

    if (strcmp(what, "c") != 0 && strcmp(what, "json") != 0) {
        cli_complain(cli, "gen makes c or json, not '%s': detent gen c FILE", what);
        return CLI_USAGE;
    }
    code = cli_machine_load(cli, args->operands[1], &spec);
    if (code != CLI_OK)
        return code;
    code = generate(cli, args, spec);
    det_spec_close(spec);
    return code;
}

extern const struct cli_command cli_command_gen;
const struct cli_command cli_command_gen = {
    .name = "gen",
    .summary = "make C or JSON of a definition",
    .about =
        "'gen c' writes NAME.h and NAME.c with a stub for every function that the spec names, and\n"
        "a header for every .rec file it USES; they compile as they are when the folder of the\n"
        "spec is on the include path. A stub of an effect that may answer fails until it is\n"
        "written, so that no machine waits for ever. 'gen json' prints the definition as data,\n"
        "lists and overrides resolved; with --output it writes NAME.json.",
    .operand = { .form = "c|json FILE",
                 .least = 2,
                 .most = 2,
                 .suffix = ".fsm",
                 .words = "c json" },
    .options = option_table,
    .run = run,
};
