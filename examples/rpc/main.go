// Rpc is a key-value store with compare-and-swap and watches, called over RDMA connections.
// Without arguments it runs a demonstration; see rpc --help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/examples/live"
	"github.com/rdmactor/rdmactor/examples/rpc/kv"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/securityflags"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = "7481"
)

func main() { cli.Main("rpc", run) }

func overview(w io.Writer) {
	fmt.Fprint(w, `rpc: a key-value store, called over RDMA connections

An address is HOST or HOST:PORT, an IPv6 address with a port [IPV6]:PORT. Ctrl-C ends serve and watch, and load with what it has
measured, with status 0; everything else with 130. rpc --version prints the build.

  rpc [demo]                         a server, and a client that shows what it can do, in one process
  rpc serve                          a server, until Ctrl-C; then it drains
`)
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		c := commands[name]
		fmt.Fprintf(w, "  rpc %-30s %s\n", name+" "+c.args, c.help)
	}
	fmt.Fprint(w, `  rpc watch [PREFIX]                 print what there is, and every change; goes on where it was when the server was away
  rpc load                           random reads and writes by many callers: calls per second, latencies

Flags stand before or behind the arguments; rpc load --help has more of them:
`)
}

// settings are the parsed flags.
type settings struct {
	command string
	args    []string
	addr    string
	device  device.Kind
	after   uint64
	load    load
	drain   time.Duration
	inspect string // the address of a server's page; "": none
	secure  securityflags.Flags
}

func parseFlags(args []string, out io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("rpc", flag.ContinueOnError)
	f.SetOutput(io.Discard) // main prints errors, once
	f.StringVar(&s.addr, "addr", defaultHost, "`HOST[:PORT]` of the server (port "+defaultPort+")")
	kind := f.String("device", string(device.IWARP), device.Usage)
	s.secure.Define(f)
	for len(args) > 0 {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			overview(out)
			f.SetOutput(out)
			f.PrintDefaults()
			return s, err
		} else if err != nil {
			return s, fmt.Errorf("%w; see rpc --help", err)
		}
		if args = f.Args(); len(args) > 0 {
			if s.command == "" {
				s.command = args[0]
				s.flags(f)
			} else {
				s.args = append(s.args, args[0])
			}
			args = args[1:]
		}
	}
	s.device = device.Kind(*kind)
	return s, s.check()
}

// flags defines the flags of the command. They may stand after the command.
func (s *settings) flags(f *flag.FlagSet) {
	switch s.command {
	case "watch":
		f.Uint64Var(&s.after, "after", 0, "changes behind this `REVISION` only")
	case "load":
		s.load.flags(f)
	case "serve":
		f.DurationVar(&s.drain, "drain", 5*time.Second, "how long calls in flight may take to finish at the end")
		f.StringVar(&s.inspect, "inspect", "", live.Usage)
	}
}

func (l *load) flags(f *flag.FlagSet) {
	f.IntVar(&l.callers, "callers", 64, "how many call at a time")
	f.IntVar(&l.connections, "connections", 1, "over how many connections")
	f.IntVar(&l.keys, "keys", 1000, "how many keys")
	f.IntVar(&l.size, "size", 64, "bytes of a value")
	f.IntVar(&l.reads, "reads", 90, "percent of the calls that read")
	f.DurationVar(&l.duration, "duration", 5*time.Second, "how long")
}

func (s *settings) check() error {
	least, most := 0, 0
	switch c, known := commands[s.command]; {
	case known:
		least, most = c.min, c.max
	case s.command == "watch":
		most = 1
	case s.command == "load":
		if err := s.load.check(); err != nil {
			return err
		}
	case s.command != "" && s.command != "demo" && s.command != "serve":
		return fmt.Errorf("unknown command %q; see rpc --help", s.command)
	}
	if n := len(s.args); n < least || n > most {
		return fmt.Errorf("%d arguments for %s; see rpc --help", n, s.command)
	}
	a, err := cli.ParseAddress(s.addr, defaultPort, s.command == "serve")
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	s.addr = a.String()
	return errors.Join(s.device.Check(), s.secure.Check())
}

func run(ctx context.Context, args []string, out, log io.Writer) (err error) {
	defer func() { err = securityflags.Explain(err) }()
	s, err := parseFlags(args, out)
	if err != nil {
		return err
	}
	level := new(slog.LevelVar)
	level.Set(slog.LevelWarn)
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return logger }))
	defer system.Shutdown()
	choice, err := device.Named(ctx, s.device, s.addr, s.command == "serve")
	if err != nil {
		return err
	}
	if choice.Why != "" {
		fmt.Fprintln(log, "--", choice)
	}
	security, closed, err := s.secure.Open(func(line string) { fmt.Fprintln(log, "--", line) })
	if err != nil {
		return err
	}
	defer closed()
	driver := choice.Driver()
	rt, err := rdma.Open(system, rdma.Config{Device: driver, Logger: logger, Security: security, Timeouts: rdma.Timeouts{Connect: callFor}})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), callFor)
		defer cancel()
		err = errors.Join(err, rt.Shutdown(end))
	}()
	switch s.command {
	case "", "demo":
		return demo(ctx, rt, out)
	case "serve":
		return s.serve(ctx, rt, driver, level, log)
	case "watch":
		prefix := ""
		if len(s.args) > 0 {
			prefix = s.args[0]
		}
		w := watcher{rt: rt, addr: s.addr, prefix: prefix, after: s.after, out: out, log: log}
		return w.run(ctx)
	case "load":
		return s.load.run(ctx, rt, s.addr, out)
	}
	c, err := dial(ctx, rt, s.addr)
	if err != nil {
		return err
	}
	defer c.Close()
	return commands[s.command].run(ctx, kv.NewStoreClient(c), s.args, out)
}

// serve answers calls until ctx ends, and then finishes those in flight.
func (s settings) serve(ctx context.Context, rt *rdma.Runtime, driver cmid.Driver, level *slog.LevelVar, log io.Writer) (err error) {
	store := newStore()
	srv := newServer(rt, store)
	local, err := srv.Listen(ctx, s.addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "-- serving on %v\n", local)
	page, err := live.Serve(s.inspect, rt, driver, level, sectionsOf(srv, store)...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	if page.URL != "" {
		fmt.Fprintf(log, "-- the live page is at %s\n", page.URL)
	}
	<-ctx.Done()
	fmt.Fprintf(log, "-- draining, %d calls in flight\n", srv.InFlight())
	end, cancel := context.WithTimeout(context.Background(), s.drain)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		return fmt.Errorf("calls were cut off that took longer than --drain %v: %w", s.drain, err)
	}
	return nil
}
