/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* spec_test.c - .flow files as the program reads them, and every one under tests/corpus/flow:
 *
 *     good/<name>.flow   a flow without findings, already formatted
 *     bad/<name>.flow    first line: expect: rule | words of the compilers | part of ours;
 *                        the finding is on the line with the comment "here", if any
 *
 * The verdict of det_flow_check() is the same wherever it can know. */
#include "lib/test.h"

#include <dirent.h>

#include <detent/tool/flow_spec.h>

#define CORPUS DET_SOURCE_DIR "/tests/corpus/flow/"
#define HEAD   "#define FLOW_NAME payments\nRECORD(order)\nFIELD(cents, u64)\nEND\n"
#define FLOW   HEAD "SOURCE(read_orders, order)\nSINK(ship, order)\nEDGE(read_orders, ship)\n"

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");

    (void)context;
    if (file == NULL)
        return DET_ERR_NOT_FOUND;
    (void)fclose(file);
    *ret = det_test_read_file(path, ret_size);
    return 0;
}

static void release_file(void *context, const char *data, size_t size)
{
    char *bytes;

    (void)context;
    (void)size;
    memcpy(&bytes, &data, sizeof bytes);
    free(bytes);
}

static struct det_flow_spec *read_text(const char *path, const char *text)
{
    static const struct det_spec_files files = { read_file, release_file, NULL };
    struct det_spec_options options = { .files = &files };
    struct det_flow_spec *spec;

    assert_int_equal(det_flow_spec_read(path, text, strlen(text), &options, &spec), 0);
    return spec;
}

static struct det_flow_spec *read_path(const char *path)
{
    size_t size;
    char *text = det_test_read_file(path, &size);
    struct det_flow_spec *spec = read_text(path, text);

    free(text);
    return spec;
}

static void print_findings(const struct det_flow_spec *spec)
{
    const struct det_diagnostics *found = det_flow_spec_diagnostics(spec);

    for (size_t i = 0; i < found->count; i++)
        print_message(
            "%s:%u:%u: %s: %s\n", found->items[i].place.file, found->items[i].place.line,
            found->items[i].place.column, det_rule_id(found->items[i].rule), found->items[i].text);
}

/* Exactly one finding, of this rule; returns it. */
static const struct det_diagnostic *only(
    const struct det_flow_spec *spec, enum det_rule rule, const char *part)
{
    const struct det_diagnostics *found = det_flow_spec_diagnostics(spec);

    if (found->count != 1 || found->items[0].rule != rule ||
        strstr(found->items[0].text, part) == NULL) {
        print_findings(spec);
        fail_msg("wanted only %s: %s", det_rule_id(rule), part);
    }
    return &found->items[0];
}

static const struct det_stage *stage_of(const struct det_flow *flow, const char *name)
{
    unsigned i = 0;

    while (i < flow->stage_count && strcmp(flow->stages[i].name, name) != 0)
        i++;
    assert_true(i < flow->stage_count);
    return &flow->stages[i];
}

static void flow_with_its_records_is_read(void **state)
{
    struct det_flow_spec *spec = read_path(CORPUS "good/readings.flow");
    const struct det_flow *flow = det_flow_spec_flow(spec);
    const struct det_stage *locate;

    (void)state;
    print_findings(spec);
    assert_non_null(flow);
    assert_string_equal(flow->name, "readings");
    assert_int_equal(flow->stage_count, 5);
    assert_int_equal(flow->edge_count, 4);
    assert_string_equal(flow->stages[0].use, "csv");
    assert_string_equal(flow->stages[0].settings, "{path: rooms.csv}");
    assert_int_equal(flow->stages[1].flags, DET_STAGE_INFINITE);
    assert_null(det_record_of(flow->stages[1].in));
    locate = stage_of(flow, "locate");
    assert_int_equal(locate->kind, DET_STAGE_JOIN);
    assert_int_equal(locate->join, DET_JOIN_LEFT);
    assert_string_equal(locate->reference_key, "sensor");
    assert_string_equal(det_record_of(locate->reference)->name, "room");
    assert_string_equal(det_record_of(locate->in)->name, "reading");
    assert_string_equal(det_record_of(locate->out)->name, "alarm");
    assert_ptr_equal(det_record_of(locate->out), det_flow_spec_record(spec, 2));
    assert_int_equal(flow->edges[1].from, 0);
    assert_int_equal(flow->edges[1].to, 3);
    assert_int_equal(flow->edges[1].flags, DET_EDGE_REFERENCE);
    assert_int_equal(flow->edges[0].flags, 0);
    det_flow_spec_close(spec);
}

