/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* allocation_test.c - nothing that handles records takes memory. The linker sends every call of the
 * library to the three functions here (see CMakeLists.txt), which fail the test while it
 * watches. */
/* test: alone */
#define REC_SPEC "record/template_test.rec"
#include <detent/rec/declare.h>

#include "lib/test.h"

/* The names that --wrap gives to the functions; ours call the original ones. */
void *real_malloc(size_t size) __asm__("__real_malloc");
void *real_calloc(size_t count, size_t size) __asm__("__real_calloc");
void *real_realloc(void *pointer, size_t size) __asm__("__real_realloc");
void *watched_malloc(size_t size) __asm__("__wrap_malloc");
void *watched_calloc(size_t count, size_t size) __asm__("__wrap_calloc");
void *watched_realloc(void *pointer, size_t size) __asm__("__wrap_realloc");

static bool watching;
static unsigned allocations;

void *watched_malloc(size_t size)
{
    allocations += watching;
    return real_malloc(size);
}

void *watched_calloc(size_t count, size_t size)
{
    allocations += watching;
    return real_calloc(count, size);
}

void *watched_realloc(void *pointer, size_t size)
{
    allocations += watching;
    return real_realloc(pointer, size);
}

/* Every function of record.h, on a value with something in every kind of field. */
static void use_everything(void)
{
    struct every value = { .i = 0.1, .l = "abc", .has_note = true, .lines_count = 2 }, again;
    uint8_t bytes[512];
    char text[2048];
    int64_t size;
    size_t length;

    assert_int_equal(det_record_check(every_record(), NULL), 0);
    assert_int_equal(det_record_validate(every_record(), &value, NULL), 0);
    size = det_record_encode(every_record(), &value, bytes, sizeof bytes, NULL);
    assert_int_equal(det_record_decode(every_record(), bytes, (size_t)size, &again, NULL), 0);
    assert_true(det_record_equal(every_record(), &value, &again));
    length = det_record_to_json(every_record(), &value, DET_TEXT_REVEAL, text, sizeof text);
    assert_int_equal(det_record_from_json(every_record(), text, length, 0, &again, NULL), 0);
    assert_true(det_record_from_json(every_record(), text, length - 1, 0, &again, NULL) < 0);
    assert_true(det_record_print(every_record(), &value, 0, text, sizeof text) > 0);
}

static void allocation_counter_sees_library_allocations(void **state)
{
    const struct det_allocator *allocator = det_allocator_default();
    void *block;

    (void)state;
    watching = true;
    block = allocator->resize(allocator->context, NULL, 0, 100);
    watching = false;
    assert_non_null(block);
    assert_true(allocations > 0);
    allocator->resize(allocator->context, block, 100, 0);
}

static void records_allocate_no_memory(void **state)
{
    (void)state;
    allocations = 0;
    watching = true;
    use_everything();
    watching = false;
    assert_int_equal(allocations, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocation_counter_sees_library_allocations),
        cmocka_unit_test(records_allocate_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
