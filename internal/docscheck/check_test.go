package docscheck

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const goodDoc = `
## rdma_listen(3)

| id | sentence | tests | deviation |
|---|---|---|---|
| listen-1 | it listens | ` + "`a.TestA`<br>`a.TestA/row_one`" + ` | |
| listen-2 | it has a backlog | ` + "`a.TestA/row_one`<br>`a.TestA/group/row_two`" + ` | |
| listen-3 | it flies | | it walks, because it has no wings |
| listen-4 | it passes the suite | ` + "`a.TestSuite/bind/port_0`" + ` | |
`

// goodPage is the manual page that goodDoc describes.
var goodPage = manpage{"listen", 4, 0xbbfd42ee}

func testCode(t *testing.T) map[string]*pkg {
	t.Helper()
	code, err := index(fstest.MapFS{
		"a/a_test.go": {Data: []byte(`package a
import "x/internal/conformance"
// manpages: listen-1
func TestA(t *testing.T) {
	for _, r := range []struct{ name string }{
		// Why it is there.
		// manpages: listen-1, listen-2
		{"row one"},
		// manpages: listen-2
		{name: "row two"},
	} { t.Run(r.name, nil) }
	t.Run("group", nil)
	t.Log("not a subtest")
}
func (s suite) TestMethod() {}
func TestSuite(t *testing.T) { conformance.Run(t) }
`)},
		"a/a.go":                      {Data: []byte("package a\nfunc TestNotInATestFile() {}\n")},
		"b/b_test.go":                 {Data: []byte("package b\nfunc TestB() {}\n")},
		"internal/conformance/run.go": {Data: []byte("package conformance\nvar suite = map[string]func(){\n// manpages: listen-4\n\"bind/port 0\": nil,\n}\n")},
		"a/testdata/broken.go":        {Data: []byte("not Go")},
		".hidden/broken_test.go":      {Data: []byte("not Go")},
		"a/testdata/broken_test.go":   {Data: []byte("not Go")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// TestCheck shows each complaint once.
func TestCheck(t *testing.T) {
	if got := check(goodDoc, []manpage{goodPage}, testCode(t)); len(got) != 0 {
		t.Errorf("a good table: %q", got)
	}
	rows := []struct {
		name, row, want string
	}{
		{"neither", "| listen-5 | it sings | | |", "listen-5: has neither a test nor a deviation"},
		{"no test", "| listen-5 | it sings | `a.TestGone` | |", "listen-5: `a.TestGone`: there is no func TestGone in a"},
		{"no package", "| listen-5 | it sings | `z.TestA` | |", "listen-5: `z.TestA`: there is no func TestA in z"},
		{"a method", "| listen-5 | it sings | `a.TestMethod` | |", "listen-5: `a.TestMethod`: there is no func TestMethod in a"},
		{"not in a test file", "| listen-5 | it sings | `a.TestNotInATestFile` | |", "listen-5: `a.TestNotInATestFile`: there is no func TestNotInATestFile in a"},
		{"no subtest", "| listen-5 | it sings | `a.TestA/row_three` | |", "listen-5: `a.TestA/row_three`: no subtest has that name"},
		{"text that is no subtest", "| listen-5 | it sings | `a.TestA/not_a_subtest` | |", "listen-5: `a.TestA/not_a_subtest`: no subtest has that name"},
		{"suite not run", "| listen-5 | it sings | `b.TestB/bind/port_0` | |", "listen-5: `b.TestB/bind/port_0`: no subtest has that name"},
		{"with a deviation", "| listen-5 | it sings | `a.TestGone` | it hums |", "listen-5: `a.TestGone`: there is no func TestGone in a"},
		{"no reference", "| listen-5 | it sings | see the code | |", "listen-5: see the code: a test is written `package.TestName/subtest`"},
		{"gap", "| listen-6 | it sings | | it hums |", "listen-6: follows listen-4"},
		{"twice", "| listen-4 | it sings | | it hums |", "listen-4: follows listen-4"},
		{"says nothing", "| listen-5 | | | it hums |", "listen-5: says nothing"},
		{"another's test", "| listen-5 | it sings | `a.TestA/row_two` | |", "listen-5: `a.TestA/row_two`: that test does not say that it shows this row: // manpages: listen-5"},
		{"a dash", "| listen-5 | it sings | | - |", `listen-5: "-" explains no deviation`},
		{"another's page", "| bind_addr-1 | it sings | | it hums |", `bind_addr-1: stands under "rdma_listen(3)", not "rdma_bind_addr(3)"`},
		{"columns", "| listen-5 | it sings | `a.TestA` |", "listen-5: has 3 columns, want 4: id, sentence, tests, deviation"},
		{"id", "| fifth | it sings | `a.TestA` | |", `row "fifth": an id is a page and a number: listen-3`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := check(goodDoc+r.row+"\n", nil, testCode(t))
			if len(got) != 1 || got[0] != r.want {
				t.Errorf("got %q, want %q", got, r.want)
			}
		})
	}
	for _, r := range []struct {
		doc   string
		pages []manpage
		want  []string
	}{
		{goodDoc, []manpage{goodPage, {"bind_addr", 8, 0}}, []string{"rdma_bind_addr(3) has 0 rows, want 8: one was lost, or this test counts old ones"}},
		{goodDoc[:strings.Index(goodDoc, "| listen-4")], []manpage{goodPage}, []string{
			"rdma_listen(3) has 3 rows, want 4: one was lost, or this test counts old ones",
			"internal/conformance/run.go:3: says that it shows listen-4, whose row does not cite it",
		}},
		{strings.Replace(goodDoc, "`a.TestA`<br>", "`a.TestA`<br>`a.TestA`<br>", 1), nil, []string{"listen-1: `a.TestA` is cited twice"}},
		{strings.Replace(goodDoc, "it has a backlog", "it has none", 1), []manpage{goodPage}, []string{
			"rdma_listen(3) says something else: do the tests show that? Then its sum is 0xbe7082c7",
		}},
		{strings.Replace(goodDoc, "`a.TestA`<br>", "", 1), nil, []string{"a/a_test.go:3: says that it shows listen-1, whose row does not cite it"}},
	} {
		if got := check(r.doc, r.pages, testCode(t)); !slices.Equal(got, r.want) {
			t.Errorf("%q, want %q", got, r.want)
		}
	}
}
