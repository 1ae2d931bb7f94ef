/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* report.c - results as a table for people and as lines of JSON for programs.
 *
 *     role   what              ns/step       p10 - p90    rate    ratio   alloc   goal
 *     ours   template             3.01     2.99 - 3.10   332 M/s   1.02      0    at most 1.5 x  ok
 *                                                                                 0 allocations  ok
 *
 * A case with several goals has a line for each. */
#include <math.h>
#include <string.h>

#include "report.h"
#include "json/writer.h"

static const char *const roles[] = {
    [BENCH_LIMIT] = "limit",
    [BENCH_OURS] = "ours",
    [BENCH_PEER] = "peer",
};
static const char *const verdicts[] = {
    [BENCH_UNKNOWN] = "-",
    [BENCH_MET] = "ok",
    [BENCH_MISSED] = "MISSED",
};
static const char *const colors[] = {
    [BENCH_UNKNOWN] = "",
    [BENCH_MET] = "\033[32m",
    [BENCH_MISSED] = "\033[31m",
};

static int widest_name(const struct bench_results *results)
{
    size_t widest = 4;

    for (size_t i = 0; i < results->count; i++) {
        size_t size = strlen(results->items[i].what->name);

        widest = size > widest ? size : widest;
    }
    return (int)widest;
}

/* Operations a second, or bytes where an operation has a size. */
static void rate_text(const struct bench_result *result, char *target, size_t capacity)
{
    double rate = 1e9 / result->median;

    if (result->what->bytes > 0)
        (void)snprintf(target, capacity, "%.0f MB/s", rate * result->what->bytes / 1e6);
    else if (rate >= 1e6)
        (void)snprintf(target, capacity, "%.3g M/s", rate / 1e6);
    else if (rate >= 1e4)
        (void)snprintf(target, capacity, "%.3g k/s", rate / 1e3);
    else
        (void)snprintf(target, capacity, "%.3g /s", rate);
}

static void print_head(FILE *file, const struct bench_results *results, int width)
{
    char unit[64];

    (void)snprintf(
        unit, sizeof unit, "%s/%s", results->bench->is_slow ? "ms" : "ns",
        results->bench->operation);
    (void)fprintf(
        file, "  %-5s  %-*s  %11s  %19s  %10s  %7s  %7s", "role", width, "what", unit, "p10 - p90",
        "rate", "ratio", "alloc");
    if (results->bench->has_processor)
        (void)fprintf(file, "  %11s  %7s", "processor", "ratio");
    (void)fputs("  goal\n", file);
}

static void print_processor(FILE *file, const struct bench_result *result, double scale)
{
    char time[24] = "", ratio[16] = "";

    if (result->processor > 0)
        (void)snprintf(time, sizeof time, "%.2f", result->processor * scale);
    if (result->processor_ratio > 0)
        (void)snprintf(ratio, sizeof ratio, "%.2f", result->processor_ratio);
    (void)fprintf(file, "  %11s  %7s", time, ratio);
}

static void print_numbers(
    FILE *file, const struct bench_results *results, const struct bench_result *result, int width)
{
    double scale = results->bench->is_slow ? 1e-6 : 1;
    char rate[32] = "", spread[48], ratio[16] = "", allocations[32] = "";

    if (!result->what->is_latency)
        rate_text(result, rate, sizeof rate);
    (void)snprintf(spread, sizeof spread, "%.2f - %.2f", result->p10 * scale, result->p90 * scale);
    if (result->ratio > 0)
        (void)snprintf(ratio, sizeof ratio, "%.2f", result->ratio);
    if (!result->what->has_no_allocations)
        (void)snprintf(allocations, sizeof allocations, "%.3g", result->allocations);
    (void)fprintf(
        file, "  %-5s  %-*s  %11.2f  %19s  %10s  %7s  %7s", roles[result->what->role], width,
        result->what->name, result->median * scale, spread, rate, ratio, allocations);
    if (results->bench->has_processor)
        print_processor(file, result, scale);
}

static void print_goals(
    FILE *file, const struct bench_results *results, const struct bench_result *result, int indent,
    bool has_color)
{
    for (size_t k = 0; k < BENCH_GOALS_MAX; k++) {
        enum bench_verdict verdict = result->verdicts[k];
        char text[96];

        if (result->what->goals[k].kind == BENCH_NO_GOAL)
            break;
        if (k > 0)
            (void)fprintf(file, "\n%*s", indent, "");
        bench_goal_text(results, result, &result->what->goals[k], text, sizeof text);
        (void)fprintf(
            file, "  %-34s %s%s%s", text, has_color ? colors[verdict] : "", verdicts[verdict],
            has_color && verdict != BENCH_UNKNOWN ? "\033[0m" : "");
    }
}

