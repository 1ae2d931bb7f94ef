/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* story.c - what happens to five orders in three days of virtual time. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "demo.h"

#define FRAMES_MIN 8
#define FRAMES_MAX 28
#define FRAME_TIME (60 * DET_MILLISECOND)
#define CARD       "4242"
#define EMPTY_CARD "0000"
#define PRICE      1999

enum what { START, PAY, PAY_LESS, SHIP, DELIVER, CANCEL, MOVE, WATCH };

/* One act: at a time, somebody does something. */
struct act {
    det_time at; /* since the start */
    const char *order;
    enum what what;
    const char *detail;   /* card, tracking number, address, customer */
    const char *event_id; /* NULL: none */
    const char *caption;  /* NULL: the last one stays */
};

#define S(n) ((n)*DET_SECOND)
#define M(n) ((n)*DET_MINUTE)
#define H(n) ((n)*DET_HOUR)

/* Ben's attempts begin at 20, 42, 84 and 146 seconds; Eve's bank answers at 185. */
static const struct act acts[] = {
    { S(0), "order-1", START, "Ada", NULL,
      "Five orders. Nobody has paid yet; each has half an hour." },
    { S(0), "order-2", START, "Ben", NULL, NULL },
    { S(0), "order-3", START, "Cleo", NULL, NULL },
    { S(0), "order-4", START, "Dan", NULL, NULL },
    { S(0), "order-5", START, "Eve", NULL, NULL },
    { S(10), "order-1", PAY, CARD, NULL,
      "Ada pays. Her card is charged by an effect, after the commit." },
    { S(20), "order-2", PAY, CARD, NULL,
      "Ben pays, but his bank cannot be reached. It will be tried again." },
    { S(30), "order-4", PAY, EMPTY_CARD, "click-1",
      "Dan clicks twice. Same event id: same answer, nothing done twice." },
    { S(31), "order-4", PAY, EMPTY_CARD, "click-1", NULL },
    { S(50), "order-3", DELIVER, NULL, NULL,
      "Somebody delivers what nobody paid for. The state does not take it." },
    { S(60), "order-4", PAY_LESS, CARD, NULL,
      "Dan's card was declined. He tries to pay less: the guard refuses." },
    { S(70), "order-4", PAY, CARD, NULL, "With another card it works." },
    { S(84), NULL, WATCH, NULL, NULL,
      "Ben's bank takes the money this time, but its answer gets lost." },
    { S(95), "order-5", PAY, CARD, NULL, "Eve pays. Her bank is slow." },
    { S(110), "order-5", CANCEL, NULL, NULL,
      "Eve cancels while the bank thinks. Her cancel is deferred." },
    { S(145), NULL, WATCH, NULL, NULL,
      "Ben's fourth attempt has the key of the first. Nobody pays twice." },
    { S(180), NULL, WATCH, NULL, NULL,
      "Eve's bank answers. Now her cancel is taken, and the money goes back." },
    { M(6), "order-1", SHIP, "T-1001", NULL,
      "Ada's parcel leaves. It is promised within three days." },
    { M(8), "order-2", SHIP, "T-1002", NULL,
      "Ben gave no address. The hook refuses, and nothing has happened." },
    { M(10), "order-2", MOVE, "2 Mill Lane", NULL, "Now we know where Ben lives." },
    { M(12), "order-2", SHIP, "T-1002", NULL, NULL },
    { M(29), NULL, WATCH, NULL, NULL, "Cleo never paid. Her half hour is over." },
    { H(5), "order-4", CANCEL, NULL, NULL,
      "Dan has second thoughts. He has paid, so the money goes back first." },
    { H(26), "order-1", DELIVER, NULL, NULL, "Ada has her parcel." },
    { H(72), NULL, WATCH, NULL, NULL,
      "Ben's parcel is late. The timer of the promise outlived the shipping." },
    { H(80), "order-2", DELIVER, NULL, NULL,
      "It has arrived after all. Five orders, no loose ends." },
};
#define ACT_COUNT (sizeof acts / sizeof acts[0])
#define STORY_END H(81)

static struct order_event event_of(const struct act *act)
{
    struct payment payment = { .cents = act->what == PAY_LESS ? 1 : PRICE };
    struct parcel parcel = { 0 };
    struct move_house house = { 0 };
    const char *detail = act->detail ? act->detail : "";

