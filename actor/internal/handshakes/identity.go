package handshakes

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IdentityOf returns the identity of a peer whose certificate was verified: its first URI (as
// SPIFFE has it), else its first DNS name. The subject's common name never counts (RFC 9525): the
// name constraints of an authority do not cover it. The identity is empty if the name could pass
// for one of the other kind, is too long, or is not plain text. The same holds for a URI whose
// parsed text differs from the signed text, for example if its fragment is empty.
func IdentityOf(s *tls.ConnectionState) string {
	if len(s.VerifiedChains) == 0 {
		return ""
	}
	leaf, name := s.VerifiedChains[0][0], ""
	switch {
	case len(leaf.URIs) > 0:
		u := leaf.URIs[0]
		if name = u.String(); u.Scheme == "" || name != firstURI(leaf) {
			return ""
		}
	case len(leaf.DNSNames) > 0:
		if name = leaf.DNSNames[0]; strings.ContainsAny(name, ":/") {
			return ""
		}
	}
	if len(name) > MaxIdentity || !utf8.ValidString(name) || strings.ContainsFunc(name, isUnprintable) {
		return ""
	}
	return name
}

// subjectAltName is the extension with a certificate's names (RFC 5280, section 4.2.1.6).
var subjectAltName = asn1.ObjectIdentifier{2, 5, 29, 17}

// firstURI returns the signed text of a certificate's first URI.
func firstURI(c *x509.Certificate) string {
	const uri = 6 // uniformResourceIdentifier of GeneralName
	for _, e := range c.Extensions {
		if !e.Id.Equal(subjectAltName) {
			continue
		}
		var names []asn1.RawValue
		if _, err := asn1.Unmarshal(e.Value, &names); err != nil {
			return ""
		}
		for _, n := range names {
			if n.Class == asn1.ClassContextSpecific && n.Tag == uri {
				return string(n.Bytes)
			}
		}
	}
	return ""
}

// MaxIdentity bounds the length of a peer's name in bytes, as SPIFFE does for its ids. Names are
// remembered beyond their connections.
const MaxIdentity = 2048

func isUnprintable(r rune) bool { return !unicode.IsPrint(r) }
