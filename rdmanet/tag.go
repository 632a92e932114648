package rdmanet

import (
	"bytes"
	"fmt"
)

// tag begins the private data of a request and of its reply, before the version. It keeps apart
// from a stream what speaks something else: a chat, a call, a program of the user's.
const tag = "rdmanet"

// version is what we speak. The lower of the two counts; there is none below 1.
const version = 1

// greeting is our private data.
func greeting() []byte { return append([]byte(tag), version) }

// checkGreeting reports what is wrong with the peer's private data; "" is nothing. What follows
// the version is a later one's.
func checkGreeting(b []byte) (wrong string) {
	switch {
	case !bytes.HasPrefix(b, []byte(tag)) || len(b) == len(tag):
		return fmt.Sprintf("want a byte stream, %s/%d", tag, version)
	case b[len(tag)] == 0:
		return fmt.Sprintf("%s/0: want %s/%d", tag, tag, version)
	}
	return ""
}
