package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
)

// demo is a server on a free port and a client of it, which talk over a real connection.
func demo(ctx context.Context, rt *rdma.Runtime, out io.Writer) error {
	srv := newServer(rt)
	defer srv.Close()
	local, err := srv.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "a server on %v\n", local)
	c, err := dial(ctx, rt, local.String())
	if err != nil {
		return err
	}
	defer c.Close()

	watched, err := rpc.Open(ctx, c, kv.Watch, &kv.WatchRequest{Prefix: "fruit/"})
	if err != nil {
		return err
	}
	defer watched.Close()
	for _, step := range []struct {
		command string
		args    []string
	}{
		{"put", []string{"fruit/apple", "red"}},
		{"get", []string{"fruit/apple"}},
		{"cas", []string{"fruit/apple", "1", "green"}},
		{"cas", []string{"fruit/apple", "1", "yellow"}}, // its revision is another one by now
		{"put", []string{"fruit/pear", "yellow"}},
		{"list", []string{"fruit/"}},
		{"delete", []string{"fruit/pear"}},
		{"get", []string{"fruit/pear"}}, // it is gone
	} {
		fmt.Fprintf(out, "\n$ rpc %s", step.command)
		for _, a := range step.args {
			fmt.Fprintf(out, " %s", a)
		}
		fmt.Fprintln(out)
		err := commands[step.command].run(ctx, c, step.args, out)
		if errors.Is(err, kv.ErrChanged) || errors.Is(err, kv.ErrNotFound) {
			fmt.Fprintln(out, err)
		} else if err != nil {
			return err
		}
	}

	fmt.Fprintln(out, "\nwhat a watch of fruit/ was told meanwhile:")
	for range 4 {
		change, err := watched.Recv()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "  %d %s = %q, deleted: %t\n", change.Entry.Revision, change.Entry.Key, change.Entry.Value, change.Deleted)
	}

	fmt.Fprintln(out, "\n$ rpc load --duration 1s")
	l := load{callers: 64, connections: 1, keys: 100, size: 64, reads: 90, duration: time.Second}
	return l.run(ctx, rt, local.String(), out)
}
