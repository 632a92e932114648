package actor

import (
	"crypto/x509"
	"testing"
	"time"
)

// A certificate that expires ends no connection, and makes no other.
func TestTLSCertificateExpires(t *testing.T) {
	onFlavors(t, func(w *world) {
		k := newCerts(w)
		server, client, c := w.dialTLS(k.server, k.client)
		_, s := next[*ConnectRequest](server)
		server.send(s, &Accept{})
		next[*Established](server)
		next[*Established](client)
		time.Sleep(time.Until(k.Cert.NotAfter) + time.Hour)
		client.send(c, NewSend([]byte("still there")))
		if g := server.any(); g.data != "still there" {
			w.Errorf("got %v", g)
		}
		server.send(s, NewSend([]byte("so am I")))
		if g := client.any(); g.data != "so am I" {
			w.Errorf("got %v", g)
		}
		late := w.probe()
		late.send(w.rt.CreateID(late.pid, IDConfig{Security: k.client}), &Dial{Addr: there + ":7471"})
		if f, ok := until[*Closed](late)[0].msg.(Failure); !ok || !as[x509.CertificateInvalidError](f) {
			w.Errorf("a new connection: %v", f)
		}
		settle()
		server.quiet()
	})
}
