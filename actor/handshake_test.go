package actor

import (
	"errors"
	"log/slog"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/actor/internal/handshakes"
	"github.com/rdmactor/rdmactor/actor/internal/overwrite"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
	"github.com/rdmactor/rdmactor/actor/internal/wire"
	"github.com/rdmactor/rdmactor/cmid"
)

// handshakeRecord is a handshake's owner that records its calls.
type handshakeRecord struct {
	shaker
	listener         listening
	broken, destroys []error
}

func (r *handshakeRecord) BreakOff(err error)    { r.broken = append(r.broken, err) }
func (r *handshakeRecord) destroyID(cause error) { r.destroys = append(r.destroys, cause) }

func lone(stage handshakeStage) (*answerHandshake, *handshakeRecord) {
	r := new(handshakeRecord)
	l := &loop{rt: &Runtime{log: slog.New(slog.DiscardHandler)}}
	in := &incoming{r: new(cmid.ConnectRequest), via: &r.listener}
	l.requests.Take(in.listener)
	t := &commandTable{asked: in}
	t.l, t.id, t.cfg = l, new(cmid.ID), &IDConfig{Security: new(Security)}
	a := &answerHandshake{handshake: handshake{commandTable: t, of: r, stage: stage}, in: in}
	a.side = a
	return a, r
}

// An identifier may call these methods in any state, also without a handshake.
func TestNoHandshakeIsUnderWay(t *testing.T) {
	var h *handshake
	if h.isUnreported() || h.asDeciding() != nil || h.countFailed(FailedLost, nil) || h.countFailedBy(unix.ECONNRESET) {
		t.Error("a nil handshake is under way")
	}
	h.addTo(nil)
	h.continueTLS(nil)
	h.handleHeard()
	h.uncountStranger()
	h.failUnfinished(nil)
}

// The owner knows nothing until it decides, and the first message is taken once.
func TestHandshakeStages(t *testing.T) {
	h, _ := lone(handshakeBegun)
	for s := handshakeReplied; s < handshakeHeard; s++ {
		h.setStage(s)
		h.handleHeard()
		if !h.isUnreported() || h.asDeciding() != nil || h.stage != s {
			t.Errorf("%v: the owner or the first message is known", s)
		}
	}
	h.setStage(handshakeHeard)
	if h.handleHeard(); h.stage != handshakeKnown {
		t.Errorf("%v after the first message was taken", h.stage)
	}
	h.handleHeard() // setStage would panic
	h.setStage(handshakeDeciding)
	if h.isUnreported() || h.asDeciding() != h {
		t.Error("the owner does not decide")
	}
	if !overwrite.On {
		return
	}
	defer func() {
		if recover() == nil {
			t.Error("a handshake has gone back")
		}
	}()
	h.setStage(handshakeProved)
}

// A handshake counts as completed or as failed, once.
func TestHandshakeCountsOnce(t *testing.T) {
	var of Handshakes
	h, _ := lone(handshakeBegun)
	h.countBegun(&of, "begun")
	h.countCompleted("completed")
	h.failUnfinished(nil)
	if of.Begun != 1 || of.Completed != 1 || of.AllFailed() != 0 {
		t.Errorf("completed: %+v", of)
	}
	h.countBegun(&of, "begun")
	h.failUnfinished(unix.ETIMEDOUT)
	if h.countFailed(FailedLost, nil) || of.Failed[FailedTimedOut] != 1 || of.AllFailed() != 1 {
		t.Errorf("failed: %+v", of)
	}
}

// A handshake gives way until the peer's first message has come.
func TestHandshakeGivesWay(t *testing.T) {
	for s := handshakeBegun; s <= handshakeDeciding; s++ {
		h, r := lone(s)
		h.giveWay()
		if gave := len(r.destroys) == 1; gave != (s < handshakeHeard) || gave && !errors.Is(r.destroys[0], errCrowded) {
			t.Errorf("%v: %v", s, r.destroys)
		}
	}
}

// A message that is too early or too late for the handshake breaks the connection off.
func TestHandshakeTakesNothingOutOfTurn(t *testing.T) {
	h, r := lone(handshakeReplied) // of TLS mode, or without a key
	if _, _, err := h.Prove(nil); err == nil || r.listener.listenerInfo().Refused != (Refused{}) {
		t.Errorf("without a key: %v, %+v", err, r.listener.listenerInfo())
	}
	h.server = new(secure.PSKServer)
	for _, s := range []handshakeStage{handshakeBegun, handshakeProved} {
		h.stage = s
		if _, _, err := h.Prove(nil); !errors.As(err, new(*wire.ProtocolError)) {
			t.Errorf("a message to a handshake that is %v: %v", s, err)
		}
	}
	h.Frame(nil)
	h.tls = new(handshakes.TLS)
	h.Frame(nil)
	if len(r.broken) != 2 {
		t.Errorf("frames: %v", r.broken)
	}
	h.stage = handshakeReplied
	h.Frame(secure.InternalAlert())
	if len(r.broken) != 3 || r.listener.listenerInfo().Refused != (Refused{Unauthenticated: 1}) || h.who != "" {
		t.Errorf("an alert: %v, %+v", r.broken, r.listener.listenerInfo())
	}
}
