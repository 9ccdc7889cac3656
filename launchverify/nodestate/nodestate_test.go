//go:build unix

package nodestate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The test program is an ordinary user's agent, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == joinVerb {
		s, err := joined(os.Args[2])
		if err == nil {
			s, err = Open(os.Args[2])
		}
		fmt.Println(err == nil && s.SelfAsserted, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const joinVerb = "join"

var who = Identity{Server: "https://registry", Name: "gpu-1", Registry: "registry-1"}

func joined(dir string) (*State, error) {
	s, err := Prepare(dir, false)
	if err != nil {
		return nil, err
	}
	return s, s.Join(who, "gh_node_secret")
}

func TestJoinAndLeave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "node")
	if _, err := Open(dir); !errors.Is(err, ErrNotJoined) {
		t.Errorf("before: %v", err)
	}
	s, err := joined(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(who, got.Identity); diff != "" || got.Token != "gh_node_secret" || !got.Key.Equal(s.Key) || got.KeyID != s.KeyID || got.SelfAsserted != (os.Geteuid() != 0) {
		t.Errorf("read back as %+v (-want +got):\n%s", got, diff)
	}
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, keyFile): 0o600, filepath.Join(dir, nodeFile): 0o600, filepath.Join(dir, tokenFile): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, expected %v", path, info.Mode(), err, want)
		}
	}
	// To join again keeps the key, unless a new one is asked for.
	again, err := joined(dir)
	if err != nil || again.KeyID != s.KeyID {
		t.Errorf("joined again with key %s, %v, expected %s", again.KeyID, err, s.KeyID)
	}
	// Until the registry knows the new one the node signs with the old one.
	fresh, err := Prepare(dir, true)
	if err != nil || fresh.KeyID == s.KeyID {
		t.Fatalf("the new key is the old one, %v", err)
	}
	if now, err := Open(dir); err != nil || now.KeyID != s.KeyID {
		t.Errorf("before it joined the node has key %v, %v", now, err)
	}
	if err := fresh.Join(who, "another"); err != nil {
		t.Fatal(err)
	}
	if now, err := Open(dir); err != nil || now.KeyID != fresh.KeyID || now.Token != "another" {
		t.Errorf("after it joined the node has key %v, %v", now, err)
	}
	if err := s.Leave(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrNotJoined) {
		t.Errorf("after: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// A registry that names the node oddly is refused before anything of it is kept.
func TestOddAnswers(t *testing.T) {
	for _, odd := range []Identity{{Server: "https://registry"}, {Name: "gpu-1"}, {Server: "https://registry", Name: "a\nb"}, {Server: "https://registry", Name: strings.Repeat("a", maxName+1)}} {
		dir := filepath.Join(t.TempDir(), "node")
		s, err := Prepare(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if s.Join(odd, "token") == nil || s.Join(who, "") == nil || s.Join(who, "two\nlines") == nil {
			t.Errorf("joined as %+v", odd)
		}
		if _, err := Open(dir); !errors.Is(err, ErrNotJoined) {
			t.Errorf("%+v: %v", odd, err)
		}
	}
}

// What others may use, or what is no key, is refused.
func TestRefusals(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) func(dir string) error {
		return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600) }
	}
	chmod := func(name string, mode fs.FileMode) func(dir string) error {
		return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
	}
	for name, spoil := range map[string]func(dir string) error{
		"a folder for all":            chmod(".", 0o755),
		"a folder for the group":      chmod(".", 0o750),
		"a key for all to read":       chmod(keyFile, 0o604),
		"a key for the group":         chmod(keyFile, 0o640),
		"a token for all":             chmod(tokenFile, 0o644),
		"an identity that all write":  chmod(nodeFile, 0o602),
		"no key":                      func(dir string) error { return os.Remove(filepath.Join(dir, keyFile)) },
		"no token":                    func(dir string) error { return os.Remove(filepath.Join(dir, tokenFile)) },
		"an ecdsa key":                write(keyFile, string(pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}))),
		"an empty key file":           write(keyFile, ""),
		"a long key file":             write(keyFile, strings.Repeat("x", maxFile+1)),
		"an identity without a name":  write(nodeFile, `{"server":"https://registry"}`),
		"an identity with more in it": write(nodeFile, `{"server":"https://registry","name":"n","more":1}`),
		"a key that is a link": func(dir string) error {
			path := filepath.Join(dir, keyFile)
			return errors.Join(os.Rename(path, path+".other"), os.Symlink(path+".other", path))
		},
		"a key that is a FIFO": func(dir string) error {
			path := filepath.Join(dir, keyFile)
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600))
		},
		"a folder that is a link": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".other"), os.Symlink(dir+".other", dir))
		},
	} {
		dir := filepath.Join(t.TempDir(), "node")
		if _, err := joined(dir); err != nil {
			t.Fatal(err)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		if s, err := Open(dir); err == nil || errors.Is(err, ErrNotJoined) {
			t.Errorf("%s: read as %+v, %v", name, s, err)
		}
	}
}

// Somebody else's key is not ours, and an ordinary user's is self-asserted.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		dir := filepath.Join(t.TempDir(), "node")
		if s, err := joined(dir); err != nil || !s.SelfAsserted {
			t.Errorf("an ordinary user's key: %+v, %v", s, err)
		}
		return // only root can make files of others
	}
	const nobody = 65534
	base, err := os.MkdirTemp("", "nodestate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	self := filepath.Join(base, "agent")
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(self, program, 0o755), os.Chmod(base, 0o777)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "node")
	cmd := exec.Command(self, joinVerb, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "true <nil>\n" {
		t.Errorf("an ordinary user's key: %s, %v", out, err)
	}
	if s, err := Open(dir); err == nil {
		t.Errorf("root takes uid %d's key as its own: %+v", nobody, s)
	}
	mine := filepath.Join(base, "root")
	if _, err := joined(mine); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(mine, keyFile), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(mine); err == nil {
		t.Errorf("a key of uid %d in root's folder is taken: %+v", nobody, s)
	}
}

// Several that join at once have one key.
func TestJoinTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "node")
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			s, err := joined(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.KeyID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("two keys: %s and %s", id, ids[0])
		}
	}
}
