/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* value.h - the machine of the plans, and its numbers as ids, texts, payloads and data. */
#ifndef DET_CRASH_VALUE_H
#define DET_CRASH_VALUE_H

#include <detent/driver/store.h>
#include <detent/machine.h>

#include "crash/model.h"

struct crash_note {
    uint64_t number;
    char text[1200];
};

/* Events: NOTE (0) carries a text, COUNT (1) a number, BARE (2) nothing. */
struct crash_value {
    unsigned kind;
    union {
        struct crash_note note;
        uint64_t count;
    } as __attribute__((aligned(8)));
};

struct crash_data {
    uint64_t number;
    char text[200];
};

/* The second version has one more state; in the third some names have changed, too. */
#define CRASH_VERSIONS 3
struct det_machine *crash_machine_open(unsigned version);
/* From the second to the third. */
const struct det_rename *crash_renames(size_t *ret_count);

void crash_value_make(struct crash_value *target, int64_t event, int64_t value);
int64_t crash_value_read(const void *event);
void crash_data_make(struct crash_data *target, int64_t number);
int64_t crash_data_read(const struct crash_data *data);

/* Texts of at most 31 bytes. */
void crash_text_make(char target[32], char letter, int64_t number);
/* NULL and "": 0. */
int64_t crash_text_read(const char *text, char letter);

#endif
