/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* output.c - output of the program: escaping, color, JSON lines, progress. */
#include <errno.h>
#include <stdarg.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "base/assert.h"
#include "base/escape.h"
#include "base/text.h"
#include "terminal/terminal.h"
#include "json/writer.h"

static const char *const styles[] = {
    [CLI_PLAIN] = "",         [CLI_BOLD] = "\033[1m",   [CLI_FAINT] = "\033[2m",
    [CLI_RED] = "\033[1;31m", [CLI_GREEN] = "\033[32m", [CLI_YELLOW] = "\033[33m",
    [CLI_BLUE] = "\033[34m",
};

static bool wants_color(FILE *stream)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): no thread sets the environment */
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    /* NOLINTEND(concurrency-mt-unsafe) */

    if (no_color && *no_color)
        return false;
    return isatty(fileno(stream)) && terminal && strcmp(terminal, "dumb") != 0;
}

static struct winsize size_of(FILE *stream)
{
    struct winsize size;

    return ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size : (struct winsize){ 0 };
}

/* Returns what the first set variable of the three says. */
static bool shows_utf8(void)
{
    static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
    const char *value = NULL;

    for (size_t i = 0; i < 3 && !(value && *value); i++)
        value = getenv(names[i]); /* NOLINT(concurrency-mt-unsafe): as above */
    return value && (strcasestr(value, "utf-8") || strcasestr(value, "utf8"));
}

void cli_init(struct cli *cli)
{
    *cli = (struct cli){
        .world = det_world_real(),
        .in = stdin,
        .out = stdout,
        .err = stderr,
        .out_has_color = wants_color(stdout),
        .err_has_color = wants_color(stderr),
        .out_is_terminal = isatty(fileno(stdout)) == 1,
        .err_is_terminal = isatty(fileno(stderr)) == 1,
        .err_columns = size_of(stderr).ws_col,
    };
    cli->out_has_lines = cli->out_is_terminal && shows_utf8();
    cli_measure(cli);
}

void cli_measure(struct cli *cli)
{
    struct winsize size;

    if (!cli->out_is_terminal)
        return;
    size = size_of(cli->out);
    cli->out_columns = size.ws_col;
    cli->out_rows = size.ws_row;
}

void cli_set_color(struct cli *cli, const char *color)
{
    if (strcmp(color, "auto") == 0)
        return;
    det_assert(strcmp(color, "always") == 0 || strcmp(color, "never") == 0);
    cli->out_has_color = strcmp(color, "always") == 0;
    cli->err_has_color = cli->out_has_color;
}

size_t cli_width(const char *text, size_t size)
{
    size_t width = 0;

    while (size) {
        size_t length = det_character_size(text, size);
        uint32_t code = length ? det_character_code(text, length) : 0;
        int columns = length && !det_is_unprintable(code) ? wcwidth((wchar_t)code) : 0;

        if (length == 0 || (det_is_unprintable(code) && code < 0x80))
            width += 4;
        else if (det_is_unprintable(code))
            width += code < 0x100 ? 6 : code < 0x1000 ? 7 : 8;
        else
            width += code == '\t' || columns < 0 ? 1 : (size_t)columns;
        text += length ? length : 1;
        size -= length ? length : 1;
    }
    return width;
}

/* Keeps the reason of the first failure: the stream keeps none. Discards what is buffered, so that
 * no later flush blocks after an interrupt. */
void cli_check_output(struct cli *cli)
{
    if (!ferror(cli->out))
        return;
    if (!cli->out_error)
        cli->out_error = errno ? errno : EIO;
    __fpurge(cli->out);
}

/* Output after a failed write is dropped. fwrite() of glibc may report success for bytes that it
 * could not write and still has in its buffer; ferror() is reliable. */
static void emit_bytes(struct cli *cli, FILE *stream, const char *data, size_t size)
{
    if (stream != cli->out) {
        (void)!fwrite(data, 1, size, stream);
        return;
    }
    if (ferror(stream))
        return;
    /* On a terminal the data would be printed after the bar. */
    cli_progress_end(cli);
    errno = 0;
    (void)!fwrite(data, 1, size, stream);
    cli_check_output(cli);
}

static void put_styled(
    struct cli *cli, FILE *stream, enum cli_style style, const char *text, size_t size)
{
    bool has_color = (stream == cli->out ? cli->out_has_color : cli->err_has_color) && style;
    struct det_buffer shown;

    det_assert(style < sizeof styles / sizeof *styles);
    det_buffer_init(&shown, cli->allocator);
    if (has_color)
        det_buffer_append_text(&shown, styles[style]);
    det_escape(&shown, text, size);
    if (has_color)
        det_buffer_append_text(&shown, "\033[0m");
    if (det_buffer_status(&shown) < 0)
        cli->has_failed = true;
    else
        emit_bytes(cli, stream, shown.data, shown.size);
    det_buffer_deinit(&shown);
}

char *cli_format(struct cli *cli, const char *format, va_list arguments)
{
    char *text = NULL;

    if (vasprintf(&text, format, arguments) >= 0)
        return text;
    cli->has_failed = true;
    return NULL;
}

DET_PRINTF(4, 0)
static void put_format(
    struct cli *cli, FILE *stream, enum cli_style style, const char *format, va_list arguments)
{
    char *text = cli_format(cli, format, arguments);

