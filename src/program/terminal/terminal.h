/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* terminal.h - one run of the program: what every command is given, and how it speaks.
 *
 * Data goes to `out`, talk to `err`. All text from outside (names, paths, lines of a spec) passes
 * through cli_print() or cli_say(), which escape what could steer a terminal. Output is not tested
 * call by call: a failed write sticks to the stream, and main() turns it into the exit code. */
#ifndef DET_TERMINAL_TERMINAL_H
#define DET_TERMINAL_TERMINAL_H

#include <jansson.h>
#include <stdio.h>

#include <detent/world.h>

/* Exit codes of the program. */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILURE = 1,
    CLI_USAGE = 2, /* or a definition that is not valid */
    CLI_NOT_FOUND = 3,
    CLI_CONFLICT = 4,
    CLI_TIMEOUT = 5,
    CLI_REFUSED = 6,
    CLI_STORE_LOST = 74, /* `up`: the store has failed permanently; EX_IOERR */
    CLI_INTERRUPTED = 130,
};

/* The answer to what comes too late. */
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
    unsigned out_columns, err_columns; /* of the terminal; 0: it is none, or does not say */
    unsigned out_rows;
    bool has_failed;               /* memory ran out while something was printed */
    int out_error;                 /* errno of the first write to `out` that failed */
    struct det_json_writer *facts; /* where facts_print() puts what it says; NULL: it prints it */
    det_time progress_from, progress_next;
    bool progress_is_shown;
};

/* Sets the streams, and color and terminal from the environment; `color` is auto, always or never.
 */
void cli_init(struct cli *cli);
void cli_set_color(struct cli *cli, const char *color);
/* Looks again how large the terminal is, if `out` is one. */
void cli_measure(struct cli *cli);

/* To `out`. Control characters but newline and tab are escaped, bytes that are no UTF-8 too. */
void cli_print(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
void cli_print_in(struct cli *cli, enum cli_style style, const char *format, ...) DET_PRINTF(3, 4);
/* The bytes as they are: for diagrams, specs and whatever another program reads. */
void cli_write(struct cli *cli, const char *data, size_t size);
/* What was printed to `out` is written: for output that others follow while we run. */
void cli_flush(struct cli *cli);
/* To `err`, escaped likewise. cli_complain() puts "detent check: " before and a newline behind. */
void cli_say(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
void cli_say_in(struct cli *cli, enum cli_style style, const char *format, ...) DET_PRINTF(3, 4);
void cli_complain(struct cli *cli, const char *format, ...) DET_PRINTF(2, 3);
/* Complains that there is no memory; returns the exit code. */
int cli_no_memory(struct cli *cli);

/* The same run with its data on the error stream, for what must stay out of `out`; what went wrong
 * in it is carried over by cli_aside_end(). */
struct cli cli_aside(struct cli *cli);
void cli_aside_end(struct cli *cli, struct cli *aside);

/* One object as one line on `out`; takes the reference. NULL (no memory) is complained about. */
void cli_json(struct cli *cli, json_t *object_take);
/* A string for JSON of any bytes: what is no UTF-8 is escaped as in cli_print(). */
json_t *cli_json_text(const char *text);
json_t *cli_json_text_n(const char *text, size_t size);
/* Prints the text of a JSON writer as a line on `out`, and empties the writer. */
void cli_print_line(struct cli *cli, struct det_json_writer *json);
/* An object with the member "type" (NULL: without) to be printed as a line: cli_json_end() closes,
 * prints and frees it. */
void cli_json_begin(struct cli *cli, struct det_json_writer *json, const char *type);
void cli_json_end(struct cli *cli, struct det_json_writer *json);

/* Paragraphs to `out`, their lines broken between words so that they fit the terminal, or 80
 * columns where there is none. Each line is indented by `indent`, but the first, in which `used`
 * columns are taken already. Lines that begin with a space stay as they are. Ends with a newline.
 */
void cli_print_wrapped(struct cli *cli, size_t used, size_t indent, const char *text);

/* The columns that `size` bytes of text take on a terminal, once escaped; tabs count as one. */
size_t cli_width(const char *text, size_t size);

/* Shows "what done/total" on a terminal once a second has passed; cli_progress_end() wipes it. */
void cli_progress(struct cli *cli, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(struct cli *cli);

/* Whether to break off: interrupted, or nobody reads the output. */
bool cli_is_stopped(const struct cli *cli);
/* Installs the handler that cli_is_interrupted() asks, and ignores SIGPIPE. main() only. */
void cli_catch_signals(void);
bool cli_is_interrupted(void);
/* A thread that reads SIGINT or SIGTERM leaves its number here for who waits outside of a loop, and
 * 0 when nobody is to heed it any more. */
void cli_note_signal(int number);
int cli_noted_signal(void);

#endif
