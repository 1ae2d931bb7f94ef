/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* lines_test.c - lines from bytes, however they come; and how many of them may pass. */
#include "lib/test.h"

#include "task/lines.h"

#define DIARY_MAX 65536

/* The delivered lines: "text|" for a line, "text+" for a piece, "<7>" for 7 dropped bytes. */
struct diary {
    char text[DIARY_MAX];
    size_t size;
    uint64_t bytes; /* of lines */
    uint64_t notices;
    struct det_lines lines;
};

static void put(struct diary *diary, const char *text, size_t size)
{
    assert_true(diary->size + size < DIARY_MAX);
    memcpy(diary->text + diary->size, text, size);
    diary->size += size;
    diary->text[diary->size] = '\0';
}

static void write_line(void *user, const struct det_line *line)
{
    struct diary *into = user;
    char number[32];

    into->bytes += line->size;
    into->notices += line->dropped > 0;

    assert_int_equal(0, line->id);
    assert_null(line->name);
    assert_int_equal(DET_STREAM_ERROR, line->stream);
    assert_true(line->size <= DET_LINE_MAX);
    if (line->dropped) {
        (void)snprintf(number, sizeof number, "<%llu>", (unsigned long long)line->dropped);
        put(user, number, strlen(number));
    }
    put(user, line->text, line->size);
    put(user, line->is_cut ? "+" : "|", 1);
}

static struct diary diary;

static int begin(void **state)
{
    (void)state;
    diary = (struct diary){ .lines = {
                                .stream = DET_STREAM_ERROR,
                                .on_line = write_line,
                                .user = &diary,
                            } };
    return 0;
}

static void feed(const char *text)
{
    det_lines_feed(&diary.lines, text, strlen(text));
}

static void drop(const char *text)
{
    det_lines_drop(&diary.lines, text, strlen(text));
}

static void lines_are_independent_of_the_input_chunks(void **state)
{
    const char *text = "one\n\ntwo\r\n\r\nthr\ree\n \r\r\nlast";

    for (size_t part = 1; part <= strlen(text); part++) {
        begin(state);
        for (size_t at = 0; at < strlen(text); at += part) {
            size_t left = strlen(text) - at;

            det_lines_feed(&diary.lines, text + at, left < part ? left : part);
        }
        assert_string_equal("one||two||thr\ree| \r|", diary.text);
        det_lines_end(&diary.lines);
        assert_string_equal("one||two||thr\ree| \r|last|", diary.text);
    }
}

static void stream_ending_with_a_newline_has_no_further_line(void **state)
{
    (void)state;
    feed("a\n");
    det_lines_end(&diary.lines);
    assert_string_equal("a|", diary.text);
}

/* A line of `size` bytes and its end, in parts of `part` bytes; compares with what is expected. */
static void long_line_is(size_t size, const char *end, size_t part)
{
    static char text[3 * DET_LINE_MAX], expected[4 * DET_LINE_MAX];
    size_t length = 0, total = size + strlen(end);

    begin(NULL);
    memset(text, 'x', size);
    memcpy(text + size, end, total - size);
    for (size_t left = size; left; length++) {
        size_t piece = left < DET_LINE_MAX ? left : DET_LINE_MAX;

        memset(expected + length, 'x', piece);
        length += piece;
        left -= piece;
        expected[length] = left ? '+' : '|';
    }
    expected[length] = '\0';
    for (size_t at = 0; at < total; at += part)
        det_lines_feed(&diary.lines, text + at, total - at < part ? total - at : part);
    assert_string_equal(expected, diary.text);
}

static void a_long_line_comes_in_pieces_and_only_the_last_is_not_cut(void **state)
{
    const size_t max = DET_LINE_MAX;
    const size_t sizes[] = { max - 1,     max,     max + 1,     max + 2,
                             2 * max - 1, 2 * max, 2 * max + 1, 2 * max + 2 };
    const size_t parts[] = { 1, 7, max, max + 1, 3 * max };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
            long_line_is(sizes[i], "\n", parts[k]);
            long_line_is(sizes[i], "\r\n", parts[k]);
        }
}

static void a_cr_in_a_long_line_stays_in_it(void **state)
{
    static char text[DET_LINE_MAX + 2];

    (void)state;
    memset(text, 'x', DET_LINE_MAX);
    det_lines_feed(&diary.lines, text, DET_LINE_MAX);
    feed("\r");
    assert_string_equal("", diary.text);
    feed("y\n");
    assert_string_equal("+\ry|", diary.text + DET_LINE_MAX);
    begin(state);
    det_lines_feed(&diary.lines, text, DET_LINE_MAX);
    feed("\r");
    det_lines_end(&diary.lines);
    assert_string_equal("|", diary.text + DET_LINE_MAX);
}

static void dropped_bytes_are_counted_with_the_next_line(void **state)
{
    (void)state;
    feed("one\ntw");
    drop("o and m");
    feed("ore\nthree\nfour\n");
    assert_string_equal("one|tw+<11>three|four|", diary.text);
    drop("5\n");
    drop("");
    feed("six\n");
    assert_string_equal("one|tw+<11>three|four|<2>six|", diary.text);
}

static void bytes_dropped_at_the_end_are_reported_without_a_line(void **state)
{
    (void)state;
    feed("one");
    drop(" and");
    feed(" more");
    det_lines_end(&diary.lines);
    assert_string_equal("one+<9>+", diary.text);
    assert_false(diary.lines.is_skipping);
    det_lines_end(&diary.lines);
    assert_string_equal("one+<9>+", diary.text);
}

