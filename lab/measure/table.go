package measure

import (
	"fmt"
	"strings"
)

// Markdown returns the scenario's table. Document.Verdicts has its bars.
func (r *Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n%s", r.Title, strings.ToUpper(r.CPUs[:1])+r.CPUs[1:]+".")
	if r.Note != "" {
		b.WriteString(" " + r.Note)
	}
	fmt.Fprintf(&b, "\n\n| | %s |", strings.Join(r.Columns, " | "))
	if r.Base != "" {
		fmt.Fprintf(&b, " %s, of %s |", r.Columns[0], r.Base)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(r.Columns)))
	if r.Base != "" {
		b.WriteString("---:|")
	}
	b.WriteString("\n")
	for _, e := range r.Entries {
		r.writeEntryLine(&b, e)
	}
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "\nFailed: %s\n", f)
	}
	return b.String()
}

func (r *Result) writeEntryLine(b *strings.Builder, e Measured) {
	name := e.Name
	if e.Ours {
		name = "**" + name + "**"
	}
	fmt.Fprintf(b, "| %s |", name)
	for _, c := range r.Columns {
		got := "failed"
		if len(e.Rounds) > 0 {
			got = Number(e.Median(c))
		}
		fmt.Fprintf(b, " %s |", got)
	}
	if base := r.findEntry(r.Base); base != nil && len(e.Rounds) > 0 {
		of, least, most := r.metricRatio(&e, r.Columns[0], base, r.Columns[0])
		fmt.Fprintf(b, " %.2f", of)
		if e.Name != r.Base {
			fmt.Fprintf(b, " (%.2f–%.2f)", least, most)
		}
		b.WriteString(" |")
	} else if r.Base != "" {
		b.WriteString(" |")
	}
	b.WriteString("\n")
}

// Number formats x with three significant digits, or without a fraction.
func Number(x float64) string {
	switch {
	case x >= 1000:
		return groupThousands(int64(x + 0.5))
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func groupThousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func (x Verdict) writeLine(b *strings.Builder) {
	verdict := "**missed**"
	if x.Pass {
		verdict = "reached"
	}
	fmt.Fprintf(b, "| %s | %s | %s | %s–%s | %s |\n", x.What, x.Bar, Number(x.Got), Number(x.Least), Number(x.Most), verdict)
}
