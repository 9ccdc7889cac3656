package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gatehouse-registry/gatehouse/internal/durable"
	"github.com/gatehouse-registry/gatehouse/registry"
	"github.com/gatehouse-registry/gatehouse/registry/api/wire"
	"github.com/gatehouse-registry/gatehouse/registry/client"
)

// sessionFile holds who is signed in where, mode 0600. Whoever changes it holds sessionLock.
const (
	sessionFile = "credentials.json"
	sessionLock = "credentials.lock"
)

// sessions is the content of sessionFile.
type sessions struct {
	Current string             `json:"current"` // the server that commands speak to
	Servers map[string]session `json:"servers"`
}

// session is a sign-in at one server: with a token, or with a session's two.
type session struct {
	Account string `json:"account"`
	Token   string `json:"token"`

	Refresh   string    `json:"refresh,omitempty"`   // "" for a token that somebody gave
	ExpiresAt time.Time `json:"expires_at,omitzero"` // when Token is to be exchanged
}

// stale reports whether the token must be exchanged before it is sent.
func (s session) stale() bool { return s.Refresh != "" && !time.Now().Before(s.ExpiresAt) }

// sessionOf keeps what a server gave for a sign-in. The token is exchanged in the middle of its life, so that a command that
// takes long begins with one that does too.
func sessionOf(in wire.SignedIn) session {
	life := time.Duration(in.ExpiresIn) * time.Second
	return session{Account: in.User.Username, Token: in.AccessToken, Refresh: in.RefreshToken, ExpiresAt: time.Now().Add(life / 2).UTC()}
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

// changeSessions changes sessionFile while no other sf does.
func (e *Env) changeSessions(change func(*sessions) error) error {
	dir, err := e.home()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(dir, sessionLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // which ends the lock, as the end of the process does
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	s, err := e.loadSessions()
	if err != nil {
		return err
	}
	if err := change(&s); err != nil {
		return err
	}
	return saveSessions(dir, s)
}

func saveSessions(dir string, s sessions) error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, sessionFile), append(text, '\n'), 0o600)
}

// client is a client of the server that the user is signed in at. GATEHOUSE_SERVER and GATEHOUSE_TOKEN stand in for the
// stored session, as in CI; GATEHOUSE_ACCOUNT may name the account beside them.
func (e *Env) client() (*client.Client, session, error) { return e.patientClient(0) }

// patientClient is a client that tries again what the server was too busy for.
func (e *Env) patientClient(patience time.Duration) (*client.Client, session, error) {
	s, err := e.loadSessions()
	if err != nil {
		return nil, session{}, err
	}
	server := e.Vars["GATEHOUSE_SERVER"]
	if server == "" {
		server = s.Current
	}
	if server == "" {
		return nil, session{}, registry.Errorf(registry.Unauthorized, "no server chosen: sf login SERVER, or GATEHOUSE_SERVER and GATEHOUSE_TOKEN")
	}
	who := session{Account: e.Vars["GATEHOUSE_ACCOUNT"], Token: e.Vars["GATEHOUSE_TOKEN"]}
	if who.Token == "" {
		if who, err = e.sessionAt(server); err != nil {
			return nil, who, err
		}
	}
	if who.Token == "" {
		return nil, who, registry.Errorf(registry.Unauthorized, "not signed in at %s: sf login %s, or GATEHOUSE_TOKEN", server, server)
	}
	c, err := client.New(client.Options{
		Server: server, Account: who.Account, Token: who.Token, UserAgent: "gatehouse/" + Version, RetryFor: patience,
	})
	return c, who, err
}

// defaultPatience is for how long packs are asked for again when GATEHOUSE_RETRY says nothing.
const defaultPatience = 5 * time.Minute

// patience is for how long packs are asked for again.
func (e *Env) patience() (time.Duration, error) {
	text := e.Vars["GATEHOUSE_RETRY"]
	if text == "" {
		return defaultPatience, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usagef("GATEHOUSE_RETRY: %.40q is no length of time such as 90s, 5m or 0s", text)
	}
	return d, nil
}

// sessionAt is the sign-in at a server, with a token that lasts; the zero session when there is none.
func (e *Env) sessionAt(server string) (session, error) {
	s, err := e.loadSessions()
	if who := s.Servers[server]; err != nil || !who.stale() {
		return who, err
	}
	return e.refresh(server)
}

// refreshTime bounds how long a command waits for another token.
const refreshTime = 30 * time.Second

// refresh exchanges the token of a session that is over. Of several commands at once, one does it and the others find what it
// got.
func (e *Env) refresh(server string) (who session, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), refreshTime)
	defer cancel()
	err = e.changeSessions(func(s *sessions) error {
		if who = s.Servers[server]; !who.stale() {
			return nil
		}
		c, err := client.New(client.Options{Server: server, UserAgent: "gatehouse/" + Version})
		if err != nil {
			return err
		}
		got, err := c.RefreshSession(ctx, who.Refresh)
		if errors.Is(err, &registry.Error{Code: registry.Unauthorized}) {
			return registry.Errorf(registry.Unauthorized, "the session at %s has ended: sign in again", server)
		}
		if err != nil {
			return err
		}
		fresh := sessionOf(got)
		fresh.Account = who.Account
		who, s.Servers[server] = fresh, fresh
		return nil
	})
	return who, err
}

// ociClient is client for the OCI protocol, whose sign-in needs the account's name. A token from the environment may come
// without one; then the server is asked. It is patient, as GATEHOUSE_RETRY says.
func (e *Env) ociClient(ctx context.Context) (*client.Client, error) {
	patience, err := e.patience()
	if err != nil {
		return nil, err
	}
	c, who, err := e.patientClient(patience)
	if err != nil || who.Account != "" {
		return c, err
	}
	user, err := c.Whoami(ctx)
	if err != nil {
		return nil, err
	}
	return c.As(user.Username), nil
}
