/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* write_test.c - every machine is written as a text, and the text is read as the same machine. */
#include <dirent.h>

#include <detent/tool/spec.h>

#include "machine/builder_random_test.h"
#include "machine/same_machine_test.h"
#include "machine/write.h"

#define DEFINITIONS 20000
#define PATH_SIZE   1024

static int read_file(void *context, const char *path, const char **ret, size_t *ret_size)
{
    (void)context;
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

static struct det_spec *read_spec(const char *path, const char *text)
{
    static const struct det_spec_files files = { read_file, release_file, NULL };
    struct det_spec_options options = { .files = &files };
    struct det_spec *spec;

    assert_int_equal(det_spec_read(path, text, strlen(text), &options, &spec), 0);
    if (det_spec_machine(spec) == NULL)
        fail_msg("%s\n%s", det_spec_diagnostics(spec)->items[0].text, text);
    return spec;
}

static char *write_text(const struct det_machine *machine)
{
    struct det_error error = { 0 };
    int64_t size = det_machine_write(machine, NULL, NULL, 0, &error);
    char *text;

    if (size < 0)
        fail_msg("%s: %s", machine->name, error.text);
    text = malloc((size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(det_machine_write(machine, NULL, text, (size_t)size + 1, &error), size);
    assert_int_equal(strlen(text), size);
    return text;
}

/* Reads the text as the same machine with the same text; formatting does not change it. */
static void check_text(const struct det_machine *machine, const char *text)
{
    struct det_spec *spec = read_spec("written.fsm", text);
    size_t size = strlen(text);
    char *again = write_text(det_spec_machine(spec)), *formatted = malloc(size + 1);

    assert_same_machine(machine, det_spec_machine(spec));
    assert_string_equal(again, text);
    assert_non_null(formatted);
    assert_int_equal(det_spec_format(text, size, formatted, size + 1, NULL), size);
    assert_string_equal(formatted, text);
    free(formatted);
    free(again);
    det_spec_close(spec);
}

static void check_machine(const struct det_machine *machine)
{
    char *text = write_text(machine);

    check_text(machine, text);
    free(text);
}

static void check_file(const char *path)
{
    size_t size;
    char *text = det_test_read_file(path, &size);
    struct det_spec *spec = read_spec(path, text);

    check_machine(det_spec_machine(spec));
    det_spec_close(spec);
    free(text);
}

static bool is_spec(const char *name)
{
    size_t length = strlen(name);

    return length > 4 && strcmp(name + length - 4, ".fsm") == 0;
}

/* Returns how many. */
static size_t check_folder(const char *folder)
{
    char path[PATH_SIZE];
    struct dirent **entries;
    size_t count = 0;
    int found = scandir(folder, &entries, NULL, alphasort);

    assert_true(found > 0);
    for (int i = 0; i < found; i++) {
        if (is_spec(entries[i]->d_name)) {
            (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            check_file(path);
            count++;
        }
        free(entries[i]);
    }
    free((void *)entries);
    return count;
}

static void every_good_spec_is_written_and_read_as_the_same_machine(void **state)
{
    (void)state;
    assert_true(check_folder(DET_SOURCE_DIR "/tests/corpus/good") >= 16);
}

static void every_spec_of_the_tree_is_written_and_read_as_the_same_machine(void **state)
{
    static const char *const folders[] = {
        "examples/order", "examples/traffic-light", "examples/heartbeat", "src/runtime",
        "src/task",       "src/supervise",          "src/machine",        "bench",
    };
    char path[PATH_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", DET_SOURCE_DIR, folders[i]);
        assert_true(check_folder(path) >= 1);
    }
}

static bool is_both(const struct definition *d)
{
    bool result = false;

    for (int i = 0; i < d->state_count; i++)
        result |= d->flags[i] == (DET_STATE_INITIAL | DET_STATE_FINAL);
    return result;
}

static void random_machines_of_a_builder_are_written_and_read_as_the_same(void **state)
{
    size_t count = 0, overridden = 0;

    (void)state;
    for (uint64_t i = 0; i < DEFINITIONS; i++) {
        struct det_machine_builder *b;
        struct det_machine *machine;
        struct det_diagnostics found;
        struct definition d;
        char *text;

        seed = i;
        d = make_definition();
        b = give(&d);
        if (det_machine_builder_build(b, &machine, &found) == 0) {
            if (is_both(&d)) {
                assert_int_equal(
                    det_machine_write(machine, NULL, NULL, 0, NULL), DET_ERR_UNSUPPORTED);
            } else {
                text = write_text(machine);
                check_text(machine, text);
                overridden += strstr(text, "OVERRIDE") != NULL;
                count++;
                free(text);
            }
            det_machine_close(machine);
        }
        det_machine_builder_close(b);
    }
    assert_true(count > DEFINITIONS / 10);
    assert_true(overridden > 20);
    print_message("             %zu machines, %zu with rows made up\n", count, overridden);
}

static struct det_machine *build(struct det_machine_builder *b)
{
    struct det_machine *machine;
    struct det_diagnostics found;
    int r = det_machine_builder_build(b, &machine, &found);

    if (r < 0)
        fail_msg("%s", found.items[0].text);
    det_machine_builder_close(b);
    return machine;
}

/* One state and one event, to which tests add. */
static struct det_machine_builder *open_small(void)
{
    struct det_machine_builder *b = open_builder("small", NULL);

    STATE(b, "a", .flags = DET_STATE_INITIAL);
    EVENT(b, "go");
    return b;
}

static void machine_name_reserved_in_c_gets_another_prefix(void **state)
{
    struct det_machine_builder *b = open_builder("null", NULL);
    struct det_machine *machine;
    char *text;

    (void)state;
    STATE(b, "a", .flags = DET_STATE_INITIAL);
    EVENT(b, "go");
    ON(b, "a", "go", "a");
    machine = build(b);
    text = write_text(machine);
    assert_non_null(strstr(text, "FSM_PREFIX MY_NULL\n"));
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

static void check_unsupported(struct det_machine_builder *b, const char *part)
{
    struct det_machine *machine = build(b);
    struct det_error error = { 0 };
    char target[4] = "abc";

    assert_int_equal(
        det_machine_write(machine, NULL, target, sizeof target, &error), DET_ERR_UNSUPPORTED);
    assert_int_equal(error.code, DET_ERR_UNSUPPORTED);
    if (strstr(error.text, part) == NULL)
        fail_msg("%s", error.text);
    assert_string_equal(target, "abc");
    det_machine_close(machine);
}

static void machine_without_a_spec_form_is_refused_with_a_reason(void **state)
{
    struct det_machine_builder *b = open_small();

    (void)state;
    ON(b, "a", "go", "a", .within = { DET_MILLISECOND + 1, "go", NULL });
    check_unsupported(b, "milliseconds");

    b = open_builder("small", NULL);
    STATE(b, "a", .flags = DET_STATE_INITIAL | DET_STATE_FINAL);
    EVENT(b, "go");
    ON(b, "a", "go", "a");
    check_unsupported(b, "initial and final");

    b = open_small();
    STOP(b, "a", DET_LIST("go"), .reason = "bell: \a");
    check_unsupported(b, "a text in small");
}

/* A record with one field. */
static struct det_record record_of(const char *name, const struct det_field *field)
{
    return (struct det_record){ .name = name, .size = 8, .fields = field, .field_count = 1 };
}

static void two_records_of_one_name_must_be_the_same(void **state)
{
    const struct det_field cents = { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 8 };
    const struct det_field euros = { .name = "euros", .kind = DET_KIND_UNSIGNED, .size = 8 };
    const struct det_field dashed = { .name = "in-cents", .kind = DET_KIND_UNSIGNED, .size = 8 };
    const struct det_record a = record_of("money", &cents), b_same = record_of("money", &cents);
    const struct det_record b_other = record_of("money", &euros), odd = record_of("odd", &dashed);
    const struct det_record later = { "money", 2, 8, &cents, 1 },
                            empty = { "money", 1, 8, NULL, 0 };
    const struct det_record *seconds[] = { &b_same, &b_other, &later, &empty, &odd };

    (void)state;
    for (size_t i = 0; i < 5; i++) {
        struct det_machine_builder *b = open_small();
        struct det_machine *machine;

        EVENT(b, "pay", .payload = &a);
        EVENT(b, "give", .payload = seconds[i]);
        STAY(b, "a", DET_LIST("go", "pay", "give"));
        if (i > 0) {
            check_unsupported(b, i < 4 ? "money" : "in");
            continue;
        }
        machine = build(b);
        check_machine(machine);
        det_machine_close(machine);
    }
}

static void enums_of_one_name_must_be_the_same_and_begin_with_0(void **state)
{
    static const struct det_enum_value values[] = { { "red", 7 }, { "green", 0 }, { "end", 3 } };
    static const struct det_enum_value same[] = { { "red", 7 }, { "green", 0 }, { "end", 3 } };
    static const struct det_enum_value name[] = { { "red", 7 }, { "grey", 0 }, { "end", 3 } };
    static const struct det_enum_value number[] = { { "red", 7 }, { "green", 0 }, { "end", 4 } };
    static const struct det_enum colour = { "colour", values, 3 };
    static const struct det_enum others[] = { { "colour", values, 3 },
                                              { "colour", same, 3 },
                                              { "colour", values, 2 },
                                              { "colour", name, 3 },
                                              { "colour", number, 3 } };
    struct det_field fields[2] = {
        { .name = "top", .kind = DET_KIND_ENUM, .size = 4, .enumeration = { &colour, NULL } },
        { .name = "low", .kind = DET_KIND_ENUM, .size = 4, .offset = 4 },
    };
    const struct det_record record = { "paint", 1, 8, fields, 2 };

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct det_machine_builder *b = open_small();
        struct det_machine *machine;
        char *text;

        fields[1].enumeration.enumeration = &others[i];
        EVENT(b, "mix", .payload = &record);
        STAY(b, "a", DET_LIST("go", "mix"));
        if (i > 1) {
            check_unsupported(b, "colour");
            continue;
        }
        machine = build(b);
        text = write_text(machine);
        assert_non_null(strstr(
            text, "ENUM(colour)\n    VALUE(GREEN, green)\n    VALUE(RED,   red)\n"
                  "    VALUE(end,   end)\nEND\n"));
        free(text);
        det_machine_close(machine);
    }
}

static void names_in_c_are_made_so_that_none_is_taken_twice(void **state)
{
    struct det_machine_builder *b = open_small();
    struct det_machine *machine;
    char *text;

    (void)state;
    EVENT(b, "e1", .wire = "a");
    EVENT(b, "e2", .wire = "A");
    EVENT(b, "e3", .wire = "end");
    EVENT(b, "e4", .wire = "EVENT_3_");
    EVENT(b, "e5", .wire = "b");
    EVENT(b, "e6", .wire = "B");
    STAY(b, "a", DET_LIST("go", "e1", "e2", "e3", "e4", "e5", "e6"));
    machine = build(b);
    text = write_text(machine);
    assert_non_null(strstr(text, "STATE(A, a, INITIAL)"));
    assert_non_null(strstr(text, "EVENT(a,        a)"));
    assert_non_null(strstr(text, "EVENT(EVENT_3,  A)"));
    assert_non_null(strstr(text, "EVENT(end,      end)"));
    assert_non_null(strstr(text, "EVENT(EVENT_3_, EVENT_3_)"));
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

/* The capitals of these names are a macro, or reserved for C or the library. */
static void generated_c_names_avoid_reserved_names(void **state)
{
    static const char *const rows[] = { "STATE(_late, _late)",    "EVENT(null,     null, paint)",
                                        "EVENT(eof,      eof)",   "EVENT(det_late, det_late)",
                                        "EVENT(_came,    _came)", "VALUE(i,    i)",
                                        "VALUE(_red, _red)" };
    static const struct det_enum_value values[] = { { "i", 0 }, { "_red", 1 } };
    static const struct det_enum colour = { "colour", values, 2 };
    const struct det_field top = {
        .name = "top", .kind = DET_KIND_ENUM, .size = 4, .enumeration = { &colour, NULL }
    };
    const struct det_record record = { "paint", 1, 4, &top, 1 };
    struct det_machine_builder *b = open_small();
    struct det_machine *machine;
    char *text;

    (void)state;
    STATE(b, "late", .wire = "_late");
    EVENT(b, "e1", .wire = "null", .payload = &record);
    EVENT(b, "e2", .wire = "eof");
    EVENT(b, "e3", .wire = "det_late");
    EVENT(b, "e4", .wire = "_came");
    ON(b, "a", "go", "late");
    STAY(b, "a", DET_LIST("e1", "e2", "e3", "e4"));
    STAY(b, "late", DET_LIST("go"));
    machine = build(b);
    text = write_text(machine);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strstr(text, rows[i]) == NULL)
            fail_msg("%s is not in\n%s", rows[i], text);
    }
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

static void times_and_texts_are_exact(void **state)
{
    struct det_machine_builder *b = open_small();
    struct det_machine *machine;
    char *text;

    (void)state;
    EVENT(b, "late", .is_internal = true);
    TIMER(b, "decade", DET_DELAY_MAX, "late");
    TIMER(b, "nearly", DET_DELAY_MAX - DET_MILLISECOND, "late");
    TIMER(b, "sixty", DET_HOUR, "late");
    STAY(b, "a", DET_LIST("late"), .arms = DET_LIST("decade", "nearly", "sixty"));
    STOP(b, "a", DET_LIST("go"), .reason = "a \"tab\"\t, a \\ and\n\xC3\xA4");
    machine = build(b);
    text = write_text(machine);
    assert_non_null(strstr(text, "DAYS(3650)"));
    assert_non_null(strstr(text, "MILLISECONDS(315359999999)"));
    assert_non_null(strstr(text, "HOURS(1)"));
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

/* `count` states in a ring, each with `events` different transitions. */
static struct det_machine *build_ring(int count, int events)
{
    struct det_machine_builder *b = open_builder("ring", NULL);
    char name[16], event[16], next[16];

    for (int i = 0; i < events; i++) {
        (void)snprintf(event, sizeof event, "e%d", i);
        EVENT(b, event);
    }
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        STATE(b, name, .flags = i == 0 ? DET_STATE_INITIAL : 0);
        for (int j = 0; j < events; j++) {
            (void)snprintf(event, sizeof event, "e%d", j);
            (void)snprintf(next, sizeof next, "s%d", (i + j + 1) % count);
            ON(b, name, event, next);
        }
    }
    return build(b);
}

static void spec_too_large_for_the_reader_is_refused(void **state)
{
    struct det_machine *rows = build_ring(2000, 11), *bytes = build_ring(2000, 7);
    struct det_error error;

    (void)state;
    assert_int_equal(det_machine_write(rows, NULL, NULL, 0, &error), DET_ERR_LIMIT);
    assert_non_null(strstr(error.text, "rows"));
    assert_int_equal(det_machine_write(bytes, NULL, NULL, 0, &error), DET_ERR_LIMIT);
    assert_non_null(strstr(error.text, "bytes"));
    det_machine_close(rows);
    det_machine_close(bytes);
}

static void states_with_equal_transitions_share_a_row(void **state)
{
    struct det_machine *machine;
    struct det_machine_builder *b = open_builder("large", NULL);
    char name[16];
    char *text;

    (void)state;
    EVENT(b, "go");
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        STATE(b, name, .flags = i == 0 ? DET_STATE_INITIAL : 0);
        ON(b, name, "go", i % 2 == 0 ? "s0" : "s1");
        if (i > 1)
            OVERRIDE(b, name, "go", name);
        if (i > 1)
            OVERRIDE(b, name, "go", i % 2 == 0 ? "s0" : "s1");
    }
    machine = build(b);
    text = write_text(machine);
    assert_non_null(strstr(text, "ON(ANY(S1, S3, S5,"));
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

/* In each state `go` keeps fields and sets a timeout; the last one does it as `odd` says. */
enum odd { ODD_NOTHING, ODD_SPAN, ODD_EVENT, ODD_FILL, ODD_KEEPS, ODD_NAME, ODD_COUNT };

static struct det_machine *build_alike(enum odd odd)
{
    static const struct det_field fields[] = {
        { .name = "cents", .kind = DET_KIND_UNSIGNED, .size = 8 },
        { .name = "euros", .kind = DET_KIND_UNSIGNED, .size = 8, .offset = 8 },
    };
    static const struct det_record money = { "money", 1, 16, fields, 2 };
    struct det_machine_builder *b = open_builder("alike", NULL);

    det_machine_builder_data(b, &money);
    EVENT(b, "go", .payload = &money);
    EVENT(b, "late");
    EVENT(b, "later");
    det_machine_builder_fill(b, "since", NULL);
    for (int i = 0; i < 3; i++) {
        char name[] = { (char)('a' + i), '\0' };
        enum odd here = i == 2 ? odd : ODD_NOTHING;

        STATE(b, name, .flags = i == 0 ? DET_STATE_INITIAL : 0);
        ON(b, name, "go", "a",
           .keeps = here == ODD_KEEPS  ? DET_LIST("cents", "euros")
                    : here == ODD_NAME ? DET_LIST("euros")
                                       : DET_LIST("cents"),
           .within = { here == ODD_SPAN ? DET_HOUR : DET_MINUTE,
                       here == ODD_EVENT ? "later" : "late", here == ODD_FILL ? NULL : "since" });
        ON(b, name, "late", "b");
        ON(b, name, "later", "c");
    }
    return build(b);
}

static void only_states_with_equal_transitions_share_a_row(void **state)
{
    (void)state;
    for (int odd = ODD_NOTHING; odd < ODD_COUNT; odd++) {
        struct det_machine *machine = build_alike((enum odd)odd);
        char *text = write_text(machine);
        bool is_shared = strstr(text, "ON(ANY(A, B, C), GO,") != NULL;

        if (is_shared != (odd == ODD_NOTHING))
            fail_msg("%d: %s", odd, text);
        check_text(machine, text);
        free(text);
        det_machine_close(machine);
    }
}

/* Nothing that counts produces the internal event, or enters the state. */
static void declarations_used_by_overridden_rows_are_written(void **state)
{
    struct det_machine_builder *b = open_small();
    struct det_machine *machine;
    char *text;

    (void)state;
    EVENT(b, "tick", .is_internal = true);
    STATE(b, "b");
    ON(b, "a", "go", "b", .within = { DET_SECOND, "tick", NULL });
    OVERRIDE(b, "a", "go", "a");
    ON(b, "b", "tick", "a");
    machine = build(b);
    text = write_text(machine);
    assert_non_null(strstr(text, "WITHIN(SECONDS(1), TICK)"));
    check_text(machine, text);
    free(text);
    det_machine_close(machine);
}

static int write_once(struct det_test_memory *memory, void *argument)
{
    struct det_buffer text;
    struct det_error error;
    int r;

    det_buffer_init(&text, &memory->allocator);
    det_buffer_append_text(&text, "before");
    r = det_buffer_status(&text);
    if (r == 0)
        r = det_write_machine(argument, &text, &error);
    if (r < 0 && text.size > 0)
        assert_string_equal(det_buffer_text(&text), "before");
    if (r == 0)
        assert_true(text.size > 1000);
    det_buffer_deinit(&text);
    return r;
}

static void write_survives_every_failed_allocation(void **state)
{
    const char *path = DET_SOURCE_DIR "/src/machine/template_test.fsm";
    size_t size;
    char *text = det_test_read_file(path, &size);
    struct det_spec *spec = read_spec(path, text);

    (void)state;
    det_test_each_failure(write_once, det_spec_machine(spec));
    det_spec_close(spec);
    free(text);
}

static void short_buffer_gets_the_beginning_of_the_text(void **state)
{
    struct det_machine_builder *b = open_small();
    struct det_machine *machine;
    char target[9];

    (void)state;
    STAY(b, "a", DET_LIST("go"));
    machine = build(b);
    assert_true(det_machine_write(machine, NULL, target, sizeof target, NULL) > 9);
    assert_string_equal(target, "#define ");
    det_machine_close(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_good_spec_is_written_and_read_as_the_same_machine),
        cmocka_unit_test(machine_name_reserved_in_c_gets_another_prefix),
        cmocka_unit_test(every_spec_of_the_tree_is_written_and_read_as_the_same_machine),
        cmocka_unit_test(random_machines_of_a_builder_are_written_and_read_as_the_same),
        cmocka_unit_test(machine_without_a_spec_form_is_refused_with_a_reason),
        cmocka_unit_test(two_records_of_one_name_must_be_the_same),
        cmocka_unit_test(enums_of_one_name_must_be_the_same_and_begin_with_0),
        cmocka_unit_test(names_in_c_are_made_so_that_none_is_taken_twice),
        cmocka_unit_test(generated_c_names_avoid_reserved_names),
        cmocka_unit_test(times_and_texts_are_exact),
        cmocka_unit_test(spec_too_large_for_the_reader_is_refused),
        cmocka_unit_test(states_with_equal_transitions_share_a_row),
        cmocka_unit_test(only_states_with_equal_transitions_share_a_row),
        cmocka_unit_test(declarations_used_by_overridden_rows_are_written),
        cmocka_unit_test(write_survives_every_failed_allocation),
        cmocka_unit_test(short_buffer_gets_the_beginning_of_the_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
