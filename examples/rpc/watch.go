package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/reconnect"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/rpc"
)

// watcher prints the entries of a prefix, and every change, over successive connections.
type watcher struct {
	rt       *rdma.Runtime
	addr     string
	prefix   string
	out, log io.Writer

	// Where to resume. after grows only when everything up to a revision was printed, so it does
	// not grow in the middle of a snapshot.
	epoch, after uint64
}

// redialAfter is the pause between two attempts to reach a lost server.
const redialAfter = 200 * time.Millisecond

// run returns when ctx ends, or with an error that every other attempt would end with, too. If the
// server is away, or does not answer, run tries again until it is back. If the server was
// restarted, run asks it for everything.
func (w *watcher) run(ctx context.Context) error {
	printed := ""
	for ctx.Err() == nil {
		err := w.follow(ctx, func() { printed = "" })
		switch {
		case ctx.Err() != nil: // the error only reports that
			continue
		case errors.Is(err, kv.ErrCompacted):
			fmt.Fprintln(w.log, "--", rdma.Brief(err), "- beginning again")
			w.after = 0
			continue
		case hopeless(err):
			return err
		}
		if why := rdma.Brief(err); why != printed {
			printed = why
			fmt.Fprintln(w.log, "--", why, "- trying again")
		}
		select {
		case <-time.After(redialAfter):
		case <-ctx.Done():
		}
	}
	return nil
}

// hopeless reports whether another attempt would end with the same error.
func hopeless(err error) bool {
	for _, e := range []error{rpc.ErrForeignPeer, rpc.ErrVersion, rpc.ErrUnknownMethod, rpc.ErrBadMessage} {
		if errors.Is(err, e) {
			return true
		}
	}
	var f rdma.Failure
	return errors.As(err, &f) && reconnect.Permanent(f)
}

// follow watches over one connection. It calls connected when the connection is established.
func (w *watcher) follow(ctx context.Context, connected func()) error {
	c, err := dial(ctx, w.rt, w.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	q := &kv.WatchRequest{Prefix: w.prefix, After: w.after, Epoch: w.epoch}
	for change, err := range kv.NewStoreClient(c).Watch(ctx, q) {
		if err != nil {
			return err
		}
		if change.Epoch != 0 {
			connected()
			w.began(change)
		}
		if change.Entry != nil {
			w.print(change)
		}
		w.after = max(w.after, change.Revision)
	}
	return nil
}

// began handles the first message of a watch.
func (w *watcher) began(change *kv.Change) {
	if change.Anew {
		if w.after > 0 && w.epoch != 0 && change.Epoch != w.epoch {
			fmt.Fprintln(w.log, "-- another store: what it has follows")
		}
		w.after = 0
	}
	w.epoch = change.Epoch
}

func (w *watcher) print(change *kv.Change) {
	e := change.Entry
	if change.Deleted {
		fmt.Fprintf(w.out, "%d\t%s\t(deleted)\n", e.Revision, shown(e.Key))
		return
	}
	printEntry(w.out, e)
}
