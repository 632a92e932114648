package chromium

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Tab is a browser of a test's. A step that fails ends the test.
type Tab struct {
	testing.TB
	*Browser
}

// mostBytes is how large a picture for the documents may be.
const mostBytes = 150 << 10

// Look opens an address in a browser that ends with the test.
func Look(t testing.TB, url string, width, height int) *Tab {
	t.Helper()
	b, err := Start(width, height)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	tab := &Tab{t, b}
	tab.Must(b.Open(url))
	return tab
}

// Must ends the test if a step has failed.
func (t *Tab) Must(err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v\n%v", err, t.Errors())
	}
}

// Want waits until an expression is true.
func (t *Tab) Want(expression string) {
	t.Helper()
	t.Must(t.Wait(expression))
}

// Press clicks the element that a selector finds, as soon as it exists.
func (t *Tab) Press(selector string) {
	t.Helper()
	t.Want(`document.querySelector(` + strconv.Quote(selector) + `)`)
	t.Must(t.Click(selector))
}

// Act presses a button of an action, and answers the page's question. token is "" if this tab has
// given it before.
func (t *Tab) Act(action, token string) {
	t.Helper()
	t.Press(`[data-action="` + action + `"]`)
	t.Sure(token)
}

// Sure answers the page's question whether an action is meant.
func (t *Tab) Sure(token string) {
	t.Helper()
	t.Want(`document.querySelector("dialog[open] #sure")`)
	if token != "" {
		t.Press("#token")
		t.Must(t.Type(token))
	}
	t.Press("#sure")
	t.Want(`!document.querySelector("dialog")`)
}

// Save writes a screenshot of the tab to a file, for the documents.
func (t *Tab) Save(file string, dark bool) {
	t.Helper()
	t.Must(t.Dark(dark))
	t.Must(t.Eval("scrollTo(0, 0)", nil))
	time.Sleep(500 * time.Millisecond) // wait for the drawing
	data, err := t.Picture()
	t.Must(err)
	if filepath.Ext(file) != ".png" || len(data) > mostBytes {
		t.Errorf("%s has %d bytes", file, len(data))
	}
	t.Must(os.WriteFile(file, data, 0o644))
}
