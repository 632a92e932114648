// Chat is the large chat: rooms, paces, backlogs and a live page, for people who do not trust each
// other. The small one, to copy, is examples/chat. Without arguments it hosts on loopback and joins
// as the first user; see chat --help.
//
// No member waits for another. Each member has its own backlog. A member that does not read misses
// lines, and gets a notice with their number. It is disconnected if a line has waited in its
// backlog for too long. If an address sends lines faster than its pace, the server reads them
// later. That pace is shared by all of its connections, which take turns, and a line that makes the
// server do more counts as several. An address may have as many connections as are still free, and
// a backlog as much memory as is still free. A name is refused if it looks like another one, or
// contains invisible characters: so a name on the screen is one person. Where connections are
// secured, "ann ✓" has ann's key or certificate, and 'bob ("ann")' has ann's, too, but calls
// himself bob.
//
// The user can leave at any time. Ctrl-C, Ctrl-D and /quit take a few seconds at most, and lines
// that were not sent by then are reported. A second Ctrl-C ends the program immediately.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/inspect"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/securityflags"
	"github.com/rdmactor/rdmactor/lab/chat/console"
	"github.com/rdmactor/rdmactor/lab/chat/room"
	"github.com/rdmactor/rdmactor/lab/live"
)

const (
	defaultHost = "127.0.0.1"
	defaultPort = "7471"
)

const overview = `chat: rooms over RDMA connections

  chat [flags]                host on loopback and join, or just join if a host is there; the room ends when its host leaves
  chat serve [ADDR] [flags]   host only
  chat join ADDR [flags]      join somebody's

Two machines need a key that both have; rdmactor keygen makes it: chat serve :7471 --key FILE, and chat join HOST --key FILE.
With keys or certificates a name shows whose they are: "ann ✓" has ann's; bob ("ann") has ann's, too, but calls himself bob.

Each takes --help; chat --version prints the build. Once inside, /help lists what can be typed.
`

var usage = map[string]string{
	"": overview,
	"serve": `chat serve [ADDR] [flags]

Hosts until Ctrl-C. ADDR is HOST[:PORT], or :PORT for all devices, or HOST:0 for a free port.
`,
	"join": `chat join ADDR [flags]

Joins the host at ADDR, which is HOST[:PORT], and redials when it goes away. Works in a pipe: one line in, one line out; it gives
up when the host has taken nothing for 10 s while 64 lines wait.
`,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, stop, os.Args[1:]); err != nil {
		console.Fail("chat", err)
	}
}

// settings are the parsed flags.
type settings struct {
	command string // "", "serve" or "join"
	addr    string
	hello   hello
	device  device.Kind
	debug   bool
	inspect string // the address of the page; "": none
	secure  securityflags.Flags
}

func parseFlags(args []string) (settings, error) {
	var s settings
	if len(args) > 0 && usage[args[0]] != "" {
		s.command, args = args[0], args[1:]
	} else if len(args) > 0 && args[0] == "help" {
		args[0] = "--help"
	}
	name := strings.TrimSpace("chat " + s.command)
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	kind := f.String("device", string(device.IWARP), device.Usage)
	f.BoolVar(&s.debug, "debug", false, "log what the identifiers do")
	f.StringVar(&s.inspect, "inspect", "", live.Usage)
	s.secure.Define(f)
	if s.command != "join" {
		f.StringVar(&s.addr, "addr", defaultHost, "`ADDR` to host on (port "+defaultPort+")")
	}
	if s.command != "serve" {
		f.StringVar(&s.hello.nick, "nick", room.DefaultNick(), "your `NAME`")
		f.StringVar(&s.hello.room, "room", room.Lobby, "the `ROOM` to enter")
	}
	f.SetOutput(io.Discard) // main prints errors, once
	var words []string      // flags may stand before and after the words
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return s, help(usage[s.command], f)
		} else if err != nil {
			return s, fmt.Errorf("%w; see %s --help", err, name)
		}
		if f.NArg() == 0 {
			break
		}
		words, args = append(words, f.Arg(0)), f.Args()[1:]
	}
	s.device = device.Kind(*kind)
	return s, s.check(name, words)
}

// help prints the text and the flags. It returns flag.ErrHelp if that succeeds.
func help(text string, f *flag.FlagSet) error {
	var flags strings.Builder
	f.SetOutput(&flags)
	f.PrintDefaults()
	if _, err := fmt.Printf("%s\nFlags:\n%s", text, &flags); err != nil {
		return err
	}
	return flag.ErrHelp
}

func (s *settings) check(name string, words []string) error {
	switch {
	case s.command == "" && len(words) > 0:
		return fmt.Errorf("unknown command %q; see chat --help", words[0])
	case len(words) > 1:
		return fmt.Errorf("unexpected %q; see %s --help", words[1], name)
	case s.command == "join" && len(words) == 0:
		return errors.New("join whom? chat join HOST:PORT")
	case len(words) == 1:
		s.addr = words[0]
	}
	if err := errors.Join(s.device.Check(), s.secure.Check()); err != nil {
		return err
	}
	a, err := cli.ParseAddress(s.addr, defaultPort, s.command != "join")
	if err != nil {
		return err
	}
	s.addr = a.String()
	if s.command == "serve" {
		return nil
	}
	return room.CheckFlags(s.hello.nick, s.hello.room)
}

