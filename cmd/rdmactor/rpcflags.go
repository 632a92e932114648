package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/rpc"
)

const rpcPort = "7481" // examples/rpc has the same

const listUsage = `rdmactor list ADDRESS [flags]

Prints the methods of an rpc server, a line each. The server has registered them for tools: rpcreflect.Register(server).

Flags:
`

const callUsage = `rdmactor call ADDRESS METHOD [JSON] [flags]

Calls a method of an rpc server, such as shop.Orders/Get '{"id": 7}', and prints its answer as JSON. - instead of JSON reads
the request from standard input. A stream takes any number of JSON values there, and prints an answer a line. The server describes its
methods: rpcreflect.Register(server).

Flags:
`

const probeUsage = `rdmactor probe ADDRESS [flags]

Connects to an rpc server and ends with status 0 if it takes calls, else with 1 and the reason: it is not there, it drains, it does
not know this key, or its health service (package rpchealth) reports that it does not serve. For probes of liveness and readiness.

Flags:
`

const benchUsage = `rdmactor bench ADDRESS METHOD [JSON] [flags]

Makes calls of a unary method at a fixed rate, whether they are answered or not, and prints how long they take: from the moment at
which a call was due, so that a server that falls behind shows it.

Flags:
`

// rpcFlags is the command line of list, call, bench and probe.
type rpcFlags struct {
	addr, method, request string
	service               string // whose health probe asks for; "": the server's
	alive                 bool   // any answer satisfies probe
	device                device.Kind
	timeout               time.Duration
	metadata              [][2]string
	secure                secureFlags

	rate        float64 // calls a second
	duration    time.Duration
	connections int
}

func parseRPC(name, usage string, args []string, stdout io.Writer) (o rpcFlags, err error) {
	f := flag.NewFlagSet("rdmactor "+name, flag.ContinueOnError)
	kind := f.String("device", string(device.IWARP), device.Usage)
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long connecting, and a call, may take; a stream may take longer")
	o.secure.define(f)
	most := 1
	if name == "call" || name == "bench" {
		most = 3
		f.Func("H", "`KEY:VALUE` of metadata, any number of times", func(s string) error {
			key, value, ok := strings.Cut(s, ":")
			if !ok {
				return fmt.Errorf("%q: want KEY:VALUE", s)
			}
			o.metadata = append(o.metadata, [2]string{key, strings.TrimSpace(value)})
			return nil
		})
	}
	if name == "probe" {
		f.StringVar(&o.service, "service", "", "whose health: the full `NAME` of a service (default the whole server)")
		f.BoolVar(&o.alive, "alive", false, "only whether the server answers, also that it does not serve: for a probe of liveness")
	}
	if name == "bench" {
		f.Float64Var(&o.rate, "rate", 1000, "`CALLS` a second")
		f.DurationVar(&o.duration, "duration", 5*time.Second, "how long")
		f.IntVar(&o.connections, "connections", 1, "over how many connections")
	}
	rest, err := cli.Parse(f, usage, args, stdout)
	switch {
	case err != nil:
		return o, err
	case len(rest) > most:
		return o, fmt.Errorf("unexpected %q; see %s --help", rest[most], f.Name())
	case len(rest) == 0:
		return o, fmt.Errorf("which server? see %s --help", f.Name())
	case most > 1 && len(rest) == 1:
		return o, fmt.Errorf("which method? rdmactor list %s", rest[0])
	case name == "bench" && (o.rate <= 0 || o.duration <= 0 || o.connections <= 0):
		return o, errors.New("--rate, --duration and --connections are more than 0")
	}
	rest = append(rest, "", "")
	o.method, o.request = rest[1], rest[2]
	a, err := cli.ParseAddress(rest[0], rpcPort, false)
	if err != nil {
		return o, err
	}
	o.addr, o.device = a.String(), device.Kind(*kind)
	return o, errors.Join(o.device.Check(), o.secure.check())
}

// metadataContext returns a context with the metadata.
func (o *rpcFlags) metadataContext(ctx context.Context) context.Context {
	for _, m := range o.metadata {
		ctx = rpc.WithMetadata(ctx, m[0], m[1])
	}
	return ctx
}

// withClient runs do with a runtime, and a client that is connected to the server.
func (o *rpcFlags) withClient(ctx context.Context, stderr io.Writer, do func(rt *rdma.Runtime, c *rpc.Client) error) (err error) {
	defer func() { err = explainSecurity(err) }()
	log := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	sys := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }),
		actor.WithDeadLetterThrottleInterval(time.Millisecond))
	defer sys.Shutdown()
	choice, err := device.Named(ctx, o.device, o.addr, false)
	if err != nil {
		return err
	}
	security, err := o.secure.open()
	if err != nil {
		return err
	}
	rt, err := rdma.Open(sys, rdma.Config{Device: choice.Driver(), Logger: log, Security: security})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), o.timeout)
		defer cancel()
		err = errors.Join(err, rt.Shutdown(end))
	}()
	dialling, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	c, err := o.dialServer(dialling, rt)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(rt, c)
}

func (o *rpcFlags) dialServer(ctx context.Context, rt *rdma.Runtime) (*rpc.Client, error) {
	return rpc.Dial(ctx, rt, o.addr, rpc.ClientConfig{MaxMessage: 4 << 20, Credits: 8})
}
