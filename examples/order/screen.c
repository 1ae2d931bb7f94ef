/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* screen.c - how the demo looks: frames of 80 by 24 on a terminal, plain lines anywhere else.
 *
 *     title, clock
 *     the states, one column each
 *     order-1   o----o----*          where it was, and where it is
 *               what it waits for
 *     ...
 *     the last lines of the log
 *     caption */
#include <inttypes.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"

#define NAME_WIDTH   10
#define COLUMN_WIDTH 10
#define CLEAR        "\033[K\n"

/* The columns, left to right: the way everybody hopes for, then the way back. */
static const enum order_state columns[] = { ORDER_PENDING,  ORDER_CHARGING,  ORDER_PAID,
                                            ORDER_SHIPPED,  ORDER_DELIVERED, ORDER_REFUNDING,
                                            ORDER_CANCELLED };
#define COLUMN_COUNT (sizeof columns / sizeof columns[0])

static const char *const colors[TONE_COUNT] = {
    [TONE_PLAIN] = "",        [TONE_MOVE] = "\033[32m",
    [TONE_TIME] = "\033[33m", [TONE_INCIDENT] = "\033[31m",
    [TONE_QUIET] = "\033[2m", [TONE_CAPTION] = "\033[1;36m",
};

/* An interrupted demo must not leave the terminal without its cursor, nor within a line. */
static void show_cursor_and_end(int number)
{
    static const char text[] = "\033[?25h\n";
    ssize_t written = write(STDOUT_FILENO, text, sizeof text - 1);

    (void)written;
    _exit(128 + number);
}

void screen_open(struct screen *screen)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    bool is_terminal = isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
    struct winsize size = { 0 };

    setlocale(LC_CTYPE, "");
    screen->has_glyphs = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    screen->has_color = is_terminal && (no_color == NULL || no_color[0] == '\0');
    screen->is_animated = is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
                          size.ws_col >= SCREEN_WIDTH && size.ws_row >= 24;
    if (is_terminal)
        signal(SIGINT, show_cursor_and_end);
    if (screen->is_animated)
        fputs("\033[?25l\033[2J", stdout);
}

const char *screen_color(const struct screen *screen, enum tone tone)
{
    return screen->has_color ? colors[tone] : "";
}

static const char *color_end(const struct screen *screen)
{
    return screen->has_color ? "\033[0m" : "";
}

void span_text(det_time span, char *target, size_t capacity)
{
    int64_t seconds = span / DET_SECOND;
    int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24;

    if (days > 0)
        snprintf(target, capacity, "%" PRId64 "d %02" PRId64 "h", days, hours % 24);
    else if (hours > 0)
        snprintf(target, capacity, "%" PRId64 "h %02" PRId64 "m", hours, minutes % 60);
    else if (minutes > 0)
        snprintf(target, capacity, "%" PRId64 "m %02" PRId64 "s", minutes, seconds % 60);
    else
        snprintf(target, capacity, "%" PRId64 "s", seconds);
}