static void options_of_stages_are_read(void **state)
{
    struct det_flow_spec *spec = read_path(CORPUS "good/options.flow");
    const struct det_flow *flow = det_flow_spec_flow(spec);
    const struct det_stage *stage;

    (void)state;
    print_findings(spec);
    stage = stage_of(flow, "read_orders");
    assert_int_equal(stage->flags, DET_STAGE_INFINITE | DET_STAGE_ASYNC);
    assert_string_equal(det_record_of(stage->cursor)->name, "place");
    assert_int_equal(stage->window, 1024);
    assert_string_equal(stage->with[0], "slow");
    assert_null(stage->with[1]);
    assert_int_equal(stage_of(flow, "check")->concurrency, 8);
    assert_string_equal(stage_of(flow, "check")->with[7], "h");
    assert_null(stage_of(flow, "check")->with[8]);
    stage = stage_of(flow, "sum");
    assert_string_equal(det_record_of(stage->state)->name, "counter");
    assert_string_equal(stage->key, "customer");
    assert_int_equal(stage->emission.kind, DET_EMIT_EVERY);
    assert_int_equal(stage->emission.rows, 100);
    assert_int_equal(stage_of(flow, "at_end")->emission.kind, DET_EMIT_AT_END);
    assert_int_equal(stage_of(flow, "always")->emission.kind, DET_EMIT_ALWAYS);
    assert_int_equal(stage_of(flow, "minutes")->emission.kind, DET_EMIT_WITHIN);
    assert_int_equal(stage_of(flow, "minutes")->emission.time, 5 * DET_SECOND);
    assert_string_equal(stage_of(flow, "dedupe")->settings, "{within: \"5 m\"}");
    assert_int_equal(stage_of(flow, "inner")->join, DET_JOIN_INNER);
    assert_int_equal(stage_of(flow, "left")->reference_batch, 8);
    assert_int_equal(stage_of(flow, "strict")->join, DET_JOIN_STRICT);
    assert_int_equal(stage_of(flow, "strict")->reference_batch, 16);
    assert_int_equal(stage_of(flow, "strict")->flags, DET_STAGE_LIVE);
    assert_int_equal(stage_of(flow, "store")->flags, DET_STAGE_BUFFERED | DET_STAGE_ASYNC);
    det_flow_spec_close(spec);
}

static void fragment_and_shared_records_are_read(void **state)
{
    struct det_flow_spec *spec = read_path(CORPUS "good/shared.flow");
    const struct det_flow *flow = det_flow_spec_flow(spec);

    (void)state;
    print_findings(spec);
    assert_int_equal(flow->stage_count, 4);
    assert_string_equal(flow->stages[0].name, "store");
    assert_string_equal(det_flow_spec_file(spec, 1), CORPUS "good/shared.rec");
    assert_string_equal(det_flow_spec_file(spec, 2), CORPUS "good/parts/sinks.flow");
    assert_null(det_flow_spec_file(spec, 3));
    assert_string_equal(det_flow_spec_stage_place(spec, 0).file, CORPUS "good/parts/sinks.flow");
    det_flow_spec_close(spec);
}

static void texts_have_places(void **state)
{
    static const char text[] =
        HEAD "SOURCE(read_orders, order, USE(csv, \"{a: \\\"b\\\", c}\"))\n"
             "STATEFUL(sum, order, order, STATE(order), KEY(\"cents + x\"))\n"
             "SINK(ship, order)\nEDGE(read_orders, sum)\nEDGE(sum, ship)\n";
    struct det_flow_spec *spec = read_text("payments.flow", text);
    struct det_place place = det_flow_spec_text_place(spec, 1, DET_FLOW_TEXT_KEY, 8);

    (void)state;
    print_findings(spec);
    assert_int_equal(place.line, 6);
    assert_int_equal(place.source[place.column - 1], 'x');
    assert_int_equal(place.width, 1);
    place = det_flow_spec_text_place(spec, 0, DET_FLOW_TEXT_SETTINGS, 9);
    assert_string_equal(place.source + place.column - 1, "c}\"))");
    assert_int_equal(place.width, 2);
    place = det_flow_spec_text_place(spec, 0, DET_FLOW_TEXT_USE, 0);
    assert_int_equal(strncmp(place.source + place.column - 1, "csv,", 4), 0);
    assert_int_equal(det_flow_spec_text_place(spec, 2, DET_FLOW_TEXT_KEY, 0).line, 7);
    assert_int_equal(det_flow_spec_edge_place(spec, 1).line, 9);
    det_flow_spec_close(spec);
}

