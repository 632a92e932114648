package mailbox

import (
	"testing"

	"github.com/asynkron/protoactor-go/actor"
)

// lent is a message with a reference to release.
type lent struct{ given int }

func (m *lent) Retain()             {}
func (m *lent) Delivered()          {}
func (m *lent) Release(*Loop) error { m.given++; return nil }

// An event that is delivered behind a message at which the actor fails is still received, and its
// reference released: it may be the last event of its sender, or have a receive buffer.
func TestDeliverOwnedBehindFailure(t *testing.T) {
	for name, leave := range leavings {
		for lane, older := range map[string]any{"event": &event{1}, "lifecycle": &actor.Terminated{}} {
			t.Run(name+" at "+lane, func(t *testing.T) {
				hand := &byHand{}
				m, s := started(hand, config)
				s.onMessage = func(msg any) {
					if msg == older {
						leave()
					}
				}
				if lane == "event" {
					m.PostUserMessage(older)
				} else {
					m.PostSystemMessage(older)
				}
				late := &lent{}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					m.DeliverOwned(late, late)
				}()
				<-ended
				m.PostSystemMessage(&actor.ResumeMailbox{})
				hand.run()
				if len(s.got) != 2 || s.got[1] != any(late) || late.given != 1 {
					t.Errorf("the actor got %v, and the message was given back %d times", s.got, late.given)
				}
			})
		}
	}
}
