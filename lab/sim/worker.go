package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/lab/sim/swarm"
)

// workerEnv is set in the environment of a worker, which plays the jobs of another process.
const workerEnv = "RDMACTOR_SIM_WORKER"

// job is a world to be played.
type job struct {
	Seed    uint64
	Without []int    `json:",omitempty"`
	Only    []string `json:",omitempty"`
}

// outcome is the result of a job.
type outcome struct {
	Seed    uint64
	Failure string `json:",omitempty"`
	Hash    uint64 // of the trace
	Steps   int
}

// serveJobs plays the jobs from standard input. A failed world leaves goroutines behind, so the
// process ends.
func serveJobs(t *testing.T) error {
	signal.Ignore(os.Interrupt) // the parent process decides
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var j job
		if err := in.Decode(&j); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		plan := swarm.Draw(j.Seed, j.Only...)
		plan.Without(j.Without)
		r := plan.Twice(t, nil)
		if err := out.Encode(outcome{j.Seed, r.Failure, r.Hash, r.Steps}); err != nil {
			return err
		}
		if r.Failure != "" {
			return errReported
		}
	}
}

// worker is a process that plays.
type worker struct {
	cmd    *exec.Cmd
	in     *json.Encoder
	close  func() error
	got    chan outcome // closed when the process has ended
	ended  error        // the process's exit error; valid when got is closed
	output *output
}

// startWorker starts a worker. env makes the program a worker, and may contain more variables.
func startWorker(env []string) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("which program is this: %w", err)
	}
	cmd := exec.Command(program)
	// GOGC: a sixth less time for twice the memory, some 100 MiB.
	cmd.Env = slices.Concat([]string{"GOGC=400"}, os.Environ(), []string{"GOMAXPROCS=1", "GOTRACEBACK=all"}, env)
	// A world may be in an endless loop.
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	w := &worker{cmd: cmd, got: make(chan outcome), output: &output{}}
	cmd.Stderr = w.output
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.in, w.close = json.NewEncoder(in), in.Close
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	go w.readOutcomes(json.NewDecoder(out))
	return w, nil
}

// readOutcomes receives the outcomes, and waits until the process ends.
func (w *worker) readOutcomes(out *json.Decoder) {
	for {
		var o outcome
		if out.Decode(&o) != nil {
			break
		}
		w.got <- o
	}
	w.ended = w.cmd.Wait()
	close(w.got)
}

// playWorld plays a world, which may take patience of the process's processor time. On a busy
// machine that is a longer real time. alive: the process can play another world.
func (w *worker) playWorld(j job, patience time.Duration) (o outcome, alive bool) {
	// Between two looks, less than a hundredth of the time from one to the next is no work.
	const looks = 50 // within patience, if the process has a processor to itself
	const busy = 100 * looks
	used, idle := w.processorTime(), 0
	end := used + patience
	o.Seed = j.Seed
	_ = w.in.Encode(j) // if the process has ended, got is closed
	look := time.NewTicker(patience / looks)
	defer look.Stop()
	for {
		select {
		case got, ok := <-w.got:
			if ok {
				if got.Failure != "" {
					w.stopAndWait()
				}
				return got, got.Failure == ""
			}
			o.Failure = fmt.Sprintf("the process has ended (%v): %s", w.ended, w.output)
			return o, false
		case <-look.C:
		}
		now := w.processorTime()
		if idle++; now-used > patience/busy { // idle is the number of looks since it last worked
			used, idle = now, 0
		}
		if now > end || idle > looks {
			_ = w.cmd.Process.Signal(unix.SIGQUIT) // prints its goroutines
			w.stopAndWait()
			o.Failure = fmt.Sprintf("no end within %v of processor time:\n%s", patience, w.output)
			return o, false
		}
	}
}

// processorTime returns the processor time that the process has used. 0: it has ended.
func (w *worker) processorTime() time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED: clock_getcpuclockid(3)
	var t unix.Timespec
	if unix.ClockGettime(int32(^w.cmd.Process.Pid)<<3|scheduler, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// stopAndWait ends the process, and waits until it has ended.
func (w *worker) stopAndWait() {
	_ = w.close()
	timer := time.AfterFunc(10*time.Second, func() { _ = w.cmd.Process.Kill() })
	defer timer.Stop()
	for range w.got {
	}
}

// output keeps the beginning of a process's output.
type output struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	const most = 256 << 10
	o.mu.Lock()
	defer o.mu.Unlock()
	o.b.Write(p[:min(len(p), max(0, most-o.b.Len()))])
	return len(p), nil
}

// String returns the output.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
