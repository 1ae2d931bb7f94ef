/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* report.h - findings about a definition, for people and programs.
 *
 *     order.fsm:12:4: error: PENDING on PAY is already a transition of order [duplicate-transition]
 *        12 | ON(PENDING, PAY, PAID)
 *           |    ^~~~~~~
 *     order.fsm:9:4: note: first said here
 *         9 | ON(PENDING, PAY, CHARGING)
 *           |    ^~~~~~~
 *           = hint: write OVERRIDE(PENDING, PAY, PAID) if that is intended */
#ifndef DET_TERMINAL_REPORT_H
#define DET_TERMINAL_REPORT_H

#include <detent/tool/diagnostic.h>

#include "terminal/terminal.h"

/* Prints one finding to the output, as JSON if requested. `path` is the place of findings without
 * one. */
void cli_report(struct cli *cli, const char *path, const struct det_diagnostic *finding);
/* A finding about something other than a definition, with the reason for the rule and the correct
 * form. */
struct cli_remark {
    enum det_severity severity;
    const char *rule;
    struct det_place place;
    const char *text, *why, *example;
};
void cli_report_remark(struct cli *cli, const struct cli_remark *remark);
/* Prints the errors among the findings, to the error stream or as objects to the output: for
 * commands that need a valid definition. */
void cli_report_broken(struct cli *cli, const char *path, const struct det_diagnostics *findings);
/* An error in an unreadable text, to the error stream with its line, or as an object to the output.
 * `column` counts characters, as libyaml does, or bytes. */
struct cli_problem {
    const char *path, *text;
    size_t size;
    uint32_t line, column;
    bool column_is_characters;
};
void cli_report_problem(struct cli *cli, const struct cli_problem *problem, const char *format, ...)
    DET_PRINTF(3, 4);
/* Reports what was done to a file: "written", "kept" and so on. Prints its path to the output, or
 * both as a message. */
void cli_report_file(struct cli *cli, const char *path, const char *state, bool is_talk);
/* Writes a NUL-terminated text: to the file, or to the output, as one object with --json. Returns
 * an exit code. */
DET_MUST_CHECK int cli_report_text(
    struct cli *cli, const char *path, const char *data, size_t size);

#endif
