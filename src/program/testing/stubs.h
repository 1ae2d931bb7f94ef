/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* stubs.h - stand-ins for the C functions that a definition names, for machines that were read from
 * a file and run without C: by `test` and `sim`.
 *
 * Such a function knows nothing but its arguments, so each gets a function of its own out of a
 * table; that one knows its number, and asks the stubs that are in force. */
#ifndef DET_TESTING_STUBS_H
#define DET_TESTING_STUBS_H

#include <detent/tool/builder.h>

/* Functions of one kind that a machine may name here. */
#define CLI_STUBS_MAX 256

/* What answers instead; `index` is the number of the function among those of its kind, in order of
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
/* Puts stubs in force for all machines that were bound; NULL: none, and nothing may run. Machines
 * run in simulated worlds on one thread, one after the other. */
void cli_stubs_use(const struct cli_stubs *stubs);

#endif
