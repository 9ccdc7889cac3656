//go:build unix

package launchverify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LookupUser finds the account that text names, NAME or UID, each with :GID or :GROUP when the group is not the account's own.
// The supplementary groups are the account's. A UID that no account has needs a group, and has no others. Accounts are
// looked for in /etc/passwd and, where the system has it, by its getent, which knows those of a directory service: a static
// binary finds them too.
func LookupUser(text string) (User, error) {
	name, group, grouped := strings.Cut(text, ":")
	if name == "" || grouped && group == "" || strings.ContainsAny(text, "\n\x00") {
		return User{}, usagef("%.100q is no NAME or UID, with :GID or without", text)
	}
	u, known, err := account(name)
	if err != nil {
		return User{}, err
	}
	if grouped {
		if u.GID, err = groupID(group); err != nil {
			return User{}, err
		}
	}
	if !known {
		if u.UID, err = id(name); err != nil {
			return User{}, usagef("there is no user called %.100q", name)
		}
		if !grouped {
			return User{}, usagef("no account has the uid %d: name its group as well, %d:GID", u.UID, u.UID)
		}
		u.Groups = []int{u.GID}
	}
	if !slices.Contains(u.Groups, u.GID) {
		u.Groups = append(u.Groups, u.GID)
	}
	return u, nil
}

// maxID is the largest id that means somebody: the next one is the kernel's "nobody at all".
const maxID = 1<<32 - 2

func id(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err == nil && (n > maxID || strconv.FormatUint(n, 10) != text) {
		err = strconv.ErrRange
	}
	return int(n), err
}

func groupID(text string) (int, error) {
	if n, err := id(text); err == nil {
		return n, nil
	}
	if g, err := user.LookupGroup(text); err == nil {
		return id(g.Gid)
	}
	fields, err := getent("group", text)
	if err != nil || len(fields) < 3 || fields[0] != text {
		return 0, usagef("there is no group called %.100q", text)
	}
	return id(fields[2])
}

// account finds an account by its name or uid; known is false when there is none.
func account(key string) (u User, known bool, err error) {
	found, err := user.Lookup(key)
	if _, numeric := id(key); err != nil && numeric == nil {
		found, err = user.LookupId(key)
	}
	if err != nil {
		fields, entErr := getent("passwd", key)
		if entErr != nil || len(fields) < 6 {
			return User{}, false, nil
		}
		found = &user.User{Username: fields[0], Uid: fields[2], Gid: fields[3], HomeDir: fields[5]}
	}
	if found.Username != key && found.Uid != key {
		return User{}, false, nil // getent reads numbers as C does: 4294967296 is 0 to it
	}
	u = User{Name: found.Username, Home: found.HomeDir}
	var errs [2]error
	u.UID, errs[0] = id(found.Uid)
	u.GID, errs[1] = id(found.Gid)
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return User{}, false, fmt.Errorf("the account %.100q: %w", key, err)
	}
	u.Groups, err = groupsOf(found)
	return u, true, err
}

// groupsOf lists the groups of an account: those that getent knows, else those of /etc/group.
func groupsOf(u *user.User) ([]int, error) {
	var texts []string
	if out, err := runGetent("initgroups", u.Username); err == nil {
		texts = strings.Fields(string(out))
		texts = texts[min(1, len(texts)):] // the name comes first
	} else if texts, err = u.GroupIds(); err != nil {
		return nil, fmt.Errorf("list the groups of %.100q: %w", u.Username, err)
	}
	var groups []int
	for _, text := range texts {
		g, err := id(text)
		if err != nil {
			return nil, fmt.Errorf("list the groups of %.100q: %w", u.Username, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// getent gives the fields of the one line that a database has for a key.
func getent(database, key string) ([]string, error) {
	out, err := runGetent(database, key)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return strings.Split(string(line), ":"), nil
}

// getentTime bounds how long a directory service may take to answer.
const getentTime = 10 * time.Second

func runGetent(database, key string) ([]byte, error) {
	if strings.HasPrefix(key, "-") {
		return nil, errors.New("no key")
	}
	ctx, cancel := context.WithTimeout(context.Background(), getentTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/usr/bin/getent", database, key)
	cmd.Env, cmd.Dir = stageEnv, "/"
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(out, most))
	return text, errors.Join(err, out.Close(), cmd.Wait())
}
