//go:build linux && rdma

package ucm_test

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/cmid/ucm"
	"github.com/rdmactor/rdmactor/internal/leak"
	"github.com/rdmactor/rdmactor/verbs"
)

// These are faults: devices and peers that go, and unanswered requests. lab/vm/faulttest runs
// them.

const (
	faultPatience = time.Minute            // the wait for an expected event
	faultQuiet    = 300 * time.Millisecond // the wait that shows the absence of events
	// the bound of prompt operations on a busy machine; those that wait in the kernel take 8 s and
	// longer
	faultPrompt = 7 * time.Second
	anyPort     = 0
)

// side is a channel, with all that it has delivered.
type side struct {
	*testing.T
	ch        *cmid.Channel
	fd        int
	delivered []*deliveredEvent
	conns     []*conn
}

type deliveredEvent struct {
	ev    cmid.Event
	taken bool
}

func newSide(t *testing.T) *side {
	t.Helper()
	return newSideOf(t, driver())
}

func newSideOf(t *testing.T, d *ucm.Driver) *side {
	t.Helper()
	ch, err := cmid.OpenChannel(d)
	if err != nil {
		t.Fatal(err)
	}
	s := &side{T: t, ch: ch}
	s.fd, err = ch.FD()
	s.must(err)
	return s
}

func (s *side) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// turn handles events for up to d, and returns early after the first.
func (s *side) turn(d time.Duration) {
	s.Helper()
	for deadline := time.Now().Add(d); ; {
		came := false
		for {
			ev, _, err := s.ch.GetEvent()
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			s.must(err)
			s.delivered = append(s.delivered, &deliveredEvent{ev: ev})
			came = true
		}
		for _, c := range s.conns {
			came = c.poll() || came
		}
		left := time.Until(deadline)
		if came || left <= 0 {
			return
		}
		s.readable(left)
	}
}

// readable waits until the channel has something to do, without taking it, and reports whether it
// has.
func (s *side) readable(d time.Duration) bool {
	s.Helper()
	for deadline := time.Now().Add(d); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}}, int(max(time.Until(deadline), 0).Milliseconds())+1)
		if errors.Is(err, unix.EINTR) { // the Go runtime's own signals
			continue
		}
		s.must(err)
		return n > 0
	}
}

// quiet takes what still comes.
func (s *side) quiet() {
	s.Helper()
	for deadline := time.Now().Add(faultQuiet); time.Now().Before(deadline); {
		s.turn(time.Until(deadline))
	}
}

// until turns the loop until cond is true.
func (s *side) until(what string, cond func() bool) {
	s.Helper()
	for deadline := time.Now().Add(faultPatience); !cond(); {
		if time.Now().After(deadline) {
			s.Fatalf("waited %v in vain for %s; got %s", faultPatience, what, s.all())
		}
		s.turn(time.Second)
	}
}

// await returns the identifier's next event, which has to be an E; of any identifier's if id is
// nil, and then others are passed over.
func await[E cmid.Event](s *side, id *cmid.ID) (ev E) {
	s.Helper()
	s.until(fmt.Sprintf("%T", ev), func() bool {
		for _, t := range s.delivered {
			got, ok := t.ev.(E)
			switch {
			case t.taken, id != nil && t.ev.Ident() != id.Handle():
				continue
			case ok:
				ev, t.taken = got, true
				return true
			case id != nil:
				s.Fatalf("got %s, want %T", eventText(t.ev), got)
			}
		}
		return false
	})
	return ev
}

// of lists the events that were delivered for an identifier, in order. Closed is the device's end
// of a destruction.
func (s *side) of(h cmid.Handle) string {
	var names []string
	for _, t := range s.delivered {
		if _, closed := t.ev.(*cmid.Closed); !closed && t.ev.Ident() == h {
			names = append(names, strings.TrimPrefix(fmt.Sprintf("%T", t.ev), "*cmid."))
		}
	}
	return strings.Join(names, " ")
}

func (s *side) all() string {
	var names []string
	for _, t := range s.delivered {
		names = append(names, eventText(t.ev))
	}
	return strings.Join(names, ", ")
}

func eventText(ev cmid.Event) string {
	if f, ok := ev.(cmid.Failure); ok {
		return fmt.Sprintf("%T of %d (%v)", ev, ev.Ident(), f)
	}
	return fmt.Sprintf("%T of %d", ev, ev.Ident())
}

// wantDelivered compares all events of an identifier with the expected ones: no others, and each
// once.
func (s *side) wantDelivered(id *cmid.ID, wants ...string) {
	s.Helper()
	if got := s.of(id.Handle()); !slices.Contains(wants, got) {
		s.Errorf("the identifier got %q, want %q", got, wants)
	}
}

