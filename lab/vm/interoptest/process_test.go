//go:build vm

package interoptest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"

	"github.com/rdmactor/rdmactor/lab/vm"
)

var theirs = flag.Bool("theirs", false, "inside the machine run theirs against theirs: what fails then too is not our doing")

// process is a running program, inside the machine or outside.
type process struct {
	said  func() string
	stop  func()
	ended chan struct{} // closed when outcome is set
	outcome
}

// outcome is how a program ended. err is set if it was killed or could not run.
type outcome struct {
	line, output string
	code         int
	err          error
}

func (o outcome) String() string {
	const width = 120 // rping prints its data in long lines
	text := fmt.Sprintf("%s\nexit code %d", o.line, o.code)
	if o.err != nil {
		text += fmt.Sprintf(", %v", o.err)
	}
	for line := range strings.Lines(o.output) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > width {
			line = line[:width] + " ..."
		}
		text += "\n" + line
	}
	return text
}

// rpingsEnd is a message that rping's event thread may print after a success, with an exit status
// of 255, because the main thread closes the channel that it uses.
const rpingsEnd = "rdma_get_cm_event: Bad file descriptor"

// fine reports whether the program succeeded, and printed the text of a success.
func (o outcome) fine(says string) bool {
	good := o.code == 0 || strings.HasPrefix(o.line, "rping ") && strings.Contains(o.output, rpingsEnd)
	return o.err == nil && good && strings.Contains(o.output, says)
}

// wait waits until the program has ended.
func (p *process) wait() outcome {
	<-p.ended
	return p.outcome
}

// while returns a context that ends with the program.
func (p *process) while(ctx context.Context) context.Context {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		<-p.ended
		stop(errors.New("the program has ended"))
	}()
	return ctx
}

// end kills the program if it still runs.
func (p *process) end() {
	p.stop()
	<-p.ended
}

// start starts the program of a side, inside or outside the machine. The program ends with ctx.
func (r *round) start(ctx context.Context, line, at string, isOurs bool) (*process, error) {
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		return nil, err
	}
	line = strings.NewReplacer("ADDR", host, "PORT", port).Replace(line)
	p := &process{ended: make(chan struct{})}
	switch {
	case isOurs && r.over == iwarp:
		err = p.outside(ctx, ours(r.bin, line, "iwarp"))
	case isOurs && !*theirs:
		err = p.inside(ctx, r.m, strings.Join(ours("/share", line, "kernel"), " "))
	default:
		err = p.inside(ctx, r.m, others(line))
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// inside starts a program in the machine.
func (p *process) inside(ctx context.Context, m *vm.Machine, line string) error {
	cmd, err := m.Start("exec " + line)
	if err != nil {
		return err
	}
	p.line, p.said, p.stop = line, cmd.Output, func() { _ = cmd.Kill() }
	go func() {
		defer close(p.ended)
		r, err := cmd.Wait(ctx)
		p.output, p.code, p.err = r.Output, r.Code, err
	}()
	return nil
}

// outside starts a program on this machine.
func (p *process) outside(ctx context.Context, words []string) error {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	var output lockedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	p.line, p.said, p.stop = strings.Join(words, " "), output.String, func() { _ = cmd.Process.Kill() }
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(p.ended)
		err := cmd.Wait()
		if exit := new(exec.ExitError); !errors.As(err, &exit) {
			p.err = err
		}
		p.output, p.code = output.String(), cmd.ProcessState.ExitCode()
	}()
	return nil
}

// lockedBuffer is a bytes.Buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
