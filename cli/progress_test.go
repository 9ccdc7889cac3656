package cli

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// screen is a terminal's memory.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestBarOnlyWhenSlow(t *testing.T) {
	for name, test := range map[string]struct {
		terminal bool
		takes    time.Duration
		want     bool
	}{
		"fast":        {true, barDelay / 2, false},
		"slow":        {true, 3 * barDelay, true},
		"no terminal": {false, 3 * barDelay, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				out := &screen{}
				env := &Env{Err: out, Terminal: test.terminal}
				bar := env.transfer("publish", 1<<20)
				r := bar.reader(strings.NewReader(strings.Repeat("x", 1<<20)))
				if _, err := io.CopyN(io.Discard, r, 1<<19); err != nil {
					t.Fatal(err)
				}
				time.Sleep(test.takes)
				if _, err := io.Copy(io.Discard, r); err != nil {
					t.Fatal(err)
				}
				bar.end()
				bar.end()
				if got := strings.Contains(out.String(), "publish"); got != test.want {
					t.Errorf("bar shown: %v, want %v (%q)", got, test.want, out.String())
				}
				if test.want && !strings.Contains(out.String(), "512.0 KiB / 1.0 MiB") {
					t.Errorf("the bar does not say how far it is: %q", out.String())
				}
				after := out.String()
				time.Sleep(10 * barDelay)
				if out.String() != after {
					t.Error("something was written after the end")
				}
			})
		})
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                   "plain text",
		"价格 Ä 😀":                       "价格 Ä 😀",
		"a\x1b[31mred\x07\nb\t\tc":     "a [31mred b c",
		"right\u202eleft\u200b\ufeff.": "right left .",
		"bad\xff\xfeutf8":              "bad utf8",
		"":                             "",
		"\r\n":                         "",
	} {
		if got := printable(in); got != want {
			t.Errorf("printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestColour(t *testing.T) {
	for _, test := range []struct {
		terminal bool
		noColor  string
		want     string
	}{{true, "", "\x1b[31mx\x1b[0m"}, {true, "1", "x"}, {false, "", "x"}} {
		env := &Env{Terminal: test.terminal, Vars: map[string]string{"NO_COLOR": test.noColor}}
		if got := env.paint(red, "x"); got != test.want {
			t.Errorf("terminal %v, NO_COLOR=%q: %q, want %q", test.terminal, test.noColor, got, test.want)
		}
	}
}
