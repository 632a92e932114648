package rdmanet

import (
	"bytes"
	"fmt"
)

// tag begins the private data of a request and of its reply. The version follows. So a program
// that speaks another protocol over RDMA is not taken for a stream.
const tag = "rdmanet"

// version is the version that this package speaks. The lower one of the two sides counts. There is
// none below 1.
const version = 1

// greeting is our private data.
func greeting() []byte { return append([]byte(tag), version) }

// checkGreeting says what is wrong with the peer's private data. "": nothing. What follows the
// version is ignored: it belongs to later versions.
func checkGreeting(b []byte) (wrong string) {
	switch {
	case !bytes.HasPrefix(b, []byte(tag)) || len(b) == len(tag):
		return fmt.Sprintf("want a byte stream, %s/%d", tag, version)
	case b[len(tag)] == 0:
		return fmt.Sprintf("%s/0: want %s/%d", tag, tag, version)
	}
	return ""
}
