package remoting_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/wrapperspb"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/internal/proctest"
	"github.com/rdmactor/rdmactor/remoting"
)

// roleVariable makes this program one of a test's processes. Its value is the name of the node.
const roleVariable = "REMOTING_NODE"

// play is the program of such a process: it runs a node with some actors, until its standard input
// ends. Then it shuts down.
func play(name string) int {
	sys := newSystem()
	rt, err := rdma.Open(sys, rdma.Config{Device: here.device(), Security: insecure, Logger: logger()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	n, err := remoting.Start(rt, remoting.Config{Name: name, Expose: everything, Patience: 2 * time.Second})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for name, props := range map[string]*actor.Props{
		"echo": actor.PropsFromFunc(echo), "mute": actor.PropsFromFunc(func(actor.Context) {}), "order": actor.PropsFromFunc(order()),
		"caller": actor.PropsFromFunc(caller), "slow-default": actor.PropsFromFunc(slow), "slow-goroutines": actor.PropsFromFunc(slow, rt.OffLoop()),
		"slow-bounded": actor.PropsFromFunc(slow, actor.WithMailbox(actor.Bounded(10))),
		"ledger":       actor.PropsFromFunc(keepLedger(), rt.OnLoop()),
	} {
		if _, err := sys.Root.SpawnNamed(props, name); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	if err := n.Shutdown(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := rt.Shutdown(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// order takes "SENDER NUMBER" and checks that each sender's numbers only grow. It answers a request
// with the numbers that it has received.
func order() actor.ReceiveFunc {
	last := map[string]int{}
	received, wrong := 0, 0
	return func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *wrapperspb.StringValue:
			sender, text, _ := strings.Cut(m.Value, " ")
			n, err := strconv.Atoi(text)
			if err != nil || n <= last[sender] {
				wrong++
			}
			last[sender] = n
			received++
		case *wrapperspb.BoolValue:
			ctx.Respond(text(fmt.Sprintf("%d received, %d wrong", received, wrong)))
		}
	}
}

// slow takes its time for each message.
func slow(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
		time.Sleep(10 * time.Millisecond)
	}
}

// caller asks the PID that it gets (address and id, in a list) and passes the answer on.
func caller(ctx actor.Context) {
	if m, ok := ctx.Message().(*actor.PID); ok {
		res, err := remoting.Result(ctx.RequestFuture(m, text("from the caller"), soon))
		if err != nil {
			res = text(err.Error())
		}
		ctx.Respond(res)
	}
}

// process is a node in a separate process.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
}

// freeName returns an unused name for a node.
func freeName(t testing.TB) string {
	t.Helper()
	return proctest.FreeAddrsOf(t, here.host, 1)[0]
}

// run starts a process, and waits until it listens.
func run(t testing.TB, name string) *process {
	t.Helper()
	p := &process{t: t, name: name, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+name)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q: %v", line, err)
	}
	return p
}

func (p *process) pid(id string) *actor.PID { return actor.NewPID(p.name, id) }

// kill ends it as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// leave makes it shut down.
func (p *process) leave() {
	p.t.Helper()
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the process ended: %v", err)
	}
}

// freeze stops all threads of the process. The system stops one that runs a little later.
func (p *process) freeze() {
	_ = p.cmd.Process.Signal(unix.SIGSTOP)
	for over := time.Now().Add(soon); !p.frozen() && time.Now().Before(over); {
		time.Sleep(time.Millisecond)
	}
}

func (p *process) frozen() bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if _, state, _ := strings.Cut(string(b), ") "); err == nil && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

func (p *process) thaw() { _ = p.cmd.Process.Signal(unix.SIGCONT) }

// rss returns how much memory a process has, in bytes.
func rss(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// within fails the test if something has taken longer.
func within(t testing.TB, what string, began time.Time, most time.Duration) {
	t.Helper()
	if d := time.Since(began); d > most {
		t.Errorf("%s took %v", what, d)
	} else {
		t.Logf("%s took %v", what, d)
	}
}
