/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* prompt.c - one order in the user's hands: a line at a time, until the end of the input. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"

#define MINE      "order-6"
#define WORD_MAX  31
#define COUNT_MAX 10000 /* of seconds, minutes, hours or days at once */

struct command {
    const char *name;
    const char *argument; /* as the help shows it; "" without */
    const char *help;
    int (*run)(struct demo *demo, const char *argument);
};

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

static int pay(struct demo *demo, const char *argument)
{
    struct payment payment = { .card = "4242", .cents = 1999 };

    if (argument[0] != '\0' && !is_number(argument)) {
        printf("how much? pay, or pay 500: a number of cents\n");
        return 0;
    }
    if (argument[0] != '\0')
        payment.cents = strtoull(argument, NULL, 10);
    return story_send(demo, MINE, order_pay(payment), NULL);
}

static int cancel(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_cancel(), NULL);
}

static int ship(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_ship((struct parcel){ .tracking = "T-1006" }), NULL);
}

static int deliver(struct demo *demo, const char *argument)
{
    (void)argument;
    return story_send(demo, MINE, order_deliver(), NULL);
}

/* What a letter stands for; 0: nothing. */
static det_time unit_of(const char *text)
{
    static const struct {
        const char *name;
        det_time span;
    } units[] = { { "s", DET_SECOND }, { "m", DET_MINUTE }, { "h", DET_HOUR }, { "d", DET_DAY } };

    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(units[i].name, text) == 0)
            return units[i].span;
    }
    return 0;
}

/* "30m", "2h", "3d", "10s": the time that passes. */
static int advance(struct demo *demo, const char *argument)
{
    det_time unit = unit_of(argument + strspn(argument, "0123456789"));
    unsigned long count = strtoul(argument, NULL, 10);

    if (unit == 0 || !isdigit((unsigned char)argument[0]))
        printf("how far? advance 10s, advance 30m, advance 2h, advance 3d\n");
    else if (count > COUNT_MAX)
        printf("too far: at most %d at once, as in advance %dd\n", COUNT_MAX, COUNT_MAX);
    else
        return det_sim_advance(demo->sim, (det_time)count * unit);
    return 0;
}

static int why(struct demo *demo, const char *argument);
static int help(struct demo *demo, const char *argument);

static const struct command commands[] = {
    { "pay", "[cents]", "pay it: 1999 cents, or another sum, which is refused", pay },
    { "ship", "", "hand the parcel over", ship },
    { "deliver", "", "bring it to the door", deliver },
    { "cancel", "", "cancel it, at any moment you like", cancel },
    { "advance", "30m", "let time pass: 10s, 30m, 2h, 3d", advance },
    { "why", "", "where it is, what it waits for, what you can do", why },
    { "help", "", "this list", help },
    { "quit", "", "leave; so does the end of the input", NULL },
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static int help(struct demo *demo, const char *argument)
{
    (void)demo;
    (void)argument;
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-8s%-9s%s\n", commands[i].name, commands[i].argument, commands[i].help);
    return 0;
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

/* The events that can be typed and that the state takes, straight from the table; those that it
 * keeps for later are marked. */
static void print_taken(unsigned state)
{
    unsigned count = 0;

    for (unsigned event = 0; event < order_machine.event_count; event++) {
        const struct det_event_def *def = &order_machine.events[event];
        bool is_taken =
            det_machine_step(&order_machine, state, event)->outcome != DET_OUTCOME_UNHANDLED;

        if (find(def->name) == NULL || (!is_taken && def->unhandled != DET_UNHANDLED_DEFER))
            continue;
        printf("%s%s%s", count++ ? ", " : "", def->name, is_taken ? "" : " (kept for later)");
    }
    printf("%s\n", count ? "" : "nothing that you could type");
}

static int why(struct demo *demo, const char *argument)
{
    struct det_instance instance;
    struct order_data data;
    char text[256];
    int r = order_instance_get(demo->runtime, MINE, &instance, &data);

    (void)argument;
    if (r < 0)
        return r;
    screen_print_order(demo, MINE);
    printf("%s takes: ", order_state_name(instance.state));
    print_taken(instance.state);
    det_record_print(order_data_record(), &data, 0, text, sizeof text);
    printf("%s\n", text);
    return 0;
}

static unsigned smaller(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* How many letters must be changed, added or taken away to make one word of the other. */
static unsigned distance(const char *from, const char *to)
{
    unsigned row[WORD_MAX + 1];
    size_t width = strlen(to);

    for (size_t i = 0; i <= width; i++)
        row[i] = (unsigned)i;
    for (size_t at = 0; from[at] != '\0'; at++) {
        unsigned corner = row[0];

        row[0] = (unsigned)at + 1;
        for (size_t i = 1; i <= width; i++) {
            unsigned changed = corner + (tolower((unsigned char)from[at]) != to[i - 1]);

            corner = row[i];
            row[i] = smaller(changed, smaller(row[i], row[i - 1]) + 1);
        }
    }
    return row[width];
}

/* Words of others for what there is; NULL: none of them. */
static const char *same_as(const char *word)
{
    static const char *const words[][2] = { { "wait", "advance" }, { "sleep", "advance" },
                                            { "time", "advance" }, { "status", "why" },
                                            { "show", "why" },     { "exit", "quit" },
                                            { "bye", "quit" } };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i][0], word) == 0)
            return words[i][1];
    }
    return NULL;
}