    det_assert(stream == cli->out || stream == cli->err);
    if (text && *text)
        put_styled(cli, stream, style, text, strlen(text));
    free(text);
}

void cli_print(struct cli *cli, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_format(cli, cli->out, CLI_PLAIN, format, arguments);
    va_end(arguments);
}

void cli_print_in(struct cli *cli, enum cli_style style, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    put_format(cli, cli->out, style, format, arguments);
    va_end(arguments);
}

void cli_write(struct cli *cli, const char *data, size_t size)
{
    emit_bytes(cli, cli->out, data, size);
}

void cli_flush(struct cli *cli)
{
    errno = 0;
    (void)fflush(cli->out);
    cli_check_output(cli);
}

void cli_clear_output_error(struct cli *cli)
{
    clearerr(cli->out);
    cli->out_error = 0;
}

/* Messages come after the data printed before them, even if both go to one file. */
static void begin_talk(struct cli *cli)
{
    cli_progress_end(cli);
    cli_flush(cli);
}

void cli_print_error(struct cli *cli, const char *format, ...)
{
    va_list arguments;

    begin_talk(cli);
    va_start(arguments, format);
    put_format(cli, cli->err, CLI_PLAIN, format, arguments);
    va_end(arguments);
}

void cli_print_error_in(struct cli *cli, enum cli_style style, const char *format, ...)
{
    va_list arguments;

    begin_talk(cli);
    va_start(arguments, format);
    put_format(cli, cli->err, style, format, arguments);
    va_end(arguments);
}

void cli_report_error(struct cli *cli, const char *format, ...)
{
    va_list arguments;

    cli_print_error_in(
        cli, CLI_RED,
        cli->command ? "detent %s: " : "detent%s: ", cli->command ? cli->command : "");
    va_start(arguments, format);
    put_format(cli, cli->err, CLI_PLAIN, format, arguments);
    va_end(arguments);
    cli_print_error(cli, "\n");
}

struct cli cli_aside(struct cli *cli)
{
    struct cli aside = *cli;

    begin_talk(cli);
    aside.out = cli->err;
    aside.out_has_color = cli->err_has_color;
    aside.out_columns = cli->err_columns;
    aside.out_error = 0;
    aside.progress_is_shown = false;
    return aside;
}

void cli_aside_end(struct cli *cli, struct cli *aside)
{
    cli_progress_end(aside);
    cli->has_failed = cli->has_failed || aside->has_failed;
}

int cli_no_memory(struct cli *cli)
{
    cli_report_error(cli, "out of memory");
    return CLI_FAILURE;
}

#define PROGRESS_AFTER DET_SECOND
#define PROGRESS_EVERY (100 * DET_MILLISECOND)
#define PROGRESS_WIDTH 30

void cli_progress(struct cli *cli, const char *what, uint64_t done, uint64_t total)
{
    static const char bar[] = "##############################";
    det_time now;
    int filled;

    if (!cli->err_is_terminal)
        return;
    now = det_world_now(cli->world, DET_CLOCK_MONOTONIC);
    if (!cli->progress_from) {
        cli->progress_from = now;
        cli->progress_next = now + PROGRESS_AFTER;
    }
    if (now < cli->progress_next || total == 0)
        return;
    cli->progress_next = now + PROGRESS_EVERY;
    cli->progress_is_shown = true;
    /* A total that was counted before may be exceeded. */
    done = done < total ? done : total;
    filled = (int)((double)done / (double)total * PROGRESS_WIDTH);
    det_assert(filled >= 0 && filled <= PROGRESS_WIDTH);
    fprintf(
        cli->err, "\r\033[K%s [%-*.*s] %llu/%llu", what, PROGRESS_WIDTH, filled, bar,
        (unsigned long long)done, (unsigned long long)total);
    fflush(cli->err);
}

void cli_progress_end(struct cli *cli)
{
    if (cli->progress_is_shown)
        fputs("\r\033[K", cli->err);
    cli->progress_is_shown = false;
}

bool cli_is_stopped(const struct cli *cli)
{
    return cli_is_interrupted() || ferror(cli->out) != 0;
}

void cli_print_line(struct cli *cli, struct det_json_writer *json)
{
    if (det_buffer_status(&json->text) < 0) {
        cli->has_failed = true;
    } else {
        cli_write(cli, det_buffer_text(&json->text), json->text.size);
        cli_write(cli, "\n", 1);
    }
    det_json_writer_clear(json);
}

void cli_print_value(struct cli *cli, const struct det_json_value *value)
{
    struct det_json_writer json;

    det_json_writer_init(&json, cli->allocator);
    det_json_copy(&json, NULL, value);
    cli_print_line(cli, &json);
    det_json_writer_deinit(&json);
}

void cli_json_begin(struct cli *cli, struct det_json_writer *json, const char *type)
{
    det_json_writer_init(json, cli->allocator);
    det_json_open(json, NULL, '{');
    if (type)
        det_json_text(json, "type", type);
}

void cli_json_end(struct cli *cli, struct det_json_writer *json)
{
    det_json_close(json, '}');
    cli_print_line(cli, json);
    det_json_writer_deinit(json);
}
