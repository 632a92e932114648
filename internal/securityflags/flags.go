// Package securityflags has the flags with which programs say how their connections are
// secured, the same in all of them:
//
//	--key FILE                          pre-shared keys, as rdmactor keygen makes them
//	--tls-cert FILE --tls-key FILE      this side's certificate
//	--tls-ca FILE                       who signs the other side's
//	--insecure                          no authentication and no encryption, also beyond loopback
//
// Without any of them nothing is secured, and the runtime refuses addresses beyond loopback. Keys
// and certificates, and authorities, are read again when their files change: connections stay, and
// later ones use what is there then.
package securityflags

import (
	"context"
	"errors"
	"flag"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// every is how often files are looked at.
const every = time.Second

// Flags are what a command line says about security. "" is a file that it does not name.
type Flags struct {
	Key      string // of pre-shared keys
	Cert     string // of this side's certificate, and of what is between it and its authority
	CertKey  string // of the certificate's private key
	CA       string // of the authorities of the other side's certificate
	Insecure bool
}

// Define defines the flags.
func (f *Flags) Define(s *flag.FlagSet) {
	s.StringVar(&f.Key, "key", "", "authenticate and encrypt with the pre-shared keys of `FILE`, which rdmactor keygen makes: connect with the first, let all connect")
	s.StringVar(&f.Cert, "tls-cert", "", "authenticate and encrypt with the certificate of `FILE`, PEM; rdmactor certs makes some for development")
	s.StringVar(&f.CertKey, "tls-key", "", "the private key of the certificate is in `FILE`")
	s.StringVar(&f.CA, "tls-ca", "", "the other side's certificate is signed by one of `FILE`. Who listens without it lets everybody connect; who connects without it uses the system's")
	s.BoolVar(&f.Insecure, "insecure", false, "neither authenticate nor encrypt, also beyond loopback")
}

// Check returns an error if the flags do not go together.
func (f *Flags) Check() error {
	certificates := f.Cert != "" || f.CertKey != "" || f.CA != ""
	switch {
	case f.Key != "" && f.Insecure:
		return errors.New("--key or --insecure?")
	case certificates && (f.Key != "" || f.Insecure):
		return errors.New("--tls-cert, --tls-key and --tls-ca go with neither --key nor --insecure")
	case (f.Cert == "") != (f.CertKey == ""):
		return errors.New("--tls-cert and --tls-key go together")
	}
	return nil
}

// Open reads what the flags name. It returns nil if there are none. Until closed is called, changed
// files are used as soon as they are seen, and note gets a line about them, or about why they
// cannot be used. What was read before stays then. note is called on a goroutine of its own.
func (f *Flags) Open(note func(string)) (s *rdma.Security, closed func(), err error) {
	switch {
	case f.Insecure:
		return &rdma.Security{Mode: rdma.Insecure}, func() {}, nil
	case f.Key != "":
		return f.psk(note)
	case f.Cert != "" || f.CA != "":
		return f.tls(note)
	}
	return nil, func() {}, nil
}

// background runs a function until what it returns is called.
func background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() { cancel(); <-ended }
}
