package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
)

// dial connects to a store. A call is repeated if it was refused, or if its connection was lost and
// it was certainly not executed.
func dial(ctx context.Context, rt *rdma.Runtime, addr string) (*rpc.Client, error) {
	return rpc.Dial(ctx, rt, addr,
		rpc.ClientConfig{Retry: rpc.Retry{Attempts: 5}, Timeout: callFor, MaxMessage: maxMessage, Credits: 32})
}

// callFor limits how long a call may take.
const callFor = 5 * time.Second

// command is one of the client's commands, on a connection.
type command struct {
	args string // its arguments, for the usage text
	help string
	min  int // number of arguments
	max  int
	run  func(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error
}

var commands = map[string]command{
	"get":    {"KEY", "print a value", 1, 1, get},
	"put":    {"KEY VALUE", "set a value", 2, 2, put},
	"cas":    {"KEY REVISION VALUE", "set a value that still has that revision; 0: that does not exist", 3, 3, compareAndSwap},
	"delete": {"KEY", "remove a key", 1, 1, remove},
	"list":   {"[PREFIX]", "print keys, their revisions and values", 0, 1, list},
}

func get(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	r, err := c.Get(ctx, &kv.KeyRequest{Key: args[0]})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", r.Entry.GetValue())
	return nil
}

func put(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	r, err := c.Put(ctx, &kv.Entry{Key: args[0], Value: []byte(args[1])})
	return printRevision(out, r, err)
}

func compareAndSwap(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	revision, err := strconv.ParseUint(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("REVISION is a number, not %q", args[1])
	}
	r, err := c.CompareAndSwap(ctx, &kv.CompareAndSwapRequest{Key: args[0], Revision: revision, Value: []byte(args[2])})
	if now, ok := rpc.DetailsOf[kv.RevisionReply](err); ok {
		return fmt.Errorf("%w (it is %d)", err, now.Revision)
	}
	return printRevision(out, r, err)
}

func remove(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	r, err := c.Delete(ctx, &kv.KeyRequest{Key: args[0]})
	return printRevision(out, r, err)
}

// printRevision prints the outcome of a change.
func printRevision(out io.Writer, r *kv.RevisionReply, err error) error {
	if err == nil {
		fmt.Fprintln(out, "revision", r.Revision)
	}
	return err
}

func list(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	q := &kv.ListRequest{}
	if len(args) > 0 {
		q.Prefix = args[0]
	}
	for {
		page, err := c.List(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			printEntry(out, e)
			q.After = e.Key
		}
		if !page.More || len(page.Entries) == 0 {
			return nil
		}
	}
}

func printEntry(out io.Writer, e *kv.Entry) {
	fmt.Fprintf(out, "%d\t%s\t%s\n", e.Revision, shown(e.Key), shown(string(e.Value)))
}

// shown makes untrusted text printable: it stays in its column and on its line.
func shown(text string) string {
	for _, r := range text {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}
