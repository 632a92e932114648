package differential

import (
	"fmt"
	"regexp"
	"strings"
)

// Program is a sequence of turns.
type Program []Turn

// Turn is a number of commands that are sent back to back. The next turn begins when both sides are
// quiet.
type Turn []Step

// Step is one command: the identifier's name, the command, and the name of its argument.
type Step struct{ Who, Verb, Arg string }

// String returns the step in the form "a.connect(3)".
func (s Step) String() string { return s.Who + "." + s.Verb + "(" + s.Arg + ")" }

// String returns the turn's commands in one line.
func (t Turn) String() string {
	steps := make([]string, len(t))
	for i, s := range t {
		steps[i] = s.String()
	}
	return strings.Join(steps, " & ")
}

// String returns a line for each turn.
func (p Program) String() string {
	lines := make([]string, len(p))
	for i, t := range p {
		lines[i] = t.String()
	}
	return strings.Join(lines, "\n")
}

var stepForm = regexp.MustCompile(`^(\w+)\.(\w+)\(([^()]*)\)$`)

// ParseProgram parses the output of Program.String. A semicolon ends a turn, as a new line does.
func ParseProgram(text string) (Program, error) {
	var p Program
	for line := range strings.SplitSeq(strings.ReplaceAll(text, ";", "\n"), "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		var t Turn
		for part := range strings.SplitSeq(line, "&") {
			m := stepForm.FindStringSubmatch(strings.TrimSpace(part))
			if m == nil {
				return nil, fmt.Errorf("differential: %q is not a step: want who.verb(argument)", part)
			}
			if _, ok := verbs[m[2]]; !ok {
				return nil, fmt.Errorf("differential: there is no command %q", m[2])
			}
			t = append(t, Step{m[1], m[2], m[3]})
		}
		p = append(p, t)
	}
	return p, nil
}
