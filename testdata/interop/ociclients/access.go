package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// as is the round of somebody else at the same client: another home folder.
func (r *round) as(name string) *round {
	other := *r
	home := filepath.Join(r.dir, "home-"+name)
	other.env = nil
	for _, e := range r.env {
		other.env = append(other.env, strings.ReplaceAll(e, filepath.Join(r.dir, "home"), home))
	}
	if err := os.MkdirAll(filepath.Join(home, "run"), 0o700); err != nil {
		r.settle("a home for "+name, nil, "", err)
	}
	return &other
}

// signIn makes the command that signs an account in with a password from standard input.
type signIn func(account string) []string

// hides makes a repository private: to another account it then looks absent, its owner goes on reading. read fails with
// absent on the screen when there is nothing. It gives the round of the other account, which may push below bob, but no more
// bytes than its quota.
func hides(r *round, repository string, in signIn, absent []string, read ...string) (bob *round) {
	var before struct{}
	path := "/api/repositories/" + strings.TrimPrefix(repository, r.host+"/")
	r.settle("make a repository private", nil, "", r.api(r.people.alice, http.MethodPatch, path, map[string]bool{"private": true}, &before))
	bob = r.as("bob")
	bob.with(r.people.bob).ok("sign in as another", in("bob")...)
	bob.refused("another reads a private repository", absent, read...)
	r.ok("its owner reads it", read...)
	r.settle("make it public", nil, "", r.api(r.people.alice, http.MethodPatch, path, map[string]bool{"private": false}, &before))
	bob.ok("another reads it then", read...)
	return bob
}

// robot signs a robot in that may push below one name only.
func robot(r *round, in signIn, push func(repository string) []string) {
	var made struct{ Name, Secret string }
	err := r.api(r.people.alice, http.MethodPost, "/api/robots", map[string]any{
		"name": "ci-" + r.client, "expires_in": 3600,
		"scopes": []map[string]any{{"repository": "alice/" + r.client + "/robot/**", "actions": []string{"pull", "push"}}},
	}, &made)
	r.settle("make a robot", nil, "", err)
	ci := r.as("robot")
	ci.with(made.Secret).ok("sign in as the robot", in(made.Name)...)
	ci.ok("the robot pushes within its scope", push(r.repo("robot")+"/img")...)
	ci.refused("the robot pushes outside of it", []string{"may not"}, push(r.repo("elsewhere"))...)
}

// api calls the server's own API.
func (r *round) api(token, method, path string, in, out any) error {
	return callAPI(r.ctx, r.reg.URL, token, method, path, in, out)
}

func callAPI(ctx context.Context, server, token, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, server+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, answer)
	}
	return json.Unmarshal(answer, out)
}
