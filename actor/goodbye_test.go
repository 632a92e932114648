package actor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/wire"
)

// In every way of ending a connection a side sends a goodbye: the other side gets an orderly end,
// also when messages wait for credits. The side whose runtime is shut down gets ErrShutdown.
func TestEveryEndSaysGoodbye(t *testing.T) {
	ends := map[string]func(w *world, p pair, cancel func()){
		"close":        func(_ *world, p pair, _ func()) { p.client.send(p.c, &Close{}) },
		"disconnect":   func(_ *world, p pair, _ func()) { p.client.send(p.c, &Disconnect{}) },
		"destroy":      func(_ *world, p pair, _ func()) { p.client.send(p.c, &DestroyID{}) },
		"owner's end":  func(w *world, p pair, _ func()) { w.sys.Root.Stop(p.client.pid) },
		"context":      func(_ *world, _ pair, cancel func()) { cancel() },
		"accepting":    func(_ *world, p pair, _ func()) { p.server.send(p.s, &DestroyID{}) },
		"both":         func(_ *world, p pair, _ func()) { p.client.send(p.c, &Close{}); p.server.send(p.s, &Disconnect{}) },
		"disconnects":  func(_ *world, p pair, _ func()) { p.client.send(p.c, &Disconnect{}); p.client.send(p.c, &Disconnect{}) },
		"dropped":      func(_ *world, p pair, _ func()) { p.client.send(p.c, &Disconnect{}); p.client.send(p.c, &DestroyID{}) },
		"shutdown":     func(w *world, _ pair, _ func()) { shutDown(w, w.rt, context.Background()) },
		"hasty":        func(w *world, _ pair, _ func()) { shutDown(w, w.rt, over()) },
		"far shutdown": func(w *world, _ pair, _ func()) { shutDown(w, w.far, context.Background()) },
	}
	for name, end := range ends {
		for _, waiting := range []int{0, 40} {
			t.Run(fmt.Sprintf("%s/%d", name, waiting), func(t *testing.T) {
				onAllKinds(t, func(w *world) {
					w.f.Delay(10 * time.Millisecond)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					p := pair{client: w.probe(), server: w.farProbe()}
					w.listen(p.server, IDConfig{MaxMessage: 1 << 10, Credits: 4})
					p.c = w.rt.CreateID(p.client.pid, IDConfig{MaxMessage: 1 << 10, Credits: 4, Context: ctx})
					p.client.send(p.c, &Dial{Addr: there + ":7471"})
					_, p.s = next[*ConnectRequest](p.server)
					p.server.send(p.s, &Accept{})
					next[*Established](p.server)
					next[*Established](p.client)
					for range waiting {
						p.client.send(p.c, NewSend([]byte("wait")))
					}
					end(w, p, cancel)
					for _, side := range []*probe{p.client, p.server} {
						if name == "owner's end" && side == p.client {
							continue
						}
						for _, g := range until[*Closed](side) {
							switch m := g.msg.(type) {
							case *Disconnected:
								var want error
								if name == "shutdown" && side == p.client || name == "far shutdown" && side == p.server {
									want = ErrShutdown
								}
								// A Shutdown that has no time may be reported, or not.
								hasty := name == "hasty" && side == p.client && errors.Is(m.Err, ErrShutdown)
								if !errors.Is(m.Err, want) && !hasty {
									w.Errorf("disconnected: %v, want %v", m.Err, want)
								}
							case *Closed:
								if errors.Is(m.Err, ErrPeerLost) || side == p.server && name != "far shutdown" && m.Err != nil {
									w.Errorf("closed: %v", m.Err)
								}
							}
						}
					}
				})
			})
		}
	}
}

func shutDown(w *world, rt *Runtime, ctx context.Context) {
	if err := rt.Shutdown(ctx); err != nil && ctx.Err() == nil {
		w.Error(err)
	}
}

// over returns a context that has ended.
func over() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// malloryAt connects a raw peer that speaks the protocol by hand to an owner there.
func (w *world) malloryAt(server *probe) (mallory *probe, id, s *actor.PID) {
	w.Helper()
	mallory = w.probe()
	id = w.rt.CreateID(mallory.pid, IDConfig{Raw: true})
	mallory.send(id, &Dial{Addr: there + ":7471", PrivateData: wire.Hello{Credits: 2, Eager: kib, MaxMessage: kib}.Put(nil)})
	_, s = next[*ConnectRequest](server)
	server.send(s, &Accept{})
	next[*Established](server)
	next[*Established](mallory)
	return mallory, id, s
}

// An end without goodbye is the loss of the peer, whatever the device calls it, and is reported as
// such to everybody.
func TestEndWithoutGoodbye(t *testing.T) {
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		w.listen(server)
		mallory, id, _ := w.malloryAt(server)
		mallory.send(id, &Disconnect{})
		for _, g := range until[*Closed](server) {
			switch m := g.msg.(type) {
			case *Disconnected:
				is(w, m.Err, ErrPeerLost)
				is(w, m.Err, unix.ECONNRESET)
			case *Closed:
				is(w, m.Err, ErrPeerLost)
			}
		}
	})
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
		w.onLoop(w.rt, func(l *loop) { w.f.Disconnect(w.conn(l, p.c).ID.Handle()) })
		for _, side := range []*probe{p.client, p.server} {
			end := until[*Closed](side)
			is(w, end[len(end)-1].msg.(*Closed).Err, ErrPeerLost)
		}
	})
}

