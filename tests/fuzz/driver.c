/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* driver.c - runs a fuzz target without libFuzzer: every file of its corpus, then seeded mutations
 * of them, the same on every run.
 *
 *     fuzz_record_json tests/fuzz/corpus/record_json [mutations [seed]]
 *
 * An empty corpus is a failure: it would prove nothing. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATIONS 200000
#define INPUT_MAX 65536
#define FILES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
    uint8_t *data;
    size_t size;
};

struct corpus {
    struct input inputs[FILES_MAX];
    size_t count;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * UINT64_C(0x2545F4914F6CDD1D) >> 16;
}

/* Gives the target a copy that ends where the input does, so that reading on is found. */
static void run(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);

    if (!exact)
        abort();
    memcpy(exact, data, size);
    (void)LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static int load(struct corpus *corpus, const char *folder, const char *name)
{
    struct input *input = &corpus->inputs[corpus->count];
    char path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    file = fopen(path, "rb");
    if (!file)
        return -1;
    input->data = malloc(INPUT_MAX);
    if (!input->data)
        abort();
    input->size = fread(input->data, 1, INPUT_MAX, file);
    fclose(file);
    corpus->count++;
    return 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* In the order of the names, so that a seed means the same everywhere. */
static int load_all(struct corpus *corpus, const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name), r = count < 0 ? -1 : 0;

    for (int i = 0; i < count; i++) {
        if (r == 0 && entries[i]->d_name[0] != '.' && corpus->count < FILES_MAX)
            r = load(corpus, folder, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return r;
}

/* Changes, removes, doubles or inserts a few bytes; returns the new size. */
static size_t mutate_once(uint8_t *data, size_t size, uint64_t *seed)
{
    size_t at = size ? next_random(seed) % size : 0;
    size_t part = size ? 1 + next_random(seed) % (size - at < 8 ? size - at : 8) : 0;

    switch (next_random(seed) % 5) {
    case 0:
        if (size)
            data[at] ^= (uint8_t)(1u << next_random(seed) % 8);
        return size;
    case 1:
        if (size)
            data[at] = (uint8_t)next_random(seed);
        return size;
    case 2:
        memmove(data + at, data + at + part, size - at - part);
        return size - part;
    case 3:
        if (size + part > INPUT_MAX)
            return size;
        memmove(data + at + part, data + at, size - at);
        return size + part;
    default:
        if (size == INPUT_MAX)
            return size;
        memmove(data + at + 1, data + at, size - at);
        data[at] = (uint8_t)next_random(seed);
        return size + 1;
    }
}

static void run_mutation(const struct corpus *corpus, uint64_t *seed)
{
    static uint8_t data[INPUT_MAX];
    const struct input *from = &corpus->inputs[next_random(seed) % corpus->count];
    uint64_t steps = 1 + next_random(seed) % 4;
    size_t size = from->size;

    memcpy(data, from->data, size);
    for (uint64_t i = 0; i < steps; i++)
        size = mutate_once(data, size, seed);
    run(data, size);
}

int main(int argc, char **argv)
{
    static struct corpus corpus;
    uint64_t mutations = argc > 2 ? strtoull(argv[2], NULL, 10) : MUTATIONS;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) | 1 : 1;

    if (argc < 2 || load_all(&corpus, argv[1]) < 0 || corpus.count == 0) {
        fprintf(stderr, "usage: %s folder-with-a-corpus [mutations [seed]]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < corpus.count; i++)
        run(corpus.inputs[i].data, corpus.inputs[i].size);
    for (uint64_t i = 0; i < mutations; i++)
        run_mutation(&corpus, &seed);
    printf("%zu files, %llu mutations\n", corpus.count, (unsigned long long)mutations);
    for (size_t i = 0; i < corpus.count; i++)
        free(corpus.inputs[i].data);
    return 0;
}
