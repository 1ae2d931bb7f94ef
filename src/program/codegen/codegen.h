/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* codegen.h - the output of `detent gen` for a definition, and its treatment of existing files. */
#ifndef DET_CODEGEN_CODEGEN_H
#define DET_CODEGEN_CODEGEN_H

#include <detent/tool/flow_spec.h>
#include <detent/tool/spec.h>

#include "base/buffer.h"
#include "base/text.h"
#include "terminal/terminal.h"
#include "testing/case.h"

/* c_source.c: NAME.h, which declares the machine, and NAME.c, with a stub for every named function.
 */
void gen_header(struct det_buffer *buffer, const struct det_spec *spec);
void gen_source(struct det_buffer *buffer, struct det_spec *spec);
/* The header of shared records, in the file `path`. */
void gen_records(struct det_buffer *buffer, const struct det_spec *spec, const char *path);
/* "shop" of "a/shop.rec": what comes before the suffix in the last part of the path. */
size_t gen_stem(const char *path, const char **ret);

/* A function that a spec names, and whether a file defines it; in order of kinds. */
struct gen_stub {
    unsigned kind; /* enum case_function; from CASE_FUNCTION_COUNT on enum det_spec_role; of a flow
                    * its role for the stage `index` */
    size_t index;
    const char *name;
    bool is_there;
};
#define GEN_KINDS (CASE_FUNCTION_COUNT + DET_SPEC_INVARIANT + 1)
/* Lists all functions as missing; `ret` has room for gen_stub_count(). */
size_t gen_stub_count(struct det_spec *spec);
void gen_stubs_list(struct det_spec *spec, struct gen_stub *ret);
/* Marks the functions that the text of a C file defines. */
void gen_stubs_find(struct gen_stub *stubs, size_t count, struct det_view text);
/* Appends the text of a stub. */
void gen_stub_append(struct det_buffer *buffer, struct det_spec *spec, const struct gen_stub *stub);

/* c_component.c: the same for the machine of a component. */
void gen_component_stub_put(
    struct det_buffer *buffer, struct det_spec *spec, const struct gen_stub *stub);
/* Appends the struct of its context. */
void gen_component_context(struct det_buffer *buffer, const struct det_spec *spec);

/* c_flow.c: the same for a flow. The names of its functions are made of those of its stages. */
struct gen_flow_name {
    char text[96];
};
size_t gen_flow_stub_count(const struct det_flow_spec *spec);
/* `names` has room for as many as `ret`, and lives as long. */
void gen_flow_stubs_list(
    const struct det_flow_spec *spec, struct gen_stub *ret, struct gen_flow_name *names);
void gen_flow_stub_append(
    struct det_buffer *buffer, const struct det_flow_spec *spec, const struct gen_stub *stub);
void gen_flow_header(struct det_buffer *buffer, const struct det_flow_spec *spec);
void gen_flow_source(
    struct det_buffer *buffer, const struct det_flow_spec *spec, const struct gen_stub *stubs,
    size_t count);
/* The header of shared records of a flow. */
void gen_flow_records(
    struct det_buffer *buffer, const struct det_flow_spec *spec, const char *path);

/* c_functions.c: each function that a C file defines, and each #define. */
typedef void gen_function_fn(void *context, struct det_view name);
void gen_functions(struct det_view text, gen_function_fn *found, void *context);

/* generated_files.c: writes the files. */
struct gen {
    struct cli *cli;
    const char *folder; /* NULL: the current one */
    bool is_forced, is_appended;
    struct gen_product *products;
    size_t count;
    struct gen_stub *stubs; /* of the C file; NULL: none */
    size_t stub_count;
    struct det_spec *spec;
    const struct det_flow_spec *flow; /* instead of `spec` */
    struct gen_flow_name *names;      /* of its functions */
};
DET_MUST_CHECK int gen_open(struct gen *gen);
void gen_close(struct gen *gen);
/* Adds a file; returns the buffer of its text. */
struct det_buffer *gen_add(struct gen *gen, const char *stem, size_t size, const char *suffix);
/* Writes the missing files, or all if forced. Of an existing C file only the missing stubs are
 * printed or appended. Returns an exit code. */
DET_MUST_CHECK int gen_write(struct gen *gen);

/* json_model.c: the definition as members of the object that is open. */
void gen_json(struct det_json_writer *json, struct det_spec *spec);

/* promela.c: the definition as a step for the model checker Spin. */
void gen_promela(struct det_buffer *buffer, struct det_spec *spec);

#endif