/* The virtual time since the start, "0d 00:02:12". */
static void clock_text(const struct demo *demo, char *target, size_t capacity)
{
    int64_t seconds = (det_world_now(demo->world, DET_CLOCK_WALL) - demo->began) / DET_SECOND;

    snprintf(
        target, capacity, "%" PRId64 "d %02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 86400,
        seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
}

/* Keeps the line for the frames, or prints it at once. */
void screen_print(struct demo *demo, enum tone tone, const char *format, ...)
{
    struct screen *screen = &demo->screen;
    char at[24], text[120];
    va_list arguments;
    size_t slot = screen->log_count++ % SCREEN_LOG;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    clock_text(demo, at, sizeof at);
    screen->log[slot].tone = tone;
    snprintf(screen->log[slot].text, sizeof screen->log[slot].text, "%s  %s", at, text);
    if (!screen->is_animated)
        printf("%s%s%s\n", screen_color(screen, tone), screen->log[slot].text, color_end(screen));
}

void screen_caption(struct demo *demo, const char *text)
{
    struct screen *screen = &demo->screen;

    snprintf(screen->caption, sizeof screen->caption, "%s", text);
    if (!screen->is_animated)
        printf("\n%s%s%s\n", screen_color(screen, TONE_CAPTION), text, color_end(screen));
}

/* Text that grows, and stops at the end of its memory. */
struct line {
    char text[240];
    size_t size;
};

DET_PRINTF(2, 3) static void add(struct line *line, const char *format, ...)
{
    size_t room = sizeof line->text - line->size;
    va_list arguments;
    int size;

    va_start(arguments, format);
    size = vsnprintf(line->text + line->size, room, format, arguments);
    va_end(arguments);
    if (size > 0)
        line->size += (size_t)size < room ? (size_t)size : room - 1;
}

struct waiting {
    struct line line;
    det_time now;
};

static int add_timer(void *context, const struct det_timer_record *timer)
{
    struct waiting *waiting = context;
    char span[24];

    span_text(timer->due > waiting->now ? timer->due - waiting->now : 0, span, sizeof span);
    add(&waiting->line, "%s%s in %s", waiting->line.size ? ", " : "",
        order_machine.events[timer->event].name, span);
    return 0;
}

static int add_effect(void *context, const struct det_pending_effect *effect)
{
    struct waiting *waiting = context;
    char span[24];

    span_text(effect->next > waiting->now ? effect->next - waiting->now : 0, span, sizeof span);
    add(&waiting->line, "%s%s ", waiting->line.size ? ", " : "", effect->name);
    switch (effect->state) {
    case DET_EFFECT_STATE_RUNNING:
        add(&waiting->line, "under way");
        break;
    case DET_EFFECT_STATE_QUEUED:
        add(&waiting->line, "waits for a thread");
        break;
    case DET_EFFECT_STATE_WAITING:
        add(&waiting->line, "tried %u times, again in %s", effect->attempts, span);
        break;
    case DET_EFFECT_STATE_DEAD:
        add(&waiting->line, "given up");
        break;
    }
    return 0;
}

/* What an order waits for, in one line. */
static void describe(struct demo *demo, const char *order, struct waiting *ret)
{
    *ret = (struct waiting){ .now = det_world_now(demo->world, DET_CLOCK_WALL) };
    if (det_runtime_effects(demo->runtime, &order_machine, order, add_effect, ret, NULL) < 0 ||
        det_runtime_timers(demo->runtime, &order_machine, order, add_timer, ret, NULL) < 0)
        add(&ret->line, "?");
}

static enum tone tone_of(enum order_state state)
{
    switch (state) {
    case ORDER_PENDING:
    case ORDER_CHARGING:
    case ORDER_REFUNDING:
        return TONE_TIME;
    case ORDER_PAID:
    case ORDER_SHIPPED:
    case ORDER_DELIVERED:
        return TONE_MOVE;
    case ORDER_CANCELLED:
    case order_state_count:
        break;
    }
    return TONE_INCIDENT;
}

static bool was_in(const struct det_instance *instance, enum order_state state)
{
    for (size_t i = 0; i < instance->history_count; i++) {
        if (instance->history[i] == state)
            return true;
    }
    return false;
}

/* One cell: where it is, where it was, where it passed, nothing. */
static void add_cell(
    const struct screen *screen, struct line *line, const struct det_instance *instance,
    size_t column, bool is_passed)
{
    static const char *const glyphs[2][4] = { { "*", "o", "-", " " }, { "●", "○", "─", " " } };
    const char *const *glyph = glyphs[screen->has_glyphs];
    bool is_here = instance->state == columns[column];
    bool was_here = was_in(instance, columns[column]);
    const char *between = glyph[is_passed ? 2 : 3];

    add(line, "%s%s%s%s", screen_color(screen, is_here ? tone_of(columns[column]) : TONE_QUIET),
        is_here    ? glyph[0]
        : was_here ? glyph[1]
                   : between,
        color_end(screen), screen_color(screen, TONE_QUIET));
    for (size_t i = 1; i < COLUMN_WIDTH; i++)
        add(line, "%s", between);
    add(line, "%s", color_end(screen));
}

static void print_track(
    const struct screen *screen, const char *order, const struct det_instance *instance)
{
    struct line line = { 0 };
    size_t last = 0;

    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        if (instance->state == columns[i] || was_in(instance, columns[i]))
            last = i;
    }
    printf(" %-*s", NAME_WIDTH - 1, order);
    for (size_t i = 0; i < COLUMN_COUNT; i++) {
        line.size = 0;
        add_cell(screen, &line, instance, i, i < last);
        fputs(line.text, stdout);
    }
}

