package tree_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/gatehouse-registry/gatehouse/testdata"
)

// node is one entry of a vector's tree; the format is told in testdata/vectors.
type node struct {
	Path       string `json:"path"`
	PathB64    []byte `json:"path_b64"`
	Data       []byte `json:"data_b64"`
	Repeat     []byte `json:"repeat_b64"`
	Count      int    `json:"count"`
	Mode       string `json:"mode"`
	SymlinkTo  string `json:"symlink_to"`
	HardlinkTo string `json:"hardlink_to"`
	Dir        bool   `json:"dir"`
	FIFO       bool   `json:"fifo"`
}

type vector struct {
	ID    string `json:"id"`
	Note  string `json:"note"`
	Input struct {
		Tree []node `json:"tree"`
		Root string `json:"root"`
	} `json:"input"`
	Expect struct {
		Files  []json.RawMessage `json:"files"`
		Digest string            `json:"digest"`
		Error  *struct {
			Class string `json:"class"`
		} `json:"error"`
	} `json:"expect"`
}

func TestVectors(t *testing.T) {
	text, err := testdata.FS.ReadFile("vectors/digest-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Vectors []vector `json:"vectors"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Vectors) < 40 {
		t.Fatalf("only %d vectors", len(file.Vectors))
	}
	for _, v := range file.Vectors {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			checkVector(t, v)
		})
	}
	t.Logf("%d digest vectors", len(file.Vectors))
}

func checkVector(t *testing.T, v vector) {
	dir := filepath.Join(t.TempDir(), "root"+v.Input.Root)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range v.Input.Tree {
		if err := n.build(dir); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, dir).Listing()
	want, got := []string{}, []string{}
	for _, raw := range v.Expect.Files {
		want = append(want, fileName(t, raw))
	}
	for e := range l.Counted {
		got = append(got, e.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: counted files differ (-want +got):\n%s", v.Note, diff)
	}
	// Where the clients crash the tree has no digest: the expected text is empty then.
	if l.Content.String() != v.Expect.Digest || (v.Expect.Error == nil) != (v.Expect.Digest != "") {
		t.Errorf("%s: digest %q, want %q", v.Note, l.Content, v.Expect.Digest)
	}
}

func (n node) path() string {
	if n.PathB64 != nil {
		return string(n.PathB64)
	}
	return n.Path
}

func (n node) build(dir string) error {
	path := filepath.Join(dir, n.path())
	if n.Dir {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch {
	case n.SymlinkTo != "":
		return os.Symlink(n.SymlinkTo, path)
	case n.HardlinkTo != "":
		return os.Link(filepath.Join(dir, n.HardlinkTo), path)
	case n.FIFO:
		return syscall.Mkfifo(path, 0o644)
	case n.Repeat != nil:
		return os.WriteFile(path, bytes.Repeat(n.Repeat, n.Count), 0o644)
	}
	if err := os.WriteFile(path, n.Data, 0o644); err != nil || n.Mode == "" {
		return err
	}
	mode, err := strconv.ParseUint(n.Mode, 8, 32)
	if err != nil {
		return err
	}
	return syscall.Chmod(path, uint32(mode))
}

// fileName reads a name of an expectation: a text, or base 64 where the name is not UTF-8.
func fileName(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var coded struct {
		PathB64 string `json:"path_b64"`
	}
	if err := json.Unmarshal(raw, &coded); err != nil {
		t.Fatal(err)
	}
	name, err := base64.StdEncoding.DecodeString(coded.PathB64)
	if err != nil {
		t.Fatal(err)
	}
	return string(name)
}
