// Package securityflags has the flags that select how a program's connections are secured, the same
// in all programs:
//
//	--key FILE                          pre-shared keys, as rdmactor keygen makes them
//	--tls-cert FILE --tls-key FILE      this side's certificate
//	--tls-ca FILE                       who signs the other side's
//	--insecure                          no authentication and no encryption, also beyond loopback
//
// Without any of them nothing is secured, and the runtime refuses addresses beyond loopback. Keys,
// certificates and authorities are read again when their files change: connections stay, and later
// ones use the new contents.
package securityflags

import (
	"context"
	"errors"
	"flag"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
)

// every is the interval at which files are read.
const every = time.Second

// Flags are the security flags of a command line. "" is a file that it does not name.
type Flags struct {
	Key      string // file of pre-shared keys
	Cert     string // file of this side's certificate and the intermediate ones
	CertKey  string // file of the certificate's private key
	CA       string // file of the authorities of the other side's certificate
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

// Open reads the files that the flags name. It returns nil if there are none. Until closed is
// called, changed files are used as soon as they are noticed, and note gets a line about them, or
// about why they cannot be used. In that case the previous contents stay in use. note is called on
// a separate goroutine.
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

// background runs a function until stop is called.
func background(run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	return func() { cancel(); <-ended }
}
