// Command chat is a chat over RDMA connections. Each connection is an actor.
//
//	chat [flags]               host on --addr and join, or only join if somebody hosts there
//	chat serve [ADDR] [flags]  only host, until Ctrl-C
//	chat join ADDR [flags]     only join
//
// Beyond loopback both sides need the same --key, which rdmactor keygen makes, or --insecure.
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
	"slices"
	"time"

	"golang.org/x/sys/unix"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/iwarp"
)

// leaveFor limits how long the goodbyes may take.
const leaveFor = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program immediately
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "chat:", err)
		os.Exit(1)
	}
}

// run runs the program. Its lines come from in, and others' lines go to out.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	var command string // "": host and join
	if len(args) > 0 && slices.Contains([]string{"serve", "join"}, args[0]) {
		command, args = args[0], args[1:]
	}
	f := flag.NewFlagSet("chat "+command, flag.ContinueOnError)
	addr := f.String("addr", "127.0.0.1:7471", "`HOST:PORT` of the host")
	nick := f.String("nick", fmt.Sprint("guest", os.Getpid()), "your `NAME`")
	key := f.String("key", "", "authenticate and encrypt with the keys of `FILE`")
	insecure := f.Bool("insecure", false, "do neither, also beyond loopback")
	kernel := f.Bool("kernel", false, "use the kernel's RDMA devices")
	if command != "" && len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		*addr, args = args[0], args[1:]
	}
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected %q; see chat --help", f.Arg(0))
	}
	security, err := newSecurity(*key, *insecure)
	if err != nil {
		return err
	}
	var device cmid.Driver = iwarp.New()
	if *kernel {
		device = ucm.New()
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	rt, err := rdma.Open(nil, rdma.Config{Device: device, Security: security, Logger: log})
	if err != nil {
		return err
	}
	defer func() { // ends all connections after the peers have taken the last lines
		end, cancel := context.WithTimeout(context.Background(), leaveFor)
		defer cancel()
		err = errors.Join(err, rt.Shutdown(end))
	}()
	if command != "join" {
		local, err := hostRoom(ctx, rt, *addr)
		switch {
		case err == nil:
			fmt.Fprintln(out, "-- hosting on", local)
			*addr = local.String()
		case command == "serve" || !errors.Is(err, unix.EADDRINUSE):
			return err
		}
	}
	if command == "serve" {
		<-ctx.Done()
		return nil
	}
	return joinRoom(ctx, rt, *addr, *nick, in, out)
}

// newSecurity returns how connections are secured; nil: not at all, and only on loopback.
func newSecurity(key string, insecure bool) (*rdma.Security, error) {
	if insecure {
		return &rdma.Security{Mode: rdma.Insecure}, nil
	}
	if key == "" {
		return nil, nil
	}
	list, err := keyfile.Load(key)
	if err != nil {
		return nil, err
	}
	keys := new(rdma.Keyring)
	return &rdma.Security{Mode: rdma.PSK, Keys: keys}, keyfile.Use(keys, list)
}
