// Chat is the chat of examples/chat across machines: each process is a member of a cluster, over
// RDMA, and no process is the host. Rooms are virtual actors: the first request for a room makes
// it, on the member that its name belongs to. When that member is killed, the room is made anew on
// another one within a second, and the people in it silently enter again.
//
// See chat --help.
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
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/examples/chat/console"
	"github.com/rdmactor/rdmactor/examples/chat/room"
	"github.com/rdmactor/rdmactor/internal/cli"
	"github.com/rdmactor/rdmactor/internal/device"
	"github.com/rdmactor/rdmactor/internal/securityflags"
)

const (
	defaultMembers = "127.0.0.1:7471,127.0.0.1:7472,127.0.0.1:7473"
	// healthPort is the distance from the port in a member's name to the port of its health check.
	healthPort = 1000
	// refresh is the period of health checks.
	refresh = 400 * time.Millisecond
	// silence is how long a member may be silent before it is given up.
	silence = 3 * time.Second
)

const overview = `chat [NAME] [flags]

Joins a chat that has no host. Each process is a member of a cluster; all are started with the same --members. NAME is the
one of these that this process is: without it, the first one that is free on this machine. Each member also answers an HTTP
request at a port 1000 above the one of its name.

On several machines, all members have the same --key, or certificates of one --tls-ca that are good for both sides. Who has another one is
alone with all that they say, and both sides say so. The HTTP requests, which say who is there, are not secured.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, stop, os.Args[1:]); err != nil {
		console.Fail("chat", err)
	}
}

// settings are the values of the flags.
type settings struct {
	name    string // ""; the first that is free
	members []string
	device  device.Kind
	choice  device.Choice
	debug   bool
	who     carried
	secure  securityflags.Flags
	// from the flags of secure; nil: none
	security *rdma.Security
}

func parseFlags(args []string) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet("chat", flag.ContinueOnError)
	members := f.String("members", defaultMembers, "the `NAMES` of all members, HOST:PORT,HOST:PORT,...")
	kind := f.String("device", string(device.IWARP), device.Usage)
	s.secure.Define(f)
	f.BoolVar(&s.debug, "debug", false, "log what the cluster and the identifiers do")
	f.StringVar(&s.who.nick, "nick", room.DefaultNick(), "your `NAME`")
	f.StringVar(&s.who.room, "room", room.Lobby, "the `ROOM` to enter")
	f.SetOutput(io.Discard) // main prints errors, once
	var words []string      // flags may come before and after them
	for {
		if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
			return nil, help(f)
		} else if err != nil {
			return nil, fmt.Errorf("%w; see chat --help", err)
		}
		if f.NArg() == 0 {
			break
		}
		words, args = append(words, f.Arg(0)), f.Args()[1:]
	}
	s.members, s.device = strings.Split(*members, ","), device.Kind(*kind)
	return s, s.check(words)
}

// help prints the text and the flags. It returns flag.ErrHelp on success.
func help(f *flag.FlagSet) error {
	var flags strings.Builder
	f.SetOutput(&flags)
	f.PrintDefaults()
	if _, err := fmt.Printf("%s\nFlags:\n%s", overview, &flags); err != nil {
		return err
	}
	return flag.ErrHelp
}

func (s *settings) check(words []string) error {
	if len(words) > 1 {
		return fmt.Errorf("unexpected %q; see chat --help", words[1])
	}
	if len(words) == 1 {
		s.name = words[0]
	}
	for i, name := range s.members {
		a, err := cli.ParseAddress(name, "", false)
		if err != nil {
			return fmt.Errorf("--members: %w", err)
		}
		if port, err := strconv.Atoi(a.Port); err != nil || port+healthPort > 1<<16-1 {
			return fmt.Errorf("--members: %q: the port is a number of at most %d", name, 1<<16-1-healthPort)
		}
		s.members[i] = a.String()
	}
	if s.name != "" && !slices.Contains(s.members, s.name) {
		return fmt.Errorf("%s is none of the members, %s", s.name, strings.Join(s.members, ", "))
	}
	if err := errors.Join(s.device.Check(), s.secure.Check()); err != nil {
		return err
	}
	return room.CheckFlags(s.who.nick, s.who.room)
}

// health returns the address of a member's health check.
func health(name string) string {
	host, port, _ := net.SplitHostPort(name) // check has parsed it
	n, _ := strconv.Atoi(port)
	return net.JoinHostPort(host, strconv.Itoa(n+healthPort))
}

// health returns the addresses of all members' health checks.
func (s *settings) health() []string {
	var all []string
	for _, name := range s.members {
		all = append(all, health(name))
	}
	return all
}

// run is the program. ctx ends when the person leaves; leave ends it.
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
	// a provider logs each member that it does not find as an error
	log := slog.New(slog.DiscardHandler)
	if s.debug {
		log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var closed func()
	if s.security, closed, err = s.secure.Open(func(line string) { fmt.Fprintln(os.Stderr, "--", line) }); err != nil {
		return err
	}
	defer closed()
	first, err := s.first(ctx, log)
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()): // the person has left already
		return nil
	case err != nil:
		return err
	}
	con, err := console.Open("> ", room.MaxText)
	if err != nil {
		return errors.Join(err, first.end())
	}
	con.Status(fmt.Sprintf("this is %s, of %s", s.name, strings.Join(s.members, ", ")))
	return errors.Join(chat(ctx, leave, s, log, first, con), con.Close())
}

// first joins the cluster under the given name, or the first free one.
func (s *settings) first(ctx context.Context, log *slog.Logger) (*session, error) {
	names := s.members
	if s.name != "" {
		names = []string{s.name}
	}
	for _, name := range names {
		choice, err := device.Named(ctx, s.device, name, true)
		if err != nil {
			return nil, err
		}
		s.name, s.choice = name, choice
		se, err := begin(ctx, s, log)
		taken := errors.Is(err, unix.EADDRINUSE) || errors.Is(err, unix.EADDRNOTAVAIL)
		if !taken || len(names) == 1 {
			return se, err
		}
	}
	return nil, fmt.Errorf("each of %s is taken, or not this machine's", strings.Join(names, ", "))
}

// chat runs one session after the other.
func chat(ctx context.Context, leave func(), s *settings, log *slog.Logger, se *session, con console.Console) error {
	in := console.NewInput(con, "the room")
	lines := make(chan any)
	go read(in, lines, leave)
	who := &s.who
	for {
		next, err := se.talk(ctx, con, in, lines, who)
		if err != nil || next == nil {
			return errors.Join(err, se.end())
		}
		con.Status("the others have given this process up, perhaps because it stood still: it joins again")
		if err := se.end(); err != nil {
			con.Status(err.Error())
		}
		who = next
		if se, err = begin(ctx, s, log); err != nil {
			return err
		}
	}
}

// read reads the typed lines, for the present session: *typed, and *quit at the end.
func read(in *console.Input, lines chan<- any, leave func()) {
	asked, err := in.Read(func(text string) { lines <- &typed{text} })
	if asked {
		leave()
		return
	}
	lines <- &quit{now: errors.Is(err, console.ErrNotTaken), why: err}
}
