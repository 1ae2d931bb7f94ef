#!/usr/bin/env escript
%% SPDX-License-Identifier: MIT
%% Copyright the detent authors

%% gen_event.escript - peer of bus.c: events to the handlers of Erlang's gen_event.
%%
%% gen_event.escript HANDLERS COUNT prints {"nanoseconds": N}. The clock stops when the last handler
%% has seen the last event, which a synchronous one behind them makes sure of.
-module(event_peer).
-behaviour(gen_event).
-mode(compile).
-export([main/1, init/1, handle_event/2, handle_call/2]).

init(_) -> {ok, 0}.
handle_event({started, Id, _, _}, Sum) -> {ok, Sum + Id};
handle_event(_, Sum) -> {ok, Sum}.
handle_call(sum, Sum) -> {ok, Sum, Sum}.

publish(_, Count, Count) -> ok;
publish(Bus, Id, Count) ->
    gen_event:notify(Bus, {started, Id, 3, <<"worker-17">>}),
    publish(Bus, Id + 1, Count).

main([Handlers, Text]) ->
    Count = list_to_integer(Text),
    Names = [{?MODULE, Number} || Number <- lists:seq(1, list_to_integer(Handlers))],
    {ok, Bus} = gen_event:start(),
    [ok = gen_event:add_handler(Bus, Name, []) || Name <- Names],
    publish(Bus, 0, Count div 2),
    gen_event:sync_notify(Bus, flushed),
    Before = gen_event:call(Bus, hd(Names), sum, infinity),
    Started = erlang:monotonic_time(nanosecond),
    publish(Bus, 0, Count),
    gen_event:sync_notify(Bus, flushed),
    Spent = erlang:monotonic_time(nanosecond) - Started,
    Sum = gen_event:call(Bus, lists:last(Names), sum, infinity) - Before,
    Sum = Count * (Count - 1) div 2,
    io:format("{\"nanoseconds\": ~B}~n", [Spent]).
