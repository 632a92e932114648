package securityflags

import (
	"errors"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// unsaid is rdma.ErrNoSecurity, with a text for users of a command line.
type unsaid struct{ err error }

func (e *unsaid) Error() string {
	return "this goes beyond loopback: say how it is secured, with --key FILE (rdmactor keygen makes one), --tls-cert, --tls-key and --tls-ca (rdmactor certs), " +
		"or --insecure if all machines of the network are trusted"
}

func (e *unsaid) Unwrap() error { return e.err }

// Explain names the flags in an error that they would have prevented.
func Explain(err error) error {
	if errors.Is(err, rdma.ErrNoSecurity) {
		return &unsaid{err}
	}
	return err
}

// Other returns the flags that the command line of the other side needs, each with a space before
// it.
func (f *Flags) Other() string {
	switch {
	case f.Insecure:
		return " --insecure"
	case f.Key != "":
		return " --key FILE"
	case f.Cert != "" && f.CA != "":
		return " --tls-ca FILE --tls-cert FILE --tls-key FILE"
	case f.Cert != "" || f.CA != "":
		return " --tls-ca FILE"
	}
	return ""
}
