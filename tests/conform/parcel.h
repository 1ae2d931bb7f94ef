/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parcel.h - the machine of the suite, its values, and variants of it. */
#ifndef DET_CONFORM_PARCEL_H
#define DET_CONFORM_PARCEL_H

#include <detent/driver/store.h>
#include <detent/runtime.h>
#include <detent/tool/spec.h>

#define FSM_SPEC "conform/parcel.fsm"
#include <detent/fsm/declare.h>

/* Its named timers, by their place in the definition; effects likewise. */
enum { PARCEL_REMINDER, PARCEL_DEADLINE };
enum { PARCEL_PRINT_LABEL, PARCEL_TELL_OWNER };

/* An event of a kind, and data, whose content follows from `number`: equal for equal numbers. */
struct parcel_event parcel_value(unsigned kind, uint64_t number);
struct parcel_data parcel_data_value(uint64_t number);
/* Compares by fields; NULL is an event of that kind with a zero payload. */
bool parcel_value_equal(uint16_t kind, const struct parcel_event *a, const struct parcel_event *b);
bool parcel_data_equal(const struct parcel_data *a, const struct parcel_data *b);

/* The definition with some of its text replaced: pairs of old and new, NULL at the end. The machine
 * belongs to the spec. */
struct det_spec *parcel_variant(const char *const *replacements);

#endif
