package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/gatehouse-registry/gatehouse/admission/archive"
	"github.com/gatehouse-registry/gatehouse/admission/limit"
	"github.com/gatehouse-registry/gatehouse/admission/name"
	"github.com/gatehouse-registry/gatehouse/admission/pack"
	"github.com/gatehouse-registry/gatehouse/admission/rule"
	"github.com/gatehouse-registry/gatehouse/digest"
	"github.com/gatehouse-registry/gatehouse/digest/tree"
)

// packFolders are the folders below a client's home that packs are synced into (recipes-and-locks.md 5).
var packFolders = map[string]string{
	string(pack.KindRecipe): "recipes", string(pack.KindBenchmark): "benchmarks",
	string(pack.KindPlaybook): "playbooks", string(pack.KindPrompt): "prompts",
}

// folderOrder is the order in which they are looked through.
var folderOrder = []string{"recipes", "benchmarks", "playbooks", "prompts"}

// ShelfPack is a pack that a server wants on its users' disks.
type ShelfPack struct {
	ID      string // <owner>/<name>, a safe path
	Kind    string // one that is synced
	Version string // "" where the server does not say it
	Content string // digest, as the server says it
	Tree    string // likewise, "" where the server is no Gatehouse
}

// Ref is the pack as messages name it.
func (p ShelfPack) Ref() string { return p.ID + "@" + p.Version }

func (p ShelfPack) folder() string { return path.Join(packFolders[p.Kind], p.ID) }

// ReadShelf reads an answer of GET /api/extensions from any server: rows of the kinds that are synced, but for disabled ones.
// Of two rows of one pack the last counts; no list is an empty one, as for the real clients. An answer that can't be read, or that has an id which is no path of two safe
// names, is refused whole: what it leaves out would be deleted.
func ReadShelf(src []byte) ([]ShelfPack, error) {
	var answer struct {
		Extensions []*struct {
			ID      string `json:"id"`
			Kind    string `json:"kind"`
			Version string `json:"version"`
			Digest  string `json:"digest"`
			Tree    string `json:"tree_digest"`
			Enabled *bool  `json:"enabled"`
		} `json:"extensions"`
	}
	if err := json.Unmarshal(src, &answer); err != nil {
		return nil, fmt.Errorf("the server's list of packs can't be read: %w", err)
	}
	var list []ShelfPack
	at := make(map[string]int) // of a folder, in any case of its letters
	for i, row := range answer.Extensions {
		if row == nil {
			return nil, fmt.Errorf("the server's list of packs: extensions[%d] is null, expected an object", i)
		}
		if packFolders[row.Kind] == "" || row.Enabled != nil && !*row.Enabled {
			continue
		}
		owner, packName, ok := strings.Cut(row.ID, "/")
		if !ok || !name.IsSegment(owner) || !name.IsSegment(packName) {
			return nil, fmt.Errorf("the server's list of packs: extensions[%d] has the id %.100q, expected <owner>/<name>", i, row.ID)
		}
		p := ShelfPack{ID: row.ID, Kind: row.Kind, Version: row.Version, Content: row.Digest, Tree: row.Tree}
		fold := strings.ToLower(p.folder())
		j, twice := at[fold]
		switch {
		case twice && list[j].folder() != p.folder():
			return nil, fmt.Errorf("the server's list of packs: %.100q and %.100q would lie in one folder on some systems", list[j].ID, p.ID)
		case twice:
			list[j] = p
		default:
			at[fold] = len(list)
			list = append(list, p)
		}
	}
	return list, nil
}

// Shelf lists what the server wants on the disks of users of the dialect that the client is of (see For).
func (c *Client) Shelf(ctx context.Context) ([]ShelfPack, error) {
	var answer json.RawMessage
	r := request{method: http.MethodGet, path: "/api/extensions", query: url.Values{"source": {"user"}}}
	if err := c.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	return ReadShelf(answer)
}

