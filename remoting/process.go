package remoting

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/rdmactor/rdmactor/eventloop"
	"github.com/rdmactor/rdmactor/internal/plain"
	"github.com/rdmactor/rdmactor/remoting/internal/frame"
	"github.com/rdmactor/rdmactor/remoting/internal/outbox"
	"github.com/rdmactor/rdmactor/remoting/internal/tables"
)

// process is what every PID of one foreign address stands for. A PID keeps its process forever, so
// there is one for each address, and it outlives connections and peers.
type process struct {
	roster *roster
	addr   string
	peer   atomic.Pointer[peer]
}

var _ actor.Process = (*process)(nil)

// openPeer returns the peer that takes messages for the address, and makes it if there is none.
func (p *process) openPeer() (*peer, error) {
	if p.roster.down.Load() {
		return nil, ErrShutdown
	}
	if to := p.peer.Load(); to != nil && !to.over.Load() {
		return to, nil
	}
	to, err := p.roster.openPeer(p.addr)
	if err == nil {
		p.peer.Store(to)
	}
	return to, err
}

// currentPeer returns the peer at the address; nil: there is none.
func (p *process) currentPeer() *peer {
	if to := p.peer.Load(); to != nil && !to.over.Load() {
		return to
	}
	to := p.roster.findPeer(nodeID(p.addr))
	if to != nil {
		p.peer.Store(to)
	}
	return to
}

// SendUserMessage encodes a message and queues it for the peer, on the sender's goroutine.
func (p *process) SendUserMessage(target *actor.PID, message any) {
	header, msg, sender := actor.UnwrapEnvelope(message)
	m := outgoing{target: target, header: header, msg: msg, sender: sender}
	n := p.roster
	m.future = n.futureOf(sender)
	buf := outbox.GetBuffer()
	defer buf.Put()
	r := frame.Record{
		Kind: frame.KindUser, Target: target.Id, TargetRequest: target.RequestId, Sender: n.wirePID(sender), Header: headerPairs(header),
	}
	var err error
	if r.Type, buf.B, err = n.encodeMessage(buf.B, msg); err != nil {
		n.rejectMessage(&m, err)
		return
	}
	r.Body = buf.B
	p.sendMessage(&r, &m)
}

// sendMessage queues an encoded message, or applies the policy.
func (p *process) sendMessage(r *frame.Record, m *outgoing) {
	for {
		to, err := p.openPeer()
		if to != m.room {
			m.giveBack()
		}
		if err != nil {
			p.roster.rejectMessage(m, err)
			return
		}
		switch v, err := to.queueMessage(r, m); v {
		case accepted:
			return
		case refused:
			p.roster.rejectMessage(m, err)
			return
		case full:
			if !to.applyOverflow(r, m) {
				return
			}
		case elsewhere:
		}
	}
}

// applyOverflow applies the policy to a message that finds no room. True: it is to be tried again.
func (p *peer) applyOverflow(r *frame.Record, m *outgoing) (again bool) {
	h := p.host
	policy := h.cfg.Overflow
	if policy == Block && eventloop.MayWait() == nil {
		p.awaitRoom(r.Target, r.Size(), m)
		return true
	}
	p.mu.Lock()
	p.counts.Overflowed++
	p.mu.Unlock()
	if policy == DeadLetter || m.sender == nil || !h.isLocal(m.sender.Address) {
		h.deadLetter(m)
		return false
	}
	no := &Refused{Target: m.target, Sender: m.sender, By: h.name, Err: ErrQueueFull}
	if m.future != nil {
		h.answerFuture(&tables.Request{Future: m.sender, Process: m.future}, no, 0)
	} else {
		h.sys.Root.Send(m.sender, no)
	}
	return false
}

// encodeMessage encodes a message behind dst. The codec may be the user's, and panic.
func (h *host) encodeMessage(dst []byte, msg any) (name string, out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			out, err = dst, fmt.Errorf("%w: %T: the codec has panicked: %v", ErrEncode, msg, v)
		}
	}()
	if msg == nil {
		return "", dst, fmt.Errorf("%w: it is nil", ErrEncode)
	}
	if name, out, err = h.cfg.Codec.Append(dst, msg); err != nil {
		return "", dst, fmt.Errorf("%w: %w", ErrEncode, err)
	}
	return name, out, nil
}

// rejectMessage makes an unsent message a dead letter, and publishes the reason.
func (h *host) rejectMessage(m *outgoing, err error) {
	if !errors.Is(err, ErrShutdown) {
		h.rt.Logger().Warn("remoting: a message was not sent", "target", plain.Quote(m.target.Id), "peer", plain.Quote(m.target.Address), "type", fmt.Sprintf("%T", m.msg), "err", err)
	}
	h.sys.EventStream.Publish(&Refused{Target: m.target, Sender: m.sender, By: h.name, Err: err})
	h.deadLetter(m)
}

// deadLetter makes a message a dead letter of this actor system: its sender, also a future, is
// notified.
func (h *host) deadLetter(m *outgoing) {
	h.sys.DeadLetter.SendUserMessage(m.target, &actor.MessageEnvelope{Message: m.msg, Sender: m.sender})
}

// headerPairs returns a header as a frame has it, in an order that does not depend on the map's.
func headerPairs(h actor.ReadonlyMessageHeader) []frame.Pair {
	if h == nil || h.Length() == 0 {
		return nil
	}
	list := make([]frame.Pair, 0, h.Length())
	for _, key := range h.Keys() {
		list = append(list, frame.Pair{Key: key, Value: h.Get(key)})
	}
	slices.SortFunc(list, func(a, b frame.Pair) int {
		switch {
		case a.Key < b.Key:
			return -1
		case a.Key > b.Key:
			return 1
		}
		return 0
	})
	return list
}
