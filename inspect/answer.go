package inspect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// answerRequest writes a value as JSON or as text.
func (p *Page) answerRequest(w http.ResponseWriter, r *http.Request, value func() (any, error)) {
	switch format := r.URL.Query().Get("format"); {
	case format == "text" || format == "" && prefersText(r.Header.Get("Accept")):
		p.writeAnswer(w, r, "text/plain; charset=utf-8", value, textOf)
	case format == "json" || format == "":
		p.writeAnswer(w, r, "application/json", value, jsonOf)
	default:
		p.writeError(w, &failure{http.StatusBadRequest, "the format is json or text"})
	}
}

// writeAnswer produces an answer and writes it, within the page's bounds.
func (p *Page) writeAnswer(w http.ResponseWriter, r *http.Request, kind string, value func() (any, error), format func(any) ([]byte, error)) {
	if err := takePlace(r.Context(), p.bounds.answers); err != nil {
		p.writeError(w, err)
		return
	}
	defer func() { <-p.bounds.answers }()
	data, err := p.bounds.makeAnswer(r.Context(), value, format)
	if err != nil {
		p.writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", kind)
	_ = writeInParts(w, data)
}

func jsonOf(value any) ([]byte, error) {
	data, err := json.MarshalIndent(value, "", "  ")
	return append(data, '\n'), err
}

func textOf(value any) ([]byte, error) {
	var b bytes.Buffer
	writeText(&b, value)
	return b.Bytes(), nil
}

// prefersText reports whether an Accept header names text before JSON.
func prefersText(accept string) bool {
	text, js := strings.Index(accept, "text/plain"), strings.Index(accept, "application/json")
	return text >= 0 && (js < 0 || text < js)
}

// writeError answers with an error. Its text contains nothing of the request.
func (p *Page) writeError(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	if f := (*failure)(nil); errors.As(err, &f) {
		status = f.status
	}
	http.Error(w, escapeText(err.Error()), status)
}

// writeText writes a struct as a line for each of its fields and a table for each of its lists, and
// a list as a table. The names are those of JSON.
func writeText(w io.Writer, value any) {
	v := reflect.ValueOf(value)
	if s, ok := value.(sectionView); ok {
		writeSection(w, s)
		return
	}
	if v.Kind() == reflect.Slice {
		writeTable(w, v)
		return
	}
	lines := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	var tables []int
	names, cells := columnNames(v.Type()), fieldValues(v)
	for n, cell := range cells {
		switch cell.Kind() {
		case reflect.Slice:
			tables = append(tables, n)
		case reflect.Map:
			keys := cell.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, k := range keys {
				fmt.Fprintf(lines, "%s.%s\t%s\n", names[n], k, cellText(cell.MapIndex(k)))
			}
		default:
			fmt.Fprintf(lines, "%s\t%s\n", names[n], cellText(cell))
		}
	}
	_ = lines.Flush()
	for _, n := range tables {
		fmt.Fprintf(w, "\n%s\n", names[n])
		writeTable(w, cells[n])
	}
}

// writeTable writes a line for each struct of a list.
func writeTable(w io.Writer, list reflect.Value) {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(columnNames(list.Type().Elem()), "\t"))
	for i := range list.Len() {
		for n, cell := range fieldValues(list.Index(i)) {
			if n > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, cellText(cell))
		}
		fmt.Fprintln(out)
	}
	_ = out.Flush()
}

// writeSection writes a section, whose columns are not those of a struct.
func writeSection(w io.Writer, s sectionView) {
	if s.Error != "" {
		fmt.Fprintf(w, "error: %s\n", escapeText(s.Error))
	}
	fmt.Fprintf(w, "taken %s, %s s late, %d rows of %d\n", s.Taken, cellText(reflect.ValueOf(s.Late)), len(s.Rows), s.Total)
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join(s.Columns, "\t"))
	for _, row := range s.Rows {
		for n, c := range s.Columns {
			if n > 0 {
				fmt.Fprint(out, "\t")
			}
			fmt.Fprint(out, cellText(reflect.ValueOf(row[c])))
		}
		fmt.Fprintln(out)
	}
	_ = out.Flush()
}

// columnNames returns the JSON names of a struct's fields, including those of embedded structs.
func columnNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, columnNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// fieldValues returns the values of a struct's fields, in the order of columns.
func fieldValues(v reflect.Value) (cells []reflect.Value) {
	for i := range v.NumField() {
		if v.Type().Field(i).Anonymous {
			cells = append(cells, fieldValues(v.Field(i))...)
			continue
		}
		cells = append(cells, v.Field(i))
	}
	return cells
}

// cellText returns a cell's text. An empty cell is a hyphen, so that columns can be counted.
func cellText(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return "-"
	case v.CanFloat():
		// JSON contains all digits; a microsecond is enough for people
		return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v.Float(), 'f', 6, 64), "0"), ".")
	case v.Kind() == reflect.String && v.String() == "":
		return "-"
	case v.Kind() == reflect.String:
		return escapeText(v.String())
	}
	return fmt.Sprint(v.Interface())
}

// escapeText returns a text without characters that a terminal or a table would interpret.
func escapeText(text string) string {
	quoted := strconv.QuoteToGraphic(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
