package cli

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Env is what a command may touch of the world outside: its streams, its variables, and whether a person watches.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Vars     map[string]string
	Terminal bool // stderr is a terminal: progress and colour are welcome

	environ []string // all variables as they came, for a job
}

func newEnv(environ []string, in io.Reader, out, errOut io.Writer) *Env {
	env := &Env{In: in, Out: out, Err: errOut, Vars: make(map[string]string, len(environ)), environ: environ}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		env.Vars[k] = v
	}
	if f, ok := errOut.(*os.File); ok {
		env.Terminal = term.IsTerminal(int(f.Fd())) && env.Vars["TERM"] != "dumb"
	}
	return env
}

// The colours.
const (
	red    = "31"
	yellow = "33"
	green  = "32"
)

// paint colours text for a terminal, unless NO_COLOR is set.
func (e *Env) paint(color, text string) string {
	if !e.Terminal || e.Vars["NO_COLOR"] != "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// printable makes text of others harmless on a terminal: what is no visible character becomes a blank, and none stands at
// an end.
func printable(s string) string {
	hidden := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	return strings.TrimSpace(strings.Join(strings.FieldsFunc(s, hidden), " "))
}

// printableLines is printable line by line.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

// writeJSON prints a result for programs.
func (e *Env) writeJSON(v any) error {
	enc := json.NewEncoder(e.Out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
