/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - a durable log of lines: `log FOLDER` appends those of its input and prints the position
 * of each when it is on the disk; `log FOLDER read` prints them. */
#include <detent/journal.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int append_lines(struct det_journal *journal, struct det_error *error)
{
    char line[4096];
    uint64_t at;
    int r = 0;

    while (r == 0 && fgets(line, sizeof line, stdin)) {
        struct det_journal_row row = { .data = line, .size = (uint32_t)strcspn(line, "\n") };

        r = det_journal_append(journal, &row, 1, &at, error);
        if (r == 0)
            r = det_journal_wait(journal, at, DET_NEVER);
        if (r == 0)
            printf("%" PRIu64 "\n", at);
        (void)fflush(stdout);
    }
    return r < 0 ? det_journal_failure(journal, error) : 0;
}

static int print_lines(struct det_journal *journal, struct det_error *error)
{
    DET_SCOPED(journal_reader) reader = NULL;
    struct det_journal_row row;
    int r;

    r = det_journal_reader_open(journal, NULL, &reader, error);
    if (r < 0)
        return r;
    while ((r = det_journal_reader_next(reader, &row, error)) == 1)
        printf("%" PRIu64 " %.*s\n", row.position, (int)row.size, (const char *)row.data);
    return r;
}

int main(int argc, char **argv)
{
    DET_SCOPED(journal) journal = NULL;
    bool is_reading = argc == 3 && strcmp(argv[2], "read") == 0;
    struct det_journal_options options = { .is_read_only = is_reading };
    struct det_error error = { 0 };
    char url[4096];
    int r;

    if (argc != 2 && !is_reading) {
        (void)fprintf(stderr, "log: write log FOLDER or log FOLDER read\n");
        return 2;
    }
    (void)snprintf(url, sizeof url, "file:%s", argv[1]);
    r = det_journal_open(url, &options, &journal, &error);
    if (r == 0)
        r = is_reading ? print_lines(journal, &error) : append_lines(journal, &error);
    if (r < 0)
        (void)fprintf(stderr, "log: %s\n", error.text);
    return r < 0;
}
