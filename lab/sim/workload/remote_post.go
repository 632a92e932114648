package workload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/lab/sim/oracle"
	"github.com/rdmactor/rdmactor/remoting"
)

// remotePost is a message.
type remotePost struct {
	*oracle.Post
	op        *postOp
	forwarded bool
	answers   *remotePost // the post that it answers
}

// oddMessage is one that not all codecs accept.
type oddMessage struct {
	origin byte // the machine
	bytes  []byte
}

// The types of oddMessage, by their oddity.
type (
	panicsMessage   struct{ oddMessage }
	unknownMessage  struct{ oddMessage }
	undecodeMessage struct{ oddMessage }
)

// MarshalJSON implements json.Marshaler.
func (*panicsMessage) MarshalJSON() ([]byte, error) { panic(errPlanned) }

// newCodec creates the node's codec.
func (me *remoteNode) newCodec() codec.Codec {
	own := byte(me.machine)
	all := []codec.Type{
		codec.JSON[*panicsMessage]("sim.Panics"),
		codec.Own("sim.Undecode",
			func(dst []byte, m *undecodeMessage) ([]byte, error) {
				return append(append(dst, m.origin), m.bytes...), nil
			},
			func(b []byte) (*undecodeMessage, error) {
				if len(b) == 0 || b[0] != own {
					return nil, errPlanned
				}
				return &undecodeMessage{oddMessage{origin: own, bytes: append([]byte(nil), b[1:]...)}}, nil
			}),
	}
	if me.alien {
		all = append(all, codec.Own("sim.Unknown",
			func(dst []byte, m *unknownMessage) ([]byte, error) { return append(dst, m.bytes...), nil },
			func(b []byte) (*unknownMessage, error) {
				return &unknownMessage{oddMessage{bytes: append([]byte(nil), b...)}}, nil
			}))
	}
	return codec.New(all...)
}

// bytesOfLetter returns the bytes of a workload's message that has become a dead letter; nil: it is
// another one's.
func bytesOfLetter(msg any) []byte {
	switch m := msg.(type) {
	case *wrapperspb.BytesValue:
		return m.Value
	case *oddMessage:
		return m.bytes
	case *panicsMessage:
		return m.bytes
	case *unknownMessage:
		return m.bytes
	case *undecodeMessage:
		return m.bytes
	}
	return nil
}

// beginPost performs a postOp.
func (me *remoteNode) beginPost(o *postOp) {
	root := me.p.System().Root
	switch o.how {
	case sendNobody:
		for range o.n {
			me.sendPost(o, root, "")
		}
	case sendFuture:
		for range o.n {
			me.awaitAnswer(o)
		}
	default:
		root.Send(me.ownPID(o.sender), o)
	}
}

// sender is the common interface of sending actors and goroutines.
type sender interface {
	Send(pid *actor.PID, message any)
	Request(pid *actor.PID, message any)
}

// sendPost sends a message. who names the sending actor; "": there is none.
func (me *remoteNode) sendPost(o *postOp, ctx sender, who string) {
	if !me.recordEvent() {
		return
	}
	if c, ok := ctx.(actor.Context); ok && o.how == sendReenter {
		me.reenterActor(o, c, who)
		return
	}
	w, to := me.w, place{o.to, o.target}
	spec := oracle.Spec{To: w.ledgerPlace(to), Stream: who, Length: o.size, Bad: me.cannotArrive(o)}
	if who == "" {
		spec.Stream = fmt.Sprintf("goroutine %p", o)
	}
	if o.how == sendRequest || o.how.isOdd() {
		spec.Sender = who
	}
	p := me.recordPost(me.life.Submit(w.World.Now(), spec), o)
	pid, msg := me.remotePID(to), me.newMessage(p)
	switch {
	case spec.Sender != "":
		ctx.Request(pid, msg)
	case o.header && who == "":
		ctx.Send(pid, &actor.MessageEnvelope{Header: map[string]string{"who": o.sender, "and": "more"}, Message: msg})
	default:
		ctx.Send(pid, msg)
	}
	if me.cannotEncode(o) && me.recordEvent() && !p.Dead() {
		w.failWorld("%v cannot be encoded, and is no dead letter at once", p)
	}
}

// cannotEncode reports whether the node's codec fails.
func (me *remoteNode) cannotEncode(o *postOp) bool {
	return o.how == sendUncoded || o.how == sendPanics || o.how == sendUnknown && !me.alien
}

