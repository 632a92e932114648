package remoting_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rdmactor/rdmactor/remoting"
)

// A sender that waits for room for a large message is not overtaken by a small one for which there
// is room: an endless sequence of small ones would block it forever.
func TestLargeWaitsItsTurn(t *testing.T) {
	a, b := full(t, remoting.Block)
	send := func(bytes int) <-chan struct{} {
		sent := make(chan struct{})
		go func() {
			a.sys.Root.Send(b.pid("echo"), wrapperspb.Bytes(make([]byte, bytes)))
			close(sent)
		}()
		return sent
	}
	if waiting := infoOf(a, b.name).Waiting; waiting > 64<<10-1000 {
		t.Fatalf("%d bytes wait: there is no room for a small message", waiting)
	}
	large := send(60 << 10)
	eventually(t, "the large one does not wait", func() bool { return a.Blocked(b.name) == 1 })
	small := send(10)
	select {
	case <-small:
		t.Error("a small message has passed a large one")
	case <-large:
		t.Error("a large message has found room")
	case <-time.After(100 * time.Millisecond):
	}
	b.thaw()
	for _, sent := range []<-chan struct{}{large, small} {
		select {
		case <-sent:
		case <-time.After(soon):
			t.Fatal("not sent")
		}
	}
}
