/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* demo.h - the parts of the demo: a shop with a made-up bank, a screen, a story, a prompt.
 *
 *     main.c     opens everything in a simulated world and hears what the runtime reports
 *     bank.c     the world outside: a bank that is slow, down, or says no
 *     story.c    what happens to five orders in three days
 *     prompt.c   a sixth order, which is the user's
 *     screen.c   how it looks; the only file that knows a terminal
 *
 * Everything runs in one thread: the simulation's. */
#ifndef DEMO_H
#define DEMO_H

#include <detent/detent.h>

#include "order.h"

#define DEMO_ORDERS  5
#define DEMO_KEYS    32
#define SCREEN_LOG   8
#define SCREEN_WIDTH 80

/* What a line of the log is about, which is its colour. */
enum tone { TONE_PLAIN, TONE_MOVE, TONE_TIME, TONE_INCIDENT, TONE_QUIET, TONE_CAPTION, TONE_COUNT };

struct screen {
    bool is_animated; /* frames on a terminal; otherwise lines as they come */
    bool has_color, has_glyphs;
    char caption[SCREEN_WIDTH];
    struct {
        enum tone tone;
        char text[160];
    } log[SCREEN_LOG];
    size_t log_count; /* of all lines so far */
};

/* Money that moved, by the key of the effect that moved it. */
struct bank {
    char keys[DEMO_KEYS][64];
    size_t key_count;
    unsigned charges, refunds, asked_again;
};

struct demo {
    struct shop shop; /* the first member: the shop is given to the machine, and is the demo */
    struct bank bank;
    struct screen screen;
    struct det_sim *sim;
    struct det_world *world;
    struct det_runtime *runtime;
    det_time began; /* wall */
};

/* bank.c */
void bank_open(struct demo *demo);

/* screen.c. The times are spans of virtual time; `printed` text is one line. */
void screen_open(struct screen *screen);
void screen_print(struct demo *demo, enum tone tone, const char *format, ...) DET_PRINTF(3, 4);
void screen_caption(struct demo *demo, const char *text);
void screen_draw(struct demo *demo);
void screen_leave(struct demo *demo);
void screen_print_order(struct demo *demo, const char *order);
const char *screen_color(const struct screen *screen, enum tone tone);
void span_text(det_time span, char *target, size_t capacity);

/* story.c. Both return 0 or an error of the simulation. */
int story_run(struct demo *demo);
int story_start(struct demo *demo, const char *order, const char *customer);
/* Sends and says what came of it; a refusal is part of the story and no error. */
int story_send(
    struct demo *demo, const char *order, struct order_event event, const char *event_id);

/* prompt.c */
int prompt_run(struct demo *demo);

#endif
