/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* main.c - sentences through characters.flow, in memory or with a log in a folder.
 *
 * characters [--slow] [FOLDER]: --slow reads 20 letters a second. With a folder, a run that was
 * killed continues where it was. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define FLOW_LOCAL
#define FLOW_SPEC "characters.flow"
#include <detent/flow/declare.h>
#define FLOW_LOCAL
#define FLOW_SPEC "characters.flow"
#include <detent/flow/define.h>

static const char *const sentences[] = {
    "hello 2024 world!",
    "42 is the answer.",
    "rust 1 python 0.",
};
#define SENTENCES (sizeof sentences / sizeof sentences[0])

static const char *const digits[] = { "zero", "one", "two",   "three", "four",
                                      "five", "six", "seven", "eight", "nine" };

/* The letter with this number, counted through all sentences; false: there is none. */
static bool find_letter(uint32_t number, struct letter *ret)
{
    for (uint32_t i = 0; i < SENTENCES; i++) {
        size_t length = strlen(sentences[i]);

        if (number < length) {
            *ret = (struct letter){ .sentence = i + 1, .value = { sentences[i][number] } };
            return true;
        }
        number -= (uint32_t)length;
    }
    return false;
}

/* One letter a call. The cursor and the letter are saved together, so no letter is read twice. */
static int read_letters(struct det_stage_call *call, struct place *cursor)
{
    bool is_slow = *(const bool *)call->user;
    struct letter letter;
    int r;

    if (!find_letter(cursor->letter, &letter))
        return DET_SOURCE_DONE;
    cursor->letter++;
    r = read_letters_emit(call, letter);
    if (r < 0 || !is_slow)
        return r < 0 ? r : DET_SOURCE_MORE;
    det_stage_wake_at(call, det_world_now(call->world, DET_CLOCK_MONOTONIC) + 50 * DET_MILLISECOND);
    return DET_SOURCE_IDLE;
}

/* Small letters become capitals, digits become words. */
static int spell(struct det_stage_call *call, const struct letter *in)
{
    struct part part = { .sentence = in->sentence };
    unsigned char value = (unsigned char)in->value[0];

    if (isdigit(value))
        snprintf(part.text, sizeof part.text, "%s", digits[value - '0']);
    else
        part.text[0] = (char)toupper(value);
    return spell_emit(call, part);
}

/* There is a state, and so a line, for each sentence. */
static int join_parts(struct det_stage_call *call, struct line *state, const struct part *in)
{
    size_t used = strlen(state->text), size = strlen(in->text);

    if (used + size >= sizeof state->text)
        return det_stage_reject(call, DET_REJECT_VALIDATION, "the sentence is too long");
    memcpy(state->text + used, in->text, size + 1);
    state->sentence = in->sentence;
    state->letters++;
    return 0;
}

/* Called for each sentence when all letters are read. */
static int join_parts_result(struct det_stage_call *call, struct line *state)
{
    return join_parts_emit(call, *state);
}

static int print_line(struct det_stage_call *call, const struct line *in)
{
    (void)call;
    printf("%u: %s  (%u letters)\n", in->sentence, in->text, in->letters);
    return fflush(stdout) == 0 ? 0 : DET_ERR_IO;
}

/* Runs the flow to its end. */
static int run_flow(const char *folder, bool is_slow, struct det_error *error)
{
    char journal[512];
    const struct det_pipeline_options options = {
        .journal = folder ? journal : NULL,
        .durability = folder ? DET_JOURNAL_DISK : DET_JOURNAL_MEMORY,
        .user = &is_slow,
    };
    struct det_pipeline *pipeline = NULL;
    struct det_pipeline_end end;
    int r;

    if (folder)
        snprintf(journal, sizeof journal, "file:%s", folder);
    r = det_pipeline_open(&characters_flow, &options, &pipeline, error);
    if (r < 0)
        return r;
    r = det_pipeline_wait(pipeline, DET_NEVER, &end);
    det_pipeline_close(pipeline);
    if (r == 0 && end.outcome != DET_PIPELINE_COMPLETED)
        r = det_error_set(error, end.code, "%s", end.reason);
    return r;
}

int main(int argc, char **argv)
{
    bool is_slow = argc > 1 && strcmp(argv[1], "--slow") == 0;
    const char *folder = argc > 1 + is_slow ? argv[1 + is_slow] : NULL;
    struct det_error error = { .code = 0 };

    if (run_flow(folder, is_slow, &error) == 0)
        return 0;
    fprintf(stderr, "characters: %s\n", error.text);
    return 1;
}