static void print_states(const struct screen *screen)
{
    printf("%*s%s", NAME_WIDTH, "", screen_color(screen, TONE_CAPTION));
    for (size_t i = 0; i < COLUMN_COUNT; i++)
        printf("%-*s", COLUMN_WIDTH, order_state_name(columns[i]));
    fputs(color_end(screen), stdout);
}

static void print_order(struct demo *demo, const char *order, const char *line_end)
{
    const struct screen *screen = &demo->screen;
    struct det_instance instance;
    struct order_data data;
    struct waiting waiting;

    if (order_instance_get(demo->runtime, order, &instance, &data) < 0) {
        printf(" %-*s%s%s", NAME_WIDTH - 1, order, line_end, line_end);
        return;
    }
    describe(demo, order, &waiting);
    print_track(screen, order, &instance);
    printf(
        "%s%s %-*.*s%.*s%s%s", line_end, screen_color(screen, TONE_QUIET), NAME_WIDTH - 1,
        NAME_WIDTH - 2, data.customer, SCREEN_WIDTH - NAME_WIDTH - 1, waiting.line.text,
        color_end(screen), line_end);
}

void screen_print_order(struct demo *demo, const char *order)
{
    print_states(&demo->screen);
    putchar('\n');
    print_order(demo, order, "\n");
}

static void print_log(const struct screen *screen)
{
    size_t first = screen->log_count > SCREEN_LOG ? screen->log_count - SCREEN_LOG : 0;

    printf(" %s", screen_color(screen, TONE_QUIET));
    for (int i = 0; i < SCREEN_WIDTH - 2; i++)
        fputs(screen->has_glyphs ? "─" : "-", stdout);
    printf("%s" CLEAR, color_end(screen));
    for (size_t i = first; i < first + SCREEN_LOG; i++) {
        if (i < screen->log_count)
            printf(
                " %s%.*s%s", screen_color(screen, screen->log[i % SCREEN_LOG].tone),
                SCREEN_WIDTH - 2, screen->log[i % SCREEN_LOG].text, color_end(screen));
        fputs(CLEAR, stdout);
    }
}

void screen_draw(struct demo *demo)
{
    const struct screen *screen = &demo->screen;
    char at[24], order[24];

    if (!screen->is_animated)
        return;
    clock_text(demo, at, sizeof at);
    printf(
        "\033[H %sorder.fsm%s  five orders, virtual time%*s%s%s%s" CLEAR CLEAR,
        screen_color(screen, TONE_CAPTION), color_end(screen), SCREEN_WIDTH - 50, "",
        screen_color(screen, TONE_CAPTION), at, color_end(screen));
    print_states(screen);
    fputs(CLEAR, stdout);
    for (int i = 1; i <= DEMO_ORDERS; i++) {
        snprintf(order, sizeof order, "order-%d", i);
        print_order(demo, order, CLEAR);
    }
    print_log(screen);
    printf(" %s%s%s\033[K", screen_color(screen, TONE_CAPTION), screen->caption, color_end(screen));
    fflush(stdout);
}

/* From now on lines are printed as they come, below the last frame. */
void screen_leave(struct demo *demo)
{
    if (demo->screen.is_animated)
        fputs("\033[?25h\n", stdout);
    demo->screen.is_animated = false;
}
