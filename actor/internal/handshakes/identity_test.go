package handshakes

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"strings"
	"testing"
	"time"

	"github.com/rdmactor/rdmactor/internal/certtest"
)

// names are those of a certificate, as text that need not be a valid URI or DNS name.
type names struct {
	uris, dns []string
	cn        string
}

// signed returns a verified certificate with these names; none if crypto/x509 refuses it.
func (n names) signed(t *testing.T) *tls.ConnectionState {
	t.Helper()
	var raw []asn1.RawValue
	for tag, list := range map[int][]string{2: n.dns, 6: n.uris} {
		for _, name := range list {
			raw = append(raw, asn1.RawValue{Class: asn1.ClassContextSpecific, Tag: tag, Bytes: []byte(name)})
		}
	}
	c := &x509.Certificate{Subject: pkix.Name{CommonName: n.cn}}
	if raw != nil {
		b, err := asn1.Marshal(raw)
		if err != nil {
			t.Fatal(err)
		}
		c.ExtraExtensions = []pkix.Extension{{Id: subjectAltName, Value: b}}
	}
	der := certtest.New(t).Issue(t, c, time.Hour).Certificate[0]
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return new(tls.ConnectionState)
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
}

func TestTLSIdentity(t *testing.T) {
	long := strings.Repeat("a", MaxIdentity)
	for want, n := range map[string]names{
		"spiffe://test/alice":     {uris: []string{"spiffe://test/alice", "https://test"}, dns: []string{"dns"}, cn: "cn"},
		"spiffe://test/a%2Fb?c=d": {uris: []string{"spiffe://test/a%2Fb?c=d"}},
		"urn:alice":               {uris: []string{"urn:alice"}},
		"dns":                     {dns: []string{"dns", "dns2"}, cn: "cn"},
		long:                      {dns: []string{long}},
	} {
		s := n.signed(t)
		if got := IdentityOf(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		s.VerifiedChains = nil
		if got := IdentityOf(s); got != "" {
			t.Errorf("%q although nobody has verified the certificate", got)
		}
	}
}

// The subject's common name is no identity, because an authority's constraints do not cover it. So
// an authority that may sign names of one domain cannot create a peer of another one.
func TestTLSIdentityIsConstrained(t *testing.T) {
	for why, n := range map[string]names{
		"a common name alone": {cn: "node2.b.example"},
		"as if it were a URI": {cn: "spiffe://test/alice"},
	} {
		if got := IdentityOf(n.signed(t)); got != "" {
			t.Errorf("%s: the identity is %q", why, got)
		}
	}
}

// A name of one kind never passes for another kind, and two URIs never map to one identity.
func TestTLSIdentityIsOfItsKind(t *testing.T) {
	for why, n := range map[string]names{
		"a URI like a DNS name":            {uris: []string{"node2.b.example"}},
		"a URI without a scheme":           {uris: []string{"//test/alice"}},
		"a URI with an empty fragment":     {uris: []string{"spiffe://test/alice#"}},
		"a URI with another scheme's case": {uris: []string{"SPIFFE://test/alice"}},
		"a DNS name like a URI":            {dns: []string{"spiffe://test/alice"}},
		"a first URI that is nobody's":     {uris: []string{"spiffe://test/alice#", "spiffe://test/alice"}, dns: []string{"alice"}},
	} {
		t.Run(why, func(t *testing.T) {
			if got := IdentityOf(n.signed(t)); got != "" {
				t.Errorf("the identity is %q", got)
			}
		})
	}
}

// Names that would fill this side's memory, or tamper with a terminal's display, are no identities.
// The certificate's other names do not count then.
func TestTLSIdentityIsPlain(t *testing.T) {
	for why, n := range map[string]names{
		"a long URI":    {uris: []string{"spiffe:/" + strings.Repeat("a", MaxIdentity)}, dns: []string{"alice"}},
		"a long name":   {dns: []string{strings.Repeat("a", MaxIdentity+1)}},
		"two lines":     {dns: []string{"alice\nbob"}},
		"an escape":     {dns: []string{"alice\x1b[2J"}},
		"not ASCII":     {dns: []string{"alice\u202e"}},
		"not UTF-8":     {dns: []string{"alice\xff"}},
		"a URI's tab":   {uris: []string{"spiffe:a\tb"}},
		"a URI's space": {uris: []string{"spiffe://test/a b"}},
	} {
		t.Run(why, func(t *testing.T) {
			if got := IdentityOf(n.signed(t)); got != "" {
				t.Errorf("the identity is %.40q", got)
			}
		})
	}
}
