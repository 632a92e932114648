package traces

import (
	"strings"
	"unicode/utf8"
)

// clipTo cuts a text to n bytes of valid UTF-8.
func clipTo(s string, n int) string {
	if len(s) > n {
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
