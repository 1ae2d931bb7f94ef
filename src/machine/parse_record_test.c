/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* parse_record_test.c - records that are read have the layout that the compiler gives them. */
#include <detent/tool/machine.h>

#include "machine/parse_test.h"

#define REC_SPEC "corpus/good/parts/shop.rec"
#include <detent/rec/declare.h>
#define REC_SPEC "corpus/good/parts/layout.rec"
#include <detent/rec/declare.h>

static void check_enum(const struct det_enum *read, const struct det_enum *compiled)
{
    assert_true(read != NULL && compiled != NULL);
    if (read == NULL || compiled == NULL)
        return;
    assert_string_equal(read->name, compiled->name);
    assert_int_equal(read->value_count, compiled->value_count);
    for (size_t i = 0; i < read->value_count; i++) {
        assert_string_equal(read->values[i].name, compiled->values[i].name);
        assert_int_equal(read->values[i].value, compiled->values[i].value);
    }
}

static const char *name_of(struct det_record_ref ref)
{
    const struct det_record *record = det_record_of(ref);

    return record != NULL ? record->name : "none";
}

static uint32_t at_least_one(uint32_t version)
{
    return version > 0 ? version : 1;
}

static void check_field(const struct det_field *read, const struct det_field *compiled)
{
    assert_string_equal(read->name, compiled->name);
    assert_int_equal(read->kind, compiled->kind);
    assert_int_equal(read->flags, compiled->flags);
    assert_int_equal(at_least_one(read->since), at_least_one(compiled->since));
    assert_int_equal(read->offset, compiled->offset);
    assert_int_equal(read->size, compiled->size);
    assert_int_equal(read->capacity, compiled->capacity);
    assert_int_equal(read->presence, compiled->presence);
    assert_int_equal(read->count_max, compiled->count_max);
    if (read->kind == DET_KIND_RECORD)
        assert_string_equal(name_of(read->record), name_of(compiled->record));
    if (read->kind == DET_KIND_ENUM)
        check_enum(det_enum_of(read->enumeration), det_enum_of(compiled->enumeration));
}

static void check_record(
    const struct det_spec *spec, size_t index, const struct det_record *compiled)
{
    const struct det_record *read = det_spec_record(spec, index);
    struct det_error error;

    assert_non_null(read);
    if (det_record_check(read, &error) < 0)
        fail_msg("%s", error.text);
    assert_string_equal(read->name, compiled->name);
    assert_int_equal(read->version, compiled->version);
    assert_int_equal(read->size, compiled->size);
    assert_int_equal(read->field_count, compiled->field_count);
    for (size_t i = 0; i < read->field_count; i++)
        check_field(&read->fields[i], &compiled->fields[i]);
}

/* Reads the order machine with this file as its shared records. */
static struct det_spec *read_shared(const char *path, char **ret_text)
{
    struct test_file files[] = { { "specs/x.rec", NULL, 0 }, { NULL, NULL, 0 } };
    struct det_spec *spec;

    *ret_text = det_test_read_file(path, NULL);
    files[0].text = *ret_text;
    spec = test_spec_of(ORDER "USES(\"x.rec\")\nUSES(\"./x.rec\")\n", files);
    (void)test_machine(spec);
    return spec;
}

static void record_layout_matches_the_compiler(void **state)
{
    char *text;
    struct det_spec *spec = read_shared(DET_SOURCE_DIR "/tests/corpus/good/parts/shop.rec", &text);

    (void)state;
    check_record(spec, 0, line_record());
    check_record(spec, 1, place_record());
    check_record(spec, 2, basket_record());
    assert_null(det_spec_record(spec, 3));
    det_spec_close(spec);
    free(text);
    spec = read_shared(DET_SOURCE_DIR "/tests/corpus/good/parts/layout.rec", &text);
    check_record(spec, 0, numbers_record());
    check_record(spec, 1, gaps_record());
    check_record(spec, 2, maybes_record());
    check_record(spec, 3, lists_record());
    check_record(spec, 4, boxes_record());
    assert_null(det_spec_record(spec, 5));
    det_spec_close(spec);
    free(text);
}

