// Command shell runs a machine of package vm on the terminal. rxe0 and siw0 are up. rping and
// similar programs are in the path, and so are rdmactor and the file that -put names.
//
//	go run ./lab/vm/shell [-kernel 6.1] [-share DIR] [-forward GUESTPORT:HOSTPORT] [-put FILE] [-t LIMIT] [SCRIPT]
//
// With a SCRIPT it runs the script instead of a shell, without rdmactor, prints the script's output
// and exits with its exit code. 125 means that the script could not be run to its end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/vm"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vm:", err)
		code = 125
	}
	os.Exit(code)
}

func run() (int, error) {
	c := vm.Config{Forward: map[int]int{}, Logf: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	var put []string
	flag.StringVar(&c.Kernel, "kernel", vm.Kernels[0], "line of Debian's kernels: "+strings.Join(vm.Kernels, ", "))
	flag.IntVar(&c.Memory, "memory", 0, "MiB (default 768)")
	share := flag.String("share", "", "directory to see at /share, read-only")
	limit := flag.Duration("t", 10*time.Minute, "limit of SCRIPT")
	flag.Func("forward", "GUESTPORT:HOSTPORT, may be repeated", func(s string) error {
		var guest, host int
		_, err := fmt.Sscanf(s, "%d:%d", &guest, &host)
		c.Forward[guest] = host
		return err
	})
	flag.Func("put", "file to put in the path, may be repeated", func(s string) error {
		put = append(put, s)
		return nil
	})
	flag.Parse()
	if *share != "" {
		dir, err := filepath.Abs(*share)
		if err != nil {
			return 0, err
		}
		c.Share = map[string]string{"/share": dir}
	}
	script := strings.Join(flag.Args(), " ")
	c.Console = script == ""
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()

	if c.Console {
		ours, err := vm.Compile(ctx, "build", "github.com/rdmactor/rdmactor/cmd/rdmactor")
		if err != nil {
			return 0, err
		}
		put = append(put, ours)
	}
	m, err := vm.Boot(ctx, c)
	if err != nil {
		return 0, err
	}
	defer func() { _ = m.Close() }()
	for _, file := range put {
		if err := m.Put(ctx, file, "/usr/bin/"+filepath.Base(file)); err != nil {
			return 0, err
		}
	}
	if c.Console {
		m.Wait()
		return 0, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *limit, errors.New("no end within "+limit.String()))
	defer cancel()
	r, err := m.Run(ctx, script)
	fmt.Print(r.Output)
	return r.Code, err
}