// destroy destroys an identifier, which the kernel then no longer has.
func (s *side) destroy(id *cmid.ID) {
	s.Helper()
	begin := time.Now()
	s.must(id.Destroy())
	s.until("the end of destroy_id", func() bool { return s.ch.ID(id.Handle()) == nil })
	if took := time.Since(begin); took > faultPrompt {
		s.Errorf("destroy_id of %d (%s) has taken %v", id.Handle(), s.of(id.Handle()), took)
	}
}

// close destroys the queues, then the channel. Nothing may be left that the kernel has to be
// waited for.
func (s *side) close() {
	s.Helper()
	begin := time.Now()
	for _, c := range s.conns {
		c.free()
	}
	if err := s.ch.Close(); err != nil {
		s.Errorf("close: %v", err)
	}
	if took := time.Since(begin); took > faultPrompt {
		s.Errorf("closing the channel has taken %v", took)
	}
}

func (s *side) create(ps cmid.PortSpace) *cmid.ID {
	s.Helper()
	id, err := s.ch.CreateID(ps)
	s.must(err)
	return id
}

// listen listens on the machine's address called name.
func (s *side) listen(name string, backlog int) *cmid.ID {
	s.Helper()
	id := s.create(cmid.PortSpaceTCP)
	s.must(id.BindAddr(cmid.AddrFrom(addr(s.T, name), anyPort)))
	s.must(id.Listen(backlog))
	return id
}

// resolved returns an identifier with address and route.
func (s *side) resolved(to cmid.Addr) *cmid.ID {
	s.Helper()
	id := s.create(cmid.PortSpaceTCP)
	s.must(id.ResolveAddr(cmid.Addr{}, to, 0))
	await[*cmid.AddrResolved](s, id)
	s.must(id.ResolveRoute(0))
	await[*cmid.RouteResolved](s, id)
	return id
}

// request takes a request, with queues for it.
func (s *side) request() *conn {
	s.Helper()
	return s.queues(s.ch.ID(await[*cmid.ConnectRequest](s, nil).ID))
}

// connect resolves and asks.
func (s *side) connect(to cmid.Addr) *conn {
	s.Helper()
	c := s.queues(s.resolved(to))
	s.must(c.id.Connect(nil, nil))
	return c
}

// pair makes a connection between two sides, or of one with itself.
func pair(a, b *side, listener *cmid.ID) (active, passive *conn) {
	a.Helper()
	active = a.connect(listener.LocalAddr())
	passive = b.request()
	b.must(passive.id.Accept(nil, nil))
	for a != b && !strings.Contains(b.of(passive.id.Handle()), "Established") {
		a.turn(10 * time.Millisecond) // InfiniBand needs the answer's answer
		b.turn(10 * time.Millisecond)
	}
	await[*cmid.Established](a, active.id)
	await[*cmid.Established](b, passive.id)
	return active, passive
}

const (
	slots    = 16
	slotSize = 64
)

// conn is an identifier's queues.
type conn struct {
	s                        *side
	id                       *cmid.ID
	dev                      verbs.Device
	cq                       verbs.CQ
	qp                       verbs.QP
	mr                       *verbs.MR
	received, sent, failures int
	posted, issued           int // receives and sends
}

func (s *side) queues(id *cmid.ID) *conn {
	s.Helper()
	c := &conn{s: s, id: id, dev: id.Device()}
	var err error
	c.cq, err = c.dev.CreateCQ(2*slots, func() {})
	s.must(err)
	c.qp, err = id.CreateQP(verbs.QPInitAttr{SendCQ: c.cq, RecvCQ: c.cq, MaxSendWR: slots, MaxRecvWR: slots})
	s.must(err)
	c.mr, err = c.dev.Alloc(slots*slotSize, verbs.LocalWrite)
	s.must(err)
	for i := range slots {
		c.post(uint64(i))
	}
	s.conns = append(s.conns, c)
	return c
}

// post posts a receive. EINVAL: the queue pair is over, and its earlier receives are flushed.
func (c *conn) post(slot uint64) {
	c.s.Helper()
	sge := verbs.SGE{MR: c.mr, Offset: uint32(slot * slotSize), Length: slotSize}
	err := c.qp.PostRecv(verbs.RecvWR{ID: slot, SGE: sge})
	if errors.Is(err, unix.EINVAL) {
		return
	}
	c.s.must(err)
	c.posted++
}

// talk sends until there are n sends more than messages that have come: if both ends do so neither
// runs out of receives.
func (c *conn) talk(n int) {
	c.s.Helper()
	for ; c.failures == 0 && c.issued < c.received+n; c.issued++ {
		err := c.qp.PostSend(&verbs.SendWR{ID: slots, Op: verbs.Send, Flags: verbs.Signaled, Inline: []byte("fault")})
		if errors.Is(err, unix.EINVAL) {
			return // it is over
		}
		c.s.must(err)
	}
}

