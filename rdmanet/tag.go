package rdmanet

import (
	"bytes"
	"fmt"
)

// tag begins the private data of a request and of its reply, followed by the version. It
// distinguishes a stream from other protocols over RDMA.
const tag = "rdmanet"

// version is this package's protocol version. The lower one of the two sides counts. There is none
// below 1.
const version = 1

// greetingData returns this side's private data.
func greetingData() []byte { return append([]byte(tag), version) }

// checkGreeting returns the error in the peer's private data; "": none. It ignores the bytes after
// the version, which belong to later versions.
func checkGreeting(b []byte) (wrong string) {
	switch {
	case !bytes.HasPrefix(b, []byte(tag)) || len(b) == len(tag):
		return fmt.Sprintf("want a byte stream, %s/%d", tag, version)
	case b[len(tag)] == 0:
		return fmt.Sprintf("%s/0: want %s/%d", tag, tag, version)
	}
	return ""
}
