// Package securityflags has the flags with which programs say how their connections are
// secured, the same in all of them:
//
//	--key FILE      pre-shared keys, as rdmactor keygen makes them
//	--insecure      no authentication and no encryption, also beyond loopback
//
// Without any of them nothing is secured, and the runtime refuses addresses beyond loopback.
package securityflags

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/keyfile"
)

// every is how often the file of keys is looked at.
const every = time.Second

// Flags are what a command line says about security.
type Flags struct {
	Key      string // the file of pre-shared keys; "": none
	Insecure bool
}

// Define defines the flags.
func (f *Flags) Define(s *flag.FlagSet) {
	s.StringVar(&f.Key, "key", "", "authenticate and encrypt with the pre-shared keys of `FILE`, which rdmactor keygen makes: connect with the first, let all connect. "+
		"It is read again when it changes")
	s.BoolVar(&f.Insecure, "insecure", false, "neither authenticate nor encrypt, also beyond loopback")
}

// Check returns an error if the flags do not go together.
func (f *Flags) Check() error {
	if f.Key != "" && f.Insecure {
		return errors.New("--key or --insecure?")
	}
	return nil
}

// Open reads what the flags name. It returns nil if there are none. Until closed is called, changed
// keys are used as soon as they are seen, and note gets a line about them, or about why they cannot
// be used. The earlier ones stay then. note is called on a goroutine of its own.
func (f *Flags) Open(note func(string)) (s *rdma.Security, closed func(), err error) {
	closed = func() {}
	switch {
	case f.Insecure:
		return &rdma.Security{Mode: rdma.Insecure}, closed, nil
	case f.Key == "":
		return nil, closed, nil
	}
	keys := new(rdma.Keyring)
	list, err := keyfile.Load(f.Key)
	if err == nil {
		err = keyfile.Use(keys, list)
		clear(list)
	}
	if err != nil {
		return nil, closed, fmt.Errorf("--key: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		follow(ctx, f.Key, keys, note)
	}()
	return &rdma.Security{Mode: rdma.PSK, Keys: keys}, func() { stop(); <-ended }, nil
}

// follow has keys be those of the file until ctx ends.
func follow(ctx context.Context, name string, keys *rdma.Keyring, note func(string)) {
	begun := false // the first time it is as it was read by Open, or it has changed just then
	keyfile.Follow(ctx, name, every, func(list []rdma.Credential, err error) {
		if err == nil {
			err = keyfile.Use(keys, list)
		}
		switch {
		case err != nil:
			note(fmt.Sprintf("the keys stay as they are: %v", err))
		case begun:
			note(fmt.Sprintf("%s has changed: connecting with the key of %s; keys of peers: %d", name, list[0].Identity, len(list)))
		}
		begun = true
	})
}
