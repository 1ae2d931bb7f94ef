/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - detent-bench: runs the benches of benches.def and prints what they measured. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

struct entry {
    const char *name;
    const struct bench *bench;
};

#define BENCH(name) extern const struct bench bench_##name;
#include "benches.def"
#undef BENCH

static const struct entry entries[] = {
#define BENCH(name) { #name, &bench_##name },
#include "benches.def"
#undef BENCH
};
#define ENTRY_COUNT (sizeof entries / sizeof entries[0])

struct choice {
    const char *filter, *only, *cases;
    const char *save, *folder;
    bool is_json, is_quick, is_strict, is_list;
};

static const char usage[] =
    "usage: detent-bench [--filter TEXT] [--only NAME] [--case TEXT] [--quick] [--json]\n"
    "                    [--save FILE] [--folder FOLDER] [--strict] [--list]\n"
    "  --filter TEXT  only benches whose name contains TEXT\n"
    "  --only NAME    only the bench of this name\n"
    "  --case TEXT    only cases whose name contains TEXT\n"
    "  --quick        a fiftieth of the work and one round: to see that all of it runs\n"
    "  --json         one JSON object a line instead of the table\n"
    "  --save FILE    where the JSON is kept beside the table; results.jsonl in the build folder\n"
    "  --folder FOLDER  where stores and servers write; /var/tmp\n"
    "  --strict       exit with 1 when a goal is missed\n"
    "  --list         the names of the benches\n";

static bool read_choice(int argc, char **argv, struct choice *ret)
{
    static const struct option options[] = {
        { "filter", required_argument, NULL, 'f' },
        { "case", required_argument, NULL, 'c' },
        { "save", required_argument, NULL, 's' },
        { "json", no_argument, NULL, 'j' },
        { "quick", no_argument, NULL, 'q' },
        { "strict", no_argument, NULL, 'S' },
        { "list", no_argument, NULL, 'l' },
        { "folder", required_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },
        { "only", required_argument, NULL, 'o' },
        { NULL, 0, NULL, 0 },
    };
    int letter;

    while ((letter = getopt_long(argc, argv, "", options, NULL)) != -1) {
        ret->is_json = ret->is_json || letter == 'j';
        ret->is_quick = ret->is_quick || letter == 'q';
        ret->is_strict = ret->is_strict || letter == 'S';
        ret->is_list = ret->is_list || letter == 'l';
        if (letter == 'f')
            ret->filter = optarg;
        if (letter == 'o')
            ret->only = optarg;
        if (letter == 'c')
            ret->cases = optarg;
        if (letter == 's')
            ret->save = optarg;
        if (letter == 'd')
            ret->folder = optarg;
        if (letter == 'h') {
            (void)fputs(usage, stdout);
            exit(0);
        }
        if (letter == '?')
            return false;
    }
    return optind == argc;
}

static void report(const struct choice *choice, const struct bench_results *results, FILE *saved)
{
    bool has_color = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");

    if (choice->is_json)
        bench_report_json(stdout, results);
    else
        bench_report_table(stdout, results, has_color);
    if (saved)
        bench_report_json(saved, results);
}

static void run_entry(
    const struct choice *choice, const struct entry *entry, FILE *saved, struct bench_tally *tally)
{
    static struct bench_results results;
    char note[BENCH_NOTE_MAX];
    const struct bench_measure_options options = { choice->is_quick, choice->cases };
    int r = bench_measure(entry->name, entry->bench, &options, &results, note);

    if (r == 0) {
        report(choice, &results, saved);
        bench_report_count(&results, tally);
        return;
    }
    tally->failed += r != DET_ERR_UNSUPPORTED;
    (void)fprintf(
        stderr, "%s: %s: %s\n", entry->name, r == DET_ERR_UNSUPPORTED ? "skipped" : "failed",
        note[0] ? note : det_error_text(r));
}

static void run_all(const struct choice *choice, FILE *saved, struct bench_tally *tally)
{
    for (size_t i = 0; i < ENTRY_COUNT; i++) {
        if (choice->filter && !strstr(entries[i].name, choice->filter))
            continue;
        if (choice->only && strcmp(entries[i].name, choice->only) != 0)
            continue;
        if (choice->is_list)
            (void)puts(entries[i].name);
        else
            run_entry(choice, &entries[i], saved, tally);
    }
}

int main(int argc, char **argv)
{
    struct choice choice = { .save = BENCH_RESULTS, .folder = "/var/tmp" };
    struct bench_tally tally = { 0 };
    FILE *saved = NULL;

    if (!read_choice(argc, argv, &choice)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (!choice.is_json && !choice.is_list && !(saved = fopen(choice.save, "we"))) {
        (void)fprintf(stderr, "%s cannot be written\n", choice.save);
        return 2;
    }
    bench_place_use(choice.folder);
    if (!choice.is_json && !choice.is_list)
        (void)printf("stores write to %s, on %s\n", bench_place(), bench_file_system());
    run_all(&choice, saved, &tally);
    bench_files_remove();
    if (saved)
        (void)fclose(saved);
    if (!choice.is_json && !choice.is_list)
        (void)printf(
            "\ngoals: %u met, %u missed, %u without a peer to compare with\n", tally.met,
            tally.missed, tally.unknown);
    return tally.failed || (choice.is_strict && tally.missed) ? 1 : 0;
}