static void adjacent_strings_are_one(void **state)
{
    static const char text[] =
        "#define FLOW_NAME f\nRECORD(r) FIELD(x, u8) END\n"
        "SOURCE(a, r, USE(csv, \"{path: \"\n\"a.csv,\" \"skip: 1}\"))\nSINK(b, r)\nEDGE(a, b)\n";
    struct det_flow_spec *spec = read_text("f.flow", text);
    const struct det_flow *flow = det_flow_spec_flow(spec);
    struct det_place place;

    (void)state;
    assert_non_null(flow);
    assert_string_equal(flow->stages[0].settings, "{path: a.csv,skip: 1}");
    place = det_flow_spec_text_place(spec, 0, DET_FLOW_TEXT_SETTINGS, 1);
    assert_int_equal(strncmp(place.source + place.column - 1, "path", 4), 0);
    place = det_flow_spec_text_place(spec, 0, DET_FLOW_TEXT_SETTINGS, 7);
    assert_int_equal(place.line, 4);
    assert_int_equal(strncmp(place.source + place.column - 1, "a.csv", 5), 0);
    place = det_flow_spec_text_place(spec, 0, DET_FLOW_TEXT_SETTINGS, 13);
    assert_int_equal(strncmp(place.source + place.column - 1, "skip", 4), 0);
    det_flow_spec_close(spec);
}

