package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// inText is a command in a code span, which may go over the end of a line; shown is one in a block.
	inText = regexp.MustCompile("`sf ([a-z]+(?:[ \n][a-z][a-z-]*)*)")
	shown  = regexp.MustCompile(`(?m)^    (?:\$ |sudo )?sf ([a-z]+(?: [a-z][a-z-]*)*)`)
)

// Every command that the documentation names is one: a verb that was renamed is found where people read of it.
func TestDocumentedCommands(t *testing.T) {
	root, _ := newRoot(&Env{Vars: map[string]string{}}, nil)
	seen := 0
	check := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, form := range []*regexp.Regexp{inText, shown} {
			for _, m := range form.FindAllStringSubmatch(string(text), -1) {
				words := strings.Fields(m[1])
				cmd, rest, err := root.Find(words)
				if err != nil || cmd == root || cmd.HasSubCommands() && len(rest) > 0 {
					t.Errorf("%s: there is no command sf %s", path, strings.Join(words, " "))
				}
				seen++
			}
		}
	}
	check("../README.md")
	err := filepath.WalkDir("../docs", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" {
			check(path)
		}
		return err
	})
	if err != nil || seen < 100 {
		t.Errorf("looked at %d commands, %v", seen, err)
	}
}
