package actor

import "testing"

// Who disconnects before the peer's accept is read has ended the connection itself: the peer is not
// lost.
func TestDisconnectBeforeTheAcceptIsRead(t *testing.T) {
	eachMode(t, func(t *testing.T, made func(testing.TB) *Security) {
		sys := testSystem(t)
		near, far := openIWARP(t, sys), openIWARP(t, sys)
		client, server := newProbe(t, sys, near.OnLoop(), nil), newProbe(t, sys, far.OnLoop(), nil)
		cfg := IDConfig{Security: made(t)}
		_, at := listen(server, far, "127.0.0.1:0", cfg)
		c := near.CreateID(client.pid, cfg)
		client.send(c, &Dial{Addr: at})
		_, s := next[*ConnectRequest](server)
		held := make(chan struct{})
		if err := near.loops[0].el.Post(func() { <-held }); err != nil {
			t.Fatal(err)
		}
		client.send(c, &Disconnect{})
		server.send(s, &Accept{})
		next[*Established](server)
		close(held)
		end := until[*Closed](client)
		if closed := end[len(end)-1].msg.(*Closed); closed.Err != nil {
			t.Errorf("the client gets %v: it has ended the connection itself", end)
		}
		until[*Closed](server)
	})
}
