package remoting

import (
	"errors"
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/ring"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
)

// receiving is the half of a link that takes what the peer sends. It belongs to the loop.
type receiving struct {
	busy    bool // the link is in Receive
	names   frame.Names
	rec     frame.Record
	targets map[string]*target
	last    *target // of the message before
	senders map[frame.PID]*actor.PID
	// of the names of targets, and of senders
	targetBytes, senderBytes int
	unread                   ring.Ring[unread] // oldest first
}

// unread is a frame that waits, retained, until the inbox is full no more. Its messages are not
// decoded before: that would need more memory than the frame has.
type unread struct {
	m    *rdma.Received
	d    frame.Reader // of what is left
	next bool         // the record that was read last is to be judged first
}

// remembered is how many targets, and how many senders, a link remembers, and rememberedBytes how
// many bytes their names may have.
const (
	remembered      = 4096
	rememberedBytes = 256 << 10
)

// target is an actor of this node that the peer has named.
type target struct {
	pid     *actor.PID
	exposed accesses // by Expose and Allow ...
	asked   accesses // ... which were asked about these
	version uint64   // of the rules that were asked
}

// forget forgets what a connection has named, and what was found out about that.
func (in *receiving) forget() { in.targets, in.last, in.senders = nil, nil, nil }

// remember counts the bytes of a name. True: what was remembered is to be forgotten before.
func remember(sum *int, name, count int) (forget bool) {
	forget = count == 0 || count >= remembered || *sum+name > rememberedBytes
	if forget {
		*sum = 0
	}
	*sum += name
	return forget
}

// drop gives back the frames that were not read: their connection has ended.
func (in *receiving) drop() {
	for in.unread.Len() > 0 {
		in.unread.Pop().m.Release()
	}
}

// received takes a frame.
func (l *link) received(ctx actor.Context, m *rdma.Received) {
	switch l.greeting {
	case open:
		f := l.frame(m)
		if l.in.unread.Len() > 0 {
			m.Retain()
			l.in.unread.Push(f)
			return
		}
		l.read(ctx, f)
	case absent, refusing:
	default:
		l.greet(ctx, m)
	}
}

// frame is a frame of which nothing was read.
func (l *link) frame(m *rdma.Received) unread {
	return unread{m: m, d: frame.NewReader(m.Data, &l.in.names)}
}

// read takes the records of a frame, until there is a message for an inbox that is full.
func (l *link) read(ctx actor.Context, f unread) {
	l.inbox.Begin()
	for l.greeting == open {
		if !f.next {
			ok, err := f.d.Next(&l.in.rec)
			if err != nil {
				l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: %w", ErrProtocol, err))
				return
			}
			if !ok {
				return
			}
		}
		if f.next = l.inbox.Full() && l.in.rec.Kind == frame.KindUser && !isFuture(l.in.rec.Target); f.next {
			f.m.Retain()
			l.in.unread.PushFront(f)
			return
		}
		l.record(ctx, &l.in.rec, f.m)
	}
}

// readOn reads the frames that wait, as far as there is room for what they have.
func (l *link) readOn(ctx actor.Context) {
	for l.in.unread.Len() > 0 && !l.inbox.Full() {
		l.readNext(ctx)
	}
}

func (l *link) readNext(ctx actor.Context) {
	f := l.in.unread.Pop()
	defer f.m.Release()
	l.read(ctx, f)
}

func (l *link) record(ctx actor.Context, r *frame.Record, m *rdma.Received) {
	switch r.Kind {
	case frame.KindUser:
		l.user(ctx, r, m)
	case frame.KindWatch:
		l.watchedBy(ctx, r)
	case frame.KindUnwatch:
		l.unwatchedBy(r)
	case frame.KindTerminated:
		l.terminatedThere(r)
	case frame.KindStop:
		l.stop(ctx, r)
	case frame.KindSpawn:
		l.spawn(ctx, r)
	case frame.KindSpawned:
		l.answerSpawn(r)
	case frame.KindRefused:
		l.refusedThere(ctx, r)
	case frame.KindGoodbye:
		l.goodbyeFrom(ctx, r)
	default:
		l.breakOff(ctx, frame.GoodbyeBadFrame, fmt.Errorf("%w: %v on an open link", ErrProtocol, r.Kind))
	}
}