// cannotArrive reports whether a message cannot arrive.
func (me *remoteNode) cannotArrive(o *postOp) bool {
	return me.cannotEncode(o) || o.how == sendUndecode || o.how == sendUnknown && o.to%2 != 0
}

// recordPost records a post.
func (me *remoteNode) recordPost(p *oracle.Post, o *postOp) *remotePost {
	q := &remotePost{Post: p, op: o}
	me.w.posts[p.Number()] = q
	return q
}

// newMessage creates a post's message.
func (me *remoteNode) newMessage(p *remotePost) any {
	odd := oddMessage{byte(me.machine), p.Bytes()}
	switch p.op.how {
	case sendUncoded:
		return &odd
	case sendPanics:
		return &panicsMessage{odd}
	case sendUnknown:
		return &unknownMessage{odd}
	case sendUndecode:
		return &undecodeMessage{odd}
	}
	return wrapperspb.Bytes(odd.bytes)
}

// long is longer than anything takes.
const long = time.Hour

// futures make requests.
type futures interface {
	RequestFuture(pid *actor.PID, message any, timeout time.Duration) actor.Future
}

// requestAnswer sends a request, and returns its future.
func (me *remoteNode) requestAnswer(o *postOp, ctx futures, who string) (*remotePost, actor.Future) {
	w, to := me.w, place{o.to, o.target}
	p := me.recordPost(me.life.Ask(w.World.Now(), oracle.Spec{To: w.ledgerPlace(to), Stream: who, Length: o.size}), o)
	within := o.timeout
	switch {
	case within > 0:
	case me.mayBeSilent(o):
		within = 10 * time.Second
	default:
		within = long
	}
	// Proto.Actor's timers are not simulated, so no two of them end simultaneously.
	within += time.Duration(1 + p.Number())
	f := ctx.RequestFuture(me.remotePID(to), wrapperspb.Bytes(p.Bytes()), within)
	p.Asked(f.PID().Id)
	return p, f
}

// mayBeSilent reports whether the target may leave a request without an answer, or whether the
// answer may find the queue full, and become a dead letter.
func (me *remoteNode) mayBeSilent(o *postOp) bool {
	return me.w.mayOverflow(o.to, o.machine) || o.then != thenNothing && o.then != thenRetain && o.then != thenSleep || o.target != loopA
}

// awaitAnswer waits for an answer on a goroutine.
func (me *remoteNode) awaitAnswer(o *postOp) {
	if !me.recordEvent() {
		return
	}
	p, f := me.requestAnswer(o, me.p.System().Root, fmt.Sprintf("goroutine %p", o))
	me.startGoroutine(func() {
		res, err := remoting.Result(f)
		me.p.Sleep(0) // a future does not wait for its turn
		me.handleAnswer(p, res, err)
	})
}

// reenterActor continues an actor when the answer arrives.
func (me *remoteNode) reenterActor(o *postOp, ctx actor.Context, who string) {
	p, f := me.requestAnswer(o, ctx, who)
	me.asked[who] = append(me.asked[who], p)
	ctx.ReenterAfter(f, func(any, error) {
		if p.Fated() {
			return // the actor has stopped, and this is another one with its name
		}
		res, err := remoting.Result(f)
		me.handleAnswer(p, res, err)
	})
}

// handleAnswer handles the result of a future.
func (me *remoteNode) handleAnswer(p *remotePost, res any, err error) {
	w := me.w
	if !me.recordEvent() {
		return
	}
	fate := oracle.WasAnswered
	var unknown *remoting.Unknown
	var refused *remoting.Refused
	switch {
	case errors.Is(err, actor.ErrTimeout):
		fate = oracle.WasLate
	case errors.Is(err, actor.ErrDeadLetter):
		fate = oracle.WasDead
	case errors.As(err, &unknown):
		fate = oracle.WasUnsure
		if w.isUndisturbed(p.op.machine, p.op.to) {
			w.failWorld("%v: %v, and nothing has disturbed the two nodes", p, err)
		}
	case errors.As(err, &refused):
		fate = oracle.WasRefused
	case err != nil:
		w.failWorld("%v: %v", p, err)
	default:
		me.answerOf(p, res)
	}
	w.World.Trace("the future of %v has got %v", p, fate)
	p.Fate(w.World.Now(), fate)
}

// answerOf checks that a future has got its own answer.
func (me *remoteNode) answerOf(p *remotePost, res any) {
	m, ok := res.(*wrapperspb.BytesValue)
	if !ok {
		me.w.failWorld("the answer of %v is a %T", p, res)
		return
	}
	a := me.w.posts[me.recordReceived(p.Future(), m.Value)]
	if a == nil || a.answers == nil || a.answers.op != p.op || a.answers.Wire() != p.Wire() {
		me.w.failWorld("the future of %v has got the answer to %v", p, a)
	}
}

