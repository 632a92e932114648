package handshakes

import (
	"crypto/tls"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IdentityOf is the identity of a peer whose certificate was verified: its first URI (as SPIFFE has
// it), else its first DNS name, else its subject's common name. The last two do not count if they
// could pass for a URI. One that is too long, or is not plain text, is nobody's.
func IdentityOf(s *tls.ConnectionState) string {
	if len(s.VerifiedChains) == 0 {
		return ""
	}
	leaf := s.VerifiedChains[0][0]
	name := leaf.Subject.CommonName
	switch {
	case len(leaf.URIs) > 0:
		name = leaf.URIs[0].String()
	case len(leaf.DNSNames) > 0:
		name = leaf.DNSNames[0]
	}
	if len(name) > MaxIdentity || !utf8.ValidString(name) || strings.ContainsFunc(name, unprintable) ||
		len(leaf.URIs) == 0 && strings.ContainsAny(name, ":/") {
		return ""
	}
	return name
}

// MaxIdentity is how many bytes a peer's name has at most, which are as many as SPIFFE's ids have.
// Names are remembered beyond their connections.
const MaxIdentity = 2048

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
