/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* test.h - what every suite includes: cmocka, the failing allocator, and the loop over it. */
#ifndef DET_TEST_H
#define DET_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <detent/base.h>

/* An allocator that counts, checks sizes and leaks, poisons what it hands out and what it takes
 * back, and fails at a chosen call. It may be used by several threads at once. */
struct det_test_memory {
    struct det_allocator allocator; /* give &memory.allocator to the code under test */
    uint64_t calls;                 /* allocations and growths so far */
    uint64_t fail_at;               /* fail this call (from 1); 0: never */
    bool fail_sticky;               /* and all after it */
    bool failed;                    /* whether a failure was given */
    uint64_t live_blocks;
    uint64_t live_bytes;
    uint64_t peak_bytes;
    void *internal;
};

void det_test_memory_init(struct det_test_memory *memory);
/* Fails the test when a block is still live, naming how many and their sizes. */
void det_test_memory_deinit(struct det_test_memory *memory);

/* The n-th call from now on fails, and all after it if it is sticky; 0: none does. From any thread,
 * also while others allocate. Returns whether one has failed since this was last said. */
bool det_test_memory_fail(struct det_test_memory *memory, uint64_t number, bool is_sticky);

/* Runs `scenario` again and again: with no failure, then failing the 1st, 2nd, ... allocation,
 * once each and sticky each, until a run meets no failure. The scenario returns a result code; it
 * must be 0 when nothing failed, and either 0 or DET_ERR_NO_MEMORY when something did. Each run
 * must free all it took, and must assert itself that no half state is visible. */
typedef int det_test_scenario(struct det_test_memory *memory, void *argument);
void det_test_each_failure(det_test_scenario *scenario, void *argument);
/* The same for every `step`-th call, where a run of the scenario takes long. */
void det_test_some_failures(det_test_scenario *scenario, void *argument, uint64_t step);

/* Whether `function` ends the process by abort(): it is tried in a child, whose stderr must hold
 * `text` (NULL: anything). A failing test aborts there too. */
bool det_test_aborts(void (*function)(void *argument), void *argument, const char *text);

/* The next number of a seeded sequence, well mixed; any seed will do. The same on every machine. */
uint64_t det_test_random(uint64_t *seed);

/* Where tests make their folders: in memory where there is room, so that thousands of syncs take no
 * time; what must survive the loss of unsynced pages is tested by tests/crash. */
const char *det_test_place(void);
/* Replaces that place: a benchmark of stores measures a disk. `folder` stays the caller's. */
void det_test_place_use(const char *folder);
/* A fresh folder for this test, removed with all its content by det_test_folder_remove(). */
char *det_test_folder(void);
void det_test_folder_remove(char *folder);
/* A whole file; free() the result. Fails the test when it cannot be read. */
char *det_test_read_file(const char *path, size_t *ret_size);
void det_test_write_file(const char *path, const void *data, size_t size);

#endif
