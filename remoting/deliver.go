package remoting

import (
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/codec"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// handleUser delivers a user message. nil: the connection goes on.
func (in *receiving) handleUser(ctx actor.Context, r *frame.Record, m *rdma.Received) *parting {
	in.p.received.Add(1)
	if !tables.IsFuture(r.Target) {
		return in.deliverMessage(ctx, r, m)
	}
	if !in.answerFuture(ctx, r) {
		return in.noteWrongToken(r.Target, r.TargetRequest)
	}
	return nil
}

// wrongAnswers is how many times a second a peer may name a request to another peer by neither the
// token of a request that waits nor of one that has waited lately, with bursts of four times as
// many. A peer that guesses tokens has more. One whose answers are late has hardly any, however
// many were forwarded to it.
const wrongAnswers = 16

// noteWrongToken takes note that the peer has named a future that does not wait, as the target of
// an answer, or as the sender of a message that would be answered. nil: the connection goes on.
func (in *receiving) noteWrongToken(id string, token uint32) *parting {
	in.turn.spent += otherCost
	if !in.isGuess(id, token) || in.wrong.Take(struct{}{}, wrongAnswers, in.local.Now()) {
		return nil
	}
	return &parting{code: frame.GoodbyeBadFrame, err: fmt.Errorf("%w: too many answers for futures that do not wait", ErrProtocol)}
}

// isGuess reports whether a token that no future has may be a guess.
func (in *receiving) isGuess(id string, token uint32) bool {
	if in.p.futures.Has(id) {
		return false
	}
	p := in.roster.findAsker(id)
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.futures.Late(id, token)
}

// deliverMessage delivers a message. nil: the connection goes on.
func (in *receiving) deliverMessage(ctx actor.Context, r *frame.Record, m *rdma.Received) *parting {
	t := in.targetOf(r.Target)
	if err := in.checkAccess(t, Reach); err != nil {
		in.refuseRecord(ctx, r, frame.RefusedDenied, err)
		return nil
	}
	if err := in.checkSender(&r.Sender); err != nil {
		in.refuseRecord(ctx, r, frame.RefusedDenied, err)
		if tables.IsFuture(r.Sender.ID) {
			return in.noteWrongToken(r.Sender.ID, r.Sender.Request)
		}
		return nil
	}
	msg, code, err := in.decodeMessage(r)
	if err == nil {
		code, err = in.checkMessage(t, msg)
	}
	if err != nil {
		in.refuseRecord(ctx, r, code, err)
		return nil
	}
	if err := in.checkSenderNode(r.Sender.Address); err != nil {
		in.refuseRecord(ctx, r, frame.RefusedDenied, err)
		return nil
	}
	if in.inbox.Full() { // its target has little: it does not stop the peer
		m = nil
	}
	in.inbox.Deliver(t.pid, in.wrapEnvelope(r, msg), countedBytes(r), m)
	return nil
}

// pairBytes is the cost of a header's pair besides its bytes.
const pairBytes = 64

// countedBytes returns the bytes that a message counts as while its target has not consumed it. Its
// body is not all that is kept.
func countedBytes(r *frame.Record) int {
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

// wrapEnvelope returns a message with its sender and header, if it has any.
func (in *receiving) wrapEnvelope(r *frame.Record, msg any) any {
	switch {
	case r.Sender.ID == "" && len(r.Header) == 0:
		return msg
	case r.Sender.Address == "" && tables.IsFuture(r.Sender.ID):
		m := &fromFuture{MessageEnvelope: actor.MessageEnvelope{Header: headerMap(r.Header), Message: msg}}
		m.sender.Address, m.sender.Id, m.sender.RequestId = in.who.Name, r.Sender.ID, r.Sender.Request
		m.Sender = &m.sender
		return &m.MessageEnvelope
	}
	return &actor.MessageEnvelope{Header: headerMap(r.Header), Message: msg, Sender: in.senderPID(&r.Sender)}
}

func headerMap(list []frame.Pair) map[string]string {
	if len(list) == 0 {
		return nil
	}
	m := make(map[string]string, len(list))
	for _, p := range list {
		m[p.Key] = p.Value
	}
	return m
}

// answerFuture passes an answer to a future of this node, once. False: it does not wait, or the
// token is wrong.
func (in *receiving) answerFuture(ctx actor.Context, r *frame.Record) (waited bool) {
	p := in.p
	f, ok := in.findFuture(r.Target, r.TargetRequest, (*tables.Futures).Take)
	if !ok {
		p.mu.Lock()
		p.counts.Late++
		p.mu.Unlock()
		return false
	}
	msg, _, err := in.decodeMessage(r)
	if err == nil && !isOrdinary(msg) {
		err = fmt.Errorf("%w: a %T is no answer", ErrDecode, msg)
	}
	if err != nil {
		no := &Refused{Target: f.Future, By: in.host.name, Err: err}
		in.report.publishEvent(ctx, no)
		in.host.answerFuture(&f, no, 0)
		return true
	}
	if !in.host.answerFuture(&f, msg, r.Size()) {
		p.mu.Lock()
		p.counts.Late++
		p.mu.Unlock()
		return true
	}
	in.local.Woke()
	return true
}

// isOrdinary reports whether a message is one that actors send each other.
func isOrdinary(msg any) bool {
	switch msg.(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.MessageEnvelope:
		return false
	}
	return true
}

// checkMessage judges a message that was decoded: a PoisonPill is a stop, and Proto.Actor's system
// messages have separate kinds of records. A batch is the user's, and may panic.
func (in *receiving) checkMessage(t *target, msg any) (code frame.Code, err error) {
	defer func() {
		if v := recover(); v != nil {
			code, err = frame.RefusedUndecodable, fmt.Errorf("%w: a %T has panicked: %v", ErrDecode, msg, v)
		}
	}()
	if _, ok := msg.(*actor.PoisonPill); ok {
		return frame.RefusedDenied, in.checkAccess(t, Stop)
	}
	if !isOrdinary(msg) {
		return frame.RefusedUndecodable, fmt.Errorf("%w: a %T is no message for an actor", ErrDecode, msg)
	}
	if batch, ok := msg.(actor.MessageBatch); ok { // an actor gets each of them
		for _, m := range batch.GetMessages() {
			if code, err := in.checkMessage(t, m); err != nil {
				return code, err
			}
		}
	}
	return 0, nil
}

// decodeMessage decodes a message. The codec may be the user's, and panic.
func (in *receiving) decodeMessage(r *frame.Record) (msg any, code frame.Code, err error) {
	defer func() {
		if v := recover(); v != nil {
			msg, code, err = nil, frame.RefusedUndecodable, fmt.Errorf("%w: %s: the codec has panicked: %v", ErrDecode, plain.Quote(r.Type), v)
		}
	}()
	msg, err = in.host.cfg.Codec.Decode(r.Type, r.Body)
	switch {
	case errors.Is(err, codec.ErrUnknownType):
		return nil, frame.RefusedUnknownType, fmt.Errorf("%w: %w", ErrDecode, err)
	case err != nil:
		return nil, frame.RefusedUndecodable, fmt.Errorf("%w: %w", ErrDecode, err)
	case msg == nil:
		return nil, frame.RefusedUndecodable, fmt.Errorf("%w: %s: the codec gives nothing", ErrDecode, plain.Quote(r.Type))
	}
	return msg, 0, nil
}