static void any_bytes_pass_as_they_are(void **state)
{
    char bytes[256];

    (void)state;
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    det_lines_feed(&diary.lines, bytes, sizeof bytes);
    det_lines_end(&diary.lines);
    /* The end of the line, byte 10, is the only one that is not there. */
    bytes[10] = '|';
    assert_int_equal(257, diary.size);
    assert_memory_equal(bytes, diary.text, sizeof bytes);
    assert_int_equal('|', diary.text[256]);
}

/* Against a model: all bytes are either in lines, or dropped, and none is in two. */
static void random_feeds_and_drops_lose_no_byte(void **state)
{
    uint64_t seed = 5, ends = 0, total = 0;
    char text[300];

    (void)state;
    for (int i = 0; i < 300; i++) {
        size_t size = det_test_random(&seed) % sizeof text;

        for (size_t k = 0; k < size; k++) {
            text[k] = det_test_random(&seed) % 40 ? 'x' : '\n';
            ends += text[k] == '\n';
        }
        total += size;
        if (det_test_random(&seed) % 4)
            det_lines_feed(&diary.lines, text, size);
        else
            det_lines_drop(&diary.lines, text, size);
    }
    det_lines_end(&diary.lines);
    for (const char *at = diary.text; *at; at++) {
        if (*at == '<')
            total -= strtoull(at + 1, NULL, 10);
        total -= *at == 'x' || *at == '|';
    }
    /* The last line may have had no newline. */
    assert_true(total == 0 || total == UINT64_MAX);
    assert_true(ends > 100);
}

static void feed_within(struct det_throttle *throttle, const char *text, det_time now)
{
    det_lines_feed_within(&diary.lines, throttle, text, strlen(text), now);
}

static void lines_over_the_rate_are_dropped_and_reported_each_second(void **state)
{
    struct det_throttle throttle;

    (void)state;
    det_throttle_init(&throttle, 10, 0);
    feed_within(&throttle, "one\ntwo\nthree\nfour\n", 0);
    feed_within(&throttle, "five\n", DET_SECOND / 2);
    /* It began while two bytes were left; the next second has less. */
    assert_string_equal(diary.text, "one|two|three|");
    feed_within(&throttle, "six\nseven", DET_SECOND);
    feed_within(&throttle, "teen\neight\nnine\n", DET_SECOND);
    assert_string_equal(diary.text, "one|two|three|<10>six|seventeen|");
    feed_within(&throttle, "ten\n", 3 * DET_SECOND);
    assert_string_equal(diary.text, "one|two|three|<10>six|seventeen|<11>ten|");
}

static void a_line_without_an_end_is_cut_when_nothing_is_left(void **state)
{
    static char data[3 * DET_LINE_MAX];
    struct det_throttle throttle;

    (void)state;
    memset(data, 'a', sizeof data);
    det_throttle_init(&throttle, 10, 0);
    for (int i = 0; i < 8; i++)
        det_lines_feed_within(&diary.lines, &throttle, data, sizeof data, 0);
    assert_true(throttle.left >= 10 - 2 * (int64_t)DET_LINE_MAX - 1);
    assert_true(diary.lines.is_skipping);
    feed_within(&throttle, "b\nc\n", DET_HOUR);
    /* The line that was cut ends with its own end. */
    assert_non_null(strstr(diary.text, ">c|"));
    assert_null(strchr(diary.text, 'b'));
}

/* 1 KiB a second, and a process that writes 1 MiB in lines. */
static void throttle_keeps_the_average_and_whole_lines(void **state)
{
    struct det_throttle throttle;
    uint64_t seed = 7;
    char text[200];

    (void)state;
    det_throttle_init(&throttle, 1024, 0);
    for (int i = 0; i < 10000; i++) {
        size_t size = det_test_random(&seed) % 180 + 1;

        memset(text, 'x', size);
        text[size - 1] = '\n';
        det_lines_feed_within(&diary.lines, &throttle, text, size, i * DET_MILLISECOND);
        assert_int_equal(0, diary.lines.size);
    }
    assert_true(diary.notices <= 10);
    assert_true(diary.bytes <= 11 * 1024 + 200);
    assert_true(diary.bytes >= 9 * 1024);
}

static void unlimited_throttle_passes_every_line(void **state)
{
    struct det_throttle throttle;

    (void)state;
    det_throttle_init(&throttle, UINT64_MAX, 0);
    for (int i = 0; i < 100; i++)
        feed_within(&throttle, "a\n", 0);
    assert_int_equal(100, diary.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(lines_are_independent_of_the_input_chunks, begin),
        cmocka_unit_test_setup(stream_ending_with_a_newline_has_no_further_line, begin),
        cmocka_unit_test_setup(a_long_line_comes_in_pieces_and_only_the_last_is_not_cut, begin),
        cmocka_unit_test_setup(a_cr_in_a_long_line_stays_in_it, begin),
        cmocka_unit_test_setup(dropped_bytes_are_counted_with_the_next_line, begin),
        cmocka_unit_test_setup(bytes_dropped_at_the_end_are_reported_without_a_line, begin),
        cmocka_unit_test_setup(any_bytes_pass_as_they_are, begin),
        cmocka_unit_test_setup(random_feeds_and_drops_lose_no_byte, begin),
        cmocka_unit_test_setup(lines_over_the_rate_are_dropped_and_reported_each_second, begin),
        cmocka_unit_test_setup(a_line_without_an_end_is_cut_when_nothing_is_left, begin),
        cmocka_unit_test_setup(throttle_keeps_the_average_and_whole_lines, begin),
        cmocka_unit_test_setup(unlimited_throttle_passes_every_line, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