// Nothing may come behind a goodbye.
func TestGoodbyeIsTheLast(t *testing.T) {
	bye := make([]byte, wire.HeaderLen)
	wire.Header{Type: wire.TypeGoodbye}.Put(bye)
	onFlavors(t, func(w *world) {
		server := w.farProbe()
		w.listen(server)
		mallory, id, _ := w.malloryAt(server)
		mallory.send(id, NewSend(bye))
		mallory.send(id, NewSend(bye))
		end := until[*Closed](server)
		is(w, end[len(end)-1].msg.(*Closed).Err, unix.EPROTO)
		until[*Closed](mallory)
	})
}

// A goodbye that does not get through costs goodbyeTime, whatever the end.
func TestGoodbyeIsNotWaitedForLong(t *testing.T) {
	onFlavors(t, func(w *world) {
		p := w.connect(IDConfig{MaxMessage: 1 << 10, Credits: 2})
		w.f.Silence(there)
		took := elapsed(func() {
			p.client.send(p.c, &DestroyID{})
			c, _ := next[*Closed](p.client)
			if c.Err != nil {
				w.Errorf("closed: %v", c.Err)
			}
		})
		if took > goodbyeTime {
			w.Errorf("DestroyID took %v", took)
		}
	})
}

// peerEnv makes this test binary a peer of its parent process: it listens, echoes, and waits to be
// killed.
const peerEnv = "RDMACTOR_TEST_PEER"

func runPeer() {
	sys := actor.NewActorSystem()
	rt := openIWARP(peerTB{}, sys)
	p := newProbe(peerTB{}, sys, rt.OnLoop(), func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case *ConnectRequest:
			ctx.Respond(&Accept{})
		case *Received:
			ctx.Respond(NewSend(m.Data))
		}
	})
	_, at := listen(p, rt, "127.0.0.1:0")
	fmt.Println(at)
	_, _ = io.Copy(io.Discard, os.Stdin) // it is killed, or its parent has ended
	os.Exit(0)
}

// peerTB is enough of a testing.TB for a process that is no test.
type peerTB struct{ testing.TB }

func (peerTB) Helper()                   {}
func (peerTB) Cleanup(func())            {}
func (peerTB) Fatal(a ...any)            { panic(fmt.Sprint(a...)) }
func (peerTB) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// startPeer starts another process, and returns its listening address.
func startPeer(tb testing.TB) (cmd *exec.Cmd, at string) {
	tb.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), peerEnv+"=1")
	cmd.Stderr = os.Stderr
	// A separate session: the kernel continues a stopped process whose group loses its shell.
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe() // its end is the peer's, too
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	at, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		tb.Fatal(err)
	}
	return cmd, strings.TrimSpace(at)
}

// peerProcess is a process with a connection to p.
type peerProcess struct {
	rt  *Runtime
	p   *probe
	cmd *exec.Cmd
	at  string
	id  *actor.PID // of the connection
}

func reachProcess(t *testing.T) *peerProcess {
	t.Helper()
	sys := testSystem(t)
	rt := openIWARP(t, sys)
	r := &peerProcess{rt: rt, p: newProbe(t, sys, rt.OnLoop(), nil)}
	r.cmd, r.at = startPeer(t)
	r.id = r.dial(IDConfig{})
	r.p.send(r.id, NewSend([]byte("are you there?")))
	next[*Received](r.p)
	return r
}

func (r *peerProcess) dial(cfg IDConfig) *actor.PID {
	r.p.tb.Helper()
	id := r.rt.CreateID(r.p.pid, cfg)
	r.p.send(id, &Dial{Addr: r.at})
	next[*Established](r.p)
	return id
}

// isLost sends the process a signal. The connection ends because of want.
func (r *peerProcess) isLost(sig unix.Signal, want error) {
	r.p.tb.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.p.tb.Fatal(err)
	}
	d, _ := next[*Disconnected](r.p)
	is(r.p.tb, d.Err, ErrPeerLost)
	is(r.p.tb, d.Err, want)
	c, _ := next[*Closed](r.p)
	is(r.p.tb, c.Err, ErrPeerLost)
}

// A stopped process sends nothing, while its kernel still accepts packets. The peer is given up
// because of its silence.
func TestPeerIsStopped(t *testing.T) {
	// with the default times: a busy machine may keep the peer waiting for seconds
	r := reachProcess(t)
	r.p.send(r.id, &Close{})
	until[*Closed](r.p)
	r.dial(IDConfig{Keepalive: Keepalive{Idle: 300 * time.Millisecond, Gone: 3 * time.Second}})
	r.isLost(unix.SIGSTOP, unix.ETIMEDOUT)
}

// For a process that was killed the kernel sends the same FIN as after an orderly end. Only the
// goodbye is missing.
func TestPeerIsKilled(t *testing.T) { reachProcess(t).isLost(unix.SIGKILL, unix.ECONNRESET) }
