/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* gate.c - runs one gate by its name; without a name it lists them with their operations. */
#include "gate.h"

#include <stdio.h>
#include <string.h>

struct entry {
    const char *name;
    int (*run)(unsigned operations);
    unsigned operations;
};

static const struct entry entries[] = {
#define GATE(name, operations) { #name, gate_##name, operations },
#include "gates.def"
#undef GATE
};
#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

/* Kept whole under its own name: callgrind is told to count in this function. */
__attribute__((noinline)) int gate_measured(gate_work_fn *work, void *argument, unsigned operations)
{
    return work(argument, operations);
}

void gate_use(uint64_t value)
{
    static volatile uint64_t used;

    used = value;
    (void)used;
}

static void list(void)
{
    (void)printf("{\"compiler\": \"gcc %d\", \"operations\": {", __GNUC__);
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        (void)printf("%s\"%s\": %u", i ? ", " : "", entries[i].name, entries[i].operations);
    (void)printf("}}\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        list();
        return 0;
    }
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        int r;

        if (strcmp(entries[i].name, argv[1]) != 0)
            continue;
        r = entries[i].run(entries[i].operations);
        if (r < 0)
            (void)fprintf(stderr, "%s: %s\n", argv[1], det_error_text(r));
        return r < 0 ? 1 : 0;
    }
    (void)fprintf(stderr, "there is no gate %s\n", argv[1]);
    return 2;
}
