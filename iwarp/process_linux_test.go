package iwarp

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
)

// peerEnv names the role of this test binary when it is started as a peer.
const peerEnv = "IWARP_TEST_PEER"

// peerTB implements the part of testing.TB that a process without a test needs.
type peerTB struct{ testing.TB }

func (peerTB) Helper()                   {}
func (peerTB) Cleanup(func())            {}
func (peerTB) Logf(f string, a ...any)   { fmt.Fprintf(os.Stderr, f+"\n", a...) }
func (peerTB) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (peerTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (peerTB) Error(a ...any)            { panic(fmt.Sprint(a...)) }
func (peerTB) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }

// runPeer listens, prints its address, accepts one connection, answers one message, and ends with
// the connection.
func runPeer(role string) int {
	n := newNode(peerTB{})
	lh, addr := n.listen("127.0.0.1:0")
	fmt.Println(addr)
	req := n.wait(lh, states.KindConnectRequest)
	q := n.qp(req.child, 1)
	n.do(req.child, &cmid.Accept{})
	turns(n.t, "a message", func() bool { return len(n.wcs) > 0 }, n)
	q.send(1, role+" heard "+q.got(n.wcs[0]))
	n.wait(req.child, states.KindDisconnected)
	if err := n.inst.Close(); err != nil {
		panic(err)
	}
	return 0
}

func TestTwoProcesses(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=other")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill() // if all is well it has already exited
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	h := n.resolve(cmid.MustAddr(strings.TrimSpace(line)))
	q := n.qp(h, 1)
	n.do(h, &cmid.Connect{})
	n.wait(h, states.KindEstablished)
	q.send(7, "one Send")
	turns(t, "the answer", func() bool { return len(n.wcs) == 2 }, n)
	if got, want := q.got(n.wcs[1]), "other heard one Send"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	n.do(h, &cmid.DestroyID{})
	turns(t, "the peer's FIN", func() bool { return n.in.conns == 0 }, n)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the other process: %v", err)
	}
}
