// Command rpc is a key-value store, called over RDMA connections. The calls are generated from
// kv/kv.proto.
//
//	rpc [flags] serve                    a server, until Ctrl-C; then it drains
//	rpc [flags] get KEY
//	rpc [flags] put KEY VALUE
//	rpc [flags] cas KEY REVISION VALUE   set a key that still has that revision; 0: that does not exist
//	rpc [flags] watch [PREFIX]           print what there is, and every change
//
// Beyond loopback both sides need the same --key, which rdmactor keygen makes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/iwarp"
	"github.com/rdmactor/rdmactor/rpc"
	"github.com/rdmactor/rdmactor/rpc/rpcreflect"
)

// callFor limits how long a call, or draining, may take.
const callFor = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	f := flag.NewFlagSet("rpc", flag.ContinueOnError)
	addr := f.String("addr", "127.0.0.1:7481", "`HOST:PORT` of the server")
	key := f.String("key", "", "authenticate and encrypt with the keys of `FILE`")
	if err := f.Parse(args); err != nil {
		return err
	}
	var security *rdma.Security // nil: none, and only on loopback
	if *key != "" {
		list, err := keyfile.Load(*key)
		if err != nil {
			return err
		}
		security = &rdma.Security{Mode: rdma.PSK, Keys: new(rdma.Keyring)}
		if err := keyfile.Use(security.Keys, list); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	rt, err := rdma.Open(nil, rdma.Config{Device: iwarp.New(), Security: security, Logger: log})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), callFor)
		defer cancel()
		err = errors.Join(err, rt.Shutdown(end))
	}()
	if f.Arg(0) == "serve" {
		return serveCalls(ctx, rt, *addr, out)
	}
	c, err := rpc.Dial(ctx, rt, *addr, rpc.ClientConfig{Timeout: callFor})
	if err != nil {
		return err
	}
	defer c.Close()
	return makeCall(ctx, kv.NewStoreClient(c), f.Args(), out)
}

// serveCalls answers calls until ctx ends, and then finishes those in flight.
func serveCalls(ctx context.Context, rt *rdma.Runtime, addr string, out io.Writer) error {
	srv := rpc.NewServer(rt)
	registerStore(srv)
	rpcreflect.Register(srv) // for rdmactor list and rdmactor call
	local, err := srv.Listen(ctx, addr)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "serving on", local)
	<-ctx.Done()
	end, cancel := context.WithTimeout(context.Background(), callFor)
	defer cancel()
	return srv.Shutdown(end)
}

// makeCall makes the call of a command line.
func makeCall(ctx context.Context, c kv.StoreAPI, args []string, out io.Writer) error {
	command := "" // with the number of its arguments
	if len(args) > 0 {
		command = fmt.Sprint(args[0], " ", len(args)-1)
		args = args[1:]
	}
	var e *kv.Entry
	var err error
	switch command {
	case "get 1":
		e, err = c.Get(ctx, &kv.GetRequest{Key: args[0]})
	case "put 2":
		e, err = c.Put(ctx, &kv.PutRequest{Key: args[0], Value: []byte(args[1])})
	case "cas 3":
		revision, parse := strconv.ParseUint(args[1], 10, 64)
		if parse != nil {
			return parse
		}
		e, err = c.CompareAndSwap(ctx, &kv.CompareAndSwapRequest{Key: args[0], Revision: revision, Value: []byte(args[2])})
		if now, ok := rpc.DetailsOf[kv.Entry](err); ok {
			return fmt.Errorf("%w: it has revision %d", err, now.Revision)
		}
	case "watch 0", "watch 1":
		q := &kv.WatchRequest{}
		if len(args) > 0 {
			q.Prefix = args[0]
		}
		for e, err := range c.Watch(ctx, q) {
			switch {
			case ctx.Err() != nil: // the user has ended the program
				return nil
			case err != nil:
				return err
			}
			printEntry(out, e)
		}
		return nil
	default:
		return errors.New("serve, get KEY, put KEY VALUE, cas KEY REVISION VALUE or watch [PREFIX]?")
	}
	if err == nil {
		printEntry(out, e)
	}
	return err
}

// printEntry prints an entry. Keys and values are quoted, because they are not trusted.
func printEntry(out io.Writer, e *kv.Entry) {
	fmt.Fprintf(out, "%d %q %q\n", e.Revision, e.Key, e.Value)
}
