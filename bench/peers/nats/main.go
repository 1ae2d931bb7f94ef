// SPDX-License-Identifier: MIT
// Copyright the detent authors

// main.go - peer of journal.c: rows of 256 bytes published to a stream of NATS JetStream in files.
//
// nats URL COUNT WINDOW   publishes COUNT rows, WINDOW of them in flight; 1: one at a time
//
// Prints {"nanoseconds": n}, the time until the server has answered the last row.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const rowSize = 256

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func publishOne(stream nats.JetStreamContext, count int, row []byte) {
	for i := 0; i < count; i++ {
		_, err := stream.Publish("bench.rows", row)
		check(err)
	}
}

func publishMany(stream nats.JetStreamContext, count int, row []byte) {
	for i := 0; i < count; i++ {
		_, err := stream.PublishAsync("bench.rows", row)
		check(err)
	}
	select {
	case <-stream.PublishAsyncComplete():
	case <-time.After(time.Minute):
		check(fmt.Errorf("no answer within a minute"))
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: nats URL COUNT WINDOW")
		os.Exit(2)
	}
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	window, err := strconv.Atoi(os.Args[3])
	check(err)
	connection, err := nats.Connect(os.Args[1])
	check(err)
	stream, err := connection.JetStream(nats.PublishAsyncMaxPending(window))
	check(err)
	name := fmt.Sprintf("bench-%d", os.Getpid())
	_, err = stream.AddStream(&nats.StreamConfig{
		Name: name, Subjects: []string{"bench.rows"}, Storage: nats.FileStorage,
	})
	check(err)
	row := make([]byte, rowSize)
	begin := time.Now()
	if window == 1 {
		publishOne(stream, count, row)
	} else {
		publishMany(stream, count, row)
	}
	fmt.Printf("{\"nanoseconds\": %d}\n", time.Since(begin).Nanoseconds())
	check(stream.DeleteStream(name))
	connection.Close()
}
