// Figures measures what the README's table says, each figure as a ratio of interleaved runs.
//
//	go run ./internal/figures echo   # 64 B echo between actors in two processes, against net.Conn
//	go run ./internal/figures idle   # 15,000 idle connections in one process pair
//
// The in-process figures are Go benchmarks: see the README.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// roles are what a child process is run as: FIGURES_ROLE names one, the arguments are its own.
var roles = map[string]func(args []string) error{
	"actor-server": actorServer,
	"actor-client": actorClient,
	"net-server":   netServer,
	"net-client":   netClient,
	"idle-server":  idleServer,
	"idle-client":  idleClient,
}

const roleVariable = "FIGURES_ROLE"

func main() {
	err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run() error {
	if role := os.Getenv(roleVariable); role != "" {
		return roles[role](os.Args[1:])
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "echo":
			return echo()
		case "idle":
			return idle()
		}
	}
	return fmt.Errorf("usage: figures echo|idle")
}

// child is one process of a measured pair.
type child struct {
	cmd *exec.Cmd
	out *bufio.Scanner
}

// startChild runs this program as role on the given CPU (-1: any).
func startChild(cpu int, role string, args ...string) (*child, error) {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := onCPU(cpu, cmd.Start); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	return &child{cmd: cmd, out: bufio.NewScanner(out)}, nil
}

// onCPU calls f on a thread bound to cpu; a process started there inherits the binding, and sizes GOMAXPROCS by it.
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
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before) //nolint:errcheck // it was the thread's own
	return f()
}

// line reads one line that the child prints.
func (c *child) line() (string, error) {
	if !c.out.Scan() {
		return "", fmt.Errorf("%s ended early: %w", c.cmd, c.cmd.Wait())
	}
	return c.out.Text(), nil
}

// result reads the child's one line of JSON into v.
func (c *child) result(v any) error {
	s, err := c.line()
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(s), v)
}

func (c *child) stop() {
	_ = c.cmd.Process.Signal(unix.SIGTERM)
	_ = c.cmd.Wait()
}

func report(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// cpuTime is what this process has used, in user and in kernel mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
