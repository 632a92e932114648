// Package plain makes foreign texts fit for a terminal. Names and addresses come from a peer or
// from another program, and may have escape sequences in them, characters that turn the direction
// of a line, or no end.
package plain

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// beyond is the first character after the alphabets whose letters take one column each: Latin,
// Greek and Cyrillic.
const beyond = 0x0530

// Text is s with everything escaped that a terminal would interpret, or that does not take one
// column. A character of the result is a column.
func Text(s string) string {
	if strings.IndexFunc(s, mustEscape) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case mustEscape(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}

func mustEscape(r rune) bool { return r >= beyond || !unicode.IsPrint(r) || unicode.Is(unicode.M, r) }

// Quote returns s for an error or a log: as it is, or as a Go string if it has more than one line,
// is not UTF-8, or has characters that a terminal would interpret. Printable letters of all
// alphabets stay.
func Quote(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) || !utf8.ValidString(s) {
		return strconv.Quote(s)
	}
	return s
}

// Fit returns a result of Text in exactly this number of columns. A tilde marks text that is cut.
func Fit(text string, columns int) string {
	n := utf8.RuneCountInString(text)
	switch {
	case columns <= 0:
		return ""
	case n <= columns:
		return text + strings.Repeat(" ", columns-n)
	}
	return string([]rune(text)[:columns-1]) + "~"
}

// Right is Fit for numbers: the spaces come first.
func Right(text string, columns int) string {
	if n := utf8.RuneCountInString(text); n < columns {
		return strings.Repeat(" ", columns-n) + text
	}
	return Fit(text, columns)
}

// Or returns a text for a cell: a hyphen if there is none, so that columns can be counted.
func Or(s string) string {
	if s == "" {
		return "-"
	}
	return Text(s)
}

// WriteJSON writes v as JSON in ASCII: encoding/json leaves characters as they are that some
// terminals take for the beginning of an escape sequence.
func WriteJSON(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	out := make([]byte, 0, len(data)+1)
	for _, r := range string(data) { // outside of strings, JSON is ASCII
		switch {
		case r < unicode.MaxASCII:
			out = append(out, byte(r))
		case r > 0xFFFF:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	_, err = w.Write(append(out, '\n'))
	return err
}

// Duration returns a number of seconds in at most six characters: 12ms, 1.5s, 3m04s, 2h05m, 3d04h.
func Duration(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || seconds <= 0:
		return "0"
	case seconds < 0.0005:
		return "<1ms"
	case seconds < 0.9995:
		return strconv.FormatFloat(seconds*1000, 'f', 0, 64) + "ms"
	case seconds < 59.95:
		return strconv.FormatFloat(seconds, 'f', 1, 64) + "s"
	case seconds < 3600:
		return fmt.Sprintf("%dm%02ds", int(seconds)/60, int(seconds)%60)
	case seconds < 86400:
		return fmt.Sprintf("%dh%02dm", int(seconds)/3600, int(seconds)/60%60)
	case seconds < 100*86400:
		return fmt.Sprintf("%dd%02dh", int(seconds)/86400, int(seconds)/3600%24)
	case seconds < 99999*86400:
		return fmt.Sprintf("%dd", int(seconds/86400))
	}
	return ">99999"
}

// Count returns a number in at most six characters: 999, 12.3k, 4.5M.
func Count(n float64) string { return shortNumber(n, 1000, "kMGTPE") }

// Bytes returns a number of bytes in at most six characters: 999, 12.3K, 4.5M, by powers of 1,024.
func Bytes(n float64) string { return shortNumber(n, 1024, "KMGTPE") }

func shortNumber(n, by float64, units string) string {
	switch {
	case math.IsNaN(n):
		return "?"
	case n < 0:
		return "<0"
	case n < 1000:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	for i := range units {
		if n /= by; n < 999.5 {
			return strconv.FormatFloat(n, 'f', 1, 64) + units[i:i+1]
		}
	}
	return ">999" + units[len(units)-1:]
}