// poll takes completions, and posts receives again.
func (c *conn) poll() (came bool) {
	if c.cq == nil {
		return false
	}
	wc := make([]verbs.WC, 2*slots)
	n := c.cq.Poll(wc)
	for _, w := range wc[:n] {
		switch {
		case w.Status != verbs.StatusSuccess:
			c.failures++
		case w.ID == slots:
			c.sent++
		default:
			c.received++
			c.post(w.ID)
		}
	}
	return n > 0
}

// flushed reports whether all that was posted has completed.
func (c *conn) flushed() bool { return c.failures == c.posted-c.received+c.issued-c.sent }

// free releases the queues: the queue pair has gone with its identifier.
func (c *conn) free() {
	c.s.Helper()
	if c.cq == nil {
		return
	}
	c.s.must(c.qp.Destroy())
	c.s.must(c.dev.Free(c.mr))
	c.s.must(c.cq.Close())
	c.cq = nil
}

// process is this test binary once more, in the role of a peer.
type process struct {
	*testing.T
	cmd      *exec.Cmd
	lines    *bufio.Scanner
	patience time.Duration // the wait for its end
}

// startProcess starts TestFaultProcess in a role.
func startProcess(t *testing.T, role string, env ...string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command("/proc/self/exe", "-test.run=^TestFaultProcess$"), patience: faultPrompt}
	p.cmd.Env = append(append(os.Environ(), "FAULT_ROLE="+role), env...)
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	t.Cleanup(func() { p.kill() })
	return p
}

// hears waits until the process prints a line that begins with word, and returns the rest.
func (p *process) hears(word string) string {
	p.Helper()
	for p.lines.Scan() {
		if rest, ok := strings.CutPrefix(p.lines.Text(), "fault: "+word); ok {
			return strings.TrimSpace(rest)
		}
		p.Logf("the other process: %s", p.lines.Text())
	}
	p.Fatalf("the other process has not said %q", word)
	return ""
}

// kill does kill -9, and returns when the kernel has let the process go.
func (p *process) kill() {
	p.Helper()
	p.shoot()
	p.ends()
}

// shoot does kill -9.
func (p *process) shoot() { _ = p.cmd.Process.Signal(syscall.SIGKILL) }

// ends waits for the end of a process that was shot: first the kernel ends all that it had.
func (p *process) ends() {
	p.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	begin := time.Now()
	_ = p.cmd.Wait()
	if took := time.Since(begin); took > p.patience {
		p.Errorf("the kernel needed %v to end a process that was killed", took)
	}
}

// say prints a line for hears.
func say(words ...any) { fmt.Println(append([]any{"fault:"}, words...)...) }

// leavesNothing checks, when the test has ended, that nothing of it is left in the kernel and in
// the process.
func leavesNothing(t *testing.T) {
	t.Helper()
	leak.Files(t)
	goroutines, kernel := runtime.NumGoroutine(), kernelHas(t)
	t.Cleanup(func() {
		wantKernelHas(t, kernel)
		for deadline := time.Now().Add(faultPatience); runtime.NumGoroutine() > goroutines; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<16)
				t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), goroutines, stacks[:runtime.Stack(stacks, true)])
				return
			}
		}
	})
}

// kernelHas counts, by kind, the things that the kernel has of the device. rdma(8) lists of many
// things only some, but counts them all.
func kernelHas(t *testing.T) map[string]int {
	t.Helper()
	out, err := exec.Command("rdma", "resource", "show").CombinedOutput()
	if err != nil {
		t.Fatalf("rdma resource show: %v: %s", err, out)
	}
	has := make(map[string]int)
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line) // 0: rxe0: pd 1 cq 1 ...
		if len(words) < 2 || words[1] != env(t, "RDMA_DEVICE")+":" {
			continue
		}
		for i := 2; i+1 < len(words); i += 2 {
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				t.Fatalf("rdma resource show says %q", line)
			}
			has[words[i]] = n
		}
	}
	return has
}

// wantKernelHas waits until the kernel has no more objects than before: it releases some a moment
// after it has confirmed that, and some of before may be the test's.
func wantKernelHas(t *testing.T, before map[string]int) {
	t.Helper()
	for deadline := time.Now().Add(faultPatience); ; time.Sleep(50 * time.Millisecond) {
		now := kernelHas(t)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(now)), func(kind string) bool { return now[kind] > before[kind] }) {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("the kernel has %v, and before %v", now, before)
			return
		}
	}
}
