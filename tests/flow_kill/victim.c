/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* victim.c - runs the flow of tests/flow/shop_test.h in a folder, run after run, until it is
 * killed; or prints what the log of a run has.
 *
 *     victim run FOLDER ROWS       its sinks append "run stage position value" to the file
 *                                  FOLDER.received
 *     victim print FOLDER RUN      "stage rows hash" for each stream; exit 3: no such run
 *     victim sink FOLDER RUN       "stage position value" for each row that a sink must receive */
#include "flow/shop_test.h"

static struct shop shop;

static int report(const char *what, const struct det_error *error)
{
    fprintf(stderr, "%s: %s\n", what, error->text);
    return 1;
}

static int run_for_ever(const char *folder, uint64_t rows)
{
    char url[4096], path[4096];
    struct det_pipeline_options options = {
        .journal = url, .durability = DET_JOURNAL_OS, .user = &shop, .window = 64
    };
    struct det_pipeline_end end;
    struct det_error error;

    (void)snprintf(url, sizeof url, "file:%s", folder);
    (void)snprintf(path, sizeof path, "%s.received", folder);
    shop_init(&shop, NULL);
    shop.rows = rows;
    shop.output = fopen(path, "a");
    if (!shop.output)
        return 1;
    /* A line is one write, so a kill leaves whole lines. */
    (void)setvbuf(shop.output, NULL, _IOLBF, 512);
    for (;;) {
        if (det_pipeline_open(&shop.flow, &options, &shop.pipeline, &error) < 0)
            return report("open", &error);
        if (det_pipeline_wait(shop.pipeline, DET_NEVER, &end) < 0 ||
            end.outcome != DET_PIPELINE_COMPLETED) {
            fprintf(stderr, "end: %s\n", end.reason);
            return 1;
        }
        det_pipeline_close(shop.pipeline);
    }
}

static struct det_journal *open_log(const char *folder, const char *run)
{
    struct det_journal_options options = { .must_exist = true };
    struct det_journal *journal = NULL;
    struct det_error error;
    char url[4096];
    int r;

    (void)snprintf(url, sizeof url, "file:%s/%s", folder, run);
    r = det_journal_open(url, &options, &journal, &error);
    if (r < 0 && r != DET_ERR_NOT_FOUND)
        (void)report("journal", &error);
    return journal;
}

static int print_log(const char *folder, const char *run)
{
    DET_SCOPED(journal) journal = open_log(folder, run);
    struct shop_log log;

    if (!journal)
        return 3;
    shop_init(&shop, NULL);
    log = shop_read(&shop, journal);
    for (int i = 0; i < 2 * SHOP_STAGES; i++)
        printf(
            "%s%s %llu %llx\n", shop.stages[i % SHOP_STAGES].name, i < SHOP_STAGES ? "" : ".errors",
            (unsigned long long)log.rows[i], (unsigned long long)log.hashes[i]);
    return 0;
}

/* The first number of a row is what its sink writes down: the sum of a total, the value of a
 * number, the key of a name. */
static int print_rows(struct det_journal *journal, const char *from, const char *to, int kind)
{
    struct det_journal_reader_options options = { .one_stream = true };
    DET_SCOPED(journal_reader) reader = NULL;
    union {
        struct total total;
        struct number number;
        struct name name;
    } value;
    const struct det_record *record = kind == KEEP_SUMS     ? total_record()
                                      : kind == KEEP_COPIES ? number_record()
                                                            : name_record();
    struct det_journal_row row;

    if (det_journal_stream(journal, from, &options.stream, NULL) < 0 ||
        det_journal_reader_open(journal, &options, &reader, NULL) < 0)
        return 1;
    while (det_journal_reader_next(reader, &row, NULL) > 0) {
        if (row.kind != 1)
            continue;
        if (det_record_decode(record, row.data, row.size, &value, NULL) < 0)
            return 1;
        printf(
            "%s %llu %llu\n", to, (unsigned long long)row.position,
            (unsigned long long)(kind == KEEP_SUMS     ? value.total.sum
                                 : kind == KEEP_COPIES ? value.number.value
                                                       : value.name.key));
    }
    return 0;
}

static int print_expected(const char *folder, const char *run)
{
    DET_SCOPED(journal) journal = open_log(folder, run);

    if (!journal)
        return 3;
    return print_rows(journal, "sum", "keep_sums", KEEP_SUMS) ||
           print_rows(journal, "copy", "keep_copies", KEEP_COPIES) ||
           print_rows(journal, "named", "keep_named", KEEP_NAMED);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    if (strcmp(argv[1], "run") == 0)
        return run_for_ever(argv[2], strtoull(argv[3], NULL, 10));
    if (strcmp(argv[1], "print") == 0)
        return print_log(argv[2], argv[3]);
    return print_expected(argv[2], argv[3]);
}
