package measure

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// patience is far above the duration of any step here.
const patience = 2 * time.Minute

// actions are the actions of children in these tests; play has their server and their client.
var actions = map[string]func() error{
	"die":     func() error { return errors.New("as it was asked to") },
	"garbage": func() error { return sayAndWait("this is no JSON") },
	"nothing": func() error { return sayAndWait("") },
	"pid":     func() error { return sayAndWait(fmt.Sprint(os.Getpid())) },
	"cpu": func() error {
		return sayAndWait(fmt.Sprint(runtime.NumCPU(), runtime.GOMAXPROCS(0)))
	},
	// parent starts a child, and reports its process. It does not end with its input.
	"parent": func() error {
		c, err := Start(context.Background(), "the grandchild", -1, 1, "deaf")
		if err != nil {
			return err
		}
		var pid int
		if err := c.Ask("", &pid); err != nil {
			return err
		}
		fmt.Println(pid)
		forever()
		return nil
	},
	// deaf ignores its input.
	"deaf": func() error {
		fmt.Println(os.Getpid())
		forever()
		return nil
	},
}

// sayAndWait ends when standard input does.
func sayAndWait(what string) error {
	if what != "" {
		fmt.Println(what)
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
	}
	return nil
}

func TestMain(m *testing.M) {
	var name string
	if child, err := Role(&name); child {
		if err == nil {
			err = actions[name]()
		} else { // a role of a pair
			_, err = RunRole(scenarios)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "a child that this test expects to fail:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // children with the race detector sleep for a second
	goleak.VerifyTestMain(m)
}

func start(t *testing.T, ctx context.Context, cpu int, action string) *Child {
	t.Helper()
	c, err := Start(ctx, "the child", cpu, 1, action)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// gone waits until there is no such process.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, state, _ := strings.Cut(string(b), ") ")
		// its new parent may be slow to wait for it
		if err != nil || strings.HasPrefix(state, "Z") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d is there still", pid)
		}
	}
}

// TestChildren that misbehave: the caller gets an error that describes it, and no child is left.
func TestChildren(t *testing.T) {
	for action, want := range map[string]string{"die": "the child ended early", "garbage": `the child says "this is no JSON"`} {
		t.Run(action, func(t *testing.T) {
			c := start(t, t.Context(), -1, action)
			var v any
			if err := c.Ask("", &v); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("asking gives %v, want that %s", err, want)
			}
			if err := c.Stop(); (err == nil) != (action == "garbage") {
				t.Errorf("its outcome is %v", err)
			}
			gone(t, c.cmd.Process.Pid)
		})
	}
}

// TestSilentChild: the caller waits for a silent child as long as the context allows.
func TestSilentChild(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := start(t, ctx, -1, "nothing")
	answered := make(chan error, 1)
	go func() {
		var v any
		answered <- c.Ask("hello", &v)
	}()
	cancel()
	if err := <-answered; err == nil {
		t.Error("it has answered")
	}
	if c.Stop() == nil {
		t.Error("its outcome is none: want that it was killed")
	}
	gone(t, c.cmd.Process.Pid)
}

// TestStop: a child ends with its input, and sends nothing else.
func TestStop(t *testing.T) {
	c := start(t, t.Context(), 0, "pid")
	var pid int
	if err := c.Ask("", &pid); err != nil || pid != c.cmd.Process.Pid {
		t.Errorf("it says %d, %v; want %d", pid, err, c.cmd.Process.Pid)
	}
	if err := c.Stop(); err != nil {
		t.Errorf("its outcome is %v", err)
	}
	gone(t, pid)
}

// TestPinned: a child has one CPU and as many Ps as asked for. The CPUs of its parent do not
// change.
func TestPinned(t *testing.T) {
	var before, after unix.CPUSet
	runtime.LockOSThread() // its affinity is what Start changes for a moment
	defer runtime.UnlockOSThread()
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	c := start(t, t.Context(), 0, "cpu")
	if !c.out.Scan() || c.out.Text() != "1 1" {
		t.Errorf("it has %q CPUs and Ps, want one of each", c.out.Text())
	}
	if err := c.Stop(); err != nil {
		t.Error(err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("this thread's CPUs are %v, %v; they were %v", after, err, before)
	}
}

// TestNth: CPUs are counted among those that a process may use.
func TestNth(t *testing.T) {
	var set unix.CPUSet
	for i, cpu := range []int{2, 3, 70} {
		set.Set(cpu)
		if got := nthCPU(set, i); got != cpu {
			t.Errorf("CPU %d of the set is %d, want %d", i, got, cpu)
		}
	}
}

// TestOrphan: when a parent is killed, its child ends too, even one that ignores its input.
func TestOrphan(t *testing.T) {
	c := start(t, t.Context(), -1, "parent")
	var pid int
	if err := c.Ask("", &pid); err != nil {
		t.Fatal(err)
	}
	c.kill()
	if c.Stop() == nil {
		t.Error("its outcome is none: want that it was killed")
	}
	gone(t, c.cmd.Process.Pid)
	gone(t, pid)
}

// unixWait calls wait4(2) for any child that has ended: ECHILD if there is none at all.
func unixWait() (int, error) { return unix.Wait4(-1, nil, unix.WNOHANG, nil) }

// forever sleeps longer than any test. (Without a timer Go would see a deadlock.)
func forever() { time.Sleep(time.Hour) }
