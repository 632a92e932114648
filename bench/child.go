package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Children are this program again. roleVariable tells one what it is, as JSON. What they say is JSON too, a line each; they end when
// their standard input does.
const roleVariable = "BENCH_ROLE"

// procs is the GOMAXPROCS of every child, ours and theirs: what Go gives a container with one CPU.
const procs = 2

// childLife is how long a child may take.
const childLife = 10 * time.Minute

// role is what a child is.
type role struct {
	Server   bool
	Scenario string
	Entry    string
	Addr     string // of the server; clients only
	Run      time.Duration
	Quick    bool
	Profile  string // file; "": none
}

// hello is the first line of a child: a server's address, or that a client is warm.
type hello struct{ Addr string }

// quick is whether a child takes part in a quick run.
var quick bool

func runRole(text string) (err error) {
	var r role
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return err
	}
	quick = r.Quick
	s, e, err := find(r.Scenario, r.Entry)
	if err != nil {
		return err
	}
	if r.Profile != "" {
		f, err := os.Create(r.Profile)
		if err != nil {
			return err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer func() {
			pprof.StopCPUProfile()
			_ = f.Close()
		}()
	}
	if r.Server {
		return serveChild(s, e)
	}
	return clientChild(s, e, r)
}

// serveChild serves, and tells of its usage whenever it is asked.
func serveChild(s scenario, e entry) error {
	svc, err := s.serve(e)
	if err != nil {
		return err
	}
	if err := tell(hello{svc.Addr()}); err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := tell(used()); err != nil {
			return err
		}
	}
	return svc.Close()
}

// clientChild warms up, waits to be told, and measures.
func clientChild(s scenario, e entry, r role) error {
	c, err := s.dial(r.Addr, e)
	if err != nil {
		return err
	}
	if _, err := c.Run(min(r.Run, warmUp)); err != nil {
		return errors.Join(err, c.Close())
	}
	if err := tell(hello{}); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return errors.Join(in.Err(), c.Close())
	}
	before := used()
	smp, err := c.Run(r.Run)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	after := used()
	if err := tell(report{smp, after.since(before)}); err != nil {
		return err
	}
	in.Scan()
	return c.Close()
}

func tell(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// child is one process of a measured pair.
type child struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	cancel context.CancelFunc
}

// startChild runs this program as r on the given CPU (-1: any).
func startChild(cpu int, r role) (*child, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), childLife)
	c := &child{cmd: exec.CommandContext(ctx, "/proc/self/exe"), cancel: cancel}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+string(text), fmt.Sprintf("GOMAXPROCS=%d", procs))
	c.cmd.Stderr = os.Stderr
	c.in, err = c.cmd.StdinPipe()
	if err == nil {
		var out io.Reader
		out, err = c.cmd.StdoutPipe()
		c.out = bufio.NewScanner(out)
	}
	if err == nil {
		err = onCPU(cpu, c.cmd.Start)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return c, nil
}

// onCPU calls f on a thread bound to cpu; a process started there inherits the binding.
func onCPU(cpu int, f func() error) error {
	if cpu < 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	one.Set(cpu % runtime.NumCPU())
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before) //nolint:errcheck // it was the thread's own
	return f()
}

// ask has the child go on, if it waits, and reads one line of its.
func (c *child) ask(say string, v any) error {
	if say != "" {
		if _, err := io.WriteString(c.in, say+"\n"); err != nil {
			return err
		}
	}
	if !c.out.Scan() {
		return errors.Join(errors.New("a child ended early"), c.out.Err())
	}
	return json.Unmarshal(c.out.Bytes(), v)
}

// stop has the child end, and gives its outcome.
func (c *child) stop() error {
	_ = c.in.Close()
	err := c.cmd.Wait()
	c.cancel()
	return err
}

// pair measures an entry once, in two processes.
func pair(s scenario, e entry, set settings) (m metrics, err error) {
	server := role{Server: true, Scenario: s.name, Entry: e.name(), Quick: set.quick}
	client := role{Scenario: s.name, Entry: e.name(), Run: set.run, Quick: set.quick}
	if s.atLeast > 0 && !set.quick {
		client.Run = max(client.Run, s.atLeast)
	}
	if set.profile != "" {
		base := strings.ReplaceAll(fmt.Sprintf("%s.%s.%s.", set.profile, s.name, e.name()), " ", "-")
		server.Profile, client.Profile = base+"server", base+"client"
	}
	sc, err := startChild(s.on.server, server)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sc.stop()) }()
	var at hello
	if err := sc.ask("", &at); err != nil {
		return nil, fmt.Errorf("the server: %w", err)
	}
	client.Addr = at.Addr
	cc, err := startChild(s.on.client, client)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, cc.stop()) }()
	if err := cc.ask("", &at); err != nil {
		return nil, fmt.Errorf("the client: %w", err)
	}
	var before, after usage
	if err := sc.ask("usage", &before); err != nil {
		return nil, fmt.Errorf("the server: %w", err)
	}
	var rep report
	if err := cc.ask("go", &rep); err != nil {
		return nil, fmt.Errorf("the client: %w", err)
	}
	if err := sc.ask("usage", &after); err != nil {
		return nil, fmt.Errorf("the server: %w", err)
	}
	return rep.metrics(after.since(before)), nil
}
