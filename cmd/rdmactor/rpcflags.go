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
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/rpc"
)

const rpcPort = "7481" // examples/rpc has the same

const listUsage = `rdmactor list ADDRESS [flags]

Prints the methods of an rpc server, one per line. The server has to register
them for tools: rpcreflect.Register(server).

EXAMPLES
  rdmactor list localhost:7481
  rdmactor list shop.example:7481 --key ann.key

FLAGS
`

const callUsage = `rdmactor call ADDRESS METHOD [JSON] [flags]

Calls a method of an rpc server and prints its answer as JSON. Without JSON the
request is empty; - reads it from standard input. A streaming method takes any
number of JSON values there, and prints one answer per line. The server has to
describe its methods: rpcreflect.Register(server). rdmactor list prints them.

EXAMPLES
  rdmactor call localhost:7481 shop.Orders/Get '{"id": 7}'
  rdmactor call shop.example:7481 shop.Orders/Get '{"id": 7}' --key ann.key

FLAGS
`

const probeUsage = `rdmactor probe ADDRESS [flags]

Connects to an rpc server. The status is 0 if it takes calls; otherwise it is 1,
and the reason is printed: nothing listens there, the server is shutting down,
it does not know this key, or its health service (package rpchealth) reports
that it does not serve. For probes of liveness and readiness.

EXAMPLES
  rdmactor probe localhost:7481
  rdmactor probe localhost:7481 --service shop.Orders --timeout 1s

FLAGS
`

const benchUsage = `rdmactor bench ADDRESS METHOD [JSON] [flags]

Calls a unary method at a fixed rate, whether earlier calls have been answered
or not, and prints latencies and errors. A latency begins when the call was due,
so it includes the delay of a server that falls behind.

EXAMPLES
  rdmactor bench localhost:7481 shop.Orders/Get '{"id": 7}' --rate 5000

FLAGS
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
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "maximum `DURATION` of connecting, and of a call other than a stream")
	o.secure.define(f)
	most := 1
	if name == "call" || name == "bench" {
		most = 3
		f.Func("H", "send `KEY:VALUE` as metadata; may be repeated", func(s string) error {
			key, value, ok := strings.Cut(s, ":")
			if !ok {
				return fmt.Errorf("%q: want KEY:VALUE", s)
			}
			o.metadata = append(o.metadata, [2]string{key, strings.TrimSpace(value)})
			return nil
		})
	}
	if name == "probe" {
		f.StringVar(&o.service, "service", "", "ask for the health of the service with this full `NAME` (default the whole server)")
		f.BoolVar(&o.alive, "alive", false, "succeed with any answer, even that the server does not serve: for a probe of liveness")
	}
	if name == "bench" {
		f.Float64Var(&o.rate, "rate", 1000, "number of `CALLS` per second")
		f.DurationVar(&o.duration, "duration", 5*time.Second, "send calls for this `DURATION`")
		f.IntVar(&o.connections, "connections", 1, "`NUMBER` of connections")
	}
	rest, err := cli.Parse(f, usage, args, stdout)
	switch {
	case err != nil:
		return o, err
	case len(rest) > most:
		return o, fmt.Errorf("unexpected %q; see %s --help", rest[most], f.Name())
	case len(rest) == 0:
		return o, fmt.Errorf("which server? %s HOST[:PORT]; see %[1]s --help", f.Name())
	case most > 1 && len(rest) == 1:
		return o, fmt.Errorf("which method? rdmactor list %s prints them", rest[0])
	case name == "bench" && (o.rate <= 0 || o.duration <= 0 || o.connections <= 0):
		return o, errors.New("--rate, --duration and --connections must be greater than 0")
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
		return o.explainDial(err)
	}
	defer c.Close()
	return do(rt, c)
}

// unreachable is an error of dialServer, with a text for users of a command line.
type unreachable struct {
	text string
	err  error
}

func (e *unreachable) Error() string { return e.text }
func (e *unreachable) Unwrap() error { return e.err }

// explainDial returns an error of dialServer with a text that states what the user can do.
func (o *rpcFlags) explainDial(err error) error {
	rejected, is := errors.AsType[*cmid.Rejected](err)
	switch {
	case is && !rejected.Reason.ByApplication():
		return &unreachable{fmt.Sprintf("no server listens at %s: start it, or name its address as HOST:PORT", o.addr), err}
	case errors.Is(err, unix.ETIMEDOUT), errors.Is(err, context.DeadlineExceeded):
		return &unreachable{fmt.Sprintf("%s does not answer within %v: it is busy or cut off, or what listens there is not an rpc server: "+
			"check the address, or raise --timeout", o.addr, o.timeout), err}
	}
	return err
}

func (o *rpcFlags) dialServer(ctx context.Context, rt *rdma.Runtime) (*rpc.Client, error) {
	return rpc.Dial(ctx, rt, o.addr, rpc.ClientConfig{MaxMessage: 4 << 20, Credits: 8})
}