// OpenPack fetches the archive of a pack; the caller closes it.
func (c *Client) OpenPack(ctx context.Context, p ShelfPack) (io.ReadCloser, error) {
	r := request{method: http.MethodGet, path: "/api/plugins/" + p.ID + "/package"}
	if p.Version != "" {
		r.query = url.Values{"version": {p.Version}}
	}
	res, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// SyncOptions say how packs are synced.
type SyncOptions struct {
	Home  string // the client's folder; made when it is not there
	Prune bool   // remove packs that the shelf does not have
	Fetch func(context.Context, ShelfPack) (io.ReadCloser, error)
}

// Synced says what a sync did. Packs are named as ShelfPack.Ref, removed and left ones by their id.
type Synced struct {
	Added   []string      `json:"added"`
	Updated []string      `json:"updated"`
	Removed []string      `json:"removed"`
	Left    []string      `json:"left"` // not on the shelf, and not removed without Prune
	Failed  []SyncFailure `json:"failed"`
}

// SyncFailure is a pack that could not be synced. The older copy, where there is one, is still there.
type SyncFailure struct {
	Pack   string `json:"pack"`
	Reason string `json:"reason"`
}

// SyncPacks makes the packs below a client's home those of the shelf, as the real clients do it: what has its digest is not
// fetched, what can't be fetched or is another than the server says is reported and left, and the others go on. A pack is
// there whole or not at all. Nothing outside the home is read or written, whatever the shelf and the archives say.
func SyncPacks(ctx context.Context, shelf []ShelfPack, opt SyncOptions) (Synced, error) {
	out := Synced{Added: []string{}, Updated: []string{}, Removed: []string{}, Left: []string{}, Failed: []SyncFailure{}}
	if err := os.MkdirAll(opt.Home, 0o755); err != nil {
		return out, err
	}
	home, err := os.OpenRoot(opt.Home)
	if err != nil {
		return out, err
	}
	defer home.Close()
	s := syncing{home: home, opt: opt, out: &out}
	if err := s.clean(); err != nil {
		return out, err
	}
	for _, p := range shelf {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if err := s.pack(ctx, p); err != nil {
			out.Failed = append(out.Failed, SyncFailure{p.Ref(), err.Error()})
		}
	}
	return out, s.prune(shelf)
}

// syncing carries one sync.
type syncing struct {
	home *os.Root
	opt  SyncOptions
	out  *Synced
}

// stagePrefix begins the names of folders in which packs are made ready. They lie beside the folders that clients read.
const stagePrefix = ".sync-"

// staleStage is when a stage is one that a killed sync left.
const staleStage = 24 * time.Hour

// clean removes what killed syncs left.
func (s *syncing) clean() error {
	entries, err := fs.ReadDir(s.home.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), stagePrefix) && time.Since(info.ModTime()) > staleStage {
			if err := s.home.RemoveAll(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// pack brings one pack up to date.
func (s *syncing) pack(ctx context.Context, p ShelfPack) error {
	want, err := digest.Parse(p.Content)
	if err != nil {
		return fmt.Errorf("the server says the digest %.100q of it, which is none", p.Content)
	}
	there, current := s.holds(p, want)
	if current {
		return nil
	}
	stage := stagePrefix + fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	if err := s.home.MkdirAll(path.Join(stage, "new"), 0o755); err != nil {
		return err
	}
	defer s.home.RemoveAll(stage)
	if err := s.fetch(ctx, p, want, path.Join(stage, "new")); err != nil {
		return err
	}
	if err := s.replace(stage, p.folder(), there); err != nil {
		return err
	}
	if there {
		s.out.Updated = append(s.out.Updated, p.Ref())
	} else {
		s.out.Added = append(s.out.Added, p.Ref())
	}
	return nil
}

// holds reports whether a folder of the pack is there, and whether it is the one that is wanted.
func (s *syncing) holds(p ShelfPack, want digest.Digest) (there, current bool) {
	root, err := s.home.OpenRoot(p.folder())
	if err != nil {
		_, err = s.home.Lstat(p.folder())
		return err == nil, false
	}
	defer root.Close()
	dir, err := tree.OpenDir(root)
	return true, err == nil && dir.Listing().Content == want && (p.Tree == "" || dir.Listing().Tree.String() == p.Tree)
}

// fetch unpacks a pack into an empty folder, when it is what the server says.
func (s *syncing) fetch(ctx context.Context, p ShelfPack, want digest.Digest, into string) error {
	src, err := s.opt.Fetch(ctx, p)
	if err != nil {
		return err
	}
	defer src.Close()
	bytes, err := io.ReadAll(io.LimitReader(src, limit.Compressed+1))
	if err != nil {
		return err
	}
	a, report, err := archive.Check(archive.FromBytes(bytes), archive.Options{Policy: rule.SoftenAll()})
	if err != nil {
		return err
	}
	if a == nil {
		v := report.Violations[0]
		return fmt.Errorf("the archive is refused: %s (%s)", v.Message, v.Rule)
	}
	defer a.Close()
	if got := a.Listing(); got.Content != want || p.Tree != "" && got.Tree.String() != p.Tree {
		return fmt.Errorf("the server says that its digest is %s, what it sent has %s", want, got.Content)
	}
	root, err := s.home.OpenRoot(into)
	if err != nil {
		return err
	}
	defer root.Close()
	return archive.Unpack(a, root, archive.UnpackOptions{Sync: true})
}

// replace moves what was made ready to its place, and what was there out of the way.
func (s *syncing) replace(stage, folder string, there bool) error {
	if err := s.home.MkdirAll(path.Dir(folder), 0o755); err != nil {
		return err
	}
	old := path.Join(stage, "old")
	if there {
		if err := s.home.Rename(folder, old); err != nil {
			return err
		}
	}
	err := s.home.Rename(path.Join(stage, "new"), folder)
	if err != nil && there {
		err = errors.Join(err, s.home.Rename(old, folder))
	}
	return err
}

// prune removes, or names, the packs that the shelf does not have.
func (s *syncing) prune(shelf []ShelfPack) error {
	wanted := make(map[string]bool)
	for _, p := range shelf {
		wanted[p.folder()] = true
	}
	for _, folder := range folderOrder {
		owners, err := folders(s.home, folder)
		if err != nil {
			return err
		}
		for _, owner := range owners {
			if err := s.pruneOwner(folder, owner, wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *syncing) pruneOwner(folder, owner string, wanted map[string]bool) error {
	names, err := folders(s.home, path.Join(folder, owner))
	if err != nil {
		return err
	}
	for _, packName := range names {
		id := path.Join(owner, packName)
		switch {
		case wanted[path.Join(folder, id)]:
		case !s.opt.Prune:
			s.out.Left = append(s.out.Left, id)
		default:
			if err := s.home.RemoveAll(path.Join(folder, id)); err != nil {
				return err
			}
			s.out.Removed = append(s.out.Removed, id)
		}
	}
	return nil
}

// folders lists the folders in a folder, by name; none when it is not there.
func folders(root *os.Root, folder string) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
