/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* memo.c - a table of the next read, by the hash of all reads and their results before. */
#include "crash/memo.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "lib/test.h"

#define NAMES 8

/* The read after `before`, or the verdict if there is none. */
struct entry {
    uint64_t before; /* 0: free */
    uint64_t offset;
    uint32_t size;
    uint8_t ask, name;
    bool is_verdict; /* then `size` is its number */
};

struct crash_memo {
    struct entry *entries;
    size_t count, capacity; /* a power of two */
    char names[NAMES][CRASH_PATH_MAX + 1];
    unsigned name_count;
    struct crash_verdict *verdicts;
    size_t verdict_count, verdict_capacity;
    struct crash_model **models;
    size_t model_count;
    struct crash_disk *disk;   /* the observed disk; NULL: none */
    struct crash_disk *before; /* after the power cut */
    uint64_t received;
    bool is_lost; /* its reads differ from earlier ones after the same results */
};

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t seed = a ^ (b + UINT64_C(0x9e3779b97f4a7c15) + (a << 6) + (a >> 2));
    uint64_t mixed = det_test_random(&seed);

    return mixed ? mixed : 1;
}

struct crash_memo *crash_memo_open(void)
{
    struct crash_memo *memo = must(calloc(1, sizeof *memo));

    memo->before = must(calloc(1, sizeof *memo->before));
    memo->capacity = 4096;
    memo->entries = must(calloc(memo->capacity, sizeof *memo->entries));
    return memo;
}

void crash_memo_close(struct crash_memo *memo)
{
    for (size_t i = 0; i < memo->model_count; i++)
        free(memo->models[i]);
    crash_disk_deinit(memo->before);
    free(memo->before);
    free(memo->models);
    free(memo->verdicts);
    free(memo->entries);
    free(memo);
}

static struct entry *place_of(struct entry *entries, size_t capacity, uint64_t before)
{
    size_t at = (size_t)before & (capacity - 1);

    while (entries[at].before && entries[at].before != before)
        at = (at + 1) & (capacity - 1);
    return &entries[at];
}

static void grow(struct crash_memo *memo)
{
    size_t capacity = 2 * memo->capacity;
    struct entry *entries = must(calloc(capacity, sizeof *entries));

    for (size_t i = 0; i < memo->capacity; i++)
        if (memo->entries[i].before)
            *place_of(entries, capacity, memo->entries[i].before) = memo->entries[i];
    free(memo->entries);
    memo->entries = entries;
    memo->capacity = capacity;
}

/* The entry in the place of this one, perhaps of another. */
static const struct entry *remember(struct crash_memo *memo, const struct entry *entry)
{
    struct entry *place;

    if (2 * (memo->count + 1) > memo->capacity)
        grow(memo);
    place = place_of(memo->entries, memo->capacity, entry->before);
    if (!place->before) {
        *place = *entry;
        memo->count++;
    }
    return place;
}

static const struct crash_bytes *bytes_of(const struct crash_disk *disk, const char *path)
{
    for (unsigned i = 0; i < disk->name_count; i++)
        if (!strcmp(disk->names[i].path, path))
            return disk->names[i].node < 0 ? NULL : &disk->nodes[disk->names[i].node];
    return NULL;
}

static uint64_t answer(
    const struct crash_memo *memo, const struct crash_disk *disk, const struct entry *entry)
{
    const struct crash_bytes *bytes = bytes_of(disk, memo->names[entry->name]);
    size_t size = entry->size;

    if (!bytes)
        return 0;
    switch ((enum crash_ask)entry->ask) {
    case CRASH_ASK_EXISTS:
        return 1;
    case CRASH_ASK_SIZE:
        return 1 + bytes->size;
    case CRASH_ASK_BYTES:
        if (entry->offset >= bytes->size)
            return 1;
        if (size > bytes->size - entry->offset)
            size = (size_t)(bytes->size - entry->offset);
        return det_hash64(bytes->data + entry->offset, size, 0);
    }
    abort();
}

