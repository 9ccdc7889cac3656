// Package nodestate keeps what a node knows of itself, in a folder that only its owner may enter:
//
//	key.pem     the ed25519 key that signs what the node says (PKCS #8, mode 0600)
//	node.json   which registry it joined, and its name there
//	token       with which it signs in there
//	spool/      statements on their way to the registry (runspool)
//
// Where root owns folder and key, nobody but root can have signed. Any other state is self-asserted: who may use the key may
// have signed whatever they like. A folder or file that others than its owner may read or write is refused, and so is one that
// belongs to somebody who is neither root nor the caller. Files survive a crash whole or not at all; node.json is written last,
// so a node that began to join and was killed has not joined.
package nodestate

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/gatehouse-registry/gatehouse/admission/receipt"
	"github.com/gatehouse-registry/gatehouse/digest/strictjson"
	"github.com/gatehouse-registry/gatehouse/internal/durable"
)

// RootFolder is where the state of a node lies that root set up.
const RootFolder = "/etc/gatehouse/node"

const (
	keyFile   = "key.pem"
	nextFile  = "key.next.pem" // a new key that the registry may not know yet
	nodeFile  = "node.json"
	tokenFile = "token"
	spoolName = "spool"

	pemType = "PRIVATE KEY"
	// maxFile bounds each of the files in bytes.
	maxFile = 16 << 10
)

// Identity is what node.json says.
type Identity struct {
	Server   string `json:"server"`             // the registry's address
	Name     string `json:"name"`               // the node's name there
	Registry string `json:"registry,omitempty"` // the registry's id, as in receipts
}

// State is a node that has joined.
type State struct {
	Identity
	Token string
	Key   ed25519.PrivateKey
	KeyID string // receipt.KeyID of its public half
	// SelfAsserted says that somebody else than root owns folder or key.
	SelfAsserted bool

	dir  string
	next bool // the key lies in nextFile
}

// Folder is where the state lies.
func (s *State) Folder() string { return s.dir }

// Spool is the folder of statements on their way.
func (s *State) Spool() string { return filepath.Join(s.dir, spoolName) }

// Public is the public half of the key.
func (s *State) Public() ed25519.PublicKey { return s.Key.Public().(ed25519.PublicKey) }

// ErrNotJoined says that a folder holds no node's state.
var ErrNotJoined = errors.New("this node has not joined a registry: sf node join SERVER")

// Open reads the state in dir. A folder that is not there, or in which nobody has joined, is an error that wraps
// ErrNotJoined.
func Open(dir string) (*State, error) {
	s, err := open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNotJoined)
	}
	if err != nil {
		return nil, fmt.Errorf("node state: %w", err)
	}
	return s, nil
}

func open(dir string) (*State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	s := &State{dir: dir}
	if s.SelfAsserted, err = private(dir); err != nil {
		return nil, err
	}
	text, _, err := s.read(nodeFile)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Decode(text, maxFile, strictjson.Options{MaxDepth: 2}, &s.Identity); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, nodeFile), err)
	}
	if s.Server == "" || s.Name == "" {
		return nil, fmt.Errorf("%s names no server or no node", filepath.Join(dir, nodeFile))
	}
	if text, _, err = s.read(tokenFile); err != nil {
		return nil, present(err)
	}
	s.Token = strings.TrimSpace(string(text))
	if err := s.readKey(keyFile); err != nil {
		return nil, present(err)
	}
	return s, nil
}

// present is the error of a file that should be there: a node without it has not left.
func present(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New(err.Error() + " (join again)")
	}
	return err
}

func (s *State) readKey(name string) error {
	text, owned, err := s.read(name)
	if err != nil {
		return err
	}
	if s.Key, err = parseKey(text); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(s.dir, name), err)
	}
	s.SelfAsserted = s.SelfAsserted || !owned
	s.KeyID, err = receipt.KeyID(s.Public())
	return err
}

// read reads one file of the state and says whether root owns it.
func (s *State) read(name string) (text []byte, root bool, err error) {
	f, err := os.OpenFile(filepath.Join(s.dir, name), os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, false, fmt.Errorf("%s is no regular file of at most %d bytes", f.Name(), maxFile)
	}
	if root, err = owner(f.Name(), info); err != nil {
		return nil, false, err
	}
	text, err = io.ReadAll(io.LimitReader(f, maxFile))
	return text, root, err
}

// private refuses a folder that others than its owner may enter, and says whether it is self-asserted.
func private(dir string) (selfAsserted bool, err error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return false, err
	}
	if !info.IsDir() {
		return false, fmt.Errorf("%s is no folder", dir)
	}
	root, err := owner(dir, info)
	return !root, err
}

// Prepare makes the state's folder and a key where there are none, and gives the state without an identity. With newKey the
// state has another key, which Join puts in place of the one that is there: until then the node signs with the old one. Several
// that prepare one empty folder at once end with one key.
func Prepare(dir string, newKey bool) (*State, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &State{dir: dir, next: newKey}
	if s.SelfAsserted, err = private(dir); err != nil {
		return nil, fmt.Errorf("node state: %w", err)
	}
	name := keyFile
	if newKey {
		name = nextFile
	}
	if err = s.readKey(name); newKey || errors.Is(err, fs.ErrNotExist) {
		if err = makeKey(filepath.Join(dir, name), newKey); err == nil {
			err = s.readKey(name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("node state: %w", err)
	}
	return s, nil
}

// maxName bounds a node's name in bytes.
const maxName = 256

// Join completes a prepared state. It is on disk when Join returns nil.
func (s *State) Join(who Identity, token string) error {
	if who.Server == "" || who.Name == "" || len(who.Name) > maxName || strings.ContainsFunc(who.Name, unicode.IsControl) {
		return fmt.Errorf("node state: the registry at %.200q gave the node the name %.300q", who.Server, who.Name)
	}
	if token == "" || strings.ContainsAny(token, "\r\n") {
		return errors.New("node state: a token is one line of text")
	}
	text, err := json.MarshalIndent(who, "", "  ")
	if err != nil {
		return err
	}
	if s.next {
		if err := os.Rename(filepath.Join(s.dir, nextFile), filepath.Join(s.dir, keyFile)); err != nil {
			return err
		}
		s.next = false
	}
	if err := durable.Replace(filepath.Join(s.dir, tokenFile), []byte(token+"\n"), 0o600); err != nil {
		return err
	}
	s.Identity, s.Token = who, token
	return durable.Replace(filepath.Join(s.dir, nodeFile), append(text, '\n'), 0o600)
}

// Leave removes who the node is, its token and its key. The spool stays unless it is empty.
func (s *State) Leave() error {
	var errs []error
	for _, name := range []string{nodeFile, tokenFile, keyFile, nextFile} {
		if err := os.Remove(filepath.Join(s.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, durable.SyncFolder(s.dir))
	os.Remove(s.Spool()) // fails while something is in it
	return errors.Join(errs...)
}

func makeKey(path string, replace bool) error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der})
	if replace {
		return durable.Replace(path, text, 0o600)
	}
	if err := durable.Create(path, text, 0o600); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func parseKey(text []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemType || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("it is no PEM file with one %q block", pemType)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("it holds no private key")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it holds a %T, expected an ed25519 key", parsed)
	}
	return key, nil
}
