package actor

import (
	"bytes"
	"crypto/tls"
	"testing"
)

func TestTLSConversation(t *testing.T) {
	onFlavors(t, func(w *world) {
		k := newCerts(w)
		server, client, c := w.dialTLS(k.server, k.client)
		r, s := next[*ConnectRequest](server)
		if r.Identity != aliceID || string(r.PrivateData) != "hello" || len(r.TLS.VerifiedChains[0]) != 2 {
			w.Errorf("the request is %+v", r)
		}
		settle()
		client.quiet() // not before the server accepts
		server.send(s, &Accept{PrivateData: bytes.Repeat([]byte("a"), 255)})
		es, _ := next[*Established](server)
		ec, _ := next[*Established](client)
		if ec.Identity != serverID || es.Identity != aliceID || string(ec.PrivateData) != string(bytes.Repeat([]byte("a"), 255)) {
			w.Errorf("established: %+v, %+v", es, ec)
		}
		if ec.TLS == nil || es.TLS == nil || ec.TLS.Version != tls.VersionTLS13 || ec.TLS.NegotiatedProtocol != "rdmactor/1" {
			w.Errorf("established: %+v, %+v", es.TLS, ec.TLS)
		}
		for i := range 300 {
			p := bytes.Repeat([]byte{byte(i)}, i*i%ec.MaxMessage)
			client.send(c, NewSend(p))
			if g := server.any(); g.data != string(p) {
				w.Fatalf("message %d is %v", i, g)
			}
			server.send(s, NewSend(p))
			if g := client.any(); g.data != string(p) {
				w.Fatalf("message %d back is %v", i, g)
			}
		}
		client.send(c, &Close{})
		for _, side := range []*probe{server, client} {
			end := until[*Closed](side)
			cl := end[len(end)-1].msg.(*Closed)
			if cl.Err != nil || cl.Unknown+cl.Unsent > 1 {
				w.Errorf("the end: %v", end)
			}
		}
	})
}