// recordReceived records a message that was received, and returns its number.
func (me *remoteNode) recordReceived(name string, b []byte) uint64 {
	p := me.life.Received(me.w.World.Now(), name, b)
	if p == nil {
		return ^uint64(0)
	}
	me.w.World.Trace("%s of %s has got %v", name, me.p.Name(), p)
	return p.Number()
}

// answerPost answers a post.
func (me *remoteNode) answerPost(ctx actor.Context, who string, p *remotePost, to oracle.Place) {
	a := me.recordPost(me.life.Submit(me.w.World.Now(), oracle.Spec{To: to, Stream: who, Length: p.op.size}), p.op)
	a.answers = p
	ctx.Respond(wrapperspb.Bytes(a.Bytes()))
}

// forwardPost forwards a post.
func (me *remoteNode) forwardPost(ctx actor.Context, who string, p *remotePost) {
	to := p.op.via
	q := me.recordPost(me.life.Forward(me.w.World.Now(), p.Post, who, me.w.ledgerPlace(to)), p.op)
	q.forwarded = true
	ctx.Forward(me.remotePID(to))
}

// handleEvent handles the node's published events.
func (me *remoteNode) handleEvent(ev any) {
	w := me.w
	now := w.World.Now()
	switch m := ev.(type) {
	case *actor.DeadLetterEvent:
		if b := bytesOfLetter(m.Message); b != nil && me.recordEvent() {
			if p := me.life.DeadLetter(now, placeOf(m.PID), b); p != nil {
				w.World.Trace("%s: a dead letter: %v", me.p.Name(), p)
			}
		}
	case *remoting.Refused: // with other causes there is also a dead letter
		denied := errors.Is(m, remoting.ErrDenied)
		if !denied && !errors.Is(m, remoting.ErrDecode) || strings.HasPrefix(m.Err.Error(), "watch: ") {
			return // a watch is not a message: the watcher is answered
		}
		if m.Target.GetId() != solid && m.By == me.name && m.Target.GetAddress() == me.name && me.recordEvent() {
			w.World.Trace("%s: %v", me.p.Name(), m)
			me.life.Refused(now, m.Target.Id, placeOf(m.Sender), denied)
		}
	case *remoting.Unreported:
		if me.recordEvent() {
			w.World.Trace("%s: %v", me.p.Name(), m)
			me.life.Gap(now, m.Peer.Name, int(m.Count))
		}
	case *remoting.Disconnected:
		if !me.recordEvent() {
			return
		}
		w.World.Trace("%s is %v", me.p.Name(), m.Peer.Name)
		me.life.Cut(now, m.Peer.Name, m.Unknown)
		if w.isUndisturbed(me.machine, w.machineOfNode(m.Peer.Name)) {
			w.failWorld("%s: %v, and nothing has disturbed the two nodes", me.p.Name(), m)
		}
	}
}

// spawnThere spawns an actor on another node, and uses it.
func (me *remoteNode) spawnThere(o *spawnOp) {
	w := me.w
	if !me.recordEvent() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second+9*time.Nanosecond)
	defer cancel()
	pid, err := me.node.Spawn(ctx, w.nodeName(o.to), o.kind, o.name)
	if !me.recordEvent() {
		return
	}
	w.World.Trace("%s: spawned: %v", me.p.Name(), err == nil)
	there := w.nodes[o.to]
	switch {
	case err == nil && there != nil:
		there.life.Grant(me.life, pid.Id)
	case err != nil && o.kind == spawnKind && o.name == "" && w.isUndisturbed(o.machine, o.to):
		w.failWorld("%s: %v, and nothing has disturbed the two nodes", me.p.Name(), err)
	}
	if err != nil {
		return
	}
	if o.kind != spawnKind {
		w.failWorld("%s: %v was spawned, and may not be", me.p.Name(), pid)
	}
	me.awaitAnswer(&postOp{start: start{machine: o.machine}, to: o.to, target: pid.Id, how: sendFuture, n: 1, size: 64, timeout: 20 * time.Second})
	switch o.then {
	case "stop":
		me.p.System().Root.Stop(pid)
	case "watch":
		me.p.System().Root.Send(me.ownPID(loopA), &watchOp{start: start{machine: o.machine}, to: o.to, target: pid.Id})
	}
}
