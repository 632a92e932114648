package plain

import "testing"

// A text of a peer's stays as it is if it is one line of printable characters.
func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"":                       "",
		"no room for b":          "no room for b",
		`a "quoted" word, 50 %`:  `a "quoted" word, 50 %`,
		"größer, больше, 大きい":    "größer, больше, 大きい",
		"two\nlines":             `"two\nlines"`,
		"\x1b[2Jcleared":         `"\x1b[2Jcleared"`,
		"turned \u202e round":    `"turned \u202e round"`,
		"C1 \u009b2J":            `"C1 \u009b2J"`,
		"no UTF-8: \xff":         `"no UTF-8: \xff"`,
		"a carriage\rreturn \"x": `"a carriage\rreturn \"x"`,
	} {
		if got := Quote(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