// user delivers a message.
func (l *link) user(ctx actor.Context, r *frame.Record, m *rdma.Received) {
	l.p.received.Add(1)
	if isFuture(r.Target) {
		l.answer(ctx, r)
		return
	}
	t := l.target(r.Target)
	if err := l.may(t, Reach); err != nil {
		l.refuseRecord(ctx, r, frame.RefusedDenied, err)
		return
	}
	if err := l.mayAnswer(&r.Sender); err != nil {
		l.refuseRecord(ctx, r, frame.RefusedDenied, err)
		return
	}
	msg, code, err := l.decode(r)
	if err == nil {
		code, err = l.acceptable(t, msg)
	}
	if err != nil {
		l.refuseRecord(ctx, r, code, err)
		return
	}
	if err := l.maySay(r.Sender.Address); err != nil {
		l.refuseRecord(ctx, r, frame.RefusedDenied, err)
		return
	}
	l.inbox.Deliver(t.pid, l.envelope(r, msg), weight(r), m)
}

// pairBytes is what a pair of a header costs besides its bytes.
const pairBytes = 64

// weight is how many bytes a message counts as while its target has not consumed it. Its body is
// not all that is kept.
func weight(r *frame.Record) int {
	n := len(r.Target) + len(r.Sender.ID) + len(r.Sender.Address) + len(r.Body)
	for _, p := range r.Header {
		n += pairBytes + len(p.Key) + len(p.Value)
	}
	return n
}

// fromFuture is a message whose sender is a future of the peer's.
type fromFuture struct {
	actor.MessageEnvelope
	sender actor.PID
}

// envelope is a message with its sender and header, if it has any.
func (l *link) envelope(r *frame.Record, msg any) any {
	switch {
	case r.Sender.ID == "" && len(r.Header) == 0:
		return msg
	case r.Sender.Address == "" && isFuture(r.Sender.ID):
		m := &fromFuture{MessageEnvelope: actor.MessageEnvelope{Header: header(r.Header), Message: msg}}
		m.sender.Address, m.sender.Id, m.sender.RequestId = l.who.Name, r.Sender.ID, r.Sender.Request
		m.Sender = &m.sender
		return &m.MessageEnvelope
	}
	return &actor.MessageEnvelope{Header: header(r.Header), Message: msg, Sender: l.sender(&r.Sender)}
}