// run runs the program. ctx ends when the user leaves; leave cancels it.
func run(ctx context.Context, leave func(), args []string) (err error) {
	defer func() { err = securityflags.Explain(err) }()
	if len(args) > 0 && (args[0] == "--version" || args[0] == "-version") {
		_, err := fmt.Println(cli.Version("chat"))
		return err
	}
	s, err := parseFlags(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	level := new(slog.LevelVar)
	level.Set(slog.LevelWarn)
	if s.debug {
		level.Set(slog.LevelDebug)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	defer system.Shutdown()
	choice, err := device.Named(ctx, s.device, s.addr, s.command != "join")
	if err != nil {
		return err
	}
	if choice.Why != "" {
		fmt.Fprintln(os.Stderr, "--", choice)
	}
	security, closed, err := s.secure.Open(func(line string) { fmt.Fprintln(os.Stderr, "--", line) })
	if err != nil {
		return err
	}
	defer closed()
	driver := choice.Driver()
	rt, err := rdma.Open(system, rdma.Config{Device: driver, Logger: log, Security: security})
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), leaveFor)
		defer cancel()
		e := rt.Shutdown(end)
		if errors.Is(e, context.DeadlineExceeded) { // is not this user's error
			console.Note("somebody did not answer the goodbye")
			e = nil
		}
		err = errors.Join(err, e)
	}()

	return s.play(ctx, leave, rt, system, driver, level, log)
}

// play hosts and joins, as the command requires, and serves the page until it returns.
func (s settings) play(
	ctx context.Context, leave func(), rt *rdma.Runtime, system *actor.ActorSystem, driver cmid.Driver, level *slog.LevelVar, log *slog.Logger,
) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // after the page has ended
	var sections []inspect.Section
	if s.command != "join" {
		at, err := host(ctx, rt, system, s.addr, log)
		switch {
		case err == nil:
			fmt.Fprintf(os.Stderr, "-- hosting on %v; join with: chat join %s%s\n", at.local, reachable(at.local), s.secure.Other())
			name, _, _ := net.SplitHostPort(s.addr) // listening on it has succeeded
			s.addr = net.JoinHostPort(name, fmt.Sprint(at.local.Port()))
			sections = sectionsOf(ctx, system, at.server)
		case s.command == "serve" || !errors.Is(err, unix.EADDRINUSE):
			return err
		}
	}
	page, err := live.Serve(s.inspect, rt, driver, level, sections...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()
	if page.URL != "" {
		fmt.Fprintf(os.Stderr, "-- the live page is at %s\n", page.URL)
	}
	if s.command == "serve" {
		<-ctx.Done()
		return nil
	}
	return join(ctx, leave, rt, system, s)
}

// reachable returns the address at which others reach a host.
func reachable(local rdma.Addr) string {
	if !local.IsWildcard() {
		return local.String()
	}
	name, err := os.Hostname()
	if err != nil {
		name = "HOST"
	}
	return net.JoinHostPort(name, fmt.Sprint(local.Port()))
}

// hosted is a server that listens.
type hosted struct {
	server *actor.PID
	local  rdma.Addr
}

// host starts a server and waits until it listens.
func host(ctx context.Context, rt *rdma.Runtime, system *actor.ActorSystem, addr string, log *slog.Logger) (hosted, error) {
	started := make(chan outcome, 1)
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return newServer(rt, addr, log, started) }, rt.OnLoop()))
	select {
	case o := <-started:
		return hosted{pid, o.local}, o.err
	case <-ctx.Done():
		return hosted{}, ctx.Err()
	case <-time.After(dialFor):
		return hosted{}, fmt.Errorf("listening on %s takes too long", addr)
	}
}

// join talks at the console.
func join(ctx context.Context, leave func(), rt *rdma.Runtime, system *actor.ActorSystem, s settings) error {
	con, err := console.Open("> ", room.MaxText)
	if err != nil {
		return err
	}
	return errors.Join(talk(ctx, leave, con, rt, system, s), con.Close())
}

// talk runs the client until the user leaves: by a signal, or at the terminal, which calls leave.
func talk(ctx context.Context, leave func(), con console.Console, rt *rdma.Runtime, system *actor.ActorSystem, s settings) error {
	ended := make(chan error, 1)
	in := console.NewInput(con, "the server")
	c := &client{rt: rt, server: s.addr, hello: s.hello, con: con, in: in, ended: ended}
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rt.OffLoop()))
	go func() {
		asked, err := in.Read(func(text string) { system.Root.Send(pid, &typed{text}) })
		if asked {
			leave()
			return
		}
		system.Root.Send(pid, &quit{now: errors.Is(err, console.ErrNotTaken), why: err})
	}()

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	if err := con.Close(); err != nil { // now, so that Ctrl-C raises a signal again
		return err
	}
	system.Root.Send(pid, &quit{now: true})
	select {
	case err := <-ended:
		return err
	case <-time.After(closeFor):
		return errors.New("gave up saying goodbye: is standard output stuck?")
	}
}
