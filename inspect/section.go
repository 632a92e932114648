package inspect

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Section is a table of the program that the page shows, made by Rows.
type Section struct {
	name, title string
	columns     []string
	read        func() table
}

// table is the result of a section's read.
type table struct {
	rows  []map[string]any
	total int // number of all rows, of which rows are the first
}

// sectionRows is the largest number of rows that a section shows.
const sectionRows = 1000

// Rows makes a section of read's result: a row for each value, a column for each exported field of
// T, a struct. The fields of a struct inside have its name before theirs. The columns have the
// fields' names in lower case (DeadLetters is dead_letters); durations end in _seconds. A time is
// shown as RFC 3339, the zero time as nothing. In the column identifier, an rdma.Handle is a link
// to the page's view of it. name is for addresses and paths: small letters, digits and hyphens. The
// page calls read on a separate goroutine, only while a client asks, and shows the first 1,000
// rows.
//
//	inspect.Rows("peers", "Remoting peers", node.Peers)
//
// The P50 and P99 of rpc's Server.Inspect are since the start. Histogram.Since of two readings
// returns recent ones.
func Rows[T any](name, title string, read func() []T) Section {
	fields := fieldsOf(reflect.TypeFor[T](), "", nil)
	s := Section{name: name, title: title}
	for _, f := range fields {
		s.columns = append(s.columns, f.name)
	}
	s.read = func() table {
		values := read()
		t := table{rows: make([]map[string]any, 0, min(len(values), sectionRows)), total: len(values)}
		for _, v := range values[:min(len(values), sectionRows)] {
			row := make(map[string]any, len(fields))
			for _, f := range fields {
				row[f.name] = f.cellValue(reflect.ValueOf(&v).Elem())
			}
			t.rows = append(t.rows, row)
		}
		return t
	}
	return s
}

// field is a column of a struct.
type field struct {
	name  string
	index []int
}

// fieldsOf lists a struct's exported fields, those of structs inside it with a prefix.
func fieldsOf(t reflect.Type, prefix string, index []int) (fields []field) {
	if t.Kind() != reflect.Struct {
		return []field{{name: "value", index: index}}
	}
	for i := range t.NumField() {
		f := t.Field(i)
		at := append(append([]int(nil), index...), i)
		name := prefix + snakeCase(f.Name)
		switch {
		case !f.IsExported():
		case f.Type.Kind() == reflect.Struct && !hasText(f.Type):
			inner := name + "_"
			if f.Anonymous {
				inner = prefix
			}
			fields = append(fields, fieldsOf(f.Type, inner, at)...)
		case f.Type == reflect.TypeFor[time.Duration]():
			fields = append(fields, field{name + "_seconds", at})
		default:
			fields = append(fields, field{name, at})
		}
	}
	return fields
}

// hasText reports whether a type's values have a text.
func hasText(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[fmt.Stringer]()) || t.Implements(reflect.TypeFor[error]()) ||
		t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) || t.Kind() == reflect.Pointer
}

// cellValue returns a cell's value: a number, a bool or a text.
func (f field) cellValue(row reflect.Value) any {
	v := row
	if len(f.index) > 0 {
		v = row.FieldByIndex(f.index)
	}
	switch v := v.Interface().(type) {
	case time.Duration:
		return v.Seconds()
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return formatTime(v)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Slice, reflect.Map, reflect.Func, reflect.Chan:
		if v.IsNil() {
			return ""
		}
	}
	switch {
	case hasText(v.Type()):
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return v.Uint()
	case v.CanFloat() && !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0): // JSON has no others
		if v.Kind() == reflect.Float32 {
			return float32(v.Float())
		}
		return v.Float()
	case v.Kind() == reflect.Bool:
		return v.Bool()
	}
	return truncateText(fmt.Sprint(v.Interface()))
}

// longest is the largest number of bytes shown of a text from outside.
const longest = 512

// truncateText returns the beginning of a text, as valid UTF-8.
func truncateText(text string) string {
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// snakeCase returns a field's name in lower case, with underscores between words.
func snakeCase(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		plural := i+2 == len(runes) && runes[i+1] == 's' // plural of an abbreviation: FDs
		if i > 0 && unicode.IsUpper(r) && !plural &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// sectionView is a section as shown.
type sectionView struct {
	Taken   string           `json:"taken"`
	Name    string           `json:"name"`
	Title   string           `json:"title"`
	Error   string           `json:"error,omitempty"` // the rows are those from before the error
	Late    float64          `json:"late_seconds"`    // since Taken, beyond the interval
	Total   int              `json:"total"`
	Columns []string         `json:"columns"`
	Rows    []map[string]any `json:"rows"`
}

// sectionTitle is an entry in the list of sections.
type sectionTitle struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}
