/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* terminal.h - one run of the program: the context of every command, and its output.
 *
 * Data goes to `out`, messages to `err`. All text from outside (names, paths, lines of a spec)
 * passes through cli_print() or cli_print_error(), which escape terminal control sequences. Output
 * is not checked call by call: a failed write sticks to the stream, and main() turns it into the
 * exit code. */
#ifndef DET_TERMINAL_TERMINAL_H
#define DET_TERMINAL_TERMINAL_H

#include <stdarg.h>
#include <stdio.h>

#include <detent/world.h>

/* Exit codes of the program. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1,
    CLI_USAGE = 2, /* or an invalid definition */
    CLI_NOT_FOUND = 3,
    CLI_CONFLICT = 4,
    CLI_TIMEOUT = 5,
    CLI_REFUSED = 6,
    CLI_STORE_LOST = 74, /* `up`: the store has failed permanently; EX_IOERR */
    CLI_INTERRUPTED = 130,
};

/* Returns the exit code for an error of the library (negative), or CLI_OK for 0. */
int cli_exit_of(int code);

/* Refuses requests during shutdown. */
#define CLI_SHUTDOWN "detent is shutting down; retry later"

enum cli_style {
    CLI_PLAIN,
    CLI_BOLD,
    CLI_FAINT,
    CLI_RED,
    CLI_GREEN,
    CLI_YELLOW,
    CLI_BLUE,
};

struct det_json_value;
struct det_json_writer;

struct cli {
    const struct det_allocator *allocator;
    struct det_world *world;
    FILE *in, *out, *err;
    const char *command; /* for messages; NULL: none yet */
    bool is_json;
    bool out_has_color, err_has_color;
    bool out_is_terminal, err_is_terminal;
    bool out_has_lines;                /* a terminal that shows UTF-8: lines of trees and tables */
    unsigned out_columns, err_columns; /* of the terminal; 0: none, or unknown */
    unsigned out_rows;
    bool has_failed;               /* memory ran out while something was printed */
    int out_error;                 /* errno of the first write to `out` that failed */
    struct det_json_writer *facts; /* where facts_print() writes; NULL: to the output */
    det_time progress_from, progress_next;
    bool progress_is_shown;
};

/* Sets the streams, and color and terminal from the environment; `color` is auto, always or never.
 */
void cli_init(struct cli *cli);
void cli_set_color(struct cli *cli, const char *color);
/* Updates the size of the terminal, if `out` is one. */
void cli_measure(struct cli *cli);

/* Prints to `out`. Escapes control characters except newline and tab, and invalid UTF-8. */
void cli_print(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
void cli_print_in(struct cli *cli, enum cli_style style, const char *format, ...) DET_PRINTF(3, 4);
/* Writes the bytes unchanged: for diagrams, specs and other data for programs. */
void cli_write(struct cli *cli, const char *data, size_t size);
/* Formats a text, to be freed with free(). NULL: no memory, which is recorded in the run. */
char *cli_format(struct cli *cli, const char *format, va_list arguments) DET_PRINTF(2, 0);
/* Flushes `out`: for output that is followed while we run. */
void cli_flush(struct cli *cli);
/* For code that writes to the stream itself: after each write, with errno 0 before. */
void cli_check_output(struct cli *cli);
/* After a write to `out` failed, its output is dropped until this is called. */
void cli_clear_output_error(struct cli *cli);
/* Prints to `err`, escaped in the same way. cli_report_error() adds "detent check: " and a
 * newline. */
void cli_print_error(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
void cli_print_error_in(struct cli *cli, enum cli_style style, const char *format, ...)
    DET_PRINTF(3, 4);
void cli_report_error(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
/* Reports that memory is exhausted; returns the exit code. */
int cli_no_memory(struct cli *cli);

/* Returns a copy of the run whose data goes to the error stream, for text that must not be in
 * `out`; cli_aside_end() carries its errors over. */
struct cli cli_aside(struct cli *cli);
void cli_aside_end(struct cli *cli, struct cli *aside);

/* Prints the text of a JSON writer as a line on `out`, and empties the writer. */
void cli_print_line(struct cli *cli, struct det_json_writer *json);
/* Prints a value that was read as a line on `out`. */
void cli_print_value(struct cli *cli, const struct det_json_value *value);
/* An object with the member "type" (NULL: without) to be printed as a line: cli_json_end() closes,
 * prints and frees it. */
void cli_json_begin(struct cli *cli, struct det_json_writer *json, const char *type);
void cli_json_end(struct cli *cli, struct det_json_writer *json);

/* Prints paragraphs to `out`, wrapped between words to the terminal, or to 80 columns without one.
 * Each line is indented by `indent`, except the first, of which `used` columns are taken. Lines
 * that begin with a space are not wrapped. Ends with a newline. */
void cli_print_wrapped(struct cli *cli, size_t used, size_t indent, const char *text);

/* Returns the columns of `size` bytes of text on a terminal, once escaped; tabs count as one. */
size_t cli_width(const char *text, size_t size);

/* Shows "what done/total" on a terminal after one second; cli_progress_end() erases it. */
void cli_progress(struct cli *cli, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(struct cli *cli);

/* Returns true if the command must stop: interrupted, or the output is closed. */
bool cli_is_stopped(const struct cli *cli);
/* Installs the handler for cli_is_interrupted(), and ignores SIGPIPE. main() only. */
void cli_catch_signals(void);
bool cli_is_interrupted(void);
/* A thread that reads SIGINT or SIGTERM stores its number here for code that waits outside a loop,
 * and 0 when it is to be ignored. */
void cli_note_signal(int number);
int cli_noted_signal(void);

#endif
