package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
)

// demo runs a server on a free port and a client, which talk over a real connection.
func demo(ctx context.Context, rt *rdma.Runtime, out io.Writer) error {
	srv := newServer(rt, newStore())
	defer srv.Close()
	local, err := srv.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "a server on %v\n", local)
	client, err := dial(ctx, rt, local.String())
	if err != nil {
		return err
	}
	defer client.Close()
	c := kv.NewStoreClient(client)

	if err := show(ctx, c, out, "put", "fruit/apple", "red"); err != nil {
		return err
	}
	watched, stop := iter.Pull2(c.Watch(ctx, &kv.WatchRequest{Prefix: "fruit/"}))
	defer stop()
	seen, err := existing(watched)
	if err != nil {
		return err
	}
	for _, line := range [][]string{
		{"get", "fruit/apple"},
		{"cas", "fruit/apple", "1", "green"},
		{"cas", "fruit/apple", "1", "yellow"}, // it has another revision by now
		{"put", "fruit/pear", "yellow"},
		{"list", "fruit/"},
		{"delete", "fruit/pear"},
		{"get", "fruit/pear"}, // it is gone
	} {
		if err := show(ctx, c, out, line...); err != nil {
			return err
		}
	}

	fmt.Fprintln(out, "\nwhat a watch of fruit/ got meanwhile:")
	for len(seen) < 4 {
		change, err, _ := watched()
		if err != nil {
			return err
		}
		seen = append(seen, change)
	}
	for _, c := range seen {
		fmt.Fprintf(out, "  %d %s = %q, deleted: %t\n", c.Entry.Revision, c.Entry.Key, c.Entry.Value, c.Deleted)
	}

	fmt.Fprintln(out, "\n$ rpc load --duration 1s")
	l := load{callers: 64, connections: 1, keys: 100, size: 64, reads: 90, duration: time.Second}
	return l.run(ctx, rt, local.String(), out)
}

// existing receives the existing entries. They end with a revision, from which on a watch receives
// every change.
func existing(watched func() (*kv.Change, error, bool)) (seen []*kv.Change, err error) {
	for {
		change, err, _ := watched()
		if err != nil {
			return nil, err
		}
		if change.Entry != nil {
			seen = append(seen, change)
		}
		if change.Revision > 0 {
			return seen, nil
		}
	}
}

// show prints a command line and its outcome.
func show(ctx context.Context, c kv.StoreAPI, out io.Writer, line ...string) error {
	fmt.Fprintf(out, "\n$ rpc %s\n", strings.Join(line, " "))
	err := commands[line[0]].run(ctx, c, line[1:], out)
	if errors.Is(err, kv.ErrChanged) || errors.Is(err, kv.ErrNotFound) { // these errors are
		// answers, too
		fmt.Fprintln(out, err)
		return nil
	}
	return err
}
