package keyfile

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	rdma "github.com/rdmactor/rdmactor/actor"
	"github.com/rdmactor/rdmactor/actor/internal/secure"
)

const (
	maxFile = 4 << 20
	// keysEach is how many keys an identity may have: rdma.Keyring's number.
	keysEach = 2
	keyLen   = secure.KeyLen
)

// encoding is how a key is written.
var encoding = base64.StdEncoding.Strict()

// Read reads a list of keys to its end.
func Read(r io.Reader) ([]rdma.Credential, error) {
	b, err := readAll(r)
	defer clear(b[:cap(b)])
	if err != nil {
		return nil, err
	}
	return parseKeys(b)
}

// readAll reads like io.ReadAll, but with a bound, and leaves no copies behind.
func readAll(r io.Reader) ([]byte, error) {
	b := make([]byte, 0, 1<<10)
	for {
		if len(b) == cap(b) {
			larger := append(make([]byte, 0, 2*cap(b)), b...)
			clear(b)
			b = larger
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > maxFile:
			return b, ErrTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// parseKeys reads all lines. If one is wrong, no key is returned, and none stays in memory.
func parseKeys(b []byte) (list []rdma.Credential, err error) {
	// large enough from the beginning, because append would leave copies behind
	list = make([]rdma.Credential, 0, bytes.Count(b, []byte("\n"))+1)
	defer func() {
		if err != nil {
			clear(list)
			list = nil
		}
	}()
	keys := map[string]int{}                // how many each identity has
	owners := make(map[[keyLen]byte]string) // the identity of each key
	defer clear(owners)
	n := 0
	for line := range bytes.Lines(b) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		list = list[:len(list)+1]
		c := &list[len(list)-1]
		if what := parseLine(line, c); what != "" {
			return list, &LineError{n, what}
		}
		owner, taken := owners[c.Key]
		switch {
		case taken && owner == c.Identity:
			return list, &LineError{n, c.Identity + " has this key already"}
		case taken: // each could pass for the other
			return list, &LineError{n, fmt.Sprintf("%s and %s have the same key", owner, c.Identity)}
		case keys[c.Identity] == keysEach:
			return list, &LineError{n, fmt.Sprintf("%s has more than %d keys", c.Identity, keysEach)}
		}
		owners[c.Key] = c.Identity
		keys[c.Identity]++
	}
	if len(list) == 0 {
		return list, ErrNoKeys
	}
	return list, nil
}

// parseLine reads one line. It returns the reason if the line is invalid.
func parseLine(line []byte, c *rdma.Credential) (what string) {
	at := bytes.LastIndexByte(line, ':')
	if at < 0 {
		return "want IDENTITY:KEY"
	}
	// base64 of 32 bytes decodes to 33, the last of which its padding leaves out
	var key [keyLen + 1]byte
	defer clear(key[:])
	text := line[at+1:]
	if len(text) != encoding.EncodedLen(keyLen) {
		return fmt.Sprintf("a key is %d bytes in base64, which are %d characters", keyLen, encoding.EncodedLen(keyLen))
	}
	if n, err := encoding.Decode(key[:], text); err != nil || n != keyLen {
		return fmt.Sprintf("a key is %d bytes in base64", keyLen)
	}
	c.Identity = string(line[:at])
	copy(c.Key[:], key[:])
	if c.Key == [keyLen]byte{} {
		return "a key of zeros"
	}
	return checkIdentity(c.Identity)
}

// checkIdentity returns the reason if an identity is invalid.
func checkIdentity(s string) (what string) {
	switch {
	case s == "" || len(s) > secure.MaxIdentity:
		return fmt.Sprintf("an identity has 1 to %d bytes", secure.MaxIdentity)
	case !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "an identity has printable characters"
	case s[0] == '#' || strings.TrimSpace(s) != s:
		return "an identity does not begin with #, and has no spaces around it"
	}
	return ""
}
