package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Statuses of a command that did not succeed.
const (
	failed      = 1
	interrupted = 130 // the shells' status for SIGINT
)

// ErrInterrupted is in the error of a run that was ended by its context before it had done its
// work. context.Canceled has the same effect.
var ErrInterrupted = errors.New("interrupted")

// Run is one command line. It ends early, and cleanly, when ctx does.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// Main runs the command of this process and exits.
func Main(name string, run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	context.AfterFunc(ctx, stop) // the second Ctrl-C
	os.Exit(Execute(ctx, name, os.Args[1:], os.Stdout, os.Stderr, run))
}

// Execute is Main without the exit: it returns the status.
func Execute(ctx context.Context, name string, args []string, stdout, stderr io.Writer, run Run) (status int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &output{to: stdout, failed: cancel}
	var err error
	if len(args) > 0 && slices.Contains([]string{"--version", "-version"}, args[0]) {
		fmt.Fprintln(out, Version(name))
	} else {
		err = run(ctx, args, out, stderr)
	}
	switch full := out.writeError(); {
	case full != nil: // run's own error only reports the cancellation
		fmt.Fprintf(stderr, "%s: standard output: %v\n", name, full)
		return failed
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrInterrupted):
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		err = ErrInterrupted
	default:
		printError(stderr, name, err)
		return failed
	}
	printError(stderr, name, err)
	return interrupted
}

// printError prints an error behind the command's name, which is there only once.
func printError(stderr io.Writer, name string, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", name, strings.TrimPrefix(err.Error(), name+": "))
}

// output is a standard output that ends the run when a write fails, for example because the disk
// is full. Any goroutine.
type output struct {
	to     io.Writer
	failed func()

	mu  sync.Mutex
	err error // the first
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.to.Write(p)
	if err != nil {
		o.err = err
		o.failed()
	}
	return n, err
}

func (o *output) writeError() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Version describes the build of a command in one line: the module's version, and the Go that has
// built it. In a repository the version names the commit.
func Version(name string) string {
	version := "(devel)"
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" {
		version = b.Main.Version
	}
	return fmt.Sprintf("%s %s, %s %s/%s", name, version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
