/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gen.c - `detent gen`: generates C, JSON or a Promela model from a definition. */
#include "base/assert.h"
#include "codegen/codegen.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "config/flow_spec_file.h"
#include "terminal/args.h"
#include "terminal/input.h"
#include "terminal/report.h"
#include "json/writer.h"

enum { OPTION_OUTPUT, OPTION_FORCE, OPTION_APPEND };

static const struct cli_option option_table[] = {
    [OPTION_OUTPUT] = { "output", 'o', "FOLDER", NULL,
                        "folder of the files; created if necessary" },
    [OPTION_FORCE] = { "force", 0, NULL, NULL, "overwrite existing files" },
    [OPTION_APPEND] = { "append", 0, NULL, NULL,
                        "append missing stubs to the C file instead of printing them" },
    { NULL, 0, NULL, NULL, NULL },
};

static int generate_c(struct gen *gen, struct det_spec *spec)
{
    const char *stem, *path;
    size_t size = gen_stem(det_spec_file(spec, 0), &stem);
    struct det_buffer *text;

    gen->spec = spec;
    gen->stub_count = gen_stub_count(gen->spec);
    gen->stubs = DET_NEW_ARRAY(gen->cli->allocator, gen->stub_count, struct gen_stub);
    if (!gen->stubs)
        return cli_no_memory(gen->cli);
    gen_stubs_list(gen->spec, gen->stubs);
    text = gen_add(gen, stem, size, ".h");
    if (text)
        gen_header(text, spec);
    text = gen_add(gen, stem, size, ".c");
    if (text)
        gen_source(text, spec);
    for (size_t i = 1; (path = det_spec_file(spec, i)); i++) {
        if (!cli_has_suffix(path, CLI_RECORDS_SUFFIX))
            continue;
        size = gen_stem(path, &stem);
        text = gen_add(gen, stem, size, ".h");
        if (text)
            gen_records(text, spec, path);
    }
    return gen_write(gen);
}

static int generate_flow(struct gen *gen, const struct det_flow_spec *spec)
{
    const char *stem, *path;
    size_t size = gen_stem(det_flow_spec_file(spec, 0), &stem);
    struct det_buffer *text;

    gen->flow = spec;
    gen->stub_count = gen_flow_stub_count(spec);
    gen->stubs = DET_NEW_ARRAY(gen->cli->allocator, gen->stub_count, struct gen_stub);
    gen->names = DET_NEW_ARRAY(gen->cli->allocator, gen->stub_count, struct gen_flow_name);
    if (!gen->stubs || !gen->names)
        return cli_no_memory(gen->cli);
    gen_flow_stubs_list(spec, gen->stubs, gen->names);
    text = gen_add(gen, stem, size, ".h");
    if (text)
        gen_flow_header(text, spec);
    text = gen_add(gen, stem, size, ".c");
    if (text)
        gen_flow_source(text, spec, gen->stubs, gen->stub_count);
    for (size_t i = 1; (path = det_flow_spec_file(spec, i)); i++) {
        if (!cli_has_suffix(path, CLI_RECORDS_SUFFIX))
            continue;
        size = gen_stem(path, &stem);
        text = gen_add(gen, stem, size, ".h");
        if (text)
            gen_flow_records(text, spec, path);
    }
    return gen_write(gen);
}

static int write_json(struct gen *gen, struct det_spec *spec, const struct det_buffer *text)
{
    const char *name = det_spec_machine(spec)->name;
    struct det_buffer *buffer;

    if (det_buffer_status(text) < 0)
        return cli_no_memory(gen->cli);
    if (!gen->folder) {
        cli_write(gen->cli, det_buffer_text(text), text->size);
        cli_write(gen->cli, "\n", 1);
        return CLI_OK;
    }
    buffer = gen_add(gen, name, strlen(name), ".json");
    if (buffer) {
        det_buffer_append(buffer, det_buffer_text(text), text->size);
        det_buffer_append_char(buffer, '\n');
    }
    return gen_write(gen);
}

static int generate_json(struct gen *gen, struct det_spec *spec)
{
    struct det_json_writer json;
    int code;

    det_json_writer_init(&json, gen->cli->allocator);
    json.indent = gen->cli->is_json ? 0 : 2;
    det_json_open(&json, NULL, '{');
    gen_json(&json, spec);
    det_json_close(&json, '}');
    code = write_json(gen, spec, &json.text);
    det_json_writer_deinit(&json);
    return code;
}

