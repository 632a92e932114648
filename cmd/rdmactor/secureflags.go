package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// secureFlags select how the connections of a command line are secured. "" is a file that it does
// not name. Without any of them nothing is secured, and the runtime refuses addresses beyond
// loopback.
type secureFlags struct {
	key       string // file of pre-shared keys
	cert      string // file of this side's certificate and the intermediate ones
	certKey   string // file of the certificate's private key
	authority string // file of the authorities of the server's certificate
	insecure  bool
}

func (s *secureFlags) define(f *flag.FlagSet) {
	f.StringVar(&s.key, "key", "", "authenticate and encrypt with the first pre-shared key in `FILE` (rdmactor keygen creates one)")
	f.StringVar(&s.cert, "tls-cert", "", "authenticate with the certificate in `FILE`, PEM (rdmactor certs creates some for development)")
	f.StringVar(&s.certKey, "tls-key", "", "`FILE` with the private key of that certificate")
	f.StringVar(&s.authority, "tls-ca", "", "`FILE` with the authorities that may sign the server's certificate (default the system's)")
	f.BoolVar(&s.insecure, "insecure", false, "neither authenticate nor encrypt, even beyond loopback")
}

// check returns an error if the flags do not go together.
func (s *secureFlags) check() error {
	switch {
	case s.key != "" && s.insecure:
		return errors.New("--key or --insecure?")
	case s.tls() && (s.key != "" || s.insecure):
		return errors.New("--tls-cert, --tls-key and --tls-ca go with neither --key nor --insecure")
	case (s.cert == "") != (s.certKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	}
	return nil
}

func (s *secureFlags) tls() bool { return s.cert != "" || s.certKey != "" || s.authority != "" }

// open reads the files that the flags name. It returns nil if there are none.
func (s *secureFlags) open() (*rdma.Security, error) {
	switch {
	case s.insecure:
		return &rdma.Security{Mode: rdma.Insecure}, nil
	case s.key != "":
		list, err := keyfile.Load(s.key)
		keys := new(rdma.Keyring)
		if err == nil {
			err = keyfile.Use(keys, list)
			clear(list)
		}
		if err != nil {
			return nil, fmt.Errorf("--key: %w", err)
		}
		return &rdma.Security{Mode: rdma.PSK, Keys: keys}, nil
	case s.tls():
		return s.openTLS()
	}
	return nil, nil
}

func (s *secureFlags) openTLS() (*rdma.Security, error) {
	security := &rdma.Security{Mode: rdma.TLS, TLS: &tls.Config{MinVersion: tls.VersionTLS13}}
	if s.authority != "" {
		text, err := os.ReadFile(s.authority)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		security.TLS.RootCAs = x509.NewCertPool()
		if !security.TLS.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca: %s has no certificates in PEM", s.authority)
		}
	}
	if s.cert != "" {
		info, err := os.Stat(s.certKey)
		if err == nil {
			err = keyfile.CheckMode(s.certKey, info)
		}
		var pair tls.Certificate
		if err == nil {
			pair, err = tls.LoadX509KeyPair(s.cert, s.certKey)
		}
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		security.TLS.Certificates = []tls.Certificate{pair}
	}
	return security, nil
}

// unsecured is rdma.ErrNoSecurity, with a text for users of a command line.
type unsecured struct{ err error }

func (e *unsecured) Error() string {
	return "this connection would go beyond loopback: secure it with --key FILE (rdmactor keygen creates one), or with --tls-cert, --tls-key and --tls-ca (rdmactor certs), " +
		"or use --insecure if all machines of the network are trusted"
}

func (e *unsecured) Unwrap() error { return e.err }

// explainSecurity names the flags in an error that they would have prevented.
func explainSecurity(err error) error {
	if errors.Is(err, rdma.ErrNoSecurity) {
		return &unsecured{err}
	}
	return err
}