static void one_mistake_is_one_finding(void **state)
{
    static const struct {
        const char *text;
        enum det_rule rule;
        const char *part;
    } cases[] = {
        { FLOW "#define FLOW_PREFIX PAY\n", DET_RULE_SYNTAX, "the only word is FLOW_NAME" },
        { FLOW "#define FLOW_NAME other\n", DET_RULE_SYNTAX, "defined twice" },
        { FLOW "#include \"none.flow\"\n", DET_RULE_BAD_INCLUDE, "does not exist" },
        { FLOW "USE(csv)\n", DET_RULE_UNKNOWN_ROW, "inside of the row of a stage" },
        { FLOW "TRANSFORM(\"x\", order, order)\n", DET_RULE_ROW_ARGUMENTS, "a string" },
        { FLOW "EDGE(read_orders ship)\n", DET_RULE_SYNTAX, "" },
        { FLOW "EDGE(read_orders)\n", DET_RULE_ROW_ARGUMENTS, "1 argument instead of 2" },
        { HEAD "SOURCE(read_orders, order, INFINITE())\nSINK(ship, order)\n"
               "EDGE(read_orders, ship)\n",
          DET_RULE_ROW_ARGUMENTS, "INFINITE has brackets" },
        { HEAD "SOURCE(read_orders, order, ASYNC())\nSINK(ship, order)\nEDGE(read_orders, ship)\n",
          DET_RULE_ROW_ARGUMENTS, "ASYNC has no value" },
        { HEAD "SOURCE(read_orders, order, WITH(a, 3))\nSINK(ship, order)\n"
               "EDGE(read_orders, ship)\n",
          DET_RULE_ROW_ARGUMENTS, "argument 2 of WITH is the name of a policy, not 3" },
        { HEAD "SOURCE(read_orders, order, \"x\")\nSINK(ship, order)\nEDGE(read_orders, ship)\n",
          DET_RULE_ROW_ARGUMENTS, "this is not an option" },
        { "\xff", DET_RULE_NOT_UTF8, "" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct det_flow_spec *spec = read_text("payments.flow", cases[i].text);

        only(spec, cases[i].rule, cases[i].part);
        assert_null(det_flow_spec_flow(spec));
        det_flow_spec_close(spec);
    }
}

static void finding_has_its_place_hint_and_first_declaration(void **state)
{
    struct det_flow_spec *spec = read_text("payments.flow", FLOW "EDGE(read_orders, ship)\n");
    const struct det_diagnostic *finding = only(spec, DET_RULE_DUPLICATE_EDGE, "an EDGE");

    (void)state;
    assert_int_equal(finding->place.line, 8);
    assert_int_equal(finding->other.line, 7);
    det_flow_spec_close(spec);
    spec = read_text("payments.flow", FLOW "EDGE(read_order, ship)\n");
    finding = only(spec, DET_RULE_UNKNOWN_STAGE, "read_order is not a stage");
    assert_int_equal(finding->place.column, 6);
    assert_string_equal(finding->hint, "did you mean read_orders?");
    det_flow_spec_close(spec);
    spec = read_text(
        "payments.flow", HEAD "SOURCE(read_orders, order, INFINITY)\nSINK(ship, order)\n"
                              "EDGE(read_orders, ship)\n");
    finding = only(spec, DET_RULE_ROW_ARGUMENTS, "INFINITY is not an option of a SOURCE");
    assert_string_equal(finding->hint, "did you mean INFINITE?");
    det_flow_spec_close(spec);
}

static void reference_that_never_ends_is_a_warning(void **state)
{
    static const char text[] = HEAD "SOURCE(tick, order, INFINITE)\nSOURCE(orders, order)\n"
                                    "TRANSFORM(slow, order, order)\n"
                                    "JOIN(match, order, order, order)\nSINK(ship, order)\n"
                                    "EDGE(tick, slow)\nREFERENCE(slow, match)\n"
                                    "EDGE(orders, match)\nEDGE(match, ship)\n";
    struct det_flow_spec *spec = read_text("payments.flow", text);
    const struct det_diagnostic *finding = only(
        spec, DET_RULE_REFERENCE_ENDLESS, "match waits for the end of its reference, but tick");

    (void)state;
    assert_int_equal(finding->place.line, 11);
    assert_int_equal(finding->severity, DET_SEVERITY_WARNING);
    assert_non_null(det_flow_spec_flow(spec));
    assert_int_equal(det_flow_check(det_flow_spec_flow(spec), NULL), 0);
    det_flow_spec_close(spec);
}

static void join_that_blocks_its_own_source_is_a_warning(void **state)
{
    static const char text[] = HEAD "SOURCE(orders, order)\nTRANSFORM(slow, order, order)\n"
                                    "JOIN(match, order, order, order%s)\nSINK(ship, order)\n"
                                    "EDGE(orders, slow)\nREFERENCE(slow, match)\n"
                                    "EDGE(orders, match)\nEDGE(match, ship)\n";
    char changed[sizeof text + 16];
    struct det_flow_spec *spec;

    (void)state;
    (void)snprintf(changed, sizeof changed, text, "");
    spec = read_text("payments.flow", changed);
    (void)only(
        spec, DET_RULE_JOIN_BLOCKED, "match reads its reference to the end first, but orders");
    det_flow_spec_close(spec);
    (void)snprintf(changed, sizeof changed, text, ", LIVE");
    spec = read_text("payments.flow", changed);
    assert_int_equal(det_flow_spec_diagnostics(spec)->count, 0);
    det_flow_spec_close(spec);
}

static void exceeded_limits_are_reported(void **state)
{
    static char text[262144];
    struct det_flow_spec *spec;
    size_t used = (size_t)snprintf(text, sizeof text, FLOW);

    (void)state;
    for (int i = 0; i <= DET_FLOW_STAGES_MAX; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "TRANSFORM(t%d, order, order)\n", i);
    spec = read_text("payments.flow", text);
    assert_int_equal(det_flow_spec_diagnostics(spec)->items[0].rule, DET_RULE_STAGE_HANGING);
    assert_null(det_flow_spec_flow(spec));
    det_flow_spec_close(spec);
    used = (size_t)snprintf(text, sizeof text, FLOW);
    for (int i = 0; i <= DET_FLOW_EDGES_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "EDGE(read_orders, ship)\n");
    spec = read_text("payments.flow", text);
    assert_true(det_flow_spec_diagnostics(spec)->is_cut);
    det_flow_spec_close(spec);
}

static void largest_flow_is_valid(void **state)
{
    static char text[262144];
    struct det_flow_spec *spec;
    size_t used = (size_t)snprintf(text, sizeof text, HEAD "SOURCE(t0, order)\n");

    (void)state;
    for (int i = 1; i < DET_FLOW_STAGES_MAX - 1; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "TRANSFORM(t%d, order, order)\nEDGE(t%d, t%d)\n", i,
            i - 1, i);
    used += (size_t)snprintf(
        text + used, sizeof text - used, "SINK(ship, order)\nEDGE(t%d, ship)\n",
        DET_FLOW_STAGES_MAX - 2);
    assert_true(used < sizeof text);
    spec = read_text("payments.flow", text);
    print_findings(spec);
    assert_int_equal(det_flow_spec_flow(spec)->stage_count, DET_FLOW_STAGES_MAX);
    det_flow_spec_close(spec);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void check_folder(const char *name, int least, void (*check)(const char *, const char *))
{
    char folder[1024], path[2048];
    struct dirent **entries;
    int found, count = 0;

    (void)snprintf(folder, sizeof folder, "%s%s", CORPUS, name);
    found = scandir(folder, &entries, NULL, alphasort);
    assert_true(found > 0);
    for (int i = 0; i < found; i++) {
        if (ends_with(entries[i]->d_name, ".flow")) {
            size_t size;
            char *text;

            (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            text = det_test_read_file(path, &size);
            check(path, text);
            free(text);
            count++;
        }
        free(entries[i]);
    }
    free((void *)entries);
    assert_true(count >= least);
}

static void check_good(const char *path, const char *text)
{
    struct det_flow_spec *spec = read_text(path, text);
    size_t size = strlen(text);
    char *formatted = malloc(size + 2);
    struct det_error error;

    print_findings(spec);
    assert_int_equal(det_flow_spec_diagnostics(spec)->count, 0);
    if (det_flow_check(det_flow_spec_flow(spec), &error) < 0)
        fail_msg("%s", error.text);
    if (det_spec_format(text, size, formatted, size + 2, NULL) != (int64_t)size ||
        strcmp(formatted, text) != 0)
        fail_msg("%s is not formatted:\n%s", path, formatted);
    free(formatted);
    det_flow_spec_close(spec);
}

static unsigned line_of(const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    unsigned line = at != NULL ? 1 : 0;

    for (; at != NULL && at > text; at--)
        line += at[-1] == '\n';
    return line;
}

static void check_bad(const char *path, const char *text)
{
    struct det_flow_spec *spec = read_text(path, text);
    const struct det_diagnostics *found = det_flow_spec_diagnostics(spec);
    unsigned line = line_of(text, "/* here */");
    char rule[64], part[256];

    assert_int_equal(sscanf(text, "/* expect: %63[^ |] | %*[^|] | %255[^*]", rule, part), 2);
    part[strlen(part) - 1] = '\0';
    /* One mistake may leave several stages unreachable. */
    if (found->count == 0 || (found->count != 1 && strcmp(rule, "stage-unreachable") != 0) ||
        strcmp(det_rule_id(found->items[0].rule), rule) != 0 ||
        strstr(found->items[0].text, part) == NULL ||
        (line > 0 && found->items[0].place.line != line)) {
        print_findings(spec);
        fail_msg("%s: wanted one %s at line %u: '%s'", path, rule, line, part);
    }
    assert_null(det_flow_spec_flow(spec));
    det_flow_spec_close(spec);
}

static void every_good_flow_is_valid_and_formatted(void **state)
{
    (void)state;
    check_folder("good", 5, check_good);
}

static void every_bad_flow_is_refused_by_its_rule_at_its_place(void **state)
{
    (void)state;
    check_folder("bad", 60, check_bad);
}

static int read_flow(struct det_test_memory *memory, void *argument)
{
    struct det_spec_options options = { .allocator = &memory->allocator };
    struct det_flow_spec *spec = NULL;
    const char *text = argument;
    int r;

    r = det_flow_spec_read("payments.flow", text, strlen(text), &options, &spec);
    det_flow_spec_close(spec);
    return r;
}

static void allocation_failures_are_reported_and_leak_nothing(void **state)
{
    static char good[] = FLOW "TRANSFORM(check, order, order, WITH(a, b), WINDOW(8))\n"
                              "EDGE(read_orders, check)\nEDGE(check, ship)\n"
                              "STATEFUL(sum, order, order, STATE(order), KEY(\"cents + 1\"))\n"
                              "EDGE(check, sum)\nEDGE(sum, ship)\n";
    static char bad[] = FLOW "TRANSFORM(check, order, ordr, WITH(a, b), WINDOW(8))\n"
                             "EDGE(read_orders, chek)\nEDGE(check, ship)\n";

    (void)state;
    det_test_each_failure(read_flow, good);
    det_test_each_failure(read_flow, bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow_with_its_records_is_read),
        cmocka_unit_test(options_of_stages_are_read),
        cmocka_unit_test(fragment_and_shared_records_are_read),
        cmocka_unit_test(texts_have_places),
        cmocka_unit_test(adjacent_strings_are_one),
        cmocka_unit_test(one_mistake_is_one_finding),
        cmocka_unit_test(finding_has_its_place_hint_and_first_declaration),
        cmocka_unit_test(reference_that_never_ends_is_a_warning),
        cmocka_unit_test(join_that_blocks_its_own_source_is_a_warning),
        cmocka_unit_test(exceeded_limits_are_reported),
        cmocka_unit_test(largest_flow_is_valid),
        cmocka_unit_test(every_good_flow_is_valid_and_formatted),
        cmocka_unit_test(every_bad_flow_is_refused_by_its_rule_at_its_place),
        cmocka_unit_test(allocation_failures_are_reported_and_leak_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