void bench_report_table(FILE *file, const struct bench_results *results, bool has_color)
{
    int width = widest_name(results);
    int indent = 2 + 5 + 2 + width + 2 + 11 + 2 + 19 + 2 + 10 + 2 + 7 + 2 + 7 +
                 (results->bench->has_processor ? 2 + 11 + 2 + 7 : 0);

    (void)fprintf(
        file, "\n%s: %s (median of %u rounds)\n", results->name, results->bench->title,
        results->rounds);
    print_head(file, results, width);
    for (size_t i = 0; i < results->count; i++) {
        const struct bench_result *result = &results->items[i];

        if (result->code < 0) {
            (void)fprintf(
                file, "  %-5s  %-*s  %s%s\n", roles[result->what->role], width, result->what->name,
                result->code == DET_ERR_UNSUPPORTED ? "" : "FAILED: ", result->note);
            continue;
        }
        print_numbers(file, results, result, width);
        print_goals(file, results, result, indent, has_color);
        (void)fputc('\n', file);
    }
    (void)fflush(file);
}

static void write_goals(
    struct det_json_writer *json, const struct bench_results *results,
    const struct bench_result *result)
{
    det_json_open(json, "goals", '[');
    for (size_t k = 0; k < BENCH_GOALS_MAX && result->what->goals[k].kind != BENCH_NO_GOAL; k++) {
        char text[96];

        bench_goal_text(results, result, &result->what->goals[k], text, sizeof text);
        det_json_open(json, NULL, '{');
        det_json_text(json, "goal", text);
        if (result->verdicts[k] == BENCH_UNKNOWN)
            det_json_null(json, "met");
        else
            det_json_bool(json, "met", result->verdicts[k] == BENCH_MET);
        det_json_close(json, '}');
    }
    det_json_close(json, ']');
}

/* With the precision of a measurement. */
static void write_real(struct det_json_writer *json, const char *key, double number)
{
    char text[32];
    int size = snprintf(text, sizeof text, "%.6g", number);

    if (isfinite(number))
        det_json_raw(json, key, text, (size_t)size);
}

static void write_numbers(
    struct det_json_writer *json, const struct bench_results *results,
    const struct bench_result *result)
{
    const struct bench_result *other = bench_baseline(results, result);

    write_real(json, "median_ns", result->median);
    write_real(json, "p10_ns", result->p10);
    write_real(json, "p90_ns", result->p90);
    det_json_number(json, "rounds", results->rounds);
    if (results->bench->has_processor && result->processor > 0)
        write_real(json, "processor_ns", result->processor);
    if (results->bench->has_processor && result->processor_ratio > 0)
        write_real(json, "processor_ratio", result->processor_ratio);
    if (!result->what->is_latency)
        write_real(json, "per_second", 1e9 / result->median);
    if (result->what->bytes > 0)
        write_real(json, "mb_per_second", 1e3 * result->what->bytes / result->median);
    if (!result->what->has_no_allocations)
        write_real(json, "allocations", result->allocations);
    if (result->kept_bytes > 0)
        write_real(json, "kept_bytes", result->kept_bytes);
    if (other) {
        write_real(json, "ratio", result->ratio);
        det_json_text(json, "against", other->what->name);
    }
    write_goals(json, results, result);
}

void bench_report_json(FILE *file, const struct bench_results *results)
{
    struct det_json_writer json;

    det_json_writer_init(&json, NULL);
    for (size_t i = 0; i < results->count; i++) {
        const struct bench_result *result = &results->items[i];

        det_json_writer_clear(&json);
        det_json_open(&json, NULL, '{');
        det_json_text(&json, "bench", results->name);
        det_json_text(&json, "title", results->bench->title);
        det_json_text(&json, "case", result->what->name);
        det_json_text(&json, "role", roles[result->what->role]);
        det_json_text(&json, "operation", results->bench->operation);
        det_json_text(&json, "file_system", bench_file_system());
        if (result->code == 0)
            write_numbers(&json, results, result);
        else
            det_json_text(
                &json, result->code == DET_ERR_UNSUPPORTED ? "skipped" : "failed", result->note);
        det_json_close(&json, '}');
        (void)fprintf(file, "%s\n", det_buffer_text(&json.text));
    }
    det_json_writer_deinit(&json);
    (void)fflush(file);
}

void bench_report_count(const struct bench_results *results, struct bench_tally *tally)
{
    for (size_t i = 0; i < results->count; i++) {
        const struct bench_result *result = &results->items[i];

        tally->failed += result->code < 0 && result->code != DET_ERR_UNSUPPORTED;
        for (size_t k = 0; k < BENCH_GOALS_MAX; k++) {
            if (result->what->goals[k].kind == BENCH_NO_GOAL)
                break;
            tally->met += result->verdicts[k] == BENCH_MET;
            tally->missed += result->verdicts[k] == BENCH_MISSED;
            tally->unknown += result->verdicts[k] == BENCH_UNKNOWN;
        }
    }
}
