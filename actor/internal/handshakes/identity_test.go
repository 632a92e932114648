package handshakes

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"strings"
	"testing"
)

func TestTLSIdentity(t *testing.T) {
	uri := &url.URL{Scheme: "spiffe", Host: "test", Path: "/alice"}
	other := &url.URL{Scheme: "https", Host: "test"}
	long := strings.Repeat("a", MaxIdentity)
	for want, leaf := range map[string]*x509.Certificate{
		"spiffe://test/alice": {URIs: []*url.URL{uri, other}, DNSNames: []string{"dns"}, Subject: pkix.Name{CommonName: "cn"}},
		"dns":                 {DNSNames: []string{"dns", "dns2"}, Subject: pkix.Name{CommonName: "cn"}},
		"cn":                  {Subject: pkix.Name{CommonName: "cn"}},
		"":                    {Subject: pkix.Name{CommonName: "spiffe://test/alice"}},
		long:                  {DNSNames: []string{long}},
	} {
		s := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
		if got := IdentityOf(s); got != "" {
			t.Errorf("%q although nobody has verified the certificate", got)
		}
		s.VerifiedChains = [][]*x509.Certificate{{leaf}}
		if got := IdentityOf(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// Names that would fill this side's memory, or change what a terminal shows, are nobody's. None of
// the certificate's other names counts then.
func TestTLSIdentityIsPlain(t *testing.T) {
	for name, leaf := range map[string]*x509.Certificate{
		"a long URI":   {URIs: []*url.URL{{Scheme: "spiffe", Path: strings.Repeat("a", MaxIdentity)}}, DNSNames: []string{"alice"}},
		"a long name":  {DNSNames: []string{strings.Repeat("a", MaxIdentity+1)}},
		"two lines":    {Subject: pkix.Name{CommonName: "alice\nbob"}},
		"an escape":    {Subject: pkix.Name{CommonName: "alice\x1b[2J"}},
		"an override":  {Subject: pkix.Name{CommonName: "alice\u202e"}},
		"not UTF-8":    {Subject: pkix.Name{CommonName: "alice\xff"}},
		"an URI's tab": {URIs: []*url.URL{{Scheme: "spiffe", Opaque: "a\tb"}}},
	} {
		if got := IdentityOf(&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{leaf}}}); got != "" {
			t.Errorf("%s: the identity is %.40q", name, got)
		}
	}
}