static void payloads_and_data_are_records_of_the_spec(void **state)
{
    struct det_spec *spec = test_spec(
        HEAD "#define FSM_DATA kept\nEVENT(GO, go, sent)\nSTAY(PENDING, GO, KEEP(b))\n" BASE MOVE
             "RECORD(sent) FIELD(a, u8) OPTIONAL(b, u64) END RECORD(kept) OPTIONAL(b, u64) END");
    const struct det_machine *machine = test_machine(spec);
    struct {
        unsigned kind;
        struct {
            uint8_t a;
            bool has_b;
            uint64_t b;
        } sent;
    } event = { 0, { 1, true, 42 } };
    struct {
        bool has_b;
        uint64_t b;
    } kept = { false, 0 };

    (void)state;
    assert_ptr_equal(det_machine_payload(machine, 0), det_spec_record(spec, 0));
    assert_ptr_equal(det_machine_data(machine), det_spec_record(spec, 1));
    assert_ptr_equal(det_machine_payload(machine, 1), det_empty_record());
    assert_int_equal(machine->events[0].payload_offset, 8);
    assert_int_equal(
        det_machine_apply(machine, det_machine_step(machine, 0, 0), &kept, &event, NULL), 0);
    assert_true(kept.has_b);
    assert_int_equal(kept.b, 42);
    det_spec_close(spec);
}

/* The rows are on line 7, after a valid machine. */
static void is_wrong(const char *rows, enum det_rule rule, unsigned column, const char *part)
{
    char text[1024], place[64];

    (void)snprintf(text, sizeof text, "%s%s\n", ORDER, rows);
    (void)snprintf(place, sizeof place, "specs/order.fsm:7:%u", column);
    test_only(text, NULL, rule, place, part);
}

static void invalid_fields_are_refused(void **state)
{
    struct det_spec *found;

    (void)state;
    is_wrong("RECORD(r) FIELD(a, u9) END", DET_RULE_ROW_ARGUMENTS, 20, "is a type such as");
    is_wrong("RECORD(r) FIELD(a, list(u8)) END", DET_RULE_ROW_ARGUMENTS, 20, "is a type such as");
    is_wrong("RECORD(r) FIELD(a, str) END", DET_RULE_ROW_ARGUMENTS, 20, "is a type such as");
    is_wrong("RECORD(r) FIELD(a, str(0)) END", DET_RULE_ROW_ARGUMENTS, 20, "1 to 262144");
    is_wrong("RECORD(r) FIELD(a, bytes(262145)) END", DET_RULE_ROW_ARGUMENTS, 20, "1 to 262144");
    is_wrong("RECORD(r) FIELD(a, str(n)) END", DET_RULE_ROW_ARGUMENTS, 20, "1 to 262144");
    is_wrong("RECORD(r) FIELD(a, str(1, 2)) END", DET_RULE_ROW_ARGUMENTS, 20, "1 to 262144");
    is_wrong("RECORD(r) FIELD(a, nested(5)) END", DET_RULE_ROW_ARGUMENTS, 20, "one name inside");
    is_wrong("RECORD(r) FIELD(a, one_of()) END", DET_RULE_ROW_ARGUMENTS, 20, "one name inside");
    is_wrong("RECORD(r) FIELD(a, nested(r)) END", DET_RULE_UNKNOWN_RECORD, 27, "unknown record r");
    is_wrong("RECORD(r) FIELD(a, one_of(e)) END", DET_RULE_UNKNOWN_RECORD, 27, "unknown enum e");
    found = test_spec(ORDER "RECORD(r) FIELD(a, one_of(e)) END\n");
    assert_string_equal(test_finding(found, DET_RULE_UNKNOWN_RECORD, "")->text, "unknown enum e");
    det_spec_close(found);
    is_wrong("RECORD(r) ARRAY(a, u8, 0) END", DET_RULE_ROW_ARGUMENTS, 24, "a number from 1");
    is_wrong("RECORD(r) FIELD(a, u8, SECRET) END", DET_RULE_ROW_ARGUMENTS, 24, "SENSITIVE or");
    is_wrong(
        "RECORD(r) FIELD(a, u8, SENSITIVE, SENSITIVE) END", DET_RULE_ROW_ARGUMENTS, 35,
        "each once");
    is_wrong(
        "RECORD(r) FIELD(a, u8, SINCE(0)) END", DET_RULE_ROW_ARGUMENTS, 30, "a version from 1");
    is_wrong("RECORD(r) FIELD(a, u8, SINCE()) END", DET_RULE_ROW_ARGUMENTS, 24, "SINCE(version)");
    is_wrong("RECORD(r, 2) FIELD(a, u8, SINCE(3)) END", DET_RULE_BAD_RECORD, 20, "a is newer");
    is_wrong("RECORD(r) FIELD(a, u8) FIELD(a, u8) END", DET_RULE_BAD_RECORD, 30, "already a field");
    is_wrong(
        "RECORD(r) OPTIONAL(a, u8) FIELD(has_a, u8) END", DET_RULE_BAD_RECORD, 33,
        "already a field");
    is_wrong(
        "RECORD(r) FIELD(a_count, u8) ARRAY(a, u8, 2) END", DET_RULE_BAD_RECORD, 36,
        "already a field");
    is_wrong(
        "RECORD(r) ARRAY(has_a, u8, 2) OPTIONAL(a_count, u8) END", DET_RULE_BAD_RECORD, 40,
        "already a field");
    is_wrong("RECORD(r) FIELD(for, u8) END", DET_RULE_BAD_NAME, 17, "for is a keyword of C");
}

