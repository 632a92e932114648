//go:build chromium

package inspect

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outcome waits for the outcome of an action.
func (b browser) outcome(text string) {
	b.Helper()
	b.Want(fmt.Sprintf(`document.getElementById("outcome").textContent.includes(%q)`, text))
}

// TestChromiumActions: an operator acts with the mouse. The token is asked for once, and a wrong
// one does nothing.
func TestChromiumActions(t *testing.T) {
	level := new(slog.LevelVar)
	r := busyProgram(t, &Actions{Token: token, Level: level})
	b := open(t, r)
	b.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram svg")`)
	b.Press(`#tabs a[href="#/actions"]`)
	b.Want(`document.getElementById("level-now").textContent === "now INFO"`)
	b.Must(b.Eval(`document.getElementById("level").value = "DEBUG"`, nil))

	b.Press("#set-level")
	b.Sure("0123456789abcdeF")
	b.outcome("not allowed")
	if level.Level() != slog.LevelInfo {
		t.Fatal("a wrong token has set the level")
	}
	b.Press("#set-level")
	b.Want(`document.querySelector("dialog[open]")`)
	b.key("j") // not a command here
	b.key("Escape")
	b.Want(`!document.querySelector("dialog") && location.hash === "#/actions"`)
	b.Must(b.Eval(`document.getElementById("level").value = "DEBUG"`, nil))
	b.Press("#set-level")
	b.Sure(token)
	b.Want(`document.getElementById("level-now").textContent === "now DEBUG"`)
	if level.Level() != slog.LevelDebug {
		t.Errorf("the level is %v", level.Level())
	}

	b.end("disconnect")
	b.end("drain")
	b.capture(r)
	if *pictures {
		b.Save(filepath.Join("..", "docs", "inspect-actions.png"), false)
	}
	for _, complaint := range b.Errors() {
		if !bytes.Contains([]byte(complaint), []byte("403 (Forbidden)")) && !bytes.Contains([]byte(complaint), []byte("404 (Not Found)")) {
			t.Errorf("the browser complains: %s", complaint)
		}
	}
}

// end ends the first connection in the table while it shows it.
func (b browser) end(action string) {
	b.Helper()
	b.Press(`#tabs a[href="#/ids"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram svg")`)
	b.Press("#diagram [data-state=connected]")
	b.Want(`location.hash.includes("state=connected") && document.querySelector("main tbody tr:first-child td.connected")`)
	b.Press("main tbody td a")
	b.Want(`document.getElementById("title") && document.getElementById("title").textContent.includes("connected")`)
	b.Act(action, "")
	b.Want(`document.getElementById("alert").textContent.includes("there is no such identifier: it has ended, or there never was one")`)
}

// capture captures a connection, and downloads the file.
func (b browser) capture(r *rig) {
	b.Helper()
	dir := b.TempDir()
	b.Must(b.Downloads(dir))
	b.Press(`#tabs a[href="#/ids"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram svg")`)
	b.Press("th[data-name=sent_messages] button")
	b.Press("th[data-name=sent_messages] button")
	b.Want(`document.querySelector("th[data-name=sent_messages]").getAttribute("aria-sort") === "descending" && document.querySelector("td.connected")`)
	b.Press("main tbody td a")
	b.Want(`document.getElementById("title") && document.getElementById("title").textContent.includes("connected")`)
	b.Press("#records")
	b.Want(`location.hash.startsWith("#/flight?id=") && document.querySelectorAll("main tbody tr").length > 2 &&
		[...document.querySelectorAll("main td")].some(e => e.textContent.endsWith("-> connected"))`)
	b.key("Escape")
	b.Want(`document.getElementById("title") && document.getElementById("title").textContent.includes("connected")`)
	b.Act("capture", "")
	b.outcome("capture 1 of identifier")
	b.Press(`#tabs a[href="#/actions"]`)
	b.Want(`document.querySelectorAll("main tbody tr").length === 1`)
	r.until("it has something", func() bool { return r.row(1).Bytes > 5000 })
	b.Act("stop", "")
	b.outcome("stop capture 1: ended")
	b.Want(`[...document.querySelectorAll("main td")].some(e => e.textContent === "ended") && document.querySelector("[data-action=stop]").disabled`)
	b.Act("download", "")
	b.outcome("capture-1.pcapng is downloaded")
	name := filepath.Join(dir, "capture-1.pcapng")
	r.until("the file is there", func() bool {
		data, err := os.ReadFile(name)
		return err == nil && int64(len(data)) == r.row(1).Bytes && bytes.HasPrefix(data, []byte("\x0a\x0d\x0d\x0a"))
	})
	b.Press("#capture-peer")
	b.Must(b.Type("127.0.0.1"))
	b.Press("#capture-start")
	b.Sure("")
	b.outcome("capture 2 of peer 127.0.0.1")
	b.Want(`document.querySelectorAll("main tbody tr").length === 2`)
}