// future takes a future of this node, or finds it, if the peer has its token: the peer was asked,
// or a node that was asked has forwarded the request to it.
func (l *link) future(id string, token uint32, take func(f *futures, id string, token uint32) (request, bool)) (r request, ok bool) {
	p := l.p
	if !strings.HasPrefix(id, p.futures.prefix) {
		if p = l.n.asker(id); p == nil {
			return r, false
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return take(&p.futures, id, token)
}

// answer gives a future of this node what it waits for, once.
func (l *link) answer(ctx actor.Context, r *frame.Record) {
	p := l.p
	f, ok := l.future(r.Target, r.TargetRequest, (*futures).take)
	if !ok {
		p.mu.Lock()
		p.counts.Late++
		p.mu.Unlock()
		return
	}
	msg, _, err := l.decode(r)
	if err == nil && !ordinary(msg) {
		err = fmt.Errorf("%w: a %T is no answer", ErrDecode, msg)
	}
	if err != nil {
		no := &Refused{Target: f.future, By: l.n.name, Err: err}
		l.notify(ctx, no)
		l.n.answer(&f, no, 0)
		return
	}
	if !l.n.answer(&f, msg, r.Size()) {
		p.mu.Lock()
		p.counts.Late++
		p.mu.Unlock()
		return
	}
	l.local.Woke()
}

// ordinary reports whether a message is one that actors send each other.
func ordinary(msg any) bool {
	switch msg.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.MessageEnvelope:
		return false
	}
	return true
}

// acceptable judges a message that was decoded: a PoisonPill is a stop, and what Proto.Actor sends
// by itself has kinds of records of its own. A batch is the user's, and may panic.
func (l *link) acceptable(t *target, msg any) (code frame.Code, err error) {
	defer func() {
		if v := recover(); v != nil {
			code, err = frame.RefusedUndecodable, fmt.Errorf("%w: a %T has panicked: %v", ErrDecode, msg, v)
		}
	}()
	if _, ok := msg.(*actor.PoisonPill); ok {
		return frame.RefusedDenied, l.may(t, Stop)
	}
	if !ordinary(msg) {
		return frame.RefusedUndecodable, fmt.Errorf("%w: a %T is no message for an actor", ErrDecode, msg)
	}
	if batch, ok := msg.(actor.MessageBatch); ok { // an actor gets each of them
		for _, m := range batch.GetMessages() {
			if code, err := l.acceptable(t, m); err != nil {
				return code, err
			}
		}
	}
	return 0, nil
}

// decode decodes a message. The codec may be the user's, and panic.
func (l *link) decode(r *frame.Record) (msg any, code frame.Code, err error) {
	defer func() {
		if v := recover(); v != nil {
			msg, code, err = nil, frame.RefusedUndecodable, fmt.Errorf("%w: %s: the codec has panicked: %v", ErrDecode, r.Type, v)
		}
	}()
	msg, err = l.n.cfg.Codec.Decode(r.Type, r.Body)
	switch {
	case errors.Is(err, codec.ErrUnknownType):
		return nil, frame.RefusedUnknownType, fmt.Errorf("%w: %w", ErrDecode, err)
	case err != nil:
		return nil, frame.RefusedUndecodable, fmt.Errorf("%w: %w", ErrDecode, err)
	case msg == nil:
		return nil, frame.RefusedUndecodable, fmt.Errorf("%w: %s: the codec gives nothing", ErrDecode, r.Type)
	}
	return msg, 0, nil
}

// target is the actor of that name.
func (l *link) target(id string) *target {
	version := l.n.rules.Load().version
	t := l.in.last // most often a message is for the same actor as the one before
	if t == nil || t.pid.Id != id {
		t = l.in.targets[id]
	}
	if t != nil {
		if t.version != version {
			t.version, t.asked, t.exposed = version, 0, 0
		}
		l.in.last = t
		return t
	}
	if remember(&l.in.targetBytes, len(id), len(l.in.targets)) {
		l.in.targets = make(map[string]*target)
	}
	t = &target{pid: actor.NewPID(l.n.name, id), version: version}
	l.in.targets[id], l.in.last = t, t
	return t
}

// may returns nil if the peer may do that.
func (l *link) may(t *target, a Access) error {
	if t.asked&a.bit() == 0 {
		t.asked |= a.bit()
		if l.exposed(a, t.pid.Id) {
			t.exposed |= a.bit()
		}
	}
	if t.exposed&a.bit() != 0 || l.granted(t.pid.Id, a) {
		return nil
	}
	return ErrDenied
}

// mayAnswer returns nil if the peer may send a message of that sender. Who answers it sends to its
// sender. If that is of this node, the peer has to be one that may do so itself.
func (l *link) mayAnswer(s *frame.PID) error {
	if s.Address == "" || !l.n.local(s.Address) {
		return nil
	}
	if isFuture(s.ID) {
		if _, ok := l.future(s.ID, s.Request, (*futures).find); ok {
			return nil
		}
	} else if l.may(l.target(s.ID), Reach) == nil {
		return nil
	}
	return fmt.Errorf("the sender is %s of this node: %w", s.ID, ErrDenied)
}

// exposed asks Expose, and then Config.Allow.
func (l *link) exposed(a Access, name string) bool {
	return !never(name) && l.n.rules.Load().allow(a, name) && l.allowed(a, name)
}

// allowed asks Config.Allow, which is the user's.
func (l *link) allowed(a Access, name string) (ok bool) {
	if l.n.cfg.Allow == nil {
		return true
	}
	defer func() {
		if v := recover(); v != nil {
			l.n.rt.Logger().Error("remoting: Allow has panicked", "panic", v)
			ok = false
		}
	}()
	l.local.Do(allowTask, func() { ok = l.n.cfg.Allow(l.who, a, name) == nil })
	return ok
}

var allowTask = rdma.NewTask("remoting.Config.Allow")

// granted reports whether an actor that has sent the peer something is still that actor.
func (l *link) granted(id string, a Access) bool {
	proc, ok := l.n.sys.ProcessRegistry.GetLocal(id)
	if !ok {
		return false
	}
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.grants.has(id, proc, a.bit())
}

// sender is a sender as a PID. Those of actors are kept, those of futures come once.
func (l *link) sender(s *frame.PID) *actor.PID {
	if s.ID == "" {
		return nil
	}
	future := isFuture(s.ID)
	switch {
	case !future:
		if pid := l.in.senders[*s]; pid != nil {
			return pid
		}
	case s.Address != "" && l.n.local(s.Address): // of this node, and comes back
		if r, ok := l.future(s.ID, s.Request, (*futures).find); ok {
			return r.future
		}
	}
	pid := &actor.PID{Address: s.Address, Id: s.ID, RequestId: s.Request}
	if pid.Address == "" {
		pid.Address = l.who.Name
	}
	if !future {
		if remember(&l.in.senderBytes, len(s.ID)+len(s.Address), len(l.in.senders)) {
			l.in.senders = make(map[frame.PID]*actor.PID)
		}
		l.in.senders[*s] = pid
	}
	return pid
}

func header(list []frame.Pair) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.Key] = p.Value
	}
	return m
}
