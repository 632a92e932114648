package metrics

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelAll is for what is summed over everything, and labelOther for what is beyond a bound.
const (
	labelAll   = "all"
	labelOther = "other"
)

// maxLabel is how long a label's value may be, in bytes.
const maxLabel = 96

// label makes a label's value of text that may be a peer's: valid UTF-8 without control
// characters, and not longer than maxLabel. What had to be changed ends with a hash, so that two
// texts remain two, and no text is taken for one of this package's own labels.
func label(text string) string {
	clean := strings.Map(func(r rune) rune { // which makes each invalid byte a ReplacementChar
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
	if clean == text && len(text) <= maxLabel && text != labelAll && text != labelOther {
		return text
	}
	h := fnv.New64a()
	h.Write([]byte(text))
	hash := "~" + strconv.FormatUint(h.Sum64(), 16)
	end := min(len(clean), maxLabel-len(hash))
	for end < len(clean) && end > 0 && !utf8.RuneStart(clean[end]) {
		end--
	}
	return clean[:end] + hash
}