static void invalid_records_and_enums_are_refused(void **state)
{
    (void)state;
    is_wrong("RECORD(r) END", DET_RULE_BAD_RECORD, 1, "r has no fields");
    is_wrong("ENUM(e) END", DET_RULE_BAD_RECORD, 1, "e has no values");
    is_wrong("RECORD(r, 0) FIELD(a, u8) END", DET_RULE_ROW_ARGUMENTS, 11, "a version from 1");
    is_wrong("RECORD() FIELD(a, u8) END", DET_RULE_ROW_ARGUMENTS, 1, "RECORD has 0 arguments");
    is_wrong("ENUM() VALUE(A, a) END", DET_RULE_ROW_ARGUMENTS, 1, "ENUM has 0 arguments");
    is_wrong("RECORD(r) FIELD(a, u8)", DET_RULE_BAD_RECORD, 1, "r has no END");
    is_wrong("RECORD(r) FIELD(a, u8) ENUM(e) VALUE(A, a) END", DET_RULE_BAD_RECORD, 1, "no END");
    is_wrong("FIELD(a, u8)", DET_RULE_BAD_RECORD, 1, "FIELD belongs between RECORD and END");
    is_wrong(
        "ENUM(e) VALUE(A, a) ARRAY(a, u8, 3) END", DET_RULE_BAD_RECORD, 21,
        "ARRAY belongs between RECORD and END");
    is_wrong(
        "RECORD(r) FIELD(a, u8) VALUE(A, a) END", DET_RULE_BAD_RECORD, 24,
        "VALUE belongs between ENUM and END");
    is_wrong("END", DET_RULE_BAD_RECORD, 1, "END ends nothing");
    is_wrong("RECORD(r) FIELD(a, u8) END(x)", DET_RULE_BAD_RECORD, 24, "END has no arguments");
    is_wrong(
        "RECORD(r) FIELD(a, u8) END RECORD(r) FIELD(a, u8) END", DET_RULE_DUPLICATE_NAME, 35,
        "duplicate record or enum r");
    is_wrong(
        "ENUM(e) VALUE(A, a) END ENUM(e) VALUE(B, b) END", DET_RULE_DUPLICATE_NAME, 30,
        "duplicate record or enum e");
    is_wrong("ENUM(e) VALUE(A, a) VALUE(A, b) END", DET_RULE_BAD_RECORD, 27, "already a value");
    is_wrong("ENUM(e) VALUE(A, a) VALUE(B, a) END", DET_RULE_BAD_RECORD, 27, "name on disk");
    is_wrong(
        "ENUM(e) VALUE(A, a) END ENUM(f) VALUE(A, a) END", DET_RULE_BAD_RECORD, 39,
        "A is already a value of this or of another enum");
    is_wrong("RECORD(r) ARRAY(a, str(600), 600) END", DET_RULE_BAD_RECORD, 1, "more than 262144");
}

static void mistake_in_an_enum_is_reported_once(void **state)
{
    (void)state;
    is_wrong(
        "ENUM(e) VALUE(if, a) END RECORD(r) FIELD(a, one_of(e)) END", DET_RULE_BAD_NAME, 15,
        "if is a keyword of C");
}

static void record_without_end_is_still_declared(void **state)
{
    (void)state;
    is_wrong("RECORD(r) EVENT(E, e, r) STAY(PENDING, E)", DET_RULE_BAD_RECORD, 1, "r has no END");
    is_wrong(
        "RECORD(r) FIELD(a, u8)\nRECORD(s) FIELD(a, nested(r)) FIELD(b, u8) END\n"
        "EVENT(E, e, s) STAY(PENDING, E)\n#define FSM_DATA r\nSTAY(PAID, E, KEEP(a))",
        DET_RULE_BAD_RECORD, 1, "r has no END");
    is_wrong(
        "ENUM(e) VALUE(A, a)\nRECORD(r) FIELD(a, one_of(e)) END", DET_RULE_BAD_RECORD, 1,
        "e has no END");
    is_wrong("ENUM(e)\nRECORD(r) FIELD(a, one_of(e)) END", DET_RULE_BAD_RECORD, 1, "e has no END");
}

