// Chat is rooms full of people over RDMA connections, each connection an actor. Alone it hosts on loopback and joins as the first
// user; see chat --help.
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
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/iwarp"
)

const defaultAddr = "127.0.0.1:7471"

const usage = `chat: rooms over RDMA connections

  chat [flags]                       host on loopback and join, or just join if a host is there
  chat serve [--addr ADDR] [flags]   host only
  chat join ADDR [flags]             join somebody's

Each takes --help. Once inside, /help lists what can be typed.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "chat:", err)
			os.Exit(1)
		}
	}
}

// settings are what the flags say.
type settings struct {
	command string // "", "serve" or "join"
	addr    string
	hello   hello
	device  string
	debug   bool
}

func parseFlags(args []string) (settings, error) {
	var s settings
	if len(args) > 0 && (args[0] == "serve" || args[0] == "join") {
		s.command, args = args[0], args[1:]
	}
	f := flag.NewFlagSet("chat "+s.command, flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprint(f.Output(), usage, "\nFlags:\n")
		f.PrintDefaults()
	}
	f.StringVar(&s.device, "device", "auto", "`KIND` of device: auto or iwarp (both are the embedded iWARP device; kernel devices come later)")
	f.BoolVar(&s.debug, "debug", false, "log what the identifiers do")
	if s.command != "join" {
		f.StringVar(&s.addr, "addr", defaultAddr, "`ADDR` to host on: HOST:PORT, or :PORT for all devices")
	}
	if s.command != "serve" {
		f.StringVar(&s.hello.nick, "nick", defaultNick(), "your `NAME`")
		f.StringVar(&s.hello.room, "room", lobby, "the `ROOM` to enter")
	}
	if s.command == "join" && len(args) > 0 && args[0] != "" && args[0][0] != '-' { // the address comes before the flags
		s.addr, args = args[0], args[1:]
	}
	f.SetOutput(io.Discard) // errors are told once, by main
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(os.Stdout)
			f.Usage()
			return s, err
		}
		return s, fmt.Errorf("%w; see chat %s --help", err, s.command)
	}
	if s.command == "join" && s.addr == "" && f.NArg() > 0 {
		s.addr = f.Arg(0)
	}
	return s, s.check(f.NArg())
}

func (s *settings) check(extra int) error {
	if s.command == "join" && s.addr == "" {
		return errors.New("join whom? chat join HOST:PORT")
	}
	if s.command == "" && extra > 0 {
		return errors.New("unknown command; see chat --help")
	}
	if s.device != "auto" && s.device != "iwarp" {
		return fmt.Errorf("--device %s: have auto and iwarp (kernel devices come later)", s.device)
	}
	if s.command == "serve" {
		return nil
	}
	if err := checkName("nickname", s.hello.nick, maxNick); err != nil {
		return fmt.Errorf("--nick: %w", err)
	}
	if err := checkName("room", s.hello.room, maxRoom); err != nil {
		return fmt.Errorf("--room: %w", err)
	}
	return nil
}

func defaultNick() string {
	name := os.Getenv("USER")
	if checkName("nickname", name, maxNick-8) != nil {
		name = "guest"
	}
	return fmt.Sprintf("%s%d", name, os.Getpid()%10000)
}

func run(ctx context.Context, args []string) (err error) {
	s, err := parseFlags(args)
	if err != nil {
		return err
	}
	level := slog.LevelWarn
	if s.debug {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return log }))
	defer system.Shutdown()
	rt, err := rdma.Open(system, rdma.WithDevice(iwarp.New()), rdma.WithLogger(log))
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), closeFor)
		defer cancel()
		err = errors.Join(err, rt.Shutdown(end))
	}()

	switch s.command {
	case "serve":
		if err := host(rt, system, s.addr, log); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "-- hosting on %s; join with: chat join %s\n", s.addr, s.addr)
		<-ctx.Done()
		return nil
	case "":
		if err := host(rt, system, s.addr, log); err != nil && !errors.Is(err, unix.EADDRINUSE) {
			return err
		} else if err == nil {
			fmt.Fprintf(os.Stderr, "-- hosting on %s; others join with: chat join %s\n", s.addr, s.addr)
		}
	}
	return join(ctx, rt, system, s)
}

// host starts a server and waits until it listens.
func host(rt *rdma.Runtime, system *actor.ActorSystem, addr string, log *slog.Logger) error {
	started := make(chan error, 1)
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return newServer(rt, addr, log, started) }, rt.OnLoop()))
	select {
	case err := <-started:
		return err
	case <-time.After(dialFor):
		return fmt.Errorf("listening on %s takes too long", addr)
	}
}

// join talks until the user leaves.
func join(ctx context.Context, rt *rdma.Runtime, system *actor.ActorSystem, s settings) (err error) {
	con, err := openConsole("> ")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, con.Close()) }()

	ended := make(chan error, 1)
	tokens := make(chan struct{}, ahead)
	c := &client{rt: rt, server: s.addr, hello: s.hello, con: con, tokens: tokens, ended: ended}
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return c }, rt.OffLoop()))
	go readLines(con, system, pid, tokens)

	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	system.Root.Send(pid, &quit{})
	select {
	case err := <-ended:
		return err
	case <-time.After(closeFor):
		return errors.New("the server did not answer the goodbye")
	}
}

// readLines sends what is typed to the client; a server that is away or slow makes it wait. It ends with standard input, or with
// the program.
func readLines(con console, system *actor.ActorSystem, client *actor.PID, tokens chan<- struct{}) {
	for {
		text, err := con.ReadLine()
		if err != nil || text == "/quit" {
			system.Root.Send(client, &quit{})
			return
		}
		tokens <- struct{}{}
		system.Root.Send(client, &typed{text})
	}
}
