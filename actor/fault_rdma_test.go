//go:build linux && rdma

package actor

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/states"
)

// These are faults, on the kernel's devices: lab/vm/faulttest runs them.

// again runs this test in another process, with its task in the environment variable FAULT.
func again(t *testing.T, what string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=45s")
	cmd.Env = append(append(os.Environ(), "FAULT="+what), env...)
	return cmd
}

// passes fails the test unless cmd passes.
func passes(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("the other process: %v\n%s", err, out)
	}
}

// emulated is how late an emulated machine may be when others use its processors. The faults that
// these tests look for, a loop that waits in the kernel, take 10 s and more.
const emulated = 5 * time.Second

// A request that its owner never answers is rejected after 8 s, on both sides, and nothing is left
// of it.
func TestFaultRequestIsNeverAnswered(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0")
	begin := time.Now()
	client.send(rt.CreateID(client.pid, IDConfig{}), &Dial{Addr: at})
	_, request := next[*ConnectRequest](server)
	end := until[*Closed](client)
	if took := time.Since(begin); took < 8*time.Second || took > 8*time.Second+emulated {
		t.Errorf("the client was notified after %v, want 8 s", took)
	}
	if kinds(end) != "Rejected Closed" {
		t.Errorf("the client got %v", end)
	}
	c, from := next[*Closed](server)
	if !from.Equal(request) {
		t.Errorf("closed is %v", from)
	}
	is(t, c.Err, unix.ETIMEDOUT)
	for _, i := range rt.Inspect() {
		if i.PID.Equal(request) {
			t.Errorf("still there: %+v", i)
		}
	}
}

