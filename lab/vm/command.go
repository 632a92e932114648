package vm

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rdmactor/rdmactor/lab/vm/wire"
)

// Result is the result of a command.
type Result struct {
	Output string // standard output and standard error, in order of arrival
	Code   int    // the exit code; 128 + N after signal N
}

// Command is a shell script that runs in a machine.
type Command struct {
	m      *Machine
	id     uint32
	script string
	out    syncBuffer
	code   int
	done   chan struct{} // closed after code is set
}

// Start starts a script with /bin/sh as root in /root. Processes that the script leaves in the
// background continue after its end. Their output is dropped from then on.
func (m *Machine) Start(script string) (*Command, error) {
	if len(script) > wire.MaxPayload {
		return nil, fmt.Errorf("a script of %d bytes is longer than %d", len(script), wire.MaxPayload)
	}
	m.mu.Lock()
	m.last++
	c := &Command{m: m, id: m.last, script: script, done: make(chan struct{})}
	m.commands[c.id] = c
	m.mu.Unlock()
	if err := m.sendFrame(wire.Frame{Kind: wire.Start, Command: c.id, Payload: []byte(script)}); err != nil {
		return nil, c.brokenError(err)
	}
	return c, nil
}

// Run runs a script and waits for its end. If ctx ends first, Run kills the script's process group,
// and returns the output so far with the error. The machine remains usable.
func (m *Machine) Run(ctx context.Context, script string) (Result, error) {
	c, err := m.Start(script)
	if err != nil {
		return Result{}, err
	}
	return c.Wait(ctx)
}

// Wait waits until the command has ended. If ctx ends first, it kills the command as Run does.
func (c *Command) Wait(ctx context.Context) (Result, error) {
	select {
	case <-c.done:
		return c.currentResult(), nil
	case <-c.m.dead:
		return c.currentResult(), c.brokenError(nil)
	case <-ctx.Done():
	}
	err := fmt.Errorf("%w\nin the VM: %s\noutput so far:\n%s", context.Cause(ctx), briefScript(c.script), lastLines(c.Output(), 4000))
	if kill := c.Kill(); kill != nil {
		return c.currentResult(), errors.Join(err, kill)
	}
	select {
	case <-c.done:
	case <-c.m.dead:
		return c.currentResult(), c.brokenError(err)
	case <-time.After(killLimit): // the process is in an uninterruptible system call
		err = fmt.Errorf("%w\nand it outlives SIGKILL", err)
	}
	return c.currentResult(), err
}

const killLimit = 30 * time.Second

// Kill kills the command's process group. It does not wait for its end.
func (c *Command) Kill() error {
	if err := c.m.sendFrame(wire.Frame{Kind: wire.Kill, Command: c.id}); err != nil {
		return c.brokenError(err)
	}
	return nil
}

// Output returns the command's output so far.
func (c *Command) Output() string { return c.out.String() }

func (c *Command) currentResult() Result {
	r := Result{Output: c.Output(), Code: -1}
	select {
	case <-c.done:
		r.Code = c.code
	default:
	}
	return r
}

// brokenError returns the error of a command whose machine has ended or is about to end. It waits
// for QEMU's end, so that the output of the console is complete.
func (c *Command) brokenError(err error) error {
	select {
	case <-c.m.dead:
		err = errors.Join(err, c.m.deathError())
	case <-time.After(killLimit):
	}
	return fmt.Errorf("%w\nin the VM: %s\noutput so far:\n%s", err, briefScript(c.script), lastLines(c.Output(), 4000))
}

func (c *Command) handleFrame(f wire.Frame) {
	switch f.Kind {
	case wire.Output:
		_, _ = c.out.Write(f.Payload)
	case wire.Exit:
		code, err := strconv.Atoi(string(f.Payload))
		if err != nil {
			code = -1
		}
		c.code = code
		close(c.done)
	}
}

func briefScript(script string) string {
	const limit = 300
	if len(script) > limit {
		return script[:limit] + " ..."
	}
	return script
}
