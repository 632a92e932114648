package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/eventloop"
)

// roles are what a child process is run as: FIGURES_ROLE names one, the arguments are its own.
var roles = map[string]func(args []string) error{
	"actor-server":   actorServer(eventloop.Block),
	"actor-client":   actorClient(eventloop.Block),
	"net-server":     netServer,
	"net-client":     netClient,
	"busy-server":    actorServer(eventloop.Busy),
	"busy-client":    actorClient(eventloop.Busy),
	"spin-server":    spinServer,
	"spin-client":    spinClient,
	"oneway-server":  oneWayServer,
	"oneway-client":  oneWayClient,
	"write-server":   writeServer,
	"write-client":   writeClient,
	"bulk-server":    bulkServer,
	"bulk-client":    bulkClient,
	"large-server":   largeServer,
	"large-client":   largeClient,
	"stream-server":  streamServer,
	"stream-client":  streamClient,
	"connect-server": connectServer,
	"connect-client": connectClient,
	"dial-server":    dialServer,
	"dial-client":    dialClient,
	"rate-server":    rateServer,
	"rate-client":    rateClient,
	"web-server":     httpOverTCP, // http's, over TCP
	"web-client":     httpClientTCP,
	"accept-server":  acceptServer,
	"accept-client":  acceptClient,
	"http-server":    httpOverRDMA,
	"http-client":    httpClientRDMA,
	"loops-server":   loopsServer,
	"loops-client":   loopsClient,
	"storm-server":   stormServer,
	"storm-client":   stormClient,
	"storm-hostile":  stormHostile,
	"idle-server":    idleServer,
	"idle-client":    idleClient,
}

const (
	roleVariable    = "FIGURES_ROLE"
	profileVariable = "FIGURES_PROFILE"
)

var (
	// profile is where children leave their CPU profiles; empty: nowhere.
	profile string
	// procs is the GOMAXPROCS of every child, ours and theirs.
	procs int
)

// childLife is how long a child may take: no figure comes near it on a machine that does anything else besides.
const childLife = 3 * time.Minute

func runRole(role string, args []string) error {
	if to := os.Getenv(profileVariable); to != "" {
		f, err := os.Create(to + "." + role)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		signal.Notify(make(chan os.Signal, 1), unix.SIGTERM) // a client may meet it on its way out: the profile comes first
	}
	return roles[role](args)
}

// child is one process of a measured pair.
type child struct {
	cmd    *exec.Cmd
	out    *bufio.Scanner
	cancel context.CancelFunc
}

// startChild runs this program as role on the given CPU (-1: any).
func startChild(cpu int, role string, args ...string) (*child, error) {
	ctx, cancel := context.WithTimeout(context.Background(), childLife)
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, "GOMAXPROCS="+strconv.Itoa(procs))
	if profile != "" {
		cmd.Env = append(cmd.Env, profileVariable+"="+profile)
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = onCPU(cpu, cmd.Start)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	return &child{cmd: cmd, out: bufio.NewScanner(out), cancel: cancel}, nil
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
		return "", fmt.Errorf("%s ended early: %w", c.cmd, errors.Join(c.out.Err(), c.cmd.Wait()))
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

// terminate asks the child to end. A client may have ended by itself.
func (c *child) terminate() { _ = c.cmd.Process.Signal(unix.SIGTERM) }

func (c *child) stop() {
	c.terminate()
	_ = c.cmd.Wait()
	c.cancel()
}

// cpus are those of a pair's server and client.
type cpus struct{ server, client int }

var (
	sameCPU = cpus{0, 0}
	ownCPU  = cpus{0, 1}
)

// runPair runs kind-server and kind-client, whose first argument is the server's address, and takes what each reports.
func runPair[T any](on cpus, kind string, args ...string) (server, client T, err error) {
	s, err := startChild(on.server, kind+"-server", args...)
	if err != nil {
		return server, client, err
	}
	defer s.stop()
	addr, err := s.line()
	if err != nil {
		return server, client, err
	}
	c, err := startChild(on.client, kind+"-client", append([]string{addr}, args...)...)
	if err != nil {
		return server, client, err
	}
	defer c.stop()
	if err = c.result(&client); err != nil {
		return server, client, err
	}
	err = s.result(&server)
	return server, client, err
}

func report(v any) error { return json.NewEncoder(os.Stdout).Encode(v) }

// cpuTime is what this process has used, in user and in kernel mode.
func cpuTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// mallocs is how many objects this process has allocated.
func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("BUG: an argument of our own: " + err.Error())
	}
	return n
}
