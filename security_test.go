package gatehouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// attackers are those whom the security page must speak of, and columns the modes that it must say something about.
var (
	attackers = []string{"other user on the node", "same user", "file server", "registry operator", "network", "the plugin itself"}
	columns   = []string{"root", "user", "private-copy"}
)

var testReference = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.(Test[A-Za-z0-9]+)(?:/([a-z_]+))?`|`(testdata/[a-z/_]+\\.py)`")

// Every row of docs/security.md names its tests, they exist, every attacker has rows, and each row of the node's table has a verdict
// for every mode.
func TestSecurityPage(t *testing.T) {
	src, err := os.ReadFile("docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	if missing := unknownTests(string(src)); len(missing) > 0 {
		t.Errorf("docs/security.md names tests that do not exist: %v", missing)
	}
	seen := map[string]int{}
	var head []string
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, "|") {
			head = nil
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case head == nil:
			head = cells
			continue
		case strings.HasPrefix(cells[0], "---"):
			continue
		case len(cells) != len(head) || slices.Contains(cells, ""):
			t.Errorf("a row without all its cells: %s", line)
			continue
		case !testReference.MatchString(cells[len(cells)-1]):
			t.Errorf("a row without a test: %s", line)
		}
		if head[0] == "attacker" {
			seen[cells[0]]++
		}
		if head[0] == "attacker" && len(head) > 4 && !slices.Equal(head[2:5], columns) {
			t.Errorf("the modes are %v, expected %v", head[2:5], columns)
		}
	}
	for _, who := range attackers {
		if seen[who] == 0 {
			t.Errorf("nothing is said about the attacker %q", who)
		}
	}
	if len(seen) != len(attackers) {
		t.Errorf("attackers %v, expected %v", seen, attackers)
	}
	if got := unknownTests("`launchverify.TestNobodyWroteThis` `testdata/interop/attacks/nobody.py`"); len(got) != 2 {
		t.Errorf("tests that do not exist are not found out: %v", got)
	}
}

// unknownTests lists the tests that a text names and the project does not have.
func unknownTests(text string) (missing []string) {
	for _, m := range testReference.FindAllStringSubmatch(text, -1) {
		folder, test, script, file := m[1], m[2], m[3], m[4]
		if file != "" {
			if _, err := os.Stat(file); err != nil {
				missing = append(missing, file)
			}
			continue
		}
		found := false
		sources, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
		for _, source := range sources {
			b, err := os.ReadFile(source)
			found = found || err == nil && strings.Contains(string(b), fmt.Sprintf("\nfunc %s(t *testing.T) {", test))
		}
		if script != "" {
			_, err := os.Stat(filepath.Join(folder, "testdata", "script", script+".txtar"))
			found = found && err == nil
		}
		if !found {
			missing = append(missing, m[0])
		}
	}
	return missing
}