static int generate_promela(struct gen *gen, struct det_spec *spec)
{
    const char *name = det_spec_machine(spec)->name;
    struct det_buffer text, *buffer;
    int code;

    if (gen->folder) {
        buffer = gen_add(gen, name, strlen(name), ".pml");
        if (buffer)
            gen_promela(buffer, spec);
        return gen_write(gen);
    }
    det_buffer_init(&text, gen->cli->allocator);
    gen_promela(&text, spec);
    code = det_buffer_status(&text) < 0
               ? cli_no_memory(gen->cli)
               : cli_report_text(gen->cli, NULL, det_buffer_text(&text), text.size);
    det_buffer_deinit(&text);
    return code;
}

/* Kinds of output; WORDS is for the completion. */
#define WORDS "c json promela"
static const struct {
    const char *word;
    int (*generate)(struct gen *gen, struct det_spec *spec);
} kinds[] = {
    { "c", generate_c },
    { "json", generate_json },
    { "promela", generate_promela },
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static size_t find_kind(const char *word)
{
    size_t i = 0;

    while (i < KINDS && strcmp(kinds[i].word, word) != 0)
        i++;
    return i;
}

/* Of a machine or of a flow; the other one is NULL. */
static int generate(
    struct cli *cli, const struct cli_args *args, struct det_spec *spec,
    const struct det_flow_spec *flow)
{
    struct gen gen = {
        .cli = cli,
        .folder = args->values[OPTION_OUTPUT],
        .is_forced = args->values[OPTION_FORCE] != NULL,
        .is_appended = args->values[OPTION_APPEND] != NULL,
    };
    size_t kind = find_kind(args->operands[0]);
    int code = gen_open(&gen);

    det_assert(kind < KINDS);
    if (code == CLI_OK)
        code = flow ? generate_flow(&gen, flow) : kinds[kind].generate(&gen, spec);
    gen_close(&gen);
    return code;
}

static int run_for_flow(struct cli *cli, const struct cli_args *args)
{
    const char *path = args->operands[1];
    struct det_flow_spec *spec = NULL;
    int code;

    if (kinds[find_kind(args->operands[0])].generate != generate_c) {
        cli_report_error(cli, "%s is a flow, for which only C is generated", path);
        return CLI_USAGE;
    }
    code = cli_flow_spec_load(cli, path, &spec);
    if (code != CLI_OK)
        return code;
    if (det_flow_spec_flow(spec)) {
        code = generate(cli, args, NULL, spec);
    } else {
        cli_report_broken(cli, path, det_flow_spec_diagnostics(spec));
        cli_report_error(cli, "%s is not a valid flow; run 'detent check'", path);
        code = CLI_USAGE;
    }
    det_flow_spec_close(spec);
    return code;
}

static int run_command(struct cli *cli, const struct cli_args *args)
{
    const char *what = args->operands[0];
    char hint[CLI_CHOICE_TEXT];
    struct det_spec *spec;
    int code;

    if (find_kind(what) == KINDS) {
        cli_report_error(
            cli, "unknown output '%s': use c, json or promela%s", what,
            cli_choice_hint(WORDS, what, hint));
        return CLI_USAGE;
    }
    if (cli_has_suffix(args->operands[1], CLI_FLOW_SUFFIX))
        return run_for_flow(cli, args);
    code = cli_machine_load(cli, args->operands[1], &spec);
    if (code != CLI_OK)
        return code;
    code = generate(cli, args, spec, NULL);
    det_spec_close(spec);
    return code;
}

extern const struct cli_command cli_command_gen;
const struct cli_command cli_command_gen = {
    .name = "gen",
    .summary = "generate C, JSON or a Promela model from a definition",
    .about = "'gen c' writes NAME.h and NAME.c with a stub for every function that the spec\n"
             "names, and a header for every .rec file that it USES. They compile unchanged if\n"
             "the folder of the spec is on the include path. Existing files are kept, and the\n"
             "stubs that NAME.c lacks are printed; --append appends them. The stub of an effect\n"
             "that may answer fails until it is implemented, so that no machine waits for ever.\n"
             "'gen json' prints the definition as data, with lists and overrides resolved; with\n"
             "--output it writes NAME.json. 'gen promela' prints the table as a step for the\n"
             "model checker Spin, or writes NAME.pml; the model that includes it defines guards\n"
             "and actions.\n"
             "\n"
             "For a .flow file, 'gen c' writes the functions of the stages without a connector.",
    .operand = { .form = "c|json|promela FILE",
                 .least = 2,
                 .most = 2,
                 .suffix = ".fsm",
                 .words = WORDS },
    .options = option_table,
    .run = run_command,
};
