package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// sessionFile holds who is signed in where, mode 0600.
const sessionFile = "credentials.json"

// sessions is the content of sessionFile.
type sessions struct {
	Current string             `json:"current"` // the server that commands speak to
	Servers map[string]session `json:"servers"`
}

// session is a sign-in at one server.
type session struct {
	Account string `json:"account"`
	Token   string `json:"token"`
}

// home is the folder of our own state: GATEHOUSE_HOME, else gatehouse below the user's configuration folder. It is not
// shared with the platforms' own clients.
func (e *Env) home() (string, error) {
	if dir := e.Vars["GATEHOUSE_HOME"]; dir != "" {
		return dir, nil
	}
	if dir := e.Vars["XDG_CONFIG_HOME"]; dir != "" {
		return filepath.Join(dir, "gatehouse"), nil
	}
	if dir := e.Vars["HOME"]; dir != "" {
		return filepath.Join(dir, ".config", "gatehouse"), nil
	}
	return "", errors.New("no home folder: set GATEHOUSE_HOME")
}

func (e *Env) loadSessions() (sessions, error) {
	s := sessions{Servers: map[string]session{}}
	dir, err := e.home()
	if err != nil {
		return s, err
	}
	path := filepath.Join(dir, sessionFile)
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(src, &s); err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	if s.Servers == nil {
		s.Servers = map[string]session{}
	}
	return s, nil
}

func (e *Env) saveSessions(s sessions) error {
	dir, err := e.home()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, sessionFile), append(text, '\n'), 0o600)
}

// client is a client of the server that the user is signed in at. GATEHOUSE_SERVER and GATEHOUSE_TOKEN stand in for the
// stored session, as in CI; GATEHOUSE_ACCOUNT may name the account beside them.
func (e *Env) client() (*client.Client, session, error) {
	s, err := e.loadSessions()
	if err != nil {
		return nil, session{}, err
	}
	server := e.Vars["GATEHOUSE_SERVER"]
	if server == "" {
		server = s.Current
	}
	if server == "" {
		known := slices.Sorted(maps.Keys(s.Servers))
		return nil, session{}, registry.Errorf(registry.Unauthorized, "no server chosen (known: %v)", known)
	}
	who := s.Servers[server]
	if token := e.Vars["GATEHOUSE_TOKEN"]; token != "" {
		who = session{Account: e.Vars["GATEHOUSE_ACCOUNT"], Token: token}
	}
	if who.Token == "" {
		return nil, who, registry.Errorf(registry.Unauthorized, "not signed in at %s", server)
	}
	c, err := client.New(client.Options{Server: server, Account: who.Account, Token: who.Token, UserAgent: "gatehouse/" + Version})
	return c, who, err
}

// ociClient is client for the OCI protocol, whose sign-in needs the account's name. A token from the environment may come
// without one; then the server is asked.
func (e *Env) ociClient(ctx context.Context) (*client.Client, error) {
	c, who, err := e.client()
	if err != nil || who.Account != "" {
		return c, err
	}
	user, err := c.Whoami(ctx)
	if err != nil {
		return nil, err
	}
	return c.As(user.Username), nil
}
