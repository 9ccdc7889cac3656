package name

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gatehouse-registry/gatehouse/testdata"
	"github.com/google/go-cmp/cmp"
)

func lines(t *testing.T, path string) []string {
	t.Helper()
	raw, err := testdata.FS.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		if !strings.HasPrefix(s.Text(), "#") {
			all = append(all, s.Text())
		}
	}
	return all
}

// answer is the documented answer to a version, as versions.expect writes it.
func answer(version string) string {
	v, err := ParseVersion(version)
	if refusal, ok := errors.AsType[*VersionError](err); ok {
		return "refuse " + string(refusal.Rule)
	}
	return fmt.Sprintf("accept %s tag %s", v.Canonical(), v)
}

func TestVersionCorpus(t *testing.T) {
	var want []string
	for _, version := range lines(t, "corpus/versions.txt") {
		want = append(want, strconv.QuoteToASCII(version)+" "+answer(version))
	}
	if diff := cmp.Diff(want, lines(t, "corpus/versions.expect")); diff != "" {
		t.Errorf("versions.expect (-ours +file):\n%s", diff)
	}
}

// In one repository no two spellings name one version, and no tag names two.
func TestVersionCorpusInOneRepository(t *testing.T) {
	taken := make(map[string]string) // canonical form to tag
	refused := 0
	for _, text := range lines(t, "corpus/versions.txt") {
		v, err := ParseVersion(text)
		if err != nil {
			continue
		}
		tag, clash := taken[v.Canonical()]
		for _, other := range taken {
			if Equal(text, other) != (clash && other == tag) {
				t.Errorf("Equal(%q, %q) disagrees with the canonical forms", text, other)
			}
			if strings.EqualFold(v.String(), other) && !clash {
				t.Errorf("%q and %q differ only in case and both pass", v, other)
			}
		}
		if clash {
			refused++
			continue
		}
		taken[v.Canonical()] = v.String()
	}
	if len(taken) != 16 || refused != 7 {
		t.Errorf("%d versions taken and %d refused as taken, want 16 and 7: %v", len(taken), refused, taken)
	}
}

func TestParseVersion(t *testing.T) {
	hex := strings.Repeat("aB", 32)
	for _, test := range []struct{ version, want string }{
		{"1.10", "accept 1.10 tag 1.10"},
		{"nan", "accept nan tag nan"},
		{"V1", "accept 1 tag V1"},
		{"Latest", "refuse publish.version"},
		{"sha256-" + hex, "refuse publish.version"},
		{"SHA256-" + hex + ".sig", "refuse publish.version"},
		{"sha256-" + hex[2:], "accept sha256-" + strings.ToLower(hex[2:]) + " tag sha256-" + hex[2:]},
		{strings.Repeat("1", 128), "accept " + strings.Repeat("1", 128) + " tag " + strings.Repeat("1", 128)},
		{strings.Repeat("1", 129), "refuse manifest.version.length"},
		{"", "refuse manifest.version"},
		{"1.0+local", "refuse manifest.version"},
		{"_1", "refuse manifest.version"},
	} {
		if got := answer(test.version); got != test.want {
			t.Errorf("version %q: %s, want %s", test.version, got, test.want)
		}
	}
}

func TestRepositoryName(t *testing.T) {
	long := strings.Repeat("a", 128)
	for _, test := range []struct{ owner, name, want string }{
		{"alice", "my-algo", "alice/my-algo"},
		{"alice", "My.Algo_2", "alice/my.algo_2"},
		{"a__b", "x---y", "a__b/x---y"},
		{"alice", long, "alice/" + long},
		{"alice", long + "a", ""},
		{"alice", "a..b", ""},
		{"alice", "a.", ""},
		{"alice", "a___b", ""},
		{"alice", "a_.b", ""},
		{"alice", "", ""},
		{"alice", "a/b", ""},
		{"Alice", "b", ""},
		{"", "b", ""},
		{strings.Repeat("o", 200), strings.Repeat("n", 60), ""},
	} {
		got, err := RepositoryName(test.owner, test.name)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("RepositoryName(%q, %q) = %q, %v; want %q", test.owner, test.name, got, err, test.want)
		}
		if refusal, ok := errors.AsType[*Error](err); err != nil && (!ok || refusal.Hint == "" || refusal.Field == "") {
			t.Errorf("RepositoryName(%q, %q): error %#v", test.owner, test.name, err)
		}
	}
}

func TestFold(t *testing.T) {
	for _, names := range [][]string{{"My-Algo", "my_algo", "my.algo", "MY--ALGO", "my-_.algo"}, {"a", "A"}, {"a-", "a."}} {
		for _, n := range names {
			if Fold(n) != Fold(names[0]) {
				t.Errorf("Fold(%q) = %q, Fold(%q) = %q", n, Fold(n), names[0], Fold(names[0]))
			}
		}
	}
	if Fold("my-algo") == Fold("myalgo") || Fold("a") == Fold("a-") {
		t.Error("Fold confuses names that differ in more than case and punctuation")
	}
}

func TestLatest(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 0, time.UTC) }
	order := []Published{ // from the oldest to the newest
		{"zebra", day(1)}, {"apple", day(2)}, {"9.x", day(3)}, // unreadable: by time
		{"1.0.dev3", day(9)}, {"1.0a1", day(8)}, {"99.0rc1", day(7)}, // pre-releases
		{"0.0.4", day(6)}, {"0.0.39", day(5)}, {"1.9", day(9)}, {"1.10", day(4)}, {"1.10-1", day(3)}, {"1!0", day(1)},
	}
	for n := 1; n <= len(order); n++ {
		shuffled := append([]Published(nil), order[:n]...)
		rand.New(rand.NewPCG(1, uint64(n))).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got, ok := Latest(shuffled); !ok || got != order[n-1] {
			t.Errorf("latest of %v is %v, want %v", order[:n], got, order[n-1])
		}
	}
	if got, ok := Latest(nil); ok {
		t.Errorf("latest of nothing is %v", got)
	}
}
