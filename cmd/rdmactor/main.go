// Rdmactor is the project's tool for the command line; see rdmactor --help.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

const overview = `rdmactor: RDMA from one program, without kernel modules and without root

  rdmactor ping -s|-c [flags]    rping's conversation: Send, Read and Write with data that can be checked
  rdmactor time [-s|-c] [flags]  cmtime's measurement: what each step of a connection takes
  rdmactor perf -s|-c [flags]    perftest's measurements: latency and bandwidth of send, write and read

Each takes --help.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "rdmactor:", err)
		os.Exit(1)
	}
}

// run is one command line. It ends early, and cleanly, when ctx does.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return errors.New("which command? see rdmactor --help")
	}
	switch args[0] {
	case "ping":
		return ping(ctx, args[1:], stdout, stderr)
	case "time":
		return measure(ctx, args[1:], stdout, stderr)
	case "perf":
		return perform(ctx, args[1:], stdout, stderr)
	case "help", "-h", "-help", "--help":
		fmt.Fprint(stdout, overview)
		return nil
	}
	return fmt.Errorf("unknown command %q; see rdmactor --help", args[0])
}
