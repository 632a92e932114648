package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/rdmactor/rdmactor/internal/plain"
)

// Row is an identifier, with the page's names of its fields.
type Row struct {
	ID        uint64  `json:"id"` // 0: none yet
	PID       string  `json:"pid"`
	State     string  `json:"state"`
	Trouble   string  `json:"trouble"`
	InState   float64 `json:"in_state_seconds"`
	Age       float64 `json:"age_seconds"`
	Peer      string  `json:"peer"`
	Local     string  `json:"local"`
	Device    string  `json:"device"`
	Loop      string  `json:"loop"`
	Owner     string  `json:"owner"`
	Wire      string  `json:"wire"`
	Security  string  `json:"security"`
	Identity  string  `json:"identity"`
	Waiting   string  `json:"waiting"`
	Mailbox   int64   `json:"mailbox_messages"`
	Queued    int64   `json:"queued_messages"`
	InFlight  int64   `json:"in_flight_messages"`
	Send      int64   `json:"credits_send_messages"`
	Unacked   int64   `json:"unacked_messages"`
	Receive   int64   `json:"credits_receive_messages"`
	Unfreed   int64   `json:"unfreed_messages"`
	Delivered uint64  `json:"delivered_messages"`
	Memory    int64   `json:"memory_bytes"`

	Sent          uint64  `json:"sent_messages"`
	SentBytes     uint64  `json:"sent_bytes"`
	Received      uint64  `json:"received_messages"`
	ReceivedBytes uint64  `json:"received_bytes"`
	LargeSent     uint64  `json:"large_sent_messages"`
	LargeReceived uint64  `json:"large_received_messages"`
	Reads         uint64  `json:"reads"`
	ReadBytes     uint64  `json:"read_bytes"`
	Writes        uint64  `json:"writes"`
	WriteBytes    uint64  `json:"write_bytes"`
	Atomics       uint64  `json:"atomics"`
	CreditWaits   uint64  `json:"credit_waits"`
	CreditWait    float64 `json:"credit_wait_seconds"`
	WaitsFor      float64 `json:"waits_for_seconds"`
	Old           float64 `json:"old_seconds"`
}

// Text returns the field with that name, for display; "" if there is none.
func (r *Row) Text(field string) string {
	v := reflect.ValueOf(r).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("json") == field {
			return cell{fmt.Sprint(v.Field(i).Interface()), v.Field(i).Kind() != reflect.String}.Format(field)
		}
	}
	return ""
}

// formatNumber returns a field's value for display, in the unit at the end of the field's name.
func formatNumber(field, value string) string {
	n, err := strconv.ParseFloat(value, 64)
	switch {
	case err != nil:
		return value
	case strings.HasSuffix(field, "_seconds"):
		return plain.Duration(n)
	case strings.HasSuffix(field, "_bytes"):
		return plain.Bytes(n)
	case strings.ContainsAny(value, ".e"): // a rate, a share
		return plain.Count(n)
	}
	return value
}

// IDs is a page of identifiers.
type IDs struct {
	Taken   string      `json:"taken"`
	Blocked string      `json:"blocked"`
	Total   int         `json:"total"`
	Matched int         `json:"matched"`
	Page    int         `json:"page"`
	Pages   int         `json:"pages"`
	States  object[int] `json:"states"`
	Rows    list[Row]   `json:"rows"`
}

// ID is one identifier.
type ID struct {
	Taken string `json:"taken"`
	Row
	Meaning string     `json:"meaning"`
	Kernel  string     `json:"kernel"`
	History list[Stay] `json:"history"`
}

// Stay is one visit to a state.
type Stay struct {
	State string  `json:"state"`
	At    float64 `json:"at_seconds"`
	For   float64 `json:"for_seconds"`
}

// Loop is an event loop.
type Loop struct {
	Name        string  `json:"name"`
	Identifiers int     `json:"identifiers"`
	Busy        float64 `json:"busy_seconds"`
	RecentTurn  float64 `json:"recent_turn_seconds"`
	Blocked     float64 `json:"blocked_seconds"`
	BlockedBy   string  `json:"blocked_by"`
	Queued      int64   `json:"queued"`
}

// Memory is a pool of a loop, or of the process.
type Memory struct {
	Loop       string `json:"loop"`
	Pool       string `json:"pool"`
	Used       uint64 `json:"used_bytes"`
	Registered uint64 `json:"registered_bytes"`
	Limit      uint64 `json:"limit_bytes"`
	Waiting    int64  `json:"waiting_connections"`
}

// Overview has the data of the program as a whole.
type Overview struct {
	Taken      string       `json:"taken"`
	Go         string       `json:"go"`
	Goroutines int          `json:"goroutines"`
	Interval   float64      `json:"interval_seconds"`
	Total      int          `json:"total"`
	Blocked    string       `json:"blocked"`
	States     object[int]  `json:"states"`
	Loops      list[Loop]   `json:"loops"`
	Memory     list[Memory] `json:"memory"`
}

// Title names one of the program's tables.
type Title struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Section is such a table.
type Section struct {
	Taken   string             `json:"taken"`
	Title   string             `json:"title"`
	Error   string             `json:"error"` // the rows are those from before the error
	Late    float64            `json:"late_seconds"`
	Total   int                `json:"total"`
	Columns list[string]       `json:"columns"`
	Rows    list[object[cell]] `json:"rows"`
}

// list has a limited number of elements, so that a short answer cannot use much memory: an element
// may be two bytes of JSON and hundreds of a struct. It is nil if the answer has none.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (l *list[T]) UnmarshalJSON(data []byte) error {
	if *l = nil; string(data) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('[') {
		return errNoPage
	}
	for all := []T{}; ; {
		if !d.More() {
			*l = all
			return nil
		}
		if len(all) == mostElements {
			return errNoPage
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		all = append(all, v)
	}
}

// object maps names to values, with the same limit as lists.
type object[T any] map[string]T

// UnmarshalJSON implements json.Unmarshaler.
func (o *object[T]) UnmarshalJSON(data []byte) error {
	if *o = nil; string(data) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return errNoPage
	}
	for all := (object[T]{}); ; {
		if !d.More() {
			*o = all
			return nil
		}
		name, err := d.Token()
		if err != nil {
			return err
		}
		if len(all) == mostNames {
			return errNoPage
		}
		var v T
		if err := d.Decode(&v); err != nil {
			return err
		}
		all[name.(string)] = v // an object's key
	}
}

// cell is a number, a bool or a text.
type cell struct {
	text   string
	number bool
}

// Format returns the cell of a column for display.
func (c cell) Format(column string) string {
	if c.number {
		return formatNumber(column, c.text)
	}
	return c.text
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *cell) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*c = cell{text: text}
		return nil
	}
	*c = cell{text: string(data[:min(len(data), roomCell)]), number: true}
	return nil
}

// decodeAnswer reads an answer. It fails for answers that a page does not send.
func decodeAnswer(data []byte, into any) error {
	if json.Unmarshal(data, into) != nil {
		return errNoPage
	}
	return nil
}
