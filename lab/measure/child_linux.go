package measure

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
	"time"

	"golang.org/x/sys/unix"
)

// roleVariable is the environment variable with a child's role, as JSON. A child's answers are JSON
// too, one line each. A child ends when its standard input ends.
const roleVariable = "MEASURE_ROLE"

// stopping is how long a child may take to end after Stop.
const stopping = 30 * time.Second

// Child is another process that runs this program.
type Child struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	kill context.CancelFunc
}

// Start runs this program as a child, on CPU number cpu (-1 means any) and with procs as
// GOMAXPROCS. In the child, Role returns role. The child is killed when ctx is done or this process
// dies. The caller must always Stop it. name is the child's name in errors.
func Start(ctx context.Context, name string, cpu, procs int, role any) (*Child, error) {
	text, err := json.Marshal(role)
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	c := &Child{name: name, cmd: exec.CommandContext(ctx, "/proc/self/exe"), kill: kill}
	c.cmd.Env = append(os.Environ(), roleVariable+"="+string(text), fmt.Sprintf("GOMAXPROCS=%d", procs))
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	var out io.Reader
	if c.in, err = c.cmd.StdinPipe(); err == nil {
		out, err = c.cmd.StdoutPipe()
	}
	if err == nil {
		c.out = bufio.NewScanner(out)
		err = onCPU(cpu, c.cmd.Start)
	}
	if err != nil {
		kill()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}

// nthCPU returns the n-th CPU of a set, which may have gaps.
func nthCPU(set unix.CPUSet, n int) (cpu int) {
	for ; n > 0 || !set.IsSet(cpu); cpu++ {
		if set.IsSet(cpu) {
			n--
		}
	}
	return cpu
}

// onCPU calls f on a thread that is bound to the cpu-th CPU that this process may use. A process
// that f starts inherits the binding.
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
	one.Set(nthCPU(before, cpu%before.Count()))
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before) //nolint:errcheck // it is what the thread had
	return f()
}

// Ask writes say to the child as a line, unless it is empty, and reads a line of JSON from the
// child into v.
func (c *Child) Ask(say string, v any) error {
	if say != "" {
		if _, err := io.WriteString(c.in, say+"\n"); err != nil {
			return fmt.Errorf("%s takes no %q: %w", c.name, say, err)
		}
	}
	if !c.out.Scan() {
		return errors.Join(errors.New(c.name+" ended early"), c.out.Err())
	}
	if err := json.Unmarshal(c.out.Bytes(), v); err != nil {
		return fmt.Errorf("%s says %.80q: %w", c.name, c.out.Text(), err)
	}
	return nil
}

// Signal sends the child a signal. A killed child must be stopped, too.
func (c *Child) Signal(s os.Signal) error { return c.cmd.Process.Signal(s) }

// Stop ends the child and returns its error, if it failed.
func (c *Child) Stop() error {
	_ = c.in.Close()
	late := time.AfterFunc(stopping, c.kill)
	defer late.Stop()
	defer c.kill()
	return c.cmd.Wait()
}

// Role reports whether this process is a child. If it is, Role reads the role that was passed to
// Start into v.
func Role(v any) (child bool, err error) {
	text, child := os.LookupEnv(roleVariable)
	if !child {
		return false, nil
	}
	return true, json.Unmarshal([]byte(text), v)
}

// answers goes to the parent. A child may redirect os.Stdout, for modules that print.
var answers = os.Stdout

// Report sends an answer from a child to its parent.
func Report(v any) error { return json.NewEncoder(answers).Encode(v) }
