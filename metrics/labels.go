package metrics

import (
	"hash/fnv"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// labelAll is the label of a sum of all values, labelOther that of a sum beyond a bound.
const (
	labelAll   = "all"
	labelOther = "other"
)

// maxLabel is the largest length of a label's value, in bytes.
const maxLabel = 96

// makeLabel makes a label's value of text that may come from a peer: valid UTF-8 without control
// characters, and not longer than maxLabel. A changed text ends with a hash, so that two texts
// remain different, and no text equals one of this package's labels.
func makeLabel(text string) string {
	clean := strings.Map(func(r rune) rune { // it also makes each invalid byte a ReplacementChar
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
