package top

import (
	"slices"
	"strconv"
	"time"
	"unicode"

	"github.com/rdmactor/rdmactor/cmd/rdmactor/internal/page"
)

// sorts are the fields that the key s cycles through.
var sorts = []string{
	"id", "state", "trouble", "in_state_seconds", "peer", "queued_messages", "waits_for_seconds", "sent_messages",
	"received_messages", "credits_send_messages", "local", "device", "loop", "memory_bytes", "owner",
}

// longestFilter is the page's limit, for characters of one byte.
const longestFilter = 100

// rowName returns an identifier's name: its number or, if it has none yet, its PID's id.
func rowName(r *page.Row) string {
	if r.ID == 0 {
		return r.PID
	}
	return strconv.FormatUint(r.ID, 10)
}

// model is the state of the display and the last answers.
type model struct {
	query    page.Query
	detail   string // the identifier shown in detail; "": the table
	section  string // the program's table shown instead; "": none
	from     int    // its first visible row, or the first visible line of the detail
	column   int    // number of columns that are scrolled out, after the first one
	width    int    // of the terminal; 0: lines are not wrapped
	help     bool   // the keys are shown instead
	cursor   int
	editing  bool
	edit     string // the filter being typed
	overview page.Overview
	ids      page.IDs
	sections []page.Title
	own      page.Section // the program's table
	one      page.ID
	gone     bool // the identifier has ended: one is its last state
	rates    rates
	got      time.Time // when the last answer arrived; zero: none yet
	err      error     // nil: the last request was answered
	retry    time.Time // when to send the next request, after an error
}

func newModel(q page.Query) *model {
	if q.Sort == "" { // those in trouble first
		q.Sort, q.Descending = "trouble", !q.Descending
	}
	q.Page = 1
	return &model{query: q}
}

// question is the next request of the model.
type question struct {
	page.Query
	detail  string
	section string
}

func (m *model) currentQuestion() question { return question{m.query, m.detail, m.section} }

// answer is the page's answer to a question.
type answer struct {
	n        int // number of the question
	to       question
	overview page.Overview
	sections []page.Title
	table    page.Section
	ids      page.IDs
	one      page.ID
	gone     bool // the identifier no longer exists
	err      error
}

// storeAnswer stores an answer. After an error the previous data stay.
func (m *model) storeAnswer(a answer, now time.Time) {
	if m.err = a.err; a.err != nil {
		return
	}
	m.got = now
	m.rates.addAnswer(&a)
	m.overview, m.sections = a.overview, a.sections
	if a.to.section != "" {
		m.own = a.table
		m.scrollSection(0)
		return
	}
	if a.to.detail != "" {
		if m.gone = a.gone; !a.gone {
			m.one = a.one
		}
		return
	}
	m.ids = a.ids
	m.query.Page = min(m.query.Page, a.ids.Pages)
	m.moveCursor(0)
}

// handleKey handles a key. quit: the user quits.
func (m *model) handleKey(k key) (quit bool) {
	switch {
	case k == keyInterrupt:
		return true
	case m.help:
		m.help = false
	case m.editing:
		m.handleFilterKey(k)
	case k == '?' || k == 'h':
		m.help = true
	case k == keyRight || k == '>':
		m.column++
	case k == keyLeft || k == '<':
		m.column = max(m.column-1, 0)
	case m.section != "":
		m.ownTable(k)
	case m.detail != "":
		m.detailKey(k)
	default:
		return m.handleTableKey(k)
	}
	return false
}

