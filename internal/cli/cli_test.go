package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// full is a disk that takes only this number of writes.
type full int

func (f *full) Write(p []byte) (int, error) {
	if *f == 0 {
		return 0, unix.ENOSPC
	}
	*f--
	return len(p), nil
}

// TestStatus: a run's outcome is one line and a status.
func TestStatus(t *testing.T) {
	until := func(ctx context.Context, _ []string, _, _ io.Writer) error {
		<-ctx.Done()
		return fmt.Errorf("rpc: kv.Get: %w", ctx.Err())
	}
	gives := func(err error) Run {
		return func(context.Context, []string, io.Writer, io.Writer) error { return err }
	}
	for name, c := range map[string]struct {
		run    Run
		ctrlC  bool
		status int
		says   string
	}{
		"well":                       {gives(nil), false, 0, ""},
		"help":                       {gives(flag.ErrHelp), false, 0, ""},
		"an error":                   {gives(errors.New("nobody listens")), false, 1, "tool: nobody listens\n"},
		"an error with the name":     {gives(errors.New("tool: no")), false, 1, "tool: no\n"},
		"cancelled by somebody else": {gives(context.Canceled), false, 1, "tool: context canceled\n"},
		"Ctrl-C":                     {until, true, 130, "tool: interrupted\n"},
		"Ctrl-C, with more to say":   {gives(fmt.Errorf("%w after 3 of 5", ErrInterrupted)), true, 130, "tool: interrupted after 3 of 5\n"},
		"Ctrl-C and another error":   {gives(errors.New("nobody listens")), true, 1, "tool: nobody listens\n"},
		"Ctrl-C as the regular end":  {gives(nil), true, 0, ""},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if c.ctrlC {
			cancel()
		}
		var errs bytes.Buffer
		if status := Execute(ctx, "tool", nil, io.Discard, &errs, c.run); status != c.status || errs.String() != c.says {
			t.Errorf("%s: status %d and %q, want %d and %q", name, status, &errs, c.status, c.says)
		}
		cancel()
	}
}

// TestFullDisk: a run whose output fails is ended, once, and reports why.
func TestFullDisk(t *testing.T) {
	disk := full(2)
	lines := 0
	var errs bytes.Buffer
	status := Execute(t.Context(), "tool", nil, &disk, &errs, func(ctx context.Context, _ []string, stdout, _ io.Writer) error {
		for ; ctx.Err() == nil; lines++ {
			fmt.Fprintln(stdout, "line")
		}
		fmt.Fprintln(stdout, "a result")
		return ctx.Err()
	})
	if want := "tool: standard output: no space left on device\n"; status != 1 || errs.String() != want || lines != 3 {
		t.Errorf("status %d, %q, after %d lines; want 1, %q, after 3", status, &errs, lines, want)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"--version", "-version"} {
		var out bytes.Buffer
		status := Execute(t.Context(), "tool", []string{arg}, &out, io.Discard, nil)
		if !strings.HasPrefix(out.String(), "tool ") || !strings.Contains(out.String(), " go1.") || status != 0 {
			t.Errorf("%s: %q and status %d", arg, &out, status)
		}
	}
}

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		s, want string // the address, or the text of its error
		passive bool
	}{
		{"127.0.0.1:99", "127.0.0.1:99", false},
		{"127.0.0.1", "127.0.0.1:7", false},
		{"server", "server:7", false},
		{"server:http", "server:http", false},
		{"", ":7", true},
		{":99", ":99", false},
		{"::", "[::]:7", true},
		{"::1", "[::1]:7", false},
		{"[::1]", "[::1]:7", false},
		{"[::1]:99", "[::1]:99", false},
		{"fe80::1%eth0", "[fe80::1%eth0]:7", false},
		{"[fe80::1%eth0]:99", "[fe80::1%eth0]:99", false},
		{"127.0.0.1:0", "127.0.0.1:0", true},
		{"127.0.0.1:65535", "127.0.0.1:65535", false},

		{"127.0.0.1:0", "port 0: nobody can be reached there", false},
		{"127.0.0.1:65536", "port 65536: ports are 0 to 65535", true},
		{"127.0.0.1:99999999999999999999", "ports are 0 to 65535", true},
		{"127.0.0.1:-1", "port -1: ports are 0 to 65535", true},
		{"127.0.0.1:", "no port behind the colon", true},
		{"[::1]:", "behind the bracket comes :PORT", true},
		{"[::1]99", "behind the bracket comes :PORT", true},
		{"[::1", "the bracket is not closed", true},
		{"[127.0.0.1]:99", `"127.0.0.1" is no IPv6 address`, true},
		{"1:2:3", "one with a port is written [IPV6]:PORT", true},
		{"127.0.0.1:99:98", "one with a port is written [IPV6]:PORT", true},
	} {
		a, err := ParseAddress(c.s, "7", c.passive)
		got := a.String()
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != c.want || err != nil && (!strings.Contains(got, c.want) || !strings.Contains(got, fmt.Sprintf("%q", c.s))) {
			t.Errorf("%q: %s, want %s", c.s, got, c.want)
		}
	}
	if _, err := ParseAddress("server", "99999", true); err == nil {
		t.Error("a port beside the address is not checked")
	}
}
