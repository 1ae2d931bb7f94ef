// SPDX-License-Identifier: MIT
// Copyright the detent authors

// main.go - peer of jobs.c: jobs of River on PostgreSQL.
//
// river URL COUNT insert N    N goroutines insert COUNT jobs, one at a time
// river URL COUNT finish N    inserts COUNT jobs, then N workers execute them
//
// Prints {"nanoseconds": n}. Settings are River's defaults, except the number of workers, and the
// fetch cooldown and poll interval, which have the smallest values that River accepts.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type arguments struct {
	Number int `json:"number"`
}

func (arguments) Kind() string { return "bench" }

type worker struct {
	river.WorkerDefaults[arguments]
	left *atomic.Int64
	done chan struct{}
}

func (w *worker) Work(_ context.Context, _ *river.Job[arguments]) error {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func insert(ctx context.Context, client *river.Client[pgx.Tx], count, inserters int) {
	var next atomic.Int64
	var group sync.WaitGroup
	for i := 0; i < inserters; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for number := next.Add(1); number <= int64(count); number = next.Add(1) {
				_, err := client.Insert(ctx, arguments{int(number)}, nil)
				check(err)
			}
		}()
	}
	group.Wait()
}

func main() {
	ctx := context.Background()
	count, err := strconv.Atoi(os.Args[2])
	check(err)
	number, err := strconv.Atoi(os.Args[4])
	check(err)
	config, err := pgxpool.ParseConfig(os.Args[1])
	check(err)
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)
	_, err = pool.Exec(ctx, "TRUNCATE river_job")
	check(err)

	workers := river.NewWorkers()
	ours := &worker{left: &atomic.Int64{}, done: make(chan struct{})}
	ours.left.Store(int64(count))
	river.AddWorker(workers, ours)
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(io.Discard, nil)),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: number}},
		Workers:           workers,
	})
	check(err)

	began := time.Now()
	if os.Args[3] == "insert" {
		insert(ctx, client, count, number)
		fmt.Printf("{\"nanoseconds\": %d}\n", time.Since(began).Nanoseconds())
		return
	}
	for first := 0; first < count; first += 1000 {
		many := []river.InsertManyParams{}
		for i := first; i < count && i < first+1000; i++ {
			many = append(many, river.InsertManyParams{Args: arguments{i}})
		}
		_, err = client.InsertMany(ctx, many)
		check(err)
	}
	began = time.Now()
	check(client.Start(ctx))
	<-ours.done
	fmt.Printf("{\"nanoseconds\": %d}\n", time.Since(began).Nanoseconds())
	check(client.Stop(ctx))
}