// handleTableKey handles a key in the table.
func (m *model) handleTableKey(k key) (quit bool) {
	switch k {
	case 'q':
		return true
	case keyUp, 'k':
		m.moveCursor(-1)
	case keyDown, 'j':
		m.moveCursor(1)
	case keyPageUp:
		m.turnPage(m.query.Page - 1)
	case keyPageDown, ' ':
		m.turnPage(m.query.Page + 1)
	case keyHome, 'g':
		m.turnPage(1)
	case keyEnd, 'G':
		m.turnPage(m.ids.Pages)
		m.cursor = len(m.ids.Rows)
		m.moveCursor(0)
	case 's':
		m.changeSort(1)
	case 'S':
		m.changeSort(-1)
	case 'r':
		m.query.Descending = !m.query.Descending
	case keyTab:
		m.turnTo(0)
	case '/':
		m.editing, m.edit = true, m.query.Text
	case keyEscape:
		m.query.Text = ""
	case keyEnter:
		if m.cursor < len(m.ids.Rows) {
			m.detail, m.one, m.gone, m.from = rowName(&m.ids.Rows[m.cursor]), page.ID{}, false, 0
		}
	}
	return false
}

// detailKey handles a key while one identifier is shown.
func (m *model) detailKey(k key) {
	switch k {
	case 'q', keyEscape, keyBackspace, keyEnter:
		m.detail = ""
	case keyUp, 'k':
		m.from = max(m.from-1, 0)
	case keyDown, 'j':
		m.from++ // at most to the last line: visibleDetail
	case keyPageUp:
		m.from = max(m.from-10, 0)
	case keyPageDown, ' ':
		m.from += 10
	case keyHome, 'g':
		m.from = 0
	}
}

// ownTable handles a key in one of the program's tables.
func (m *model) ownTable(k key) {
	switch k {
	case 'q', keyEscape:
		m.section = ""
	case keyTab:
		at := slices.IndexFunc(m.sections, func(t page.Title) bool { return t.Name == m.section })
		m.turnTo(at + 1)
	case keyUp, 'k':
		m.scrollSection(-1)
	case keyDown, 'j':
		m.scrollSection(1)
	case keyPageUp:
		m.scrollSection(-10)
	case keyPageDown, ' ':
		m.scrollSection(10)
	case keyHome, 'g':
		m.scrollSection(-len(m.own.Rows))
	case keyEnd, 'G':
		m.scrollSection(len(m.own.Rows))
	}
}

// turnTo shows the program's nth table, or identifiers after the last.
func (m *model) turnTo(n int) {
	m.section, m.own, m.from, m.column = "", page.Section{}, 0, 0
	if n < len(m.sections) {
		m.section = m.sections[n].Name
	}
}

func (m *model) scrollSection(by int) { m.from = max(min(m.from+by, len(m.own.Rows)-1), 0) }

// handleFilterKey handles a key while the filter is edited.
func (m *model) handleFilterKey(k key) {
	switch {
	case k == keyEscape:
		m.editing = false
	case k == keyEnter:
		m.editing, m.query.Text = false, m.edit
		m.turnPage(1)
	case k == keyBackspace:
		if r := []rune(m.edit); len(r) > 0 {
			m.edit = string(r[:len(r)-1])
		}
	case k > 0 && unicode.IsPrint(rune(k)) && len(m.edit) < longestFilter:
		m.edit += string(rune(k))
	}
}

// moveCursor moves the cursor. At the end of the table it shows the next page.
func (m *model) moveCursor(by int) {
	m.cursor += by
	last := len(m.ids.Rows) - 1
	switch {
	case by < 0 && m.cursor < 0 && m.query.Page > 1:
		m.turnPage(m.query.Page - 1)
		m.cursor = max(last, 0)
	case by > 0 && m.cursor > last && m.query.Page < m.ids.Pages:
		m.turnPage(m.query.Page + 1)
	default:
		m.cursor = max(min(m.cursor, last), 0)
	}
}

func (m *model) turnPage(to int) {
	m.query.Page = max(min(to, max(m.ids.Pages, 1)), 1)
	m.cursor = 0
}

// changeSort sorts by the next or the previous field.
func (m *model) changeSort(by int) {
	at := 0
	for n, field := range sorts {
		if field == m.query.Sort {
			at = n
		}
	}
	m.query.Sort = sorts[(at+by+len(sorts))%len(sorts)]
	m.turnPage(1)
}