// TestChromiumWithoutActions: without actions, the page does not offer them.
func TestChromiumWithoutActions(t *testing.T) {
	b := open(t, busyProgram(t, nil))
	b.Want(`document.querySelectorAll("main tbody tr").length === 50 && document.querySelector("#diagram svg")`)
	b.Press("main tbody td a")
	b.Want(`document.getElementById("title")`)
	var offered int
	b.Must(b.Eval(`document.querySelectorAll("[data-action], #tabs a[href='#/actions'], #token").length`, &offered))
	if offered != 0 {
		t.Errorf("%d offers", offered)
	}
	b.Must(b.Eval(`location.hash = "#/actions"`, nil))
	b.Want(`document.getElementById("actions-off").textContent.includes("not switched on") && document.getElementById("capture-start").disabled`)
}

// TestChromiumOtherSites: neither an attacker's name that points to this machine nor the script of
// his page gets or does anything.
func TestChromiumOtherSites(t *testing.T) {
	level := new(slog.LevelVar)
	r := busyProgram(t, &Actions{Token: token, Level: level})
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<title>evil</title>"))
	}))
	defer evil.Close()
	b := open(t, r)
	b.Must(b.Open(strings.Replace(r.url, "127.0.0.1", "evil.test", 1)))
	b.Want(`location.hostname === "evil.test" && document.body.textContent.includes("inspect.Config.Hosts")`)
	for _, host := range []string{"evil.test", "127.0.0.1"} { // the second is of the same site
		b.Must(b.Open(strings.Replace(evil.URL, "127.0.0.1", host, 1)))
		b.Want(`document.title === "evil"`)
		for _, try := range []string{
			`fetch("%sids").then(r => r.text())`,
			`fetch("%sids", { mode: "no-cors" }).then(r => r.text())`,
			`fetch("%sactions/level", { method: "POST", mode: "no-cors", body: '{"level":"debug"}' }).then(r => r.text())`,
			`fetch("%sactions/level", { method: "POST", headers: { Authorization: "Bearer ` + token + `" }, body: '{"level":"debug"}' }).then(r => r.text())`,
			`new Promise(done => { const e = new EventSource("%sevents?view=ids"); e.onopen = () => done("open"); e.onerror = () => { e.close(); done(""); } })`,
			`new Promise(done => { const i = new Image(); i.src = "%sstates.svg"; i.onload = () => done("image"); i.onerror = () => done(""); })`,
		} {
			var got string
			b.Must(b.Eval(fmt.Sprintf(try, r.url)+`.catch(() => "")`, &got))
			if got != "" {
				t.Errorf("on %s: %s\ngot %.200q", host, try, got)
			}
		}
	}
	if level.Level() != slog.LevelInfo {
		t.Errorf("the level is %v", level.Level())
	}
	// The page has gone, and will soon be no viewer. Streams that the attacker opens stay open.
	r.until("no viewer is left", func() bool { return r.page.viewers.Load() == 0 })
}
