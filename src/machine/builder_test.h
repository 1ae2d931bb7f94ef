/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* builder_test.h - short definitions for tests, and their expected findings.
 *
 * The order machine of these suites has rows 1 to 20 and no finding, so a test that adds a row adds
 * row 21, and every finding is caused by it. */
#ifndef DET_MACHINE_BUILDER_TEST_H
#define DET_MACHINE_BUILDER_TEST_H

#include <detent/tool/builder.h>

#include "lib/test.h"

#define STATE(b, ...) det_machine_builder_state(b, &(struct det_state_row){ .name = __VA_ARGS__ })
#define EVENT(b, ...) det_machine_builder_event(b, &(struct det_event_row){ .name = __VA_ARGS__ })
#define EFFECT(b, ...) \
    det_machine_builder_effect(b, &(struct det_effect_row){ .name = __VA_ARGS__ })
#define TIMER(b, n, d, ...)    \
    det_machine_builder_timer( \
        b, &(struct det_timer_row){ n, { .after = (d), .event = __VA_ARGS__ } })
#define GROUP(b, n, ...)       \
    det_machine_builder_group( \
        b, &(struct det_group_row){ .name = n, .members = DET_LIST(__VA_ARGS__) })
#define EVENT_GROUP(b, n, ...)      \
    det_machine_builder_group(      \
        b, &(struct det_group_row){ \
               .name = n, .members = DET_LIST(__VA_ARGS__), .is_of_events = true })
#define ON_LISTS(b, ...) det_machine_builder_on(b, &(struct det_on_row){ __VA_ARGS__ })
/* The last argument is the target, perhaps with extras after it. */
#define ON(b, s, e, ...)                                                            \
    ON_LISTS(                                                                       \
        b, .from = DET_LIST(s), .events = DET_LIST(e), .outcome = DET_OUTCOME_GOTO, \
        .to = __VA_ARGS__)
#define OVERRIDE(b, s, e, ...)                                                      \
    ON_LISTS(                                                                       \
        b, .from = DET_LIST(s), .events = DET_LIST(e), .outcome = DET_OUTCOME_GOTO, \
        .is_override = true, .to = __VA_ARGS__)
/* The last argument is a DET_LIST() of events, perhaps with extras after it. */
#define STAY(b, s, ...) \
    ON_LISTS(b, .from = DET_LIST(s), .outcome = DET_OUTCOME_STAY, .events = __VA_ARGS__)
#define STOP(b, s, ...) \
    ON_LISTS(b, .from = DET_LIST(s), .outcome = DET_OUTCOME_STOP, .events = __VA_ARGS__)
#define AFTER(b, s, d, ...)    \
    det_machine_builder_after( \
        b, DET_LIST(s), &(struct det_timeout_row){ .after = (d), .event = __VA_ARGS__ })

struct payment {
    uint64_t cents;
    bool has_note;
    char note[9];
};

static const struct det_field payment_fields[] = {
    { .name = "cents",
      .kind = DET_KIND_UNSIGNED,
      .offset = offsetof(struct payment, cents),
      .size = 8 },
    { .name = "note",
      .kind = DET_KIND_TEXT,
      .flags = DET_FIELD_OPTIONAL,
      .offset = offsetof(struct payment, note),
      .size = 9,
      .capacity = 8,
      .presence = offsetof(struct payment, has_note) },
};

static const struct det_record payment_record = { .name = "payment",
                                                  .version = 1,
                                                  .size = sizeof(struct payment),
                                                  .fields = payment_fields,
                                                  .field_count = 2 };

static inline struct det_machine_builder *open_builder(
    const char *name, const struct det_allocator *allocator)
{
    struct det_machine_builder *builder = NULL;

    if (det_machine_builder_open(name, allocator, &builder) < 0)
        return NULL;
    return builder;
}

static inline void add_order_rows(struct det_machine_builder *b)
{
    STATE(b, "PENDING", .wire = "pending", .flags = DET_STATE_INITIAL);
    STATE(b, "CHARGING", .wire = "charging");
    STATE(b, "PAID", .wire = "paid");
    STATE(b, "SHIPPED", .wire = "shipped", .flags = DET_STATE_FINAL);
    STATE(b, "CANCELLED", .wire = "cancelled", .flags = DET_STATE_FINAL);
    EVENT(b, "PAY", .wire = "pay", .payload = &payment_record);
    EVENT(b, "SHIP", .wire = "ship");
    EVENT(b, "CANCEL", .wire = "cancel");
    EVENT(b, "CHARGED", .wire = "charged", .is_internal = true);
    EVENT(b, "DECLINED", .wire = "declined", .is_internal = true);
    EVENT(b, "EXPIRED", .wire = "expired", .is_internal = true);
    EFFECT(b, "charge_card", .produces = DET_LIST("CHARGED", "DECLINED"));
    ON(b, "PENDING", "PAY", "CHARGING", .effects = DET_LIST("charge_card"));
    ON(b, "CHARGING", "CHARGED", "PAID");
    ON(b, "CHARGING", "DECLINED", "PENDING");
    ON(b, "PAID", "SHIP", "SHIPPED");
    STAY(b, "PAID", DET_LIST("PAY"));
    ON(b, "PENDING", "EXPIRED", "CANCELLED");
    ON_LISTS(
        b, .from = DET_LIST("PENDING", "CHARGING", "PAID"), .events = DET_LIST("CANCEL"),
        .outcome = DET_OUTCOME_GOTO, .to = "CANCELLED");
    AFTER(b, "PENDING", 30 * DET_MINUTE, "EXPIRED");
}

static inline struct det_machine_builder *open_order(void)
{
    struct det_machine_builder *builder = open_builder("order", NULL);

    assert_non_null(builder);
    add_order_rows(builder);
    return builder;
}

/* "duplicate-transition@21 overrides@22" of the findings. */
static inline void list_findings(const struct det_diagnostics *found, char *target, size_t capacity)
{
    size_t used = 0;

    target[0] = '\0';
    for (size_t i = 0; i < found->count && used < capacity; i++) {
        const struct det_diagnostic *finding = &found->items[i];

        assert_non_null(finding->text);
        assert_int_equal(finding->severity, det_rule_severity(finding->rule));
        used += (size_t)snprintf(
            target + used, capacity - used, "%s%s@%u", i > 0 ? " " : "", det_rule_id(finding->rule),
            finding->place.line);
    }
}

/* Builds, compares the findings and the text and hint of the first one (NULL: any), and closes the
 * builder. Returns the machine, or NULL when the definition is broken; it must be as the errors
 * among the findings say. */
static inline struct det_machine *expect_machine(
    struct det_machine_builder *builder, const char *findings, const char *text, const char *hint)
{
    struct det_machine *machine = NULL;
    struct det_diagnostics found;
    char list[2048];
    int r = det_machine_builder_build(builder, &machine, &found);

    list_findings(&found, list, sizeof list);
    assert_string_equal(list, findings);
    assert_int_equal(r, found.error_count > 0 ? DET_ERR_DEFINITION : 0);
    assert_int_equal(machine == NULL, found.error_count > 0);
    if (text != NULL)
        assert_string_equal(found.items[0].text, text);
    if (hint != NULL) {
        assert_non_null(found.items[0].hint);
        assert_string_equal(found.items[0].hint, hint);
    }
    det_machine_builder_close(builder);
    return machine;
}

static inline void expect(
    struct det_machine_builder *builder, const char *findings, const char *text, const char *hint)
{
    det_machine_close(expect_machine(builder, findings, text, hint));
}

#endif
