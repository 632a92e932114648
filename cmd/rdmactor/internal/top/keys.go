package top

import "unicode/utf8"

// key is a character, or one of the keys below.
type key rune

const (
	keyUp key = -iota - 1
	keyDown
	keyLeft
	keyRight
	keyHome
	keyEnd
	keyPageUp
	keyPageDown
	keyEscape
	keyUnknown

	keyEnter     key = '\r'
	keyTab       key = '\t'
	keyBackspace key = 0x7f
	keyInterrupt key = 3    // Ctrl-C
	keySuspend   key = 0x1a // Ctrl-Z
)

var finals = map[byte]key{'A': keyUp, 'B': keyDown, 'C': keyRight, 'D': keyLeft, 'H': keyHome, 'F': keyEnd}

var numbered = map[string]key{"1": keyHome, "7": keyHome, "4": keyEnd, "8": keyEnd, "5": keyPageUp, "6": keyPageDown}

// longestSequence is the maximum number of bytes of a key.
const longestSequence = 32

// decodeKeys decodes the keys in b. An escape at its end is the key Escape: a terminal writes the
// bytes of a sequence together.
func decodeKeys(b []byte) (keys []key) {
	for len(b) > 0 {
		k, n := firstKey(b)
		keys, b = append(keys, k), b[n:]
	}
	return keys
}

// firstKey returns the first key of b, and its number of bytes.
func firstKey(b []byte) (k key, n int) {
	switch {
	case b[0] == '\n':
		return keyEnter, 1
	case b[0] == '\b':
		return keyBackspace, 1
	case b[0] != 0x1b:
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 {
			return keyUnknown, 1
		}
		return key(r), n
	case len(b) == 1 || b[1] != '[' && b[1] != 'O':
		return keyEscape, 1
	}
	for n := 2; n < min(len(b), longestSequence); n++ {
		if c := b[n]; c >= 0x40 && c <= 0x7e {
			if c == '~' {
				return keyOrUnknown(numbered[string(b[2:n])]), n + 1
			}
			return keyOrUnknown(finals[c]), n + 1
		}
	}
	return keyUnknown, min(len(b), longestSequence)
}

func keyOrUnknown(k key) key {
	if k == 0 {
		return keyUnknown
	}
	return k
}