// pings echoes n messages one after the other, and gives each one's time, sorted.
func pings(t *testing.T, p *probe, id *actor.PID, more func() bool) (took []time.Duration) {
	t.Helper()
	for more() {
		begin := time.Now()
		p.send(id, NewSend([]byte("ping")))
		next[*Received](p)
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return took
}

// Connects to a black hole. Their owners are notified when their time is over. The identifiers show
// as being destroyed for as long as the kernel keeps them, and no other connection is slower for
// it. Shutdown names those that the kernel does not return.
func TestFaultBlackHole(t *testing.T) {
	if os.Getenv("FAULT") == "" {
		passes(t, again(t, "silent")) // its end releases the kernel's objects
		return
	}
	const (
		silent = 20
		limit  = 3 * time.Second
	)
	sys := testSystem(t)
	rt, err := Open(sys, Config{Device: ucm.New(), Security: &Security{Mode: Insecure}, Timeouts: Timeouts{Connect: limit}})
	if err != nil {
		t.Fatal(err)
	}
	at := serveKernel(t, rt, env(t, "RDMA_ADDR")+":0")
	other, p := newProbe(t, sys, rt.OnLoop(), nil), newProbe(t, sys, rt.OnLoop(), nil)
	c := rt.CreateID(other.pid, IDConfig{})
	other.send(c, &Dial{Addr: at})
	next[*Established](other)
	n := 0
	before := pings(t, other, c, func() bool { n++; return n <= 200 })

	begin := time.Now()
	pending := map[string]bool{}
	for range silent {
		id := rt.CreateID(p.pid, IDConfig{MaxMessage: 1 << 10, Credits: 4})
		pending[id.Id] = true
		p.send(id, &Dial{Addr: env(t, "RDMA_SILENT_ADDR") + ":7471"})
	}
	during := pings(t, other, c, func() bool { return time.Since(begin) < limit-200*time.Millisecond })
	for ended := 0; ended < silent; {
		g := p.any()
		switch m := g.msg.(type) {
		case *Unreachable:
			ended++
			is(t, m, unix.ETIMEDOUT)
			if took := time.Since(begin); took < limit || took > limit+emulated {
				t.Errorf("notified after %v, want %v", took, limit)
			}
			if !pending[g.sender.Id] {
				t.Errorf("%v is notified twice", g.sender)
			}
			delete(pending, g.sender.Id)
		case *Closed: // InfiniBand returns it immediately
		default:
			t.Errorf("got %v", g)
		}
	}
	left := func() (closing int) {
		for _, i := range rt.Inspect() {
			if i.Peer.String() == env(t, "RDMA_SILENT_ADDR")+":7471" {
				closing++
				if i.State != states.Destroying {
					t.Errorf("shows as %v", i.State)
				}
			}
		}
		return closing
	}
	time.Sleep(200 * time.Millisecond) // for siw of 6.12, which releases them on its own
	closing := left()
	for begin = time.Now(); env(t, "RDMA_KIND") == "rxe" && closing > 0 && time.Since(begin) < emulated; closing = left() {
		time.Sleep(20 * time.Millisecond) // InfiniBand returns them
	}
	n = 0
	after := pings(t, other, c, func() bool { n++; return n <= 200 })
	t.Logf("%d connects to nobody; pings before, during, after: median %v, %v, %v, longest %v, %v, %v; %d show as being destroyed",
		silent, before[len(before)/2], during[len(during)/2], after[len(after)/2], before[len(before)-1], during[len(during)-1], after[len(after)-1], closing)
	for what, d := range map[string][]time.Duration{"during": during, "after": after} {
		if median := d[len(d)/2]; median > 4*before[len(before)/2]+emulated/10 {
			t.Errorf("%s the wait a ping takes %v, and before %v", what, median, before[len(before)/2])
		}
		if longest := d[len(d)-1]; longest > emulated {
			t.Errorf("%s the wait the longest ping has taken %v", what, longest)
		}
	}
	p.send(rt.CreateID(p.pid, IDConfig{}), &Dial{Addr: at}) // a connect does not wait for theirs
	begin = time.Now()
	for {
		if _, ok := p.any().msg.(*Established); ok {
			break
		}
	}
	if took := time.Since(begin); took > emulated {
		t.Errorf("another connect has taken %v", took)
	}

	patience := time.Second // siw will keep some however long we wait
	if env(t, "RDMA_KIND") == "rxe" {
		patience = emulated
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin = time.Now()
	err = rt.Shutdown(ctx)
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("Shutdown has taken %v", took)
	}
	t.Logf("%v: %v", env(t, "RDMA_KIND"), err)
	if env(t, "RDMA_KIND") == "rxe" {
		if err != nil || closing != 0 {
			t.Errorf("%d are left, and Shutdown says %v", closing, err)
		}
		return
	}
	if closing == 0 { // siw of 6.12 lets go of a connect that waits
		if err != nil {
			t.Errorf("Shutdown says %v", err)
		}
		return
	}
	if closing != silent || err == nil || strings.Count(err.Error(), "(destroying") < silent {
		t.Errorf("%d show as being destroyed of %d, and Shutdown says %v", closing, silent, err)
	}
	if t.Failed() {
		return
	}
	_, _ = os.Stdout.WriteString("--- PASS: TestFaultBlackHole\n")
	os.Exit(0) // not waiting for the kernel, as the goroutines that are left would be missed
}

// Private data that do not fit are refused before anything is sent: the peer hears nothing of it,
// and the next attempt is as good as the first.
func TestFaultPrivateDataTooLong(t *testing.T) {
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	spaces := map[string]cmid.PortSpace{"stream": cmid.PortSpaceTCP}
	if env(t, "RDMA_KIND") == "rxe" {
		spaces["datagram"] = cmid.PortSpaceUDP
	}
	for name, ps := range spaces {
		t.Run(name, func(t *testing.T) {
			server, client := newProbe(t, rt.sys, rt.OnLoop(), nil), newProbe(t, rt.sys, rt.OnLoop(), nil)
			lis := rt.CreateID(server.pid, IDConfig{PortSpace: ps})
			server.send(lis, &Serve{Addr: env(t, "RDMA_ADDR") + ":0"})
			l, _ := next[*Listening](server)
			connect := func() *actor.PID {
				c := rt.CreateID(client.pid, IDConfig{PortSpace: ps})
				client.send(c, &cmid.ResolveAddr{Dst: l.Local})
				next[*cmid.AddrResolved](client)
				client.send(c, &cmid.ResolveRoute{})
				next[*cmid.RouteResolved](client)
				return c
			}
			long := make([]byte, 256) // more than any transport has
			refused := func(p *probe, id *actor.PID, cmd Command) {
				t.Helper()
				p.send(id, cmd)
				f, _ := next[*CommandFailed](p)
				is(t, f, unix.EINVAL)
				if f.Command != cmd || !strings.Contains(f.Error(), "256 bytes of private data, the limit is") {
					t.Errorf("the refusal says %v", f)
				}
			}
			param := &ConnParam{QPNum: 77}
			if ps == cmid.PortSpaceTCP {
				param = nil
			}
			c := connect()
			refused(client, c, &Connect{PrivateData: long})
			client.send(c, &Connect{PrivateData: []byte("short"), Param: param})
			_, s := next[*ConnectRequest](server)
			refused(server, s, &Accept{PrivateData: long})
			refused(server, s, &Reject{PrivateData: long})
			time.Sleep(300 * time.Millisecond)
			client.quiet()
			server.send(s, &Accept{PrivateData: []byte("short"), Param: param})
			next[*Established](server)
			next[*Established](client)
			for p, id := range map[*probe]*actor.PID{client: c, server: lis} {
				p.send(id, &DestroyID{})
				until[*Closed](p)
			}
		})
	}
}

// A peer process that is killed under traffic: each owner of a connection with it is notified
// once, whichever side has dialled.
func TestFaultPeerIsKilled(t *testing.T) {
	if at := os.Getenv("FAULT"); at != "" {
		rt := openKernel(t, testSystem(t))
		p := newProbe(t, rt.sys, rt.OnLoop(), nil)
		c := rt.CreateID(p.pid, IDConfig{})
		p.send(c, &Dial{Addr: at})
		next[*Established](p)
		pings(t, p, c, func() bool { return true })
	}
	leavesNothing(t)
	rt := openKernel(t, testSystem(t))
	server := newProbe(t, rt.sys, rt.OnLoop(), echo)
	_, at := listen(server, rt, env(t, "RDMA_ADDR")+":0")
	const peers = 3
	var cmds []*exec.Cmd
	for range peers {
		cmd := again(t, at)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	traffic := map[string]int{}
	events := map[string]string{}
	for busy := 0; busy < peers; {
		g := server.any()
		if _, ok := g.msg.(*Received); ok {
			if traffic[g.sender.Id]++; traffic[g.sender.Id] == 20 {
				busy++
			}
			continue
		}
		events[g.sender.Id] += kinds([]got{g}) + " "
	}
	begin := time.Now()
	for _, cmd := range cmds {
		_ = cmd.Process.Signal(syscall.SIGKILL)
	}
	for closed := 0; closed < peers; {
		g := server.any()
		switch m := g.msg.(type) {
		case *Received, *SendFailed: // SendFailed: a message was too late to be echoed
			continue
		case *Closed:
			closed++
			is(t, m.Err, ErrPeerLost)
		}
		events[g.sender.Id] += kinds([]got{g}) + " "
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the last owner was notified after %v", took)
	}
	for id := range traffic {
		if got := events[id]; got != "ConnectRequest Established Disconnected Closed " {
			t.Errorf("the owner of %s got %s", id, got)
		}
	}
	for _, cmd := range cmds {
		_ = cmd.Wait()
	}
}

// A user without privileges, but with access to the files, can do all this. If little memory may be
// locked the error reports that.
func TestFaultUser(t *testing.T) {
	const (
		nobody = 65534
		little = 64 << 10
		enough = 64 << 20
	)
	at := env(t, "RDMA_ADDR") + ":0"
	cfg := IDConfig{MaxMessage: 64 << 10, Credits: 4}
	switch os.Getenv("FAULT") {
	case "":
		leavesNothing(t)
		for _, what := range []string{"little", "enough"} {
			cmd := again(t, what)
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			passes(t, cmd)
		}
	case "little":
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: little, Max: little}); err != nil {
			t.Fatal(err)
		}
		rt := openKernel(t, testSystem(t))
		p := newProbe(t, rt.sys, rt.OnLoop(), nil)
		l := serveKernel(t, rt, at, cfg)
		p.send(rt.CreateID(p.pid, cfg), &Dial{Addr: l})
		f, _ := next[Failure](p)
		is(t, f, unix.ENOMEM)
		if text := f.Error(); !strings.Contains(text, "RLIMIT_MEMLOCK is 65536 bytes") || !strings.Contains(text, "ulimit -l") {
			t.Errorf("the error says %s", text)
		}
	case "enough":
		if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: enough, Max: enough}); err != nil {
			t.Fatal(err)
		}
		rt := openKernel(t, testSystem(t))
		talk(t, rt, serveKernel(t, rt, at, cfg), 3, cfg)
	}
}
