/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate.h - the pieces of work whose instructions are counted.
 *
 * Each gate makes ready, calls gate_measured() once with the work, and takes down. Callgrind counts
 * while gate_measured() runs and at no other time. The work is the same in every run: no clock, no
 * chance, no thread takes part. */
#ifndef GATE_H
#define GATE_H

#include <detent/base.h>

/* The work: `operations` times whatever it is. 0 or a negative error. */
typedef int gate_work_fn(void *argument, unsigned operations);

DET_MUST_CHECK int gate_measured(gate_work_fn *work, void *argument, unsigned operations);

/* Results that are used are not optimised away. */
void gate_use(uint64_t value);

#define GATE(name, operations) DET_MUST_CHECK int gate_##name(unsigned);
#include "gates.def"
#undef GATE

#endif
