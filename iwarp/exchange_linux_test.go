package iwarp

import (
	"testing"

	"github.com/rdmactor/rdmactor/cmid"
	"github.com/rdmactor/rdmactor/states"
	"github.com/rdmactor/rdmactor/verbs"
)

func TestConnectExchangeDisconnect(t *testing.T) {
	client, server := newNode(t), newNode(t)
	p := connect(t, client, server, 4)
	if e := client.found(p.ch, states.KindEstablished); e.private != "welcome" {
		t.Errorf("the connecting side got %q with Established, want the accepting side's private data", e.private)
	}
	p.cq.send(100, "ping")
	turns(t, "ping", func() bool { return len(server.wcs) > 0 }, client, server)
	if wc := server.wcs[0]; wc.Status != verbs.StatusSuccess || wc.Op != verbs.Recv || p.sq.got(wc) != "ping" || wc.QP.Context() != p.sh {
		t.Fatalf("server got %+v %q", wc, p.sq.got(wc))
	}
	p.sq.send(200, "pong")
	turns(t, "pong", func() bool { return len(client.wcs) > 1 }, client, server)
	if wc := client.wcs[0]; wc.ID != 100 || wc.Op != verbs.Send || wc.Status != verbs.StatusSuccess {
		t.Errorf("first completion of the client %+v, want its send", wc)
	}
	if got := p.cq.got(client.wcs[1]); got != "pong" {
		t.Errorf("client got %q", got)
	}
	client.do(p.ch, &cmid.Disconnect{})
	for _, e := range []delivered{client.wait(p.ch, states.KindDisconnected, server), server.wait(p.sh, states.KindDisconnected, client)} {
		if e.status != 0 || e.err != nil {
			t.Errorf("an orderly end was delivered as %v", e)
		}
	}
}