    switch (act->what) {
    case PAY:
    case PAY_LESS:
        snprintf(payment.card, sizeof payment.card, "%s", detail);
        return order_pay(payment);
    case SHIP:
        snprintf(parcel.tracking, sizeof parcel.tracking, "%s", detail);
        return order_ship(parcel);
    case MOVE:
        snprintf(house.address, sizeof house.address, "%s", detail);
        return order_move(house);
    case DELIVER:
        return order_deliver();
    case CANCEL:
    case START:
    case WATCH:
        break;
    }
    return order_cancel();
}

int story_start(struct demo *demo, const char *order, const char *customer)
{
    struct order_data data = { .total = PRICE };

    snprintf(data.customer, sizeof data.customer, "%s", customer);
    if (strcmp(customer, "Ben") != 0)
        snprintf(data.address, sizeof data.address, "1 High Street");
    return order_instance_start(demo->runtime, order, data, NULL);
}

/* Why an event was refused, from the fields of the error; its text says the same at more length. */
static void refuse(
    struct demo *demo, const char *order, const char *event, const struct det_error *error)
{
    if (error->code == DET_ERR_UNHANDLED)
        screen_print(
            demo, TONE_INCIDENT, "%s  %s: no, %s does not take it", order, event, error->state);
    else if (error->code == DET_ERR_REFUSED)
        screen_print(
            demo, TONE_INCIDENT, "%s  %s: no, says the guard %s", order, event, error->action);
    else if (error->code == DET_ERR_ACTION_FAILED)
        screen_print(
            demo, TONE_INCIDENT, "%s  %s: no, says the hook %s", order, event, error->action);
    else
        screen_print(demo, TONE_INCIDENT, "%s  %s: no, %s", order, event, error->text);
}

int story_send(struct demo *demo, const char *order, struct order_event event, const char *event_id)
{
    struct det_error error = { 0 };
    struct det_sent sent;
    const char *name = order_machine.events[event.kind].name;
    int r = order_send_with(
        demo->runtime, order, event, &(struct det_send_options){ .event_id = event_id }, &sent,
        &error);

    if (r < 0)
        refuse(demo, order, name, &error);
    else if (sent.is_duplicate)
        screen_print(
            demo, TONE_PLAIN, "%s  %s: id %s is known, same answer, nothing done", order, name,
            event_id);
    else if (sent.outcome == DET_OUTCOME_DEFERRED)
        screen_print(
            demo, TONE_PLAIN, "%s  %s: kept until %s is over", order, name,
            order_state_name(sent.state));
    return det_sim_settle(demo->sim);
}

/* Real time passes only to be looked at. */
static void show_frame(struct demo *demo)
{
    const struct timespec span = { .tv_nsec = FRAME_TIME };

    screen_draw(demo);
    if (demo->screen.is_animated)
        nanosleep(&span, NULL);
}

/* Lets virtual time pass until `at`, in as many frames as make it easy to follow. */
static int pass_until(struct demo *demo, det_time at)
{
    det_time span = at - (det_world_now(demo->world, DET_CLOCK_WALL) - demo->began);
    int frames = span < 5 * DET_SECOND ? FRAMES_MIN : FRAMES_MAX;
    int r = 0;

    for (int left = frames; span > 0 && left > 0 && r >= 0; left--) {
        det_time now = det_world_now(demo->world, DET_CLOCK_WALL) - demo->began;

        r = det_sim_advance(demo->sim, (at - now) / left);
        show_frame(demo);
    }
    return r;
}

static int play(struct demo *demo, const struct act *act)
{
    if (act->caption)
        screen_caption(demo, act->caption);
    switch (act->what) {
    case START:
        return story_start(demo, act->order, act->detail);
    case WATCH:
        return 0;
    case PAY:
    case PAY_LESS:
    case SHIP:
    case DELIVER:
    case CANCEL:
    case MOVE:
        break;
    }
    return story_send(demo, act->order, event_of(act), act->event_id);
}

int story_run(struct demo *demo)
{
    int r = 0;

    for (size_t i = 0; i < ACT_COUNT && r >= 0; i++) {
        r = play(demo, &acts[i]);
        if (r >= 0)
            r = pass_until(demo, i + 1 < ACT_COUNT ? acts[i + 1].at : STORY_END);
    }
    return r;
}
