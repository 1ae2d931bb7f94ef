/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* c_functions_test.c - the functions that a C file defines are found. */
#include "codegen/codegen.h"

#include "lib/test.h"

/* The names found, each preceded by a space. */
struct found {
    char text[1024];
    size_t size;
};

static void note(void *context, struct det_view name)
{
    struct found *found = context;

    found->size += (size_t)snprintf(
        found->text + found->size, sizeof found->text - found->size, " %.*s", (int)name.size,
        name.data);
}

static void assert_found(const char *text, const char *wanted)
{
    struct found found = { .size = 0 };
    size_t size = strlen(text);
    /* A copy without a terminating zero, so that sanitizers find reads past its end. */
    char *copy = malloc(size ? size : 1);

    assert_non_null(copy);
    for (size_t i = 0; i < size; i++)
        copy[i] = text[i];
    gen_functions(det_view_of(copy, size), note, &found);
    free(copy);
    assert_string_equal(found.text, wanted);
}

static void c_function_definitions_are_found(void **state)
{
    (void)state;
    assert_found("", "");
    assert_found("static int ring(void)\n{\n    return f(1);\n}\n", " ring");
    assert_found("int a(void) { return 0; } int b(int x) { if (x) { c(); } return 0; }", " a b");
    assert_found("int\na\n(\nvoid\n)\n{\n}\n", " a");
    assert_found("int a(int (*f)(int)) { return f(1); }\n", " a");
    assert_found("int a(void) /* { */ // }\n{ }", " a");
}

static void c_declarations_and_calls_are_ignored(void **state)
{
    (void)state;
    assert_found("static int ring(void);\nint x = ring();\n", "");
    assert_found("struct s t = { .f = ring(1), .g = { 2 } };\nint b(void) {}\n", " b");
    assert_found("int a[] = { [0] = f(1) }, c = 2;\nint b(void) {}\n", " b");
    assert_found("struct s { int x; };\nenum e { A = 1 };\nint b(void) {}\n", " b");
    assert_found("/* int a(void) {} */ // int a(void) {}\n", "");
    assert_found("const char *x = \"int a(void) {\\\"}\"; char y = '{'; char z = '\\'';", "");
    assert_found("int b(void)\n{\n    a(1);\n    if (c(2)) { }\n}\n", " b");
}

static void macros_around_a_c_definition_are_tolerated(void **state)
{
    (void)state;
    assert_found(
        "PRINTF(1, 2) static int a(void) __attribute__((cold))\n{\n}\n", " PRINTF a __attribute__");
    assert_found(
        "#define ring other_ring\n#  define two(x) \\\n  { x\nint b(void) {}\n", " ring two b");
    assert_found(
        "#define GLOB \"src/*.c\"\nint b(void) {}\n#define C '*'\nint c(void) {}\n", " GLOB b C c");
    assert_found("#include <a(b){>\n#if X /* {\n } */\nint b(void) {}\n#endif\n", " b");
    assert_found(
        "int a(void)\n{\n#ifdef X\n  if (x) {\n#else\n  {\n#endif\n  }\n}\n"
        "int b(void)\n{\n}\n",
        " a b");
}

static void truncated_c_source_is_read_to_its_end(void **state)
{
    (void)state;
    assert_found("int a(", "");
    assert_found("int a(void) {", " a");
    assert_found("int a(void) { \"", " a");
    assert_found("'\\", "");
    assert_found("/*", "");
    assert_found("/* *", "");
    assert_found("//", "");
    assert_found("#", "");
    assert_found("#define", " ");
    assert_found("#define a \\", " a");
    assert_found("} } ) ) int a(void) {}", " a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c_function_definitions_are_found),
        cmocka_unit_test(c_declarations_and_calls_are_ignored),
        cmocka_unit_test(macros_around_a_c_definition_are_tolerated),
        cmocka_unit_test(truncated_c_source_is_read_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
