/* SPDX-License-Identifier: MIT
 * Copyright the detent authors */

/* msm.cpp - peer of step.c: the order machine in Boost.MSM, bare transitions, no actions.
 *
 * peer_msm EVENTS COUNT prints {"nanoseconds": n}, its own processor time for COUNT events. */
#include <boost/msm/back/state_machine.hpp>
#include <boost/msm/front/functor_row.hpp>
#include <boost/msm/front/state_machine_def.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <vector>

namespace mpl = boost::mpl;
namespace msm = boost::msm;
using msm::front::none;
using msm::front::Row;

struct pay {};
struct ship {};
struct deliver {};
struct cancel {};
struct move {};
struct charged {};
struct declined {};
struct refunded {};
struct expired {};
struct late {};

static uint64_t untaken;

struct order_ : msm::front::state_machine_def<order_> {
    struct pending : msm::front::state<> {};
    struct charging : msm::front::state<> {};
    struct paid : msm::front::state<> {};
    struct shipped : msm::front::state<> {};
    struct delivered : msm::front::state<> {};
    struct refunding : msm::front::state<> {};
    struct cancelled : msm::front::state<> {};
    typedef pending initial_state;

    struct transition_table : mpl::vector<
        Row<pending, pay, charging>,
        Row<pending, charged, paid>,
        Row<pending, cancel, cancelled>,
        Row<pending, expired, cancelled>,
        Row<pending, move, none>,
        Row<charging, charged, paid>,
        Row<charging, declined, pending>,
        Row<charging, move, none>,
        Row<paid, ship, shipped>,
        Row<paid, cancel, refunding>,
        Row<paid, move, none>,
        Row<paid, late, none>,
        Row<shipped, deliver, delivered>,
        Row<shipped, late, none>,
        Row<refunding, refunded, cancelled>,
        Row<cancelled, charged, refunding>> {};

    template <class Machine, class Event> void no_transition(Event const &, Machine &, int)
    {
        untaken++;
    }
};
typedef msm::back::state_machine<order_> order;

static void send(order &machine, unsigned event)
{
    switch (event) {
    case 0: machine.process_event(pay()); break;
    case 1: machine.process_event(ship()); break;
    case 2: machine.process_event(deliver()); break;
    case 3: machine.process_event(cancel()); break;
    case 4: machine.process_event(move()); break;
    case 5: machine.process_event(charged()); break;
    case 6: machine.process_event(declined()); break;
    case 7: machine.process_event(refunded()); break;
    case 8: machine.process_event(expired()); break;
    case 9: machine.process_event(late()); break;
    }
}

static double walk(const std::vector<char> &events, uint64_t count)
{
    order machine;
    clock_t started = clock();

    for (uint64_t i = 0; i < count; i++) {
        if (i % 16 == 0)
            machine.start();
        send(machine, static_cast<unsigned char>(events[i % events.size()]));
    }
    double spent = static_cast<double>(clock() - started) / CLOCKS_PER_SEC * 1e9;
    untaken += static_cast<uint64_t>(machine.current_state()[0]);
    return spent;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    std::ifstream file(argv[1], std::ios::binary);
    std::vector<char> events((std::istreambuf_iterator<char>(file)),
        std::istreambuf_iterator<char>());
    uint64_t count = std::strtoull(argv[2], nullptr, 10);

    if (events.empty() || count == 0)
        return 2;
    walk(events, count / 10 + 1);
    double spent = walk(events, count);
    std::printf("{\"nanoseconds\": %.0f, \"untaken\": %llu}\n", spent,
        static_cast<unsigned long long>(untaken));
    return 0;
}
