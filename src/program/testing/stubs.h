/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stubs.h - stand-ins for the C functions that a definition names, for machines that were read from
 * a file and run without C: by `test` and `sim`.
 *
 * Such a function has only its arguments, so each gets a separate function from a table, which
 * knows its index and calls the installed stubs. */
#ifndef DET_TESTING_STUBS_H
#define DET_TESTING_STUBS_H

#include <detent/tool/builder.h>

/* Functions of one kind that a machine may name here. */
#define CLI_STUBS_MAX 256

/* The stand-ins; `index` is the index of the function among those of its kind, in order of
 * declaration. */
struct cli_stubs {
    bool (*guard)(void *context, unsigned index, const void *data, const void *event);
    int (*hook)(void *context, unsigned index, const void *data, const void *event);
    void (*update)(void *context, unsigned index, void *data, const void *event);
    void (*fill)(void *context, unsigned index, const struct det_move *move, void *event);
    int (*effect)(void *context, unsigned index, const struct det_effect_call *call, void *ret);
    void *context;
};

/* Binds every named function of the machine. DET_ERR_LIMIT when there are too many of a kind. */
DET_MUST_CHECK int cli_stubs_bind(struct det_machine *machine, struct det_error *reterr);
/* Installs stubs for all bound machines; NULL: none, and no machine may run. Machines run in
 * simulated worlds on one thread, one after the other. */
void cli_stubs_use(const struct cli_stubs *stubs);

#endif