/* One line: the word that was meant, or where the list is. */
static void print_unknown(const char *word)
{
    const char *nearest = same_as(word);
    unsigned best = nearest ? 0 : 3;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        unsigned between = distance(word, commands[i].name);

        if (between < best && between < strlen(commands[i].name)) {
            best = between;
            nearest = commands[i].name;
        }
    }
    if (nearest)
        printf("there is no `%s`; did you mean `%s`?\n", word, nearest);
    else
        printf("there is no `%s`; `help` lists what there is\n", word);
}

static bool ask(struct demo *demo, char *line, size_t capacity)
{
    struct det_instance instance;

    if (det_runtime_get(demo->runtime, &order_machine, MINE, &instance, NULL, NULL) < 0)
        return false;
    printf(
        "%s%s %s>%s ", screen_color(&demo->screen, TONE_CAPTION), MINE,
        order_state_name(instance.state), demo->screen.has_color ? "\033[0m" : "");
    fflush(stdout);
    return fgets(line, (int)capacity, stdin) != NULL;
}

/* Keys that send no letter: the terminal hands them on as control characters. */
static bool has_control(const char *line)
{
    for (; *line; line++) {
        if (iscntrl((unsigned char)*line) && !isspace((unsigned char)*line))
            return true;
    }
    return false;
}

/* Carries out a line; 1: the user leaves. */
static int obey(struct demo *demo, const char *line)
{
    char word[WORD_MAX + 1] = "", argument[64] = "";
    const struct command *command;

    if (has_control(line)) {
        printf("arrow keys do nothing here: type a word, `help` lists them\n");
        return 0;
    }
    if (sscanf(line, "%31s %63s", word, argument) < 1)
        return 0;
    command = find(word);
    if (command == NULL)
        print_unknown(word);
    else if (command->run == NULL)
        return 1;
    return command ? command->run(demo, argument) : 0;
}

static int count_running(void *context, const struct det_pending_effect *row)
{
    *(unsigned *)context += row->state == DET_EFFECT_STATE_RUNNING;
    return 0;
}

/* To close a runtime is to wait for the effects that are running, and what they produce is taken:
 * the user, who has left, wants to know where the next lines come from. */
static int print_what_is_left(struct demo *demo)
{
    unsigned count = 0;
    int r = det_runtime_effects(demo->runtime, &order_machine, MINE, count_running, &count, NULL);

    if (r == 0 && count > 0)
        printf("The bank is at work on " MINE "; closing waits for its answer:\n");
    return r;
}

int prompt_run(struct demo *demo)
{
    char line[128];
    int r;

    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return 0;
    r = story_start(demo, MINE, "you");
    printf("\nNow " MINE " is yours. Pay it, cancel it, or let time pass. `help` helps.\n");
    while (r == 0 && ask(demo, line, sizeof line))
        r = obey(demo, line);
    return r < 0 ? r : print_what_is_left(demo);
}
