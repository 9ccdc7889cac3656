package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gatehouse-registry/gatehouse/testdata/interop/serving"
)

// people are the tokens of those who sign in.
type people struct{ alice, bob string }

// newPeople makes the accounts with sf itself. Over plain HTTP, where it is tried, bob may hold one byte
// and does.
func newPeople(ctx context.Context, sf, dir string, reg *serving.Registry) (people, error) {
	home := filepath.Join(dir, "admin-home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return people{}, err
	}
	admin, err := reg.AdminToken()
	if err != nil {
		return people{}, err
	}
	run := func(stdin string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, sf, args...)
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home)
		if reg.CAFile != "" {
			cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+reg.CAFile)
		}
		cmd.Stdin = strings.NewReader(stdin)
		var screen strings.Builder
		cmd.Stderr = &screen
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("sf %s: %w\n%s", strings.Join(args, " "), err, screen.String())
		}
		return strings.TrimSpace(string(out)), nil
	}
	if _, err := run(admin, "login", reg.URL); err != nil {
		return people{}, err
	}
	tokens := map[string]string{}
	for _, name := range []string{"alice", "bob"} {
		if _, err := run("", "admin", "account", "create", name); err != nil {
			return people{}, err
		}
		if tokens[name], err = run("", "admin", "token", "create", name); err != nil {
			return people{}, err
		}
	}
	if reg.CAFile == "" {
		var out struct{}
		if err := callAPI(ctx, reg.URL, admin, http.MethodPut, "/api/admin/owners/bob/quota", map[string]int{"bytes": 1}, &out); err != nil {
			return people{}, err
		}
		if err := pushByte(ctx, reg, tokens["bob"]); err != nil {
			return people{}, err
		}
	}
	return people{tokens["alice"], tokens["bob"]}, nil
}

// pushByte makes bob hold what he may.
func pushByte(ctx context.Context, reg *serving.Registry, token string) error {
	const content = "x"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, reg.URL+"/v2/bob/byte/blobs/uploads/?digest="+digestOf(content), strings.NewReader(content))
	if err != nil {
		return err
	}
	req.SetBasicAuth("bob", token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("push a byte: %s", res.Status)
	}
	return nil
}
