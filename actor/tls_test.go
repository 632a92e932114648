package actor

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rdmactor/rdmactor/internal/certtest"
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

// Authorities are replaced on both sides without a restart: the old one's peers are refused from
// then on, the new one's are not, and connections stay. No pool at all is refused.
func TestAuthoritiesAreReplaced(t *testing.T) {
	onFlavors(t, func(w *world) {
		old, young := certtest.New(w), certtest.New(w)
		var pool atomic.Pointer[x509.CertPool]
		pool.Store(old.Pool())
		side := func(of *certtest.Authority, uri, at string) *Security {
			return &Security{Mode: TLS, Authorities: pool.Load, TLS: &tls.Config{
				Certificates: []tls.Certificate{of.Of(w, uri, at)}, ClientAuth: tls.RequireAndVerifyClientCert,
			}}
		}
		server, client := w.farProbe(), w.probe()
		oldListener, _ := listen(server, w.far, there+":7471", IDConfig{Security: side(old, serverID, there)})
		listen(server, w.far, there+":7472", IDConfig{Security: side(young, serverID, there)})
		begin := func(of *certtest.Authority, port string) {
			id := w.rt.CreateID(client.pid, IDConfig{Security: side(of, aliceID, here)})
			client.send(id, &Dial{Addr: there + port})
		}
		connects := func(of *certtest.Authority, port string) {
			w.Helper()
			begin(of, port)
			r, s := next[*ConnectRequest](server)
			server.send(s, &Accept{})
			next[*Established](server)
			e, _ := next[*Established](client)
			if r.Identity != aliceID || e.Identity != serverID {
				w.Errorf("the sides are %q and %q", r.Identity, e.Identity)
			}
		}
		refused := func(of *certtest.Authority, port string) error {
			w.Helper()
			begin(of, port)
			err := until[*Closed](client)[0].msg.(error)
			is(w, err, unix.EACCES)
			settle()
			server.quiet()
			return err
		}
		connects(old, ":7471")
		refused(young, ":7471")
		pool.Store(young.Pool())
		connects(young, ":7472")
		refused(old, ":7472")   // the listener refuses the client
		refused(young, ":7471") // the client refuses the listener
		pool.Store(nil)         // crypto/tls would take the system's
		if err := refused(young, ":7472"); !strings.Contains(err.Error(), "Authorities has returned none") {
			w.Errorf("without authorities: %v", err)
		}
		if w.info(w.far, oldListener).Listener.Accepted != 1 {
			w.Error("the first connection was not accepted")
		}
	})
}