const struct crash_verdict *crash_memo_find(
    const struct crash_memo *memo, uint64_t start, const struct crash_disk *disk)
{
    uint64_t before = mix(1, start);

    for (;;) {
        const struct entry *entry = place_of(memo->entries, memo->capacity, before);

        if (!entry->before)
            return NULL;
        if (entry->is_verdict)
            return &memo->verdicts[entry->size];
        before = mix(before, answer(memo, disk, entry));
    }
}

void crash_memo_begin(struct crash_memo *memo, uint64_t start, struct crash_disk *disk)
{
    struct crash_disk *copy = memo->before;

    assert(!memo->disk);
    memcpy(copy->names, disk->names, sizeof copy->names);
    copy->name_count = disk->name_count;
    for (unsigned i = 0; i < disk->name_count; i++)
        if (disk->names[i].node >= 0)
            crash_bytes_copy(&copy->nodes[disk->names[i].node], &disk->nodes[disk->names[i].node]);
    memo->disk = disk;
    memo->received = mix(1, start);
    memo->is_lost = false;
    disk->memo = memo;
}

static uint8_t name_of(struct crash_memo *memo, const char *path)
{
    unsigned i = 0;

    while (i < memo->name_count && strcmp(memo->names[i], path) != 0)
        i++;
    if (i == memo->name_count) {
        assert(i < NAMES);
        snprintf(memo->names[i], sizeof memo->names[i], "%s", path);
        memo->name_count++;
    }
    return (uint8_t)i;
}

static bool is_same(const struct entry *a, const struct entry *b)
{
    return a->offset == b->offset && a->size == b->size && a->ask == b->ask && a->name == b->name &&
           a->is_verdict == b->is_verdict;
}

void crash_memo_read(
    struct crash_memo *memo, const char *path, enum crash_ask ask, uint64_t offset, size_t size)
{
    struct entry entry = { .before = memo->received,
                           .offset = offset,
                           .size = (uint32_t)size,
                           .ask = (uint8_t)ask,
                           .name = name_of(memo, path) };

    if (memo->is_lost)
        return;
    memo->is_lost = !is_same(remember(memo, &entry), &entry);
    memo->received = mix(memo->received, answer(memo, memo->before, &entry));
}

/* Keeps one copy of each. */
static const struct crash_model *keep_model(
    struct crash_memo *memo, const struct crash_model *model)
{
    for (size_t i = memo->model_count; i-- > 0;)
        if (!memcmp(memo->models[i], model, sizeof *model))
            return memo->models[i];
    memo->models = must(realloc(memo->models, (memo->model_count + 1) * sizeof *memo->models));
    memo->models[memo->model_count] = must(malloc(sizeof *model));
    memcpy(memo->models[memo->model_count], model, sizeof *model);
    return memo->models[memo->model_count++];
}

void crash_memo_end(struct crash_memo *memo, const struct crash_verdict *verdict)
{
    struct entry entry = { .before = memo->received,
                           .size = (uint32_t)memo->verdict_count,
                           .is_verdict = true };

    memo->disk->memo = NULL;
    memo->disk = NULL;
    if (memo->is_lost || remember(memo, &entry)->size != entry.size)
        return;
    if (memo->verdict_count == memo->verdict_capacity) {
        memo->verdict_capacity = memo->verdict_capacity ? 2 * memo->verdict_capacity : 64;
        memo->verdicts =
            must(realloc(memo->verdicts, memo->verdict_capacity * sizeof *memo->verdicts));
    }
    memo->verdicts[memo->verdict_count] = *verdict;
    if (verdict->model)
        memo->verdicts[memo->verdict_count].model = keep_model(memo, verdict->model);
    memo->verdict_count++;
}

bool crash_verdict_equals(const struct crash_verdict *a, const struct crash_verdict *b)
{
    if (a->result != b->result || a->findings != b->findings || !a->model != !b->model)
        return false;
    return !a->model || !memcmp(a->model, b->model, sizeof *a->model);
}
