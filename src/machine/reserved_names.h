/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* reserved_names.h - names that a definition must not use, because C or the templates use them. */
#ifndef DET_MACHINE_RESERVED_NAMES_H
#define DET_MACHINE_RESERVED_NAMES_H

#include <stdbool.h>

/* Returns the meaning of this name in C or the templates, such as "a keyword of C"; NULL: free. */
const char *det_name_use(const char *name);
/* The same for a function, whose name must not be that of a row either. */
const char *det_function_name_use(const char *name);
/* Returns true if fsm/declare.h declares <machine>_<name>, so that the constructor of an event with
 * this name would collide with it. */
bool det_is_taken_by_template(const char *name, bool is_component);

#endif
