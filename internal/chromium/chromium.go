// Package chromium drives Debian's Chromium for tests: it opens a page, clicks and types as a user
// does, and takes pictures. It speaks the browser's debugging protocol through a pipe, so that no
// port is opened.
package chromium

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

// patience limits the time of one step of the browser.
const patience = 2 * time.Minute

// Browser is a running Chromium with one tab. Its methods are for one goroutine.
type Browser struct {
	cmd      *exec.Cmd
	dir      string
	to, from *os.File
	session  string
	last     int
	ended    chan struct{} // closed when receiveMessages has returned

	mu      sync.Mutex
	waiting map[int]chan answer
	errors  []string // exceptions and errors on the console
}

// answer is a message of the browser.
type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Start starts Chromium with an empty tab of that size. Names that end in .test lead to this
// machine. The error states if Chromium is not installed.
func Start(width, height int) (*Browser, error) {
	dir, err := os.MkdirTemp("", "chromium")
	if err != nil {
		return nil, err
	}
	in, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	from, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &Browser{dir: dir, to: to, from: from, ended: make(chan struct{}), waiting: make(map[int]chan answer)}
	// no sandbox: tests may run as root, and open only their own pages
	b.cmd = exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe", "--user-data-dir="+dir,
		"--host-resolver-rules=MAP *.test 127.0.0.1", fmt.Sprintf("--window-size=%d,%d", width, height), "about:blank")
	b.cmd.ExtraFiles = []*os.File{in, out}
	err = b.cmd.Start()
	_, _ = in.Close(), out.Close()
	go b.receiveMessages()
	if err == nil {
		err = b.openTab(width, height)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// openTab opens the tab.
func (b *Browser) openTab(width, height int) error {
	var target struct{ TargetID string }
	if err := b.callMethod("Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.callMethod("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log"} {
		if err := b.callMethod(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return b.callMethod("Emulation.setDeviceMetricsOverride",
		map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Close ends Chromium.
func (b *Browser) Close() error {
	_ = b.to.Close() // asks the browser to end
	if b.cmd.Process != nil {
		ended := time.AfterFunc(5*time.Second, func() { _ = b.cmd.Process.Kill() })
		_ = b.cmd.Wait()
		ended.Stop()
	}
	<-b.ended
	_ = b.from.Close()
	return removeProfile(b.dir)
}

// removeProfile removes the profile. Chromium's other processes outlive the first one for a moment,
// and may write there until they notice.
func removeProfile(dir string) error {
	for left := 100; ; left-- {
		if err := os.RemoveAll(dir); err == nil || left == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// receiveMessages distributes the browser's messages.
func (b *Browser) receiveMessages() {
	defer close(b.ended)
	r := bufio.NewReaderSize(b.from, 1<<20)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if json.Unmarshal(data[:len(data)-1], &a) != nil {
			continue
		}
		b.mu.Lock()
		if a.Method == "Runtime.exceptionThrown" || a.Method == "Log.entryAdded" {
			b.errors = append(b.errors, string(a.Params))
		}
		if c := b.waiting[a.ID]; c != nil {
			delete(b.waiting, a.ID)
			c <- a
		}
		b.mu.Unlock()
	}
}

// callMethod calls a method of the debugging protocol.
func (b *Browser) callMethod(method string, params any, result any) error {
	b.last++
	message := map[string]any{"id": b.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	c := make(chan answer, 1)
	b.mu.Lock()
	b.waiting[b.last] = c
	b.mu.Unlock()
	if _, err := b.to.Write(append(data, 0)); err != nil {
		return fmt.Errorf("chromium: %s: %w", method, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case a := <-c:
		if a.Error != nil {
			return fmt.Errorf("chromium: %s: %s", method, a.Error.Message)
		}
		if result != nil {
			return json.Unmarshal(a.Result, result)
		}
		return nil
	case <-b.ended:
		return fmt.Errorf("chromium: %s: it has ended", method)
	case <-ctx.Done():
		return fmt.Errorf("chromium: %s: no answer", method)
	}
}

// Open goes to an address.
func (b *Browser) Open(url string) error {
	var r struct{ ErrorText string }
	err := b.callMethod("Page.navigate", map[string]any{"url": url}, &r)
	if err == nil && r.ErrorText != "" {
		err = errors.New("chromium: " + url + ": " + r.ErrorText)
	}
	return err
}

// Eval evaluates an expression, and gives its value.
func (b *Browser) Eval(expression string, value any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := b.callMethod("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if err != nil {
		return err
	}
	if d := r.ExceptionDetails; d != nil {
		return fmt.Errorf("chromium: %s: %s %s", expression, d.Text, d.Exception.Description)
	}
	if value == nil || len(r.Result.Value) == 0 {
		return nil
	}
	return json.Unmarshal(r.Result.Value, value)
}

// Wait waits until an expression is true.
func (b *Browser) Wait(expression string) error {
	var is bool
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = b.Eval("!!("+expression+")", &is); err == nil && is {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("chromium: never: %s", expression), err)
}

// clicks is how often Click tries.
const clicks = 20

// Click presses the mouse's left button in the middle of the element that a selector finds. If the
// page replaces or moves it between the press and the release, there is no click, and Click tries
// again.
func (b *Browser) Click(selector string) error {
	quoted, err := json.Marshal(selector)
	if err != nil {
		return err
	}
	for range clicks {
		var at struct{ X, Y float64 }
		err := b.Eval(`(() => { const s = `+string(quoted)+`, e = document.querySelector(s); e.scrollIntoView({ block: "center" });
			window.clickMissed = true;
			document.addEventListener("click", c => { window.clickMissed = !c.target.closest(s); }, { capture: true, once: true });
			const r = e.getBoundingClientRect(); return { X: r.x + r.width / 2, Y: r.y + r.height / 2 }; })()`, &at)
		for _, kind := range []string{"mouseMoved", "mousePressed", "mouseReleased"} {
			event := map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}
			if kind == "mouseMoved" {
				event["button"], event["clickCount"] = "none", 0
			}
			if err == nil {
				err = b.callMethod("Input.dispatchMouseEvent", event, nil)
			}
		}
		missed := false
		if err == nil {
			err = b.Eval(`window.clickMissed === true`, &missed) // undefined on another page
		}
		if err != nil || !missed {
			return err
		}
	}
	return fmt.Errorf("chromium: %s was not clicked in %d tries", selector, clicks)
}

// Key presses a key: "j", "Enter", "Escape".
func (b *Browser) Key(name string) error {
	down := map[string]any{"type": "rawKeyDown", "key": name}
	codes := map[string]int{"Enter": 13, "Escape": 27}
	switch code, named := codes[name]; {
	case named:
		down["windowsVirtualKeyCode"] = code
	default:
		down["type"], down["text"] = "keyDown", name
	}
	up := map[string]any{"type": "keyUp", "key": name}
	return errors.Join(b.callMethod("Input.dispatchKeyEvent", down, nil), b.callMethod("Input.dispatchKeyEvent", up, nil))
}

// Type types a text into the element with the focus.
func (b *Browser) Type(text string) error {
	for _, r := range text {
		if err := b.Key(string(r)); err != nil {
			return err
		}
	}
	return nil
}

// Dark sets whether the user prefers a dark page.
func (b *Browser) Dark(dark bool) error {
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	return b.callMethod("Emulation.setEmulatedMedia",
		map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Picture returns a screenshot of the tab as a PNG.
func (b *Browser) Picture() ([]byte, error) {
	var r struct{ Data string }
	if err := b.callMethod("Page.captureScreenshot", map[string]any{"format": "png"}, &r); err != nil {
		return nil, err
	}
	return base64.StdEncoding.DecodeString(r.Data)
}

// Downloads makes the browser write the page's downloads to a directory.
func (b *Browser) Downloads(dir string) error {
	return b.callMethod("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": dir}, nil)
}

// Errors returns the page's errors: exceptions, and requests that the browser refused.
func (b *Browser) Errors() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.errors
}