/* Writes `count` rows between two texts; every # in a row is its number. */
static char *numbered(const char *head, const char *row, int count, const char *tail)
{
    size_t capacity = strlen(head) + strlen(tail) + (size_t)count * (strlen(row) + 16) + 1;
    char *text = malloc(capacity);
    size_t used;

    assert_non_null(text);
    used = (size_t)snprintf(text, capacity, "%s", head);
    for (int i = 0; i < count; i++) {
        for (const char *c = row; *c != '\0'; c++) {
            if (*c == '#')
                used += (size_t)snprintf(text + used, capacity - used, "%d", i);
            else
                text[used++] = *c;
        }
    }
    (void)snprintf(text + used, capacity - used, "%s", tail);
    return text;
}

static void fields_and_values_are_bounded(void **state)
{
    char *text = numbered(ORDER "RECORD(r)\n", "FIELD(f#, u8)\n", DET_RECORD_FIELD_MAX, "END\n");

    (void)state;
    det_spec_close(test_spec(text));
    free(text);
    text = numbered(ORDER "RECORD(r)\n", "FIELD(f#, u8)\n", DET_RECORD_FIELD_MAX + 1, "END\n");
    test_only(text, NULL, DET_RULE_BAD_RECORD, "specs/order.fsm:264:7", "f256 is one too many");
    free(text);
    text = numbered(ORDER "ENUM(e)\n", "VALUE(V#, w#)\n", DET_ENUM_VALUE_MAX + 1, "END\n");
    test_only(text, NULL, DET_RULE_BAD_RECORD, "specs/order.fsm:1032:7", "V1024 is one too many");
    free(text);
}

static void records_nest_eight_deep(void **state)
{
    char text[1024];
    size_t used = (size_t)snprintf(text, sizeof text, "%sRECORD(r0) FIELD(a, u8) END\n", ORDER);
    struct det_spec *spec;

    (void)state;
    for (int i = 1; i < DET_RECORD_DEPTH_MAX; i++)
        used += (size_t)snprintf(
            text + used, sizeof text - used, "RECORD(r%d) FIELD(a, nested(r%d)) END\n", i, i - 1);
    spec = test_spec(text);
    assert_non_null(det_spec_machine(spec));
    assert_int_equal(det_record_check(det_spec_record(spec, 7), NULL), 0);
    det_spec_close(spec);
    (void)snprintf(text + used, sizeof text - used, "RECORD(r8) FIELD(a, nested(r7)) END\n");
    test_only(text, NULL, DET_RULE_BAD_RECORD, "specs/order.fsm:15:18", "a is nested too deep");
}

static void a_file_of_records_has_records_only(void **state)
{
    static const struct test_file known[] = {
        { "specs/a.rec", "STATE(X, x)\nRECORD(r) FIELD(a, u8) END", 0 },
        { "specs/b.rec", "#include \"c.rec\"\nRECORD(s) FIELD(a, nested(t)) END", 0 },
        { "specs/c.rec", "RECORD(t) FIELD(a, u8) END", 0 },
        { "specs/d.rec", "RECORD(t) FIELD(a, u8)", 0 },
        { NULL, NULL, 0 },
    };

    (void)state;
    test_only(
        ORDER "USES(\"a.rec\")\n", known, DET_RULE_UNKNOWN_ROW, "specs/a.rec:1:1",
        "STATE does not belong in a file of records");
    det_spec_close(
        test_spec_of(ORDER "RECORD(u) FIELD(a, nested(s)) END USES(\"b.rec\")\n", known));
    test_only(
        ORDER "USES(\"d.rec\") END\n", known, DET_RULE_BAD_RECORD, "specs/d.rec:1:1",
        "t has no END");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(record_layout_matches_the_compiler),
        cmocka_unit_test(payloads_and_data_are_records_of_the_spec),
        cmocka_unit_test(invalid_fields_are_refused),
        cmocka_unit_test(invalid_records_and_enums_are_refused),
        cmocka_unit_test(mistake_in_an_enum_is_reported_once),
        cmocka_unit_test(record_without_end_is_still_declared),
        cmocka_unit_test(fields_and_values_are_bounded),
        cmocka_unit_test(records_nest_eight_deep),
        cmocka_unit_test(a_file_of_records_has_records_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
