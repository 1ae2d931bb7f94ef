/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved_names.h - names that a definition must not use, because C or the templates use them. */
#ifndef DET_MACHINE_RESERVED_NAMES_H
#define DET_MACHINE_RESERVED_NAMES_H

#include <stdbool.h>

/* What C or the templates use this name for, such as "a keyword of C"; NULL when it is free. */
const char *det_name_use(const char *name);
/* The same for the name of a function, which cannot be that of a row either. */
const char *det_function_name_use(const char *name);
/* Whether <machine>_<name> is a name in C that fsm/declare.h makes, so that the constructor of an
 * event called so would clash with it. */
bool det_is_taken_by_template(const char *name, bool is_component);

#endif
